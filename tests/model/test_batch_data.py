"""The data of a report is checked once, at its door."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.errors import InputError
from prevalens.model.result import BatchReport

GIVEN = {
    "labels": ["a", "b"],
    "batches": ["May", "June", "July"],
    "sizes": [5, 6, 7],
    "point": [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]],
    "training": [0.2, 0.5],
}


def test_changes_and_what_is_beyond_the_interval() -> None:
    point = np.array(GIVEN["point"])
    report = BatchReport(**GIVEN, lower=point - 0.05, upper=point + 0.05, level=0.9)
    np.testing.assert_allclose(report.change, point - [0.2, 0.5])
    assert report.beyond.tolist() == [[True, True], [True, True], [True, True]]
    wide = BatchReport(**GIVEN, lower=point - 0.15, upper=point + 0.15, level=0.9)
    assert wide.beyond.tolist() == [[False, True], [False, False], [True, False]]
    assert not BatchReport(**GIVEN).beyond.any()


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
        BatchReport(**{**GIVEN, **change})
