from __future__ import annotations

import numpy as np
import pytest

from prevalens.datasets import names
from prevalens.reports.table import ranks
from prevalens.studies.moreo2023.printed import (
    PRINTED_TABLES,
    match_method,
    method_place,
    printed,
    printed_dataset,
)
from prevalens.validation import InputError

GROUPS = ("BC+BA", "MLC+BA", "BC+MLA", "MLC+MLA")
#: Cells read off the paper: table, dataset, shift, method, value, best, mark.
SPOTS = [
    ("cc_general", "emotions", "low", "BC+BA", 0.0749, False, ""),
    ("cc_general", "yeast", "low", "MLC+MLA", 0.0516, False, "dagger"),
    ("cc_general", "delicious", "mid", "BC+MLA", 0.0113, False, "ddagger"),
    ("cc_general", "medical", "low", "MLC+BA", 0.0121, True, ""),
    ("pcc_general", "emotions", "low", "BC+BA", 0.0418, True, ""),
    ("pcc_general", "scene", "high", "BC+MLA", 0.0499, True, ""),
    ("pcc_general", "enron", "mid", "MLC+MLA", 0.0228, False, "dagger"),
    ("pcc_general", "rcv1", "mid", "MLC+BA", 0.0129, False, "dagger"),
    ("pcc_general", "tmc2007_500_paper", "high", "MLC+MLA", 0.0255, True, ""),
    ("pcc_general", "reuters21578", "mid", "MLC+BA", 0.0059, True, ""),
    ("acc_general", "emotions", "low", "MLC+MLA", 0.0440, True, ""),
    ("pacc_general", "emotions", "low", "BC+MLA", 0.0509, True, ""),
    ("sld_general", "emotions", "low", "BC+BA", 0.2169, False, ""),
    ("mlc", "scene", "low", "RF", 0.036, False, "ddagger"),
    ("mlc", "emotions", "high", "LSC", 0.301, False, ""),
    ("mlq", "emotions", "low", "kMeans-LPQ", 0.0416, True, ""),
    ("mlqreg", "medical", "low", "BC+BA", 0.0127, True, ""),
    ("mlqreg", "tmc2007_500_paper", "low", "LinearSVR (SVR-RQ)", 0.0213, False, "ddagger"),
    ("mlqreg_mrae", "yeast", "mid", "BC+BA", 1.038, False, ""),
    ("mlqreg_mrae", "yeast", "low", "LinearSVR (SVR-RQ)", 0.208, True, ""),
]


@pytest.mark.parametrize("table", PRINTED_TABLES)
def test_tables_are_complete(table: str) -> None:
    own = printed(table)
    assert set(own.datasets) <= set(names())
    assert len(own.datasets) == 15
    assert len(own.rows) == 45
    assert [row.kind for row in own.summaries] == ["pooled"] * 3 + ["rank"] * 3
    for row in (*own.rows, *own.summaries):
        assert len(row.cells) == len(own.columns)
        assert row.complete
        best = [cell.value for cell in row.cells if cell and cell.best]
        assert best == [min(cell.value for cell in row.cells if cell)]


def test_numbers_of_cells_and_marks() -> None:
    cells = [
        cell
        for name in PRINTED_TABLES
        for row in (*printed(name).rows, *printed(name).summaries)
        for cell in row.cells
        if cell is not None
    ]
    assert len(cells) == 51 * (5 * 4 + 8 + 6 + 2 * 7)
    assert sum(cell.mark == "dagger" for cell in cells) == 23
    assert sum(cell.mark == "ddagger" for cell in cells) == 28


@pytest.mark.parametrize("spot", SPOTS, ids=lambda spot: "-".join(map(str, spot[:4])))
def test_values_read_off_the_paper(spot: tuple[str, str, str, str, float, bool, str]) -> None:
    table, dataset, shift, method, value, best, mark = spot
    cell = printed(table).cell(dataset, shift, method)
    assert cell is not None
    assert (cell.value, cell.best, cell.mark) == (value, best, mark)


def test_averages_read_off_the_paper() -> None:
    table = printed("pcc_general")
    pooled, rank = table.summary("pooled", "high"), table.summary("rank", "low")
    assert pooled is not None
    assert rank is not None
    assert [cell.value for cell in pooled.cells if cell] == [0.1012, 0.0602, 0.0452, 0.0414]
    assert [cell.value for cell in rank.cells if cell] == [3.6, 1.7, 2.9, 1.8]


@pytest.mark.parametrize("table", [name for name in PRINTED_TABLES if name.endswith("general")])
def test_printed_ranks_follow_from_printed_cells(table: str) -> None:
    own = printed(table)
    for shift in own.regimes:
        rows = [row.cells for row in own.rows if row.shift == shift]
        ours = np.mean([ranks([c for c in row if c], own.metric) for row in rows], axis=0)
        theirs = own.summary("rank", shift)
        assert theirs is not None
        # One digit is printed, and the ranks of equal values are not.
        assert np.abs(ours - [cell.value for cell in theirs.cells if cell]).max() < 0.07


def test_the_regressors_are_printed_in_relative_error() -> None:
    assert [name for name in PRINTED_TABLES if printed(name).metric == "rae"] == ["mlqreg_mrae"]
    assert {printed(name).digits for name in ("mlc", "mlqreg_mrae")} == {3}


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(InputError, match="table must be one of 'cc_general'"):
        printed("pcc")


@pytest.mark.parametrize(
    ("method", "table", "column"),
    [
        ("BC+BA", "pcc_general", "BC+BA"),
        ("ML-kNN", "mlc", "ML-knn"),
        ("RAkEL-LPQ", "mlq", "RakEL-LPQ"),
        ("Ridge-RQ", "mlqreg", "Ridge (Ridge-RQ)"),
        ("ridge", "mlqreg", "Ridge (Ridge-RQ)"),
        ("SVR-RQ", "mlqreg", "LinearSVR (SVR-RQ)"),
        ("SVR-RQ", "mlq", "SVR-RQ"),
        ("BCBA", "pcc_general", None),
        ("SG", "pcc_general", None),
    ],
)
def test_methods_are_matched(method: str, table: str, column: str | None) -> None:
    assert match_method(method, printed(table)) == column


def test_methods_have_places_in_the_order_of_the_paper() -> None:
    assert sorted(["mine", *reversed(GROUPS), "SG"], key=method_place) == [*GROUPS, "SG", "mine"]


def test_twins_stand_beside_the_printed_dataset() -> None:
    assert printed_dataset("tmc2007_500") == "tmc2007_500_paper"
    assert printed_dataset("enron") == "enron"
