"""Cells of a plan and their data: datasets of the registry, or the user's own files."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from prevalens.catalogue import fingerprints
from prevalens.collection import Collection
from prevalens.datasets import Dataset, data_home, load, names, read, text_pipeline
from prevalens.datasets.home import find
from prevalens.datasets.registry import lookup
from prevalens.experiments.specs import (
    MethodSpec,
    PlanTable,
    ProtocolSpec,
    canonical,
    checksum,
    method_tree,
    names_in,
    value_tree,
)
from prevalens.files import fingerprint, tree_digest
from prevalens.metrics import INTERVAL_METRICS
from prevalens.validation import InputError

_OPTIONS = tuple(name for name in inspect.signature(read).parameters if name != "path")


@dataclass(frozen=True)
class DataSource:
    """Where the items of a dataset come from.

    Parameters
    ----------
    name : str
        A name of the registry, also with the date of a cut, such as ``un@1985``; or any other if
        there are files.
    train, test : str
        Files with training and test items; empty for a dataset of the registry.
    options : dict
        How to read them: the arguments of `prevalens.datasets.read`; for a dataset of the registry
        those of `prevalens.datasets.load`.
    """

    name: str
    train: str = ""
    test: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, name: str, table: PlanTable, folder: Path) -> DataSource:
        """Read a data source from a table of a plan; `folder` is the plan's folder."""
        if name in names():
            raise InputError(
                f"{table.where}: {table.key} has the name of a known dataset; choose another."
            )
        train, test = (str(folder / table.text(part)) for part in ("train", "test"))
        options = table.options(_OPTIONS)
        table.close()
        return cls(name, train, test, options)

    @classmethod
    def registered(cls, name: str, limits: Mapping[str, int]) -> DataSource:
        """A dataset of the registry by its name, or its name and a cut such as ``un@1985``.

        `limits` are the arguments `max_train` and `max_test` of `prevalens.datasets.load`.
        """
        base, at, cut = name.partition("@")
        lookup(base)
        try:
            np.datetime64(cut or "NaT")
        except ValueError as error:
            raise InputError(f"a cut is a date, as in 'un@1985'; got {cut!r}.") from error
        return cls(name, options={**({"cut": cut} if at else {}), **limits})

    @property
    def registry_name(self) -> str:
        """The name without the cut."""
        return self.name.partition("@")[0]

    def to_table(self) -> dict[str, Any]:
        """The table of a plan that `read` turns back into this."""
        return {"train": self.train, "test": self.test, **self.options}

    def content(self) -> dict[str, Any]:
        """The values that identify the data in addition to their checksum, without paths."""
        return {"name": self.name, "options": dict(self.options)}


def data_checksum(source: DataSource) -> str:
    """SHA-256 of the data, without reading them into memory where that can be avoided."""
    if source.train:
        return fingerprint(tree_digest(Path(path)) for path in (source.train, source.test))
    files = find(lookup(source.registry_name), data_home())
    if files is not None:
        return fingerprint(map(tree_digest, files.paths))
    return load(source.registry_name).sha


def open_dataset(source: DataSource) -> Dataset:
    """Load the data; the last dataset is kept in memory."""
    return _open(canonical(asdict(source)))


@lru_cache(maxsize=1)
def _open(content: str) -> Dataset:
    source = DataSource(**json.loads(content))
    if source.train:
        return _own_dataset(source)
    return load(source.registry_name, **source.options)


def _own_dataset(source: DataSource) -> Dataset:
    train = read(source.train, **source.options)
    # With lists of tags, the tags of the training items are the labels of both files.
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
        sha=data_checksum(source),
    )


def _with_features(train: Collection, test: Collection) -> tuple[Collection, Collection]:
    """Turn texts into features as the paper does, with the terms of the training texts."""
    pipeline = text_pipeline().fit(train.X)
    terms = pipeline.get_feature_names_out()
    return (
        train.with_X(pipeline.transform(train.X), features=terms),
        test.with_X(pipeline.transform(test.X), features=terms),
    )


#: Number of the format of results; it is part of the keys, so a new one invalidates old results.
FORMAT = 1


@dataclass(frozen=True)
class Cell:
    """One computation: a method on a dataset under a protocol with a seed.

    Parameters
    ----------
    source : DataSource
        The data.
    method : MethodSpec
    protocol : ProtocolSpec
        How samples are drawn from the test items.
    seed : int
        Of the samples and of everything random in the method.
    metrics : tuple of str
    interval : float or None
        Level of the intervals and bands whose coverage and width are measured, if any.

    Examples
    --------
    >>> method, protocol = MethodSpec("PCC", "lr+pcc"), ProtocolSpec("ml-app", "ml-app")
    >>> print(Cell(DataSource("synthetic"), method, protocol, seed=0))
    synthetic, PCC, ml-app, seed 0
    """

    source: DataSource
    method: MethodSpec
    protocol: ProtocolSpec
    seed: int
    metrics: tuple[str, ...] = ("ae", "rae")
    interval: float | None = None

    def __str__(self) -> str:
        return f"{self.dataset}, {self.method.name}, {self.protocol.name}, seed {self.seed}"

    @property
    def dataset(self) -> str:
        """Name of the dataset."""
        return self.source.name

    @property
    def measures(self) -> tuple[str, ...]:
        """Everything that is measured per sample: the metrics, and those of intervals."""
        return self.metrics if self.interval is None else (*self.metrics, *INTERVAL_METRICS)

    def key(self, data_sha: str) -> str:
        """Checksum of all that the result depends on, given the checksum of the data."""
        content = self._training() | {
            "data": data_sha,
            "format": FORMAT,
            "metrics": list(self.metrics),
            "protocol": {"kind": self.protocol.kind, **self.protocol.parameters},
        }
        if self.interval is not None:
            content["interval"] = self.interval
        return checksum(content)[:32]

    def training_key(self) -> str:
        """Text that is equal for cells that need the same fitted quantifier."""
        return canonical(self._training())

    def scores_key(self) -> str:
        """Text that is equal for cells that share the scores of one classifier."""
        classifier = method_tree(self.method.expression).get("classifier")
        shared = {"source": self.source.content(), "classifier": classifier, "seed": self.seed}
        return canonical(shared)

    def _training(self) -> dict[str, Any]:
        grid = self.method.grid.items()
        content = {
            "source": self.source.content(),
            "expression": method_tree(self.method.expression),
            # A list, as the first of equally good settings wins.
            "grid": [[name, list(map(value_tree, values))] for name, values in grid],
            "selection": dict(self.method.selection),
            "seed": self.seed,
        }
        # Not named where it is false: results of plans without times keep their keys.
        if self.method.time:
            content["time"] = True
        own = fingerprints(names_in(content))
        return content | {"own": own} if own else content

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file; paths of data files are reduced to their names."""
        content = asdict(self)
        for part in ("train", "test"):
            content["source"][part] = Path(content["source"][part]).name
        # As pairs: their order matters to the key, and JSON is written with sorted names.
        content["method"]["grid"] = [[name, list(v)] for name, v in self.method.grid.items()]
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Cell:
        """The inverse of `to_dict`, also after the values went through JSON."""
        method = dict(content["method"])
        method["grid"] = {name: tuple(values) for name, values in dict(method["grid"]).items()}
        return cls(
            source=DataSource(**content["source"]),
            method=MethodSpec(**method),
            protocol=ProtocolSpec(**content["protocol"]),
            seed=content["seed"],
            metrics=tuple(content["metrics"]),
            interval=content.get("interval"),
        )
