"""Figures as they stand in tables: fixed digits, no zero before the point."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prevalens.datasets.registry import lookup, names
from prevalens.reports.table import Mark

__all__ = [
    "MARK_SIGNS",
    "MARK_WORDS",
    "MISSING",
    "Grid",
    "GridCell",
    "GridGroup",
    "GridLine",
    "Heading",
    "count",
    "dataset_title",
    "digits_of",
    "number",
    "percent",
]

#: What stands where there is no value.
MISSING = "–"  # noqa: RUF001

_DIGITS = {"ae": 4, "se": 4}


def digits_of(metric: str, known: int | None = None) -> int:
    """Digits after the point to write of a measure, of which no more than `known` are known."""
    usual = _DIGITS.get(metric, 3)
    return usual if known is None else min(usual, known)


def number(value: float | None, digits: int = 4) -> str:
    """A value with fixed digits, without the zero before the point.

    Examples
    --------
    >>> number(0.0418), number(1.25, 2), number(-0.5, 1), number(None)
    ('.0418', '1.25', '-.5', '–')
    """
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    text = f"{value:.{digits}f}"
    if float(text) == 0.0:
        text = text.lstrip("-")
    sign, rest = ("-", text[1:]) if text.startswith("-") else ("", text)
    return sign + (rest[1:] if rest.startswith("0.") else rest)


def count(value: int) -> str:
    """A whole number with commas between thousands."""
    return f"{value:,}"


def percent(share: float) -> str:
    """A share in percent, without digits after the point.

    Examples
    --------
    >>> percent(0.847)
    '85 %'
    """
    return MISSING if math.isnan(share) else f"{100 * share:.0f} %"


def dataset_title(name: str) -> str:
    """What a dataset is called in the paper, or its name if it is not one of the registry."""
    return lookup(name).title if name in names() else name


#: How the marks are written.
MARK_SIGNS: Mapping[Mark, str] = {"": "", "dagger": "†", "ddagger": "‡", "untested": "?"}

#: What the marks say.
MARK_WORDS: Mapping[Mark, str] = {
    "dagger": "hardly different from the best: .001 < p < .05",
    "ddagger": "not significantly different from the best: p ≥ .05",
    "untested": "not tested against the best: measured on other samples, or in another run",
}


@dataclass(frozen=True)
class GridCell:
    """The content of one cell.

    Attributes
    ----------
    text : str
    bold : bool
    mark : {"", "dagger", "ddagger", "untested"}
    shade : float or None
        From 0, the best of its row, to 1, the worst; None for no colour.
    aside : bool
        Beside the point: shown smaller where that is possible.
    flag : bool
        Out of bounds: shown in italics.
    """

    text: str
    bold: bool = False
    mark: Mark = ""
    shade: float | None = None
    aside: bool = False
    flag: bool = False


@dataclass(frozen=True)
class Heading:
    """The head of one or several columns.

    Attributes
    ----------
    text : str
    span : int
        How many columns it is the head of.
    words : bool
        Whether the column holds words rather than figures: aligned left.
    """

    text: str
    span: int = 1
    words: bool = False


@dataclass(frozen=True)
class GridLine:
    """A row: its name and its cells."""

    name: str
    entries: tuple[GridCell, ...]


@dataclass(frozen=True)
class GridGroup:
    """Rows that belong together, under a title if it is not empty."""

    lines: tuple[GridLine, ...]
    title: str = ""


@dataclass(frozen=True)
class Grid:
    """A table ready to be written down.

    Attributes
    ----------
    caption : str
    stub : str
        Head of the first column, which holds the names of the rows.
    headings : tuple of tuple of Heading
        One or two levels; each spans all columns but the first.
    groups : tuple of GridGroup
    notes : tuple of str
        Sentences below the table.
    """

    caption: str
    stub: str
    headings: tuple[tuple[Heading, ...], ...]
    groups: tuple[GridGroup, ...]
    notes: tuple[str, ...] = ()

    @property
    def n_columns(self) -> int:
        """Number of columns without the first."""
        return sum(heading.span for heading in self.headings[-1])

    def lines(self) -> Iterator[GridLine]:
        """All rows, whatever group they are in."""
        for group in self.groups:
            yield from group.lines

    def all_notes(self) -> list[str]:
        """The notes, and what the marks mean that occur."""
        present = {entry.mark for line in self.lines() for entry in line.entries}
        marks = [mark for mark in MARK_WORDS if mark in present]
        return [*self.notes, *(f"{MARK_SIGNS[mark]} {MARK_WORDS[mark]}." for mark in marks)]
