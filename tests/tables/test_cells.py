"""Single cells: missing, numbers, answers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.tables.cells import answer_of, is_missing, number_of, shown


@pytest.mark.parametrize("cell", [None, math.nan, "", "  ", "NA", "n/a", "NaN", "null", "-"])
def test_missing(cell: object) -> None:
    assert is_missing(cell)
    assert math.isnan(number_of(cell))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_come_back(number: float) -> None:
    assert number_of(repr(number)) == number_of(number) == number


@pytest.mark.parametrize("cell", ["inf", "-inf", math.inf, "north", [1], {"a": 1}, "1,5"])
def test_no_numbers(cell: object) -> None:
    assert number_of(cell) is None


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
