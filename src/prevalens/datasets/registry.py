"""The registry: the facts on each dataset, read from ``registry.toml``."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal
from urllib.parse import urljoin

from prevalens.validation import InputError

#: Aliases of datasets.
ALIASES = {"rcv1subset_top944": "rcv1subset1_top944"}
#: Corrected releases by name, and the older release of the same data. The older Tmc2007_500 has all
#: its test items in the training part, too.
TWINS = {"tmc2007_500": "tmc2007_500_paper"}


@dataclass(frozen=True)
class Shape:
    """Sizes of a loaded dataset."""

    labels: int
    train: int
    test: int
    features: int


@dataclass(frozen=True)
class Figures:
    """A row of the dataset table of Moreo et al., with their column names."""

    classes: int
    train: int
    test: int
    features: int
    card: float
    dens: float
    div: int
    norm_div: float
    puniq: float
    pmax: float


@dataclass(frozen=True)
class File:
    """A file of a dataset: its role in the reader, its name, its checksum and its address."""

    role: str
    name: str
    sha256: str | None
    url: str | None


@dataclass(frozen=True)
class Layout:
    """A set of files that make up the dataset, and their format."""

    format: str
    files: tuple[File, ...]
    options: dict[str, Any]
    #: Roles that take a list of files.
    lists: frozenset[str]
    #: The address of the folder, or a description of where to get the files.
    origin: str
    fetcher: str | None


@dataclass(frozen=True, kw_only=True)
class DatasetFacts:
    """What is known about a dataset wherever its files are.

    Attributes
    ----------
    name, title, about, reference, note : str
    kind : {"paper", "stand-in", "timeline", "built-in"}
    shape : Shape
        Numbers of labels, training and test items and features after preparation.
    text : bool
        Whether the items are texts before preparation.
    licence : str
        Terms of use; empty if the source states none.
    min_share : float
        Labels of a smaller share of the training items are dropped.
    printed : Figures or None
        The row of the paper's dataset table, if it has one.
    """

    name: str
    title: str
    about: str
    kind: Literal["paper", "stand-in", "timeline", "built-in"]
    reference: str
    shape: Shape
    text: bool = False
    note: str = ""
    licence: str = ""
    min_share: float = 0.0
    printed: Figures | None = None


@dataclass(frozen=True, kw_only=True)
class RegistryEntry(DatasetFacts):
    """A dataset in the registry: its facts, its folder in the data home, and its files."""

    folder: str
    layouts: tuple[Layout, ...] = ()

    @property
    def origin(self) -> str:
        """Where the data come from: the first known address."""
        return next((layout.origin for layout in self.layouts if layout.origin), self.reference)


def names(kind: str | None = None) -> tuple[str, ...]:
    """Names of all datasets, in the order of the paper's table, then those of other kinds.

    Parameters
    ----------
    kind : {"paper", "stand-in", "timeline", "built-in"}, optional
        Only the datasets of this kind.

    Examples
    --------
    >>> names()[:3]
    ('emotions', 'scene', 'yeast')
    >>> names("built-in")
    ('synthetic', 'synthetic_text')
    """
    entries = _entries().values()
    return tuple(entry.name for entry in entries if kind in (None, entry.kind))


def lookup(name: str) -> RegistryEntry:
    """The entry of a dataset, by its name or an alias."""
    entries = _entries()
    entry = entries.get(ALIASES.get(name, name))
    if entry is None:
        close = difflib.get_close_matches(str(name).lower(), [*entries, *ALIASES], n=3)
        hint = "see prevalens.datasets.names()."
        if close:
            hint = f"did you mean {' or '.join(map(repr, close))}?"
        raise InputError(f"There is no dataset {name!r}; {hint}")
    return entry


@cache
def _entries() -> dict[str, RegistryEntry]:
    content = resources.files("prevalens.datasets").joinpath("registry.toml").read_text("utf-8")
    return {name: _entry(name, values) for name, values in tomllib.loads(content).items()}


def _entry(name: str, values: dict[str, Any]) -> RegistryEntry:
    known = {"name": name, "folder": name} | values
    known["shape"] = Shape(**values["shape"])
    known["layouts"] = tuple(_layout(layout) for layout in values.get("layouts", ()))
    if "printed" in values:
        known["printed"] = Figures(**values["printed"])
    return RegistryEntry(**known)


def _layout(values: dict[str, Any]) -> Layout:
    return Layout(
        format=values["format"],
        files=tuple(_files(values)),
        options=values.get("options", {}),
        lists=frozenset(role for role, named in values["files"].items() if isinstance(named, list)),
        origin=values.get("base") or values.get("origin", ""),
        fetcher=values.get("fetcher"),
    )


def _files(values: dict[str, Any]) -> Iterator[File]:
    base, addresses = values.get("base"), values.get("addresses", {})
    checksums = iter(values.get("sha256", ()))
    for role, named in values["files"].items():
        for name in [named] if isinstance(named, str) else named:
            url = urljoin(base, addresses.get(role, name)) if base else None
            yield File(role, name, next(checksums, None), url)
