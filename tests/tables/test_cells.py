"""Single cells: missing, numbers, answers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.tables.cells import answer_of, is_missing, number_of, number_style, shown


@pytest.mark.parametrize("cell", [None, math.nan, "", "  ", "NA", "n/a", "NaN", "null", "-"])
def test_missing(cell: object) -> None:
    assert is_missing(cell)
    assert math.isnan(number_of(cell))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_come_back(number: float) -> None:
    assert number_of(repr(number)) == number_of(number) == number


@pytest.mark.parametrize(
    "cell", ["inf", "-inf", math.inf, "north", [1], {"a": 1}, "1,2,3", "12,34.5"]
)
def test_no_numbers(cell: object) -> None:
    assert number_of(cell) is None


@pytest.mark.parametrize("cell", ["?", " Unknown", "n.a.", "#N/A", "--", "\u2014", "missing"])
def test_marks_of_missing_values_are_missing_among_numbers_only(cell: str) -> None:
    assert math.isnan(number_of(cell))
    assert not is_missing(cell)


@pytest.mark.parametrize(
    ("cell", "point", "comma"),
    [
        ("12.5", 12.5, 12.5),
        ("12,5", 12.5, 12.5),
        ("12.5%", 12.5, 12.5),
        ("12,5 %", 12.5, 12.5),
        ("1 234", 1234, 1234),
        ("1\u00a0234\u00a0567,5", 1234567.5, 1234567.5),
        ("1'234.5", 1234.5, 1234.5),
        ("1,234", 1234, 1.234),
        ("1.234", 1.234, 1234),
        ("-1,234,567", -1234567, -1234567),
        ("1.234.567,25", 1234567.25, 1234567.25),
        ("0,123", 0.123, 0.123),
        ("\u22125", -5, -5),
        ("1e-3", 0.001, 0.001),
    ],
)
def test_numbers_as_people_write_them(cell: str, point: float, comma: float) -> None:
    assert number_of(cell, ".") == point
    assert number_of(cell, ",") == comma


@pytest.mark.parametrize(
    ("cells", "decimal", "doubtful"),
    [
        (["12,5", "1,234"], ",", ""),
        (["12.5", "1,234"], ".", ""),
        (["1.234", "7,5"], ",", ""),
        (["1,234", "999"], ".", "1,234"),
        (["1.234", "999"], ".", "1.234"),
        # All in one style: a factor of 1,000 for all of them changes nothing.
        (["1,234", "5,678"], ".", ""),
        (["7,5", "7.5", "1,234"], ".", "1,234"),
        ([1, 2.5, None], ".", ""),
    ],
)
def test_the_decimal_mark_is_that_of_the_numbers_that_show_it(
    cells: list, decimal: str, doubtful: str
) -> None:
    style = number_style(cells)
    assert (style.decimal, style.doubtful) == (decimal, doubtful)


@given(st.integers(-(10**12), 10**12), st.sampled_from([",", ".", " ", "'", "\u202f"]))
def test_separators_of_thousands_change_nothing(number: int, separator: str) -> None:
    text = f"{number:,}".replace(",", separator)
    decimal = "," if separator == "." else "."
    assert number_of(text, decimal) == number


@pytest.mark.parametrize(
    ("cell", "answer"),
    [(1, 1), (0.0, 0), (True, 1), (" YES ", 1), ("no", 0), ("2", None), ("", None), (None, None)],
)
def test_answers(cell: object, answer: int | None) -> None:
    assert answer_of(cell) == answer


def test_long_cells_are_cut() -> None:
    assert shown("short") == "'short'"
    assert shown("x" * 100).endswith("...")
    assert len(shown("x" * 100)) < 50
