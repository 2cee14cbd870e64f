from __future__ import annotations

import json

import numpy as np
import pytest

from prevalens.errors import InputError
from prevalens.estimate import PrevalenceEstimate
from prevalens.model.result import COLUMNS, BatchResult, Notice

POINT = np.array([[0.1, 0.5], [0.2, 0.4]])


@pytest.fixture
def result():
    estimate = PrevalenceEstimate(
        POINT, ["a", "=b"], index=["May", "June"], lower=POINT - 0.1, upper=POINT + 0.1, level=0.9
    )
    return BatchResult(
        ("May", "June"),
        np.array([30, 40]),
        estimate,
        np.array([0.3, 0.3]),
        notices=(Notice("A warning."),),
    )


def test_rows_are_one_per_group_and_label_in_order(result):
    rows = result.to_rows()
    assert [tuple(row) for row in rows] == [COLUMNS] * 4
    assert [(row["group"], row["label"], row["n_items"]) for row in rows] == [
        *(("May", "a", 30), ("May", "=b", 30)),
        *(("June", "a", 40), ("June", "=b", 40)),
    ]
    assert [row["prevalence"] for row in rows] == POINT.ravel().tolist()
    assert rows[3]["lower"] == pytest.approx(0.3)
    assert result.warnings == ("A warning.",)


def test_a_name_that_looks_like_a_formula_is_defused_in_csv_only(result, tmp_path):
    result.write(tmp_path / "out.csv")
    assert "'=b" in (tmp_path / "out.csv").read_text()
    result.write(tmp_path / "out.json")
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["rows"] == result.to_rows()
    assert found["interval"] == 0.9


def test_an_unknown_ending_leaves_no_file(result, tmp_path):
    with pytest.raises(InputError, match="xyz"):
        result.write(tmp_path / "out.xyz")
    assert not list(tmp_path.iterdir())
