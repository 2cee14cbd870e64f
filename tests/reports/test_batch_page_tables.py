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
    difference_grid,
    difference_table,
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
    p_value=[0.5, 0.4],
    counted=POINT / 2,
)
ALARM = replace(REPORT, p_value=[0.5, 0.001])


def _texts(grid: Any) -> list[list[str]]:
    return [[line.name, *(entry.text for entry in line.entries)] for line in grid.lines()]


def test_the_table_of_a_batch_has_its_figures(read_xml: Callable[[str], Any]) -> None:
    root = read_xml(prevalence_table(REPORT, 1))
    rows = root.findall("table/tbody/tr")
    assert [row.find("th").text for row in rows] == ["<a>", "b"]
    cells = [cell.text for cell in rows[0].findall("td")][1:]
    assert cells == ["40.0 %", "35.0 % to 45.0 %", "20.0 %", "+20.0"]
    assert [row.findall("td")[-1].get("class") for row in rows] == ["clear up", None]
    assert root.find("table").get("class") is None
    grey = read_xml(prevalence_table(ALARM, 1))
    assert grey.find("table").get("class") == "unsure"
    assert {row.findall("td")[-1].get("class") for row in grey.findall("table/tbody/tr")} == {None}
    assert "80 % interval" in [head.text for head in root.findall("table/thead/tr/th")]


def test_without_intervals_the_column_is_missing(read_xml: Callable[[str], Any]) -> None:
    bare = BatchResult(["a"], ["May"], [5], [[0.1]], [0.2])
    assert len(read_xml(prevalence_table(bare, 0)).findall("table/thead/tr/th")) == 5
    assert interval_text(bare, 0, 0) == ""
    assert _texts(sizes_grid(bare)) == [["May", "5", "10.0", "–"]]  # noqa: RUF001


def test_grids_hold_what_they_are_given() -> None:
    assert _texts(movers_grid(REPORT, 1, [0])) == [
        ["<a>", "20.0 %", "40.0 %", "+20.0", "+15.0 to +25.0", "▲ higher"]
    ]
    assert _texts(steps_grid(REPORT, [LargestChange(0, 0, 0.3, 0.2, 0.4, True)])) == [
        ["<a>", "May to <June>", "10.0 %", "40.0 %", "+30.0", "+20.0 to +40.0", "yes"]
    ]
    assert _texts(pairs_grid(REPORT, [Pair(0, 1, -0.5, 0.01)])) == [
        ["<a> and b", "apart", "-.50", ".010"]
    ]
    drivers = Drivers("b", "May", (Driver("word", -0.5, 0.1, 0.05),))
    assert _texts(drivers_grid(drivers)) == [["word", "-0.500", "0.1000", "0.0500"]]
    assert _texts(scores_grid(REPORT, 1, [0])) == [
        ["<a>", "20.0 %", "20.0 %", "40.0 %", "0.0", "+20.0"]
    ]
    assert _texts(sizes_grid(REPORT)) == [
        ["May", "1,000", "5.0", "1", ".500"],
        ["<June>", "20", "10.0", "1", ".400"],
    ]
    assert _texts(difference_grid(REPORT, 0, 1)) == [
        ["<a>", "+30.0", "+20.0 to +40.0", "▲ higher"],
        ["b", "0.0", "-7.1 to +7.1", "no"],
    ]
    assert _texts(all_estimates(REPORT)) == [["<a>", "20.0", "10.0", "40.0"], ["b", *["20.0"] * 3]]


def test_without_intervals_no_band_is_shown_and_nothing_is_supported() -> None:
    report = BatchResult(["a"], ["May"], [50], [[0.9]], [0.0])
    assert _texts(movers_grid(report, 0, [0]))[0][4:] == ["–", "no"]  # noqa: RUF001


def test_batches_that_alarm_are_marked_grey_and_explained() -> None:
    grid = sizes_grid(ALARM)
    assert [row[-1] for row in _texts(grid)] == [".500", ".001 *"]
    assert [row[3] for row in _texts(grid)] == ["1", "–"]  # noqa: RUF001
    assert [line.entries[0].aside for line in grid.lines()] == [False, True]
    assert "prevalens sample MODEL BATCH -n 50" in grid.notes[-1]
    assert not any("prevalens sample" in note for note in sizes_grid(REPORT).notes)
    cells = [line.entries for line in all_estimates(ALARM).lines()]
    assert {(row[1].aside, row[2].aside) for row in cells} == {(False, True)}
    assert {row[2].bold for row in cells} == {False}


def test_the_differences_of_two_batches_are_a_table(read_xml: Callable[[str], Any]) -> None:
    root = read_xml(difference_table(REPORT, 0, 1))
    cells = [cell.text for cell in root.findall("table/tbody/tr")[0].findall("td")]
    assert cells == ["10.0 %", "40.0 %", "+30.0", "+20.0 to +40.0", "▲ higher"]
    grey = read_xml(difference_table(ALARM, 0, 1))
    assert grey.find("table").get("class") == "unsure"
    assert {row.findall("td")[-1].text for row in grey.findall("table/tbody/tr")} == {"no"}
