from __future__ import annotations

import json
from dataclasses import replace

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
    return BatchResult.from_estimate(
        estimate,
        sizes=np.array([30, 40]),
        training=np.array([0.3, 0.3]),
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


def test_the_estimate_comes_back(result):
    estimate = result.estimate
    np.testing.assert_array_equal(estimate.point, POINT)
    np.testing.assert_array_equal(estimate.upper, POINT + 0.1)
    assert (estimate.labels, list(estimate.index), estimate.level) == (
        ("a", "=b"),
        ["May", "June"],
        0.9,
    )


GIVEN = {
    "labels": ["a", "b"],
    "batches": ["May", "June", "July"],
    "sizes": [5, 6, 7],
    "point": [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]],
    "training": [0.2, 0.5],
}


def test_changes_and_the_moves_that_bands_support() -> None:
    point = np.array(GIVEN["point"])
    given = {**GIVEN, "sizes": [50, 60, 70], "level": 0.9}
    report = BatchResult(**given, lower=point - 0.05, upper=point + 0.05)
    np.testing.assert_allclose(report.change, point - [0.2, 0.5])
    assert report.moved.tolist() == [[-1, -1], [1, -1], [1, 1]]
    # Bands go before intervals.
    wide = replace(report, band_lower=point - 0.15, band_upper=point + 0.15)
    assert wide.moved.tolist() == [[0, -1], [0, 0], [1, 0]]
    assert not BatchResult(**given).moved.any()
    assert replace(report, p_value=[0.9, 0.001, 0.9]).moved.tolist() == [[-1, -1], [0, 0], [1, 1]]
    assert replace(report, sizes=[1, 60, 70]).moved.tolist() == [[0, 0], [1, -1], [1, 1]]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"batches": []}, "at least one batch"),
        ({"point": [[0.1, 0.2]]}, r"point must have shape \(3, 2\); got \(1, 2\)"),
        ({"sizes": [1]}, r"sizes must have shape \(3,\)"),
        ({"labels": ["a"]}, "2 label columns but 1 label names"),
        ({"lower": GIVEN["point"]}, "both ends of the intervals, or none"),
        ({"p_value": [0.5]}, r"p_value must have shape \(3,\)"),
        ({"true": [0.5]}, "true must have shape"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        BatchResult(**{**GIVEN, **change})
