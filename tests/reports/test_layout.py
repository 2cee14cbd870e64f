from __future__ import annotations

from collections.abc import Callable

import pytest

from prevalens.records import Result
from prevalens.reports.grid import MISSING, Grid
from prevalens.reports.layout import (
    long_grid,
    row_cells,
    samples_grid,
    spread_grid,
    wide_grid,
)
from prevalens.reports.summarise import summarise
from prevalens.reports.table import ResultTable
from prevalens.studies.moreo2023.printed import printed

PaperLike = Callable[..., list[Result]]


@pytest.fixture
def table(paper_like: PaperLike) -> ResultTable:
    return summarise(paper_like(seeds=(0, 1)))


def check_shape(grid: Grid) -> None:
    for level in grid.headings:
        assert sum(heading.span for heading in level) == grid.n_columns
    for line in grid.lines():
        assert len(line.entries) == grid.n_columns


def test_wide_tables_have_regimes_side_by_side(table: ResultTable) -> None:
    grid = wide_grid(table)
    check_shape(grid)
    assert [heading.text for heading in grid.headings[0]] == [
        "low shift",
        "mid shift",
        "high shift",
    ]
    names = [line.name for line in grid.lines()]
    assert names[:3] == ["Emotions", "Scene", "Genbase"]
    assert names[3:] == ["Average over samples", "Average over datasets", "Average rank"]
    emotions = next(iter(grid.lines())).entries
    assert [entry.text for entry in emotions[:4]] == [".0418", ".0420", ".0586", ".0474"]
    assert [entry.bold for entry in emotions[:4]] == [True, False, False, False]


def test_long_tables_have_regimes_below_each_other(table: ResultTable) -> None:
    grid = long_grid(table, "My caption.")
    check_shape(grid)
    assert grid.caption == "My caption."
    assert [group.title for group in grid.groups][:3] == ["Emotions", "Scene", "Genbase"]
    assert all([line.name for line in g.lines] == ["low", "mid", "high"] for g in grid.groups)


def test_both_layouts_show_the_same_cells(table: ResultTable) -> None:
    def cells(grid: Grid) -> list[str]:
        return sorted(entry.text for line in grid.lines() for entry in line.entries)

    assert cells(wide_grid(table)) == cells(long_grid(table))


def test_shades_run_from_the_best_to_the_worst(table: ResultTable) -> None:
    for row in (*table.rows, *table.summaries):
        entries = row_cells(row, table)
        for entry in entries:
            assert (entry.shade == 0.0) == entry.bold
        assert sorted(entry.shade or 0.0 for entry in entries)[-1] == 1.0


def test_shades_turn_round_where_more_is_better(make_result: Callable[..., Result]) -> None:
    table = summarise(
        [make_result(m, [v] * 6, metric="concordance") for m, v in (("A", 0.9), ("B", 0.5))],
        metric="concordance",
    )
    best, worst = row_cells(table.rows[0], table)
    assert (best.shade, worst.shade, best.bold) == (0.0, 1.0, True)
    rank = table.summary("rank", "low")
    assert [entry.shade for entry in row_cells(rank, table)] == [0.0, 1.0]


def test_equal_and_missing_values_have_no_shade(make_result: Callable[..., Result]) -> None:
    table = summarise([make_result("A"), make_result("B"), make_result("A", dataset="yeast")])
    assert [entry.shade for entry in row_cells(table.rows[0], table)] == [None, None]
    lonely = table.row("yeast", "low")
    assert [entry.text for entry in row_cells(lonely, table)] == [".0100", MISSING]
    assert [entry.text for entry in row_cells(None, table)] == [MISSING, MISSING]


def test_printed_tables_show_no_more_digits_than_are_printed() -> None:
    grid = wide_grid(printed("mlc"))
    assert next(iter(grid.lines())).entries[0].text == ".042"


def test_numbers_of_samples(table: ResultTable) -> None:
    grid = samples_grid(table)
    check_shape(grid)
    for line in grid.lines():
        assert [entry.text for entry in line.entries] == ["80", "80", "80", "240"]


def test_spreads_between_seeds(table: ResultTable, make_result: Callable[..., Result]) -> None:
    grid = spread_grid(table)
    check_shape(grid)
    assert {entry.text for line in grid.lines() for entry in line.entries} == {".0000"}
    single = spread_grid(summarise([make_result()]), "Spread.")
    assert single.caption == "Spread."
    assert {entry.text for line in single.lines() for entry in line.entries} == {MISSING}


def test_regimes_have_titles(make_result: Callable[..., Result]) -> None:
    table = summarise([make_result()], regimes=["low", "all"])
    assert [heading.text for heading in wide_grid(table).headings[0]] == [
        "low shift",
        "all samples",
    ]
