from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.reports.table import ResultTable, TableCell, TableRow, larger_is_better, ranks

VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@pytest.fixture
def table() -> ResultTable:
    low = TableRow("scene", "low", (TableCell(0.1), None))
    high = TableRow("scene", "high", (TableCell(0.2), TableCell(0.3)))
    mean = TableRow("", "high", (TableCell(0.2), TableCell(0.3)), "mean")
    return ResultTable("ae", "ml-app", ("CC", "PCC"), (low, high), (mean,))


def test_cells_are_found_by_name(table: ResultTable) -> None:
    assert table.cell("scene", "high", "PCC") == TableCell(0.3)
    assert table.cell("scene", "low", "PCC") is None
    assert table.cell("scene", "mid", "PCC") is None
    assert table.cell("yeast", "low", "CC") is None
    assert table.cell("scene", "low", "SLD") is None


def test_rows_and_summaries_are_found_by_name(table: ResultTable) -> None:
    assert table.datasets == ("scene",)
    assert table.regimes == ("low", "high")
    assert table.row("scene", "low") is table.rows[0]
    assert table.summary("mean", "high") is table.summaries[0]
    assert table.summary("rank", "high") is None
    assert [row.complete for row in table.rows] == [False, True]


def test_spread_is_the_standard_deviation_between_seeds() -> None:
    assert TableCell(0.2, by_seed=(0.1, 0.3)).spread == pytest.approx(math.sqrt(0.02))
    assert TableCell(0.2, by_seed=(0.2,)).spread is None


@given(VALUES, st.sampled_from(["ae", "concordance"]))
def test_ranks_sum_to_the_same_whatever_the_ties(values: list[float], metric: str) -> None:
    places = ranks([TableCell(value) for value in values], metric)
    assert places.sum() == pytest.approx(len(values) * (len(values) + 1) / 2)


@given(VALUES)
def test_the_smaller_error_has_the_smaller_rank(values: list[float]) -> None:
    places = ranks([TableCell(value) for value in values], "ae")
    for left, left_rank in zip(values, places, strict=True):
        for right, right_rank in zip(values, places, strict=True):
            assert (left < right) == (left_rank < right_rank)


def test_more_is_better_of_some_measures() -> None:
    assert larger_is_better("concordance")
    assert not larger_is_better("ae")
    assert ranks([TableCell(0.9), TableCell(0.5)], "concordance").tolist() == [1, 2]


def test_a_marked_best_comes_before_its_equals() -> None:
    cells = [TableCell(0.1), TableCell(0.1, best=True), TableCell(0.1)]
    assert ranks(cells, "ae").tolist() == [2.5, 1, 2.5]
