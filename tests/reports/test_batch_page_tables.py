"""Tables of batches hold the figures of the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from prevalens.model.result import BatchResult, Driver, Drivers
from prevalens.reports.batch_charts import interval_text
from prevalens.reports.batch_page import (
    all_estimates,
    drivers_grid,
    movers_grid,
    pairs_grid,
    prevalence_table,
    scores_grid,
    sizes_grid,
    steps_grid,
)
from prevalens.reports.batches import LargestChange, Pair

POINT = np.array([[0.1, 0.2], [0.4, 0.2]])
REPORT = BatchResult(
    ["<a>", "b"],
    ["May", "<June>"],
    [1000, 20],
    POINT,
    [0.2, 0.2],
    lower=POINT - 0.05,
    upper=POINT + 0.05,
    level=0.8,
    p_value=[0.5, 0.001],
    counted=POINT / 2,
)


def _texts(grid: Any) -> list[list[str]]:
    return [[line.name, *(entry.text for entry in line.entries)] for line in grid.lines()]


def test_the_table_of_a_batch_has_its_figures(read_xml: Callable[[str], Any]) -> None:
    root = read_xml(prevalence_table(REPORT, 1))
    rows = root.findall("table/tbody/tr")
    assert [row.find("th").text for row in rows] == ["<a>", "b"]
    cells = [cell.text for cell in rows[0].findall("td")][1:]
    assert cells == ["40.0 %", "35.0 % to 45.0 %", "20.0 %", "+20.0"]
    assert [row.findall("td")[-1].get("class") for row in rows] == ["clear", None]
    assert "80 % interval" in [head.text for head in root.findall("table/thead/tr/th")]


def test_without_intervals_the_column_is_missing(read_xml: Callable[[str], Any]) -> None:
    bare = BatchResult(["a"], ["May"], [5], [[0.1]], [0.2])
    assert len(read_xml(prevalence_table(bare, 0)).findall("table/thead/tr/th")) == 5
    assert interval_text(bare, 0, 0) == ""
    assert _texts(sizes_grid(bare)) == [["May", "5", "10.0", "–"]]  # noqa: RUF001


def test_grids_hold_what_they_are_given() -> None:
    assert _texts(movers_grid(REPORT, 1, [0])) == [
        ["<a>", "20.0 %", "40.0 %", "+20.0", "2.00", "yes"]
    ]
    assert _texts(steps_grid(REPORT, [LargestChange(0, 0, 0.3, True)])) == [
        ["<a>", "May to <June>", "10.0 %", "40.0 %", "+30.0", "yes"]
    ]
    assert _texts(pairs_grid(REPORT, [Pair(0, 1, -0.5, None, 0.25)])) == [
        ["<a> and b", "apart", "-.50", "–", ".250"]  # noqa: RUF001
    ]
    drivers = Drivers("b", "May", (Driver("word", -0.5, 0.1, 0.05),))
    assert _texts(drivers_grid(drivers)) == [["word", "-0.500", "0.1000", "0.0500"]]
    assert _texts(scores_grid(REPORT, 1, [0])) == [
        ["<a>", "20.0 %", "20.0 %", "40.0 %", "0.0", "+20.0"]
    ]
    assert _texts(sizes_grid(REPORT)) == [
        ["May", "1,000", "5.0", "1", ".500"],
        ["<June>", "20", "10.0", "1", ".001 *"],
    ]
    assert _texts(all_estimates(REPORT)) == [["<a>", "20.0", "10.0", "40.0"], ["b", *["20.0"] * 3]]


def test_a_label_that_was_not_there_has_no_factor() -> None:
    report = BatchResult(["a"], ["May"], [5], [[0.1]], [0.0])
    assert _texts(movers_grid(report, 0, [0]))[0][4] == "–"  # noqa: RUF001


def test_batches_that_alarm_are_marked_and_explained() -> None:
    grid = sizes_grid(REPORT)
    assert [row[-1] for row in _texts(grid)] == [".500", ".001 *"]
    assert "prevalens sample MODEL BATCH -n 50" in grid.notes[-1]
    calm = sizes_grid(replace(REPORT, p_value=[0.5, 0.4]))
    assert not any("prevalens sample" in note for note in calm.notes)
