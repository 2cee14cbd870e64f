"""Columns of times: dates, years, numbers, and what is refused."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pytest

from prevalens.errors import FormatError, InputError
from prevalens.tables.formats import as_table
from prevalens.tables.times import TimeColumn, day_number


def read(cells: list[object], form: str | None = None) -> list[float]:
    chunk = as_table({"when": cells}, name="t.csv").read()
    return TimeColumn.of("when", cells, form).read(chunk).tolist()


@pytest.mark.parametrize(
    "cells",
    [
        ["2024-05-31", "2024-06-02T10:00:00Z"],
        ["31.05.2024", "2. June 2024".replace(". ", " ")],
        ["31/05/2024", "02/06/2024"],
        [date(2024, 5, 31), datetime(2024, 6, 2, 10)],
        [1717149600, 1717322400],
    ],
)
def test_all_usual_dates_are_days(cells: list[object]) -> None:
    assert read(cells) == [day_number(date(2024, 5, 31)), day_number(date(2024, 6, 2))]


@pytest.mark.parametrize("cells", [["1998", "2003"], [1998, 2003], [1998.0, 2003.0]])
def test_years_are_dates(cells: list[object]) -> None:
    column = TimeColumn.of("when", cells)
    assert (column.form, column.numbers) == ("%Y", False)
    times = column.times(np.array(read(cells)))
    assert times.astype("datetime64[D]").astype(str).tolist() == ["1998-01-01", "2003-01-01"]


@pytest.mark.parametrize("cells", [["1", "2.5"], [1, 2.5], [-3, 40000]])
def test_other_numbers_stay_numbers(cells: list[object]) -> None:
    column = TimeColumn.of("when", cells)
    assert column.numbers
    assert read(cells) == [float(cell) for cell in cells]
    assert column.times(np.array([1.5])).tolist() == [1.5]


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        (["2024-05-31", ""], "t.csv, row 2: the column 'when' has no time; fill it in, or leave"),
        (["2024-05-31", None], "has no time"),
        ([1, float("nan")], "has no time"),
        (["2024-05-31", "soon"], "row 2: 'soon' in the column 'when' is no date that can be read"),
        (["2024-05-31", ["2024"]], "is no date that can be read"),
    ],
)
def test_a_row_without_a_time_is_named(cells: list[object], problem: str) -> None:
    with pytest.raises(FormatError) as error:
        read(cells)
    assert problem in str(error.value)


def test_dates_that_may_be_read_in_two_ways() -> None:
    with pytest.raises(InputError, match="day and month cannot be told apart"):
        read(["03/04/2024", "05/06/2024"])
    assert read(["03/04/2024"], "%d/%m/%Y") == [day_number(date(2024, 4, 3))]
    with pytest.raises(FormatError, match="is no date"):
        read(["2024-05-31"], "%d/%m/%Y")


def test_marks_of_missing_times_do_not_hide_what_the_others_are() -> None:
    assert TimeColumn.of("round", ["1", "2.5", "?"]).numbers
    assert TimeColumn.of("year", ["1998", "unknown"]).form == "%Y"
    chunk = as_table({"round": ["1", "?"]}, name="t.csv").read()
    with pytest.raises(FormatError, match=r"t\.csv, row 2: the column 'round' has no time"):
        TimeColumn("round", numbers=True).read(chunk)
