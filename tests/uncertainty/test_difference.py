"""The interval of a difference: against exact cases and drawn ones with known truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.errors import InputError
from prevalens.model.result import BatchResult
from prevalens.uncertainty.difference import COLUMNS, difference_ends

shares = st.floats(0, 1)


@given(st.tuples(shares, shares, shares), st.tuples(shares, shares, shares), shares)
def test_it_holds_the_difference_and_is_no_wider_than_both_together(
    first: tuple[float, ...], second: tuple[float, ...], training: float
) -> None:
    (low, point, high), (low2, point2, high2) = sorted(first), sorted(second)
    lower, upper = difference_ends((point, low, high), (point2, low2, high2), training)
    assert lower <= point2 - point <= upper
    assert lower >= low2 - high - 1e-12
    assert upper <= high2 - low + 1e-12


def test_against_a_batch_that_is_known_the_interval_only_moves() -> None:
    lower, upper = difference_ends((0.2, 0.2, 0.2), (0.5, 0.4, 0.7), 0.1)
    assert lower == pytest.approx(0.2)
    assert upper == pytest.approx(0.5)


def test_swapping_the_batches_turns_the_interval_round() -> None:
    a, b = (0.2, 0.1, 0.4), (0.5, 0.45, 0.6)
    for training in (0.1, 0.3):
        there, back = difference_ends(a, b, training), difference_ends(b, a, training)
        assert there == pytest.approx([-end for end in back[::-1]])


def test_on_different_sides_of_training_distances_are_added() -> None:
    """Both estimates follow their moves by half, so that all error is that of opposite biases."""
    training, true = 0.5, np.array([0.3, 0.7])
    point = training + (true - training) / 2
    first, second = ((p, p - 0.1, p + 0.1) for p in point)
    change = true[1] - true[0]
    for at, held in ((training, True), (0.1, False)):
        lower, upper = difference_ends(first, second, at)
        assert (lower <= change + 1e-9 and change <= upper + 1e-9) == held


def test_differences_of_drawn_shares_are_covered_as_often_as_asked() -> None:
    rng = np.random.default_rng(0)
    true = rng.uniform(0.1, 0.9, (4000, 2))
    point = np.clip(rng.normal(true, 0.05), 0, 1)
    half = 1.645 * 0.05
    lower, upper = difference_ends(
        *((point[:, k], point[:, k] - half, point[:, k] + half) for k in (0, 1)), np.zeros(4000)
    )
    change = true[:, 1] - true[:, 0]
    assert np.mean((lower <= change) & (change <= upper)) == pytest.approx(0.9, abs=0.02)


POINT = np.array([[0.1, 0.5], [0.4, 0.52]])
RESULT = BatchResult(
    ["a", "b"], ["May", "June"], [100, 100], POINT, [0.2, 0.2],
    lower=POINT - 0.05, upper=POINT + 0.05, level=0.9, p_value=[0.9, 0.9],
)  # fmt: skip


def test_a_result_compares_two_of_its_batches() -> None:
    found = RESULT.difference("May", "June")
    assert found.names == ("May", "June")
    assert found.point.tolist() == pytest.approx([0.3, 0.02])
    assert found.supported.tolist() == [1, 0]
    assert RESULT.difference("June", "May").supported.tolist() == [-1, 0]
    rows = found.to_rows()
    assert tuple(rows[0]) == COLUMNS
    assert [row["label"] for row in rows] == ["a", "b"]


def test_without_intervals_nothing_is_supported() -> None:
    bare = BatchResult(["a"], ["May", "June"], [100, 100], [[0.1], [0.9]], [0.2])
    found = bare.difference("May", "June")
    assert found.lower is None
    assert found.supported.tolist() == [0]
    assert found.to_rows()[0]["lower"] is None


def test_an_alarm_leaves_the_difference_without_a_verdict() -> None:
    alarming = BatchResult(**{**vars(RESULT), "p_value": [0.9, 0.001]})
    found = alarming.difference("May", "June")
    assert not found.reliable
    assert found.supported.tolist() == [0, 0]


def test_an_unknown_batch_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InputError, match="no batch 'July'; the batches are 'May', 'June'"):
        RESULT.difference("May", "July")
