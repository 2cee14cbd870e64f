"""Which batch an item belongs to: its file, the value of a column, or a period of time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from prevalens.errors import InputError, counted
from prevalens.files import damaged
from prevalens.model.result import Notice
from prevalens.samples import Samples
from prevalens.tables.cells import date_format, is_marker, parse_date, period_of, shown
from prevalens.tables.table import Chunk, Table
from prevalens.tables.times import day_number
from prevalens.types import Floats

#: Name of the batch of items without a batch.
NONE = "(none)"
#: Groups with fewer items are put together, unless another number is given.
MIN_ITEMS = 10
#: Folded groups that a message names.
_NAMED = 5


class Folded(NamedTuple):
    """Small groups that were put together.

    Attributes
    ----------
    name : str
        Of the batch that holds them.
    groups : list of str
    codes : list of int
        Their numbers; the first is that of the batch.
    """

    name: str
    groups: list[str]
    codes: list[int]

    @property
    def sentence(self) -> str:
        """Which groups they are, and how to change it."""
        shown = ", ".join(self.groups[:_NAMED])
        more = f" and {len(self.groups) - _NAMED} more" if len(self.groups) > _NAMED else ""
        one = len(self.groups) == 1
        return (
            f"{self.name} ({shown}{more}) {'stands' if one else 'stand together'} at the end; "
            f"--min-items 1 shows {'it' if one else 'each'} by name."
        )


def folded_name(groups: Sequence[str], least: int) -> str:
    """What groups with fewer than `least` items are called together."""
    number = "1 group" if len(groups) == 1 else f"{len(groups)} groups"
    return f"{number} with fewer than {least} items"


class Grouping(ABC):
    """Collects the batch of every item, chunk by chunk."""

    #: Columns that name the batch.
    columns: tuple[str, ...] = ()
    #: Whether the batches are in the order of time.
    ordered = False
    #: What the columns hold, for messages.
    word = "a value"

    def __init__(self) -> None:
        self._codes: list[np.ndarray[Any, Any]] = []
        self._positions: dict[str, int] = {}
        self._sizes: Counter[int] = Counter()
        #: Whether the batch of every item is kept, for `samples`; only the sizes otherwise.
        self.keeps_items = True
        #: Items without a batch.
        self._without = 0

    def add(self, table: Table, chunk: Chunk) -> np.ndarray[Any, Any]:
        """Note the batches of a chunk's rows; returns their numbers, by first occurrence."""
        codes = self._numbers(table, chunk)
        counts = np.bincount(codes)
        present = np.flatnonzero(counts)
        self._sizes.update(dict(zip(present.tolist(), counts[present].tolist(), strict=True)))
        if self.keeps_items:
            self._codes.append(codes)
        return codes

    def _numbers(self, table: Table, chunk: Chunk) -> np.ndarray[Any, Any]:
        """The number of the batch of each row."""
        names = self._names(table, chunk)
        self._without += list(names).count(NONE)
        return np.array([self._number(name) for name in names], dtype=np.int32)

    def _number(self, name: str) -> int:
        return self._positions.setdefault(name, len(self._positions))

    @abstractmethod
    def _names(self, table: Table, chunk: Chunk) -> Sequence[str]:
        """The batch of each row."""

    def fold(self, least: int) -> Folded | None:  # noqa: ARG002
        """Put batches with fewer than `least` items together; None if there is nothing to do.

        Periods of time and files are not put together.
        """
        return None

    def code(self, name: str) -> int:
        """The number of a batch, by first occurrence."""
        return self._positions[name]

    def order(self) -> list[str]:
        """The names of the batches in the order they are shown in."""
        return sorted(self._positions, key=by_name)

    def notices(self) -> tuple[Notice, ...]:
        """A note on items that no column assigns to a batch."""
        if not self._without:
            return ()
        text = f"{counted(self._without, 'item')} without {self.word} in the column"
        batch = NONE if NONE in self._positions else self.order()[-1]
        return (Notice(f"{text} {self.columns[0]!r}, part of the batch {batch!r}.", "note", batch),)

    def samples(self) -> tuple[Samples, list[str]]:
        """One sample per batch, and their names."""
        names = self.order()
        place = np.zeros(max(self._positions.values()) + 1, dtype=np.int32)
        place[[self._positions[name] for name in names]] = np.arange(len(names))
        codes = place[np.concatenate(self._codes)]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(names)))])
        return Samples(np.argsort(codes, kind="stable"), offsets, n_items=len(codes)), names


def by_name(name: str) -> tuple[bool, float, str]:
    """Sort key: numbers by size, then texts, then items without a batch."""
    try:
        return (name == NONE, float(name), name)
    except ValueError:
        return (name == NONE, float("inf"), name)


