"""Grid: the content of a table as text, independent of the output format."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from prevalens.datasets.registry import lookup, names
from prevalens.reports.table import Mark

#: Shown where there is no value.
MISSING = "–"  # noqa: RUF001

_DIGITS = {"ae": 4, "se": 4}


def digits_of(metric: str, known: int | None = None) -> int:
    """Digits after the point shown for a measure, at most as many as are `known`."""
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
    """The title of a dataset of the registry; any other dataset keeps its name."""
    return lookup(name).title if name in names() else name


#: Sign of each mark.
MARK_SIGNS: Mapping[Mark, str] = {"": "", "dagger": "†", "ddagger": "‡", "untested": "?"}

#: Meaning of each mark.
MARK_MEANINGS: Mapping[Mark, str] = {
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
        Of less importance: shown smaller where the format allows it.
    flag : bool
        Outside the allowed range: shown in italics.
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
    left : bool
        Align the column left, because it holds text rather than numbers.
    """

    text: str
    span: int = 1
    left: bool = False


@dataclass(frozen=True)
class GridLine:
    """A row: its name and its cells."""

    name: str
    entries: tuple[GridCell, ...]


#: The name of a row, then its cells; a str stands for a cell without emphasis.
GridRow: TypeAlias = Sequence[str | GridCell]


@dataclass(frozen=True)
class GridGroup:
    """Rows that belong together, under a title if it is not empty."""

    lines: tuple[GridLine, ...]
    title: str = ""


@dataclass(frozen=True)
class Grid:
    """The content of a table, which a renderer writes as HTML, LaTeX or Markdown.

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

    @classmethod
    def from_rows(
        cls,
        caption: str,
        stub: str,
        headings: Iterable[str | Heading],
        rows: Iterable[GridRow],
        notes: Iterable[str] = (),
    ) -> Grid:
        """A grid with one level of headings and one group of rows.

        Parameters
        ----------
        caption, stub : str
        headings : iterable of str or Heading
        rows : iterable of GridRow
        notes : iterable of str

        Examples
        --------
        >>> Grid.from_rows("Sizes", "batch", ["items"], [("May", "90")]).n_columns
        1
        """
        heads = tuple(Heading(head) if isinstance(head, str) else head for head in headings)
        return cls(caption, stub, (heads,), (grid_group(rows),), tuple(notes))

    @property
    def n_columns(self) -> int:
        """Number of columns without the first."""
        return sum(heading.span for heading in self.headings[-1])

    @property
    def column_headings(self) -> list[tuple[str, ...]]:
        """The headings above each column that are not empty, the upper one first."""
        levels = [[h.text for h in level for _ in range(h.span)] for level in self.headings]
        return [tuple(filter(None, texts)) for texts in zip(*levels, strict=True)]

    @property
    def column_classes(self) -> list[str]:
        """CSS classes of each column: ``start`` where an upper heading starts, and ``left``."""
        starts = {0, *accumulate(h.span for h in self.headings[0])} if self.headings[1:] else set()
        return [
            " ".join(["start"] * (column in starts) + ["left"] * heading.left)
            for column, heading in enumerate(self.headings[-1])
        ]

    @property
    def is_shaded(self) -> bool:
        """Whether any cell has a colour."""
        return any(cell.shade is not None for line in self.lines() for cell in line.entries)

    def lines(self) -> Iterator[GridLine]:
        """All rows, whatever group they are in."""
        return (line for group in self.groups for line in group.lines)

    def all_notes(self) -> list[str]:
        """The notes, and the meanings of the marks that occur."""
        present = {cell.mark for line in self.lines() for cell in line.entries}
        marks = [mark for mark in MARK_MEANINGS if mark in present]
        return [*self.notes, *(f"{MARK_SIGNS[mark]} {MARK_MEANINGS[mark]}." for mark in marks)]


def grid_group(rows: Iterable[GridRow], title: str = "") -> GridGroup:
    """Rows of texts and cells, each with its name first, as a group."""
    lines = [
        GridLine(
            str(name), tuple(GridCell(cell) if isinstance(cell, str) else cell for cell in cells)
        )
        for name, *cells in rows
    ]
    return GridGroup(tuple(lines), title)


def provenance_grid(provenance: Mapping[str, str]) -> tuple[Grid, ...]:
    """A grid with a line per entry of the provenance; an empty tuple if there is none."""
    if not provenance:
        return ()
    heading = Heading("value", left=True)
    return (Grid.from_rows("Provenance", "what", [heading], provenance.items()),)
