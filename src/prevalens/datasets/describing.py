"""describe(name): what a dataset is, without loading it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from prevalens.datasets.home import data_home, find
from prevalens.datasets.registry import Figures, Shape, lookup

__all__ = ["Description", "describe"]


@dataclass(frozen=True)
class Description:
    """What is known about a dataset.

    Attributes
    ----------
    name, title, about, reference, note : str
    kind : {"paper", "stand-in", "built-in"}
    text : bool
        Whether the items are texts before preparation.
    origin : str
        Where the data comes from.
    folder : Path or None
        Where its files are looked for; None for built-in data.
    files : tuple of str
        The files wanted there.
    available : bool
        Whether it can be loaded without a download.
    shape : Shape
        Numbers of labels, training and test items and features after preparation.
    printed : Figures or None
        The row of the paper's dataset table.
    """

    name: str
    title: str
    about: str
    reference: str
    note: str
    kind: str
    text: bool
    origin: str
    folder: Path | None
    files: tuple[str, ...]
    available: bool
    shape: Shape
    printed: Figures | None


def describe(name: str, *, home: str | Path | None = None) -> Description:
    """Describe a dataset without loading it.

    Parameters
    ----------
    name : str
        One of `names`.
    home : str or Path, optional
        The data home; else ``PREVALENS_DATA``, else the user's cache folder.

    Examples
    --------
    >>> describe("yeast").shape
    Shape(labels=14, train=1500, test=917, features=103)
    """
    entry = lookup(name)
    place = data_home(home)
    built_in = entry.kind == "built-in"
    found = find(entry, place)
    layout = found.layout if found else next(iter(entry.layouts), None)
    return Description(
        name=entry.name,
        title=entry.title,
        about=entry.about,
        reference=entry.reference,
        note=entry.note,
        kind=entry.kind,
        text=entry.text,
        origin=entry.origin,
        folder=None if built_in else place / entry.folder,
        files=tuple(file.name for file in layout.files) if layout else (),
        available=built_in or found is not None,
        shape=entry.shape,
        printed=entry.printed,
    )