class ByFile(Grouping):
    """Every file is a batch."""

    def __init__(self, tables: Sequence[Table]) -> None:
        super().__init__()
        names = batch_names([table.name for table in tables])
        self._of = {id(table): name for table, name in zip(tables, names, strict=True)}

    def add(self, table: Table, chunk: Chunk) -> np.ndarray[Any, Any]:
        """See `Grouping`; all rows of a file have the same number, which is stored once."""
        code = self._number(self._of[id(table)])
        self._sizes[code] += len(chunk)
        codes = np.broadcast_to(np.int32(code), len(chunk))
        if self.keeps_items:
            self._codes.append(codes)
        return codes

    def _names(self, table: Table, chunk: Chunk) -> Sequence[str]:
        return [self._of[id(table)]] * len(chunk)

    def order(self) -> list[str]:
        """The order in which the files were named."""
        return list(self._positions)


def batch_names(files: Sequence[str]) -> list[str]:
    """What the batches of files are called: without folder and ending, where that is enough."""
    short = [Path(name).name.split(".")[0] or name for name in files]
    if len(set(short)) == len(short):
        return short
    # Files of the same name in several folders keep their folders; without folders, as in
    # uploads, they are numbered.
    names: list[str] = []
    for name in files:
        numbered = (f"{name} ({number})" for number in count(2))
        free = (other for other in numbered if other not in (*files, *names))
        names.append(next(free) if name in names else name)
    return names


class ByColumn(Grouping):
    """Every value of a column is a batch."""

    def __init__(self, column: str) -> None:
        super().__init__()
        self.columns = (column,)
        self._folded = ""

    def _names(self, table: Table, chunk: Chunk) -> Sequence[str]:  # noqa: ARG002
        cells = chunk[self.columns[0]]
        return [NONE if cell is None or cell == "" else str(cell).strip() for cell in cells]

    def fold(self, least: int) -> Folded | None:
        """Put groups with fewer than `least` items together, as the last batch.

        If there is one group in all, it keeps its name.
        """
        small = [name for name in self.order() if self._sizes[self._positions[name]] < least]
        if not small or len(self._positions) == 1:
            return None
        codes = [self._positions.pop(name) for name in small]
        self._codes = [np.where(np.isin(own, codes), codes[0], own) for own in self._codes]
        self._folded = folded_name(small, least)
        self._positions[self._folded] = codes[0]
        return Folded(self._folded, small, codes)

    def order(self) -> list[str]:
        """The groups by name, small ones that were put together at the end."""
        return sorted(super().order(), key=lambda name: name == self._folded)


class ByTime(Grouping):
    """Every period of time is a batch.

    Parameters
    ----------
    column : str
    freq : {"D", "W", "M", "Q", "Y"}
    form : str, optional
        Format of the dates, as in `datetime.strptime`.
    """

    ordered = True
    word = "a date"

    def __init__(self, column: str, freq: str, form: str | None = None) -> None:
        super().__init__()
        self.columns = (column,)
        self.freq = freq
        self._form = form
        self._forms: dict[int, str | None] = {}
        #: Days since 1970 of the rows added last; NaN for rows without a date.
        self.days: Floats = np.empty(0)

    def _names(self, table: Table, chunk: Chunk) -> Sequence[str]:
        cells = chunk[self.columns[0]]
        if id(table) not in self._forms:
            self._forms[id(table)] = self._form or date_format(cells, self.columns[0])
        form = self._forms[id(table)]
        known: dict[Any, date | None] = {}
        for row, cell in enumerate(cells):
            if cell not in known:
                known[cell] = self._day(chunk, row, cell, form)
        number = {cell: np.nan if day is None else day_number(day) for cell, day in known.items()}
        self.days = np.array([number[cell] for cell in cells], dtype=np.float64)
        periods = {
            cell: NONE if day is None else period_of(day, self.freq) for cell, day in known.items()
        }
        return [periods[cell] for cell in cells]

    def _day(self, chunk: Chunk, row: int, cell: Any, form: str | None) -> date | None:
        if is_marker(cell):
            return None
        day = parse_date(cell, form) or (parse_date(cell) if self._form is None else None)
        if day is None:
            raise damaged(
                chunk.place(row),
                f"{shown(cell)} in the column {self.columns[0]!r} is no date that can be read; "
                "write dates as 2024-05-31, or give their form with `date_form=`.",
            )
        return day


def grouping_of(
    tables: Sequence[Table],
    by: str | None,
    by_time: str | None,
    freq: str | None,
    date_form: str | None,
) -> Grouping:
    """The grouping that was asked for; without one, every file is a batch."""
    if by is not None and by_time is not None:
        raise InputError(
            "Name one column to group by: either by value (`by=`) or by time (`by_time=`)."
        )
    if freq is not None and by_time is None:
        raise InputError("`freq=` needs the column of the dates it is about, `by_time=`.")
    if by_time is not None:
        return ByTime(by_time, freq or "M", date_form)
    return ByFile(tables) if by is None else ByColumn(by)
