"""The data of a plan: datasets of the registry by name, and files of one's own."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from prevalens.collection import Collection
from prevalens.datasets import Dataset, data_home, load, names, read, text_pipeline
from prevalens.datasets.archives import tree_digest
from prevalens.datasets.files import fingerprint
from prevalens.datasets.home import find
from prevalens.datasets.registry import lookup
from prevalens.experiments.tables import Table
from prevalens.experiments.values import canonical
from prevalens.validation import InputError

__all__ = ["Source", "checksum", "open_dataset"]

_OPTIONS = tuple(name for name in inspect.signature(read).parameters if name != "path")


@dataclass(frozen=True)
class Source:
    """Where the items of a dataset come from.

    Parameters
    ----------
    name : str
        A name of the registry, or any other if there are files.
    train, test : str
        Files with training and test items; empty for a dataset of the registry.
    options : dict
        How to read them: the arguments of `prevalens.datasets.read`.
    """

    name: str
    train: str = ""
    test: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, name: str, table: Table, folder: Path) -> Source:
        """Read it from a table of a plan that lies in `folder`."""
        if name in names():
            raise InputError(
                f"{table.where}: {table.key} has the name of a known dataset; choose another."
            )
        train, test = (str(folder / table.text(part)) for part in ("train", "test"))
        options = table.options(_OPTIONS)
        table.close()
        return cls(name, train, test, options)

    def to_table(self) -> dict[str, Any]:
        """The table that it is read from."""
        return {"train": self.train, "test": self.test, **self.options}

    def without_folders(self) -> Source:
        """The same with the bare names of the files."""
        return replace(self, train=Path(self.train).name, test=Path(self.test).name)

    def content(self) -> dict[str, Any]:
        """What identifies the data beside their checksum; where files lie does not."""
        return {"name": self.name, "options": dict(self.options)}


def checksum(source: Source) -> str:
    """The checksum of the data, without reading them into memory where that can be avoided."""
    if source.train:
        return fingerprint(tree_digest(Path(path)) for path in (source.train, source.test))
    found = find(lookup(source.name), data_home())
    if found is not None:
        return fingerprint(map(tree_digest, found.paths))
    return load(source.name).sha


def open_dataset(source: Source) -> Dataset:
    """Load the data; those of the last call are still at hand."""
    return _open(canonical(asdict(source)))


@lru_cache(maxsize=1)
def _open(content: str) -> Dataset:
    source = Source(**json.loads(content))
    return _own_dataset(source) if source.train else load(source.name)


def _own_dataset(source: Source) -> Dataset:
    train = read(source.train, **source.options)
    # Lists of tags name the labels; those of the training items are the ones that count.
    known = {"labels": train.labels} if "tags" in source.options else {}
    test = read(source.test, **{**known, **source.options})
    if train.labels != test.labels:
        raise InputError(
            f"The files {source.train} and {source.test} of the dataset {source.name!r} have "
            "different labels."
        )
    if train.is_text:
        train, test = _with_features(train, test)
    return Dataset(
        name=source.name,
        train=train,
        test=test,
        description=f"The items of {Path(source.train).name} and {Path(source.test).name}.",
        source=source.train,
        sha=checksum(source),
    )


def _with_features(train: Collection, test: Collection) -> tuple[Collection, Collection]:
    """Texts as the paper prepares them, with the words of the training texts."""
    pipeline = text_pipeline().fit(train.X)
    words = pipeline.get_feature_names_out()
    return (
        train.with_X(pipeline.transform(train.X), features=words),
        test.with_X(pipeline.transform(test.X), features=words),
    )
