"""Grid: a table ready to be written down, in whatever language.

What to show is decided once, by the layouts; the renderers only know this form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prevalens.reporting.table import Mark

__all__ = ["MARK_SIGNS", "MARK_WORDS", "Entry", "Grid", "Group", "Heading", "Line"]

#: How the marks are written.
MARK_SIGNS: Mapping[Mark, str] = {"": "", "dagger": "†", "ddagger": "‡", "untested": "?"}

#: What the marks say.
MARK_WORDS: Mapping[Mark, str] = {
    "dagger": "hardly different from the best: .001 < p < .05",
    "ddagger": "not significantly different from the best: p ≥ .05",
    "untested": "not tested against the best: measured on other samples, or in another run",
}


@dataclass(frozen=True)
class Entry:
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
class Line:
    """A row: its name and its cells."""

    name: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Group:
    """Rows that belong together, under a title if it is not empty."""

    lines: tuple[Line, ...]
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
    groups : tuple of Group
    notes : tuple of str
        Sentences below the table.
    """

    caption: str
    stub: str
    headings: tuple[tuple[Heading, ...], ...]
    groups: tuple[Group, ...]
    notes: tuple[str, ...] = ()

    @property
    def n_columns(self) -> int:
        """Number of columns without the first."""
        return sum(heading.span for heading in self.headings[-1])

    def lines(self) -> Iterator[Line]:
        """All rows, whatever group they are in."""
        for group in self.groups:
            yield from group.lines

    def all_notes(self) -> list[str]:
        """The notes, and what the marks mean that occur."""
        present = {entry.mark for line in self.lines() for entry in line.entries}
        marks = [mark for mark in MARK_WORDS if mark in present]
        return [*self.notes, *(f"{MARK_SIGNS[mark]} {MARK_WORDS[mark]}." for mark in marks)]
