from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.reports.grid import MISSING, count, dataset_title, digits_of, number, percent


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.04181, 4, ".0418"),
        (1.0, 2, "1.00"),
        (10.25, 1, "10.2"),
        (-0.25, 2, "-.25"),
        (-0.00001, 4, ".0000"),
        (0.99999, 4, "1.0000"),
        (None, 4, MISSING),
        (math.nan, 4, MISSING),
        (math.inf, 4, "∞"),
    ],
)
def test_numbers(value: float | None, digits: int, text: str) -> None:
    assert number(value, digits) == text


@given(st.floats(-1e3, 1e3), st.integers(1, 5))
def test_a_written_number_reads_as_the_rounded_value(value: float, digits: int) -> None:
    assert float(number(value, digits)) == float(f"{value:.{digits}f}")


def test_digits_depend_on_the_measure_and_on_what_is_known() -> None:
    assert (digits_of("ae"), digits_of("rae"), digits_of("ae", 3), digits_of("rae", 4)) == (
        4,
        3,
        3,
        3,
    )


def test_counts_and_shares() -> None:
    assert count(10530) == "10,530"
    assert percent(1.0) == "100 %"
    assert percent(math.nan) == MISSING


def test_datasets_have_titles() -> None:
    assert dataset_title("rcv1") == "RCV1-v2"
    assert dataset_title("my data") == "my data"
