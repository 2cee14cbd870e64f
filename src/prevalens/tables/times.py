"""The times of items: a column of dates, years or other numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from prevalens.files import damaged
from prevalens.tables.cells import date_format, finite, is_marker, parse_date, shown
from prevalens.tables.table import Chunk
from prevalens.types import Array, Floats

_EPOCH = date(1970, 1, 1)
_SECONDS_PER_DAY = 86_400


def day_number(day: date) -> float:
    """Days since 1970."""
    return float((day - _EPOCH).days)


def day_numbers(dates: Array) -> Floats:
    """Days since 1970 of datetime64 values, with fractions."""
    return np.asarray(dates.astype("datetime64[s]").astype(np.float64) / _SECONDS_PER_DAY)


def dates_of(days: Floats) -> Array:
    """The datetime64 values of days since 1970, to the second."""
    return np.rint(days * _SECONDS_PER_DAY).astype("datetime64[s]")


@dataclass(frozen=True)
class TimeColumn:
    """A column that says when each item arose, and how its cells are read.

    Attributes
    ----------
    name : str
    form : str or None
        Format of the dates for `datetime.strptime`; None if they are unambiguous.
    numbers : bool
        Whether the times are numbers of any unit, such as rounds or hours, instead of dates.

    Notes
    -----
    Whole numbers from 1000 to 2999 are years, and a year is the first of its days. Of a date with
    a time of day only the day counts. Other numbers are taken as they are, unless all of them are
    seconds or milliseconds since 1970.

    Examples
    --------
    >>> TimeColumn.of("year", ["1998", "2003"])
    TimeColumn(name='year', form='%Y', numbers=False)
    >>> TimeColumn.of("round", [1, 2.5]).numbers
    True
    """

    name: str
    form: str | None = None
    numbers: bool = False

    @classmethod
    def of(cls, name: str, cells: Sequence[Any], form: str | None = None) -> TimeColumn:
        """The column, by its cells if no format is given."""
        form = form or date_format(cells, name)
        if form is not None:
            return cls(name, form)
        known = [cell for cell in cells if not is_marker(cell)]
        dates = all(parse_date(cell) is not None for cell in known)
        return cls(name, None, not dates and all(finite(cell) is not None for cell in known))

    def number(self, cell: Any) -> float | None:
        """The time in a cell: days since 1970, or the number; None if there is none."""
        if self.numbers:
            return None if is_marker(cell) else finite(cell)
        day = None if is_marker(cell) else parse_date(cell, self.form)
        return None if day is None else day_number(day)

    def read(self, chunk: Chunk) -> Floats:
        """The time of every row; a row without one is refused by its line."""
        numbers = [self.number(cell) for cell in chunk[self.name]]
        if None in numbers:
            row = numbers.index(None)
            raise damaged(chunk.place(row), self._problem(chunk[self.name][row]))
        return np.array(numbers, dtype=np.float64)

    def _problem(self, cell: Any) -> str:
        if is_marker(cell):
            return f"the column {self.name!r} has no time; fill it in, or leave the row out."
        kind = "number" if self.numbers else "date"
        return (
            f"{shown(cell)} in the column {self.name!r} is no {kind} that can be read; write dates "
            "as 2024-05-31, or give their form with `date_form=`."
        )

    def times(self, numbers: Floats) -> Array:
        """What `number` gave as dates, if the column holds dates."""
        return numbers if self.numbers else dates_of(numbers)
