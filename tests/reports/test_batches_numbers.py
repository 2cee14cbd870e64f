"""Movers, steps and labels that move together, against what is put in."""

from __future__ import annotations

import numpy as np

from prevalens.model.result import BatchResult
from prevalens.reports.batches import (
    FEWEST_BATCHES,
    by_size,
    focus,
    movers,
    movers_over_all,
    moving_together,
    steps,
)


def _report(point: list[list[float]], *, half: float | None = None, **more: object) -> BatchResult:
    values = np.array(point)
    names = [f"l{j}" for j in range(values.shape[1])]
    ends = {}
    if half is not None:
        ends = {"lower": np.clip(values - half, 0, 1), "upper": values + half, "level": 0.9}
    return BatchResult(
        names, range(len(values)), [100] * len(values), values, [0.3] * len(names), **ends, **more
    )


def test_the_latest_batch_is_shown_first_where_there_is_an_order() -> None:
    point = [[0.1], [0.2], [0.3]]
    assert focus(_report(point)) == 2
    assert focus(_report(point, ordered=False)) == 0


def test_movers_stand_by_distance_with_the_clear_ones_before() -> None:
    report = _report([[0.3, 0.1, 0.45, 0.9]])
    assert movers(report, 0) == [3, 1, 2, 0]
    assert movers(report, 0, most=2) == [3, 1]
    lower = np.array([[0.2, 0.0, 0.4, 0.1]])
    upper = np.array([[0.4, 0.4, 0.5, 1.0]])
    unsure = BatchResult(
        report.labels,
        ["x"],
        [90],
        report.point,
        report.training,
        lower=lower,
        upper=upper,
        level=0.9,
    )
    # Only the third label's training prevalence lies outside its interval.
    assert movers(unsure, 0) == [2, 3, 1, 0]


def test_over_all_batches_the_farthest_counts() -> None:
    assert movers_over_all(_report([[0.9, 0.3, 0.35], [0.3, 0.5, 0.35]]), 2) == [0, 1]


def test_steps_are_between_neighbours() -> None:
    changes = steps(_report([[0.1, 0.5], [0.4, 0.5], [0.35, 0.45]], half=0.02))
    first = changes[0]
    assert (first.label, first.start, first.clear) == (0, 0, True)
    assert np.isclose(first.change, 0.3)
    assert [step.clear for step in changes] == sorted(
        (step.clear for step in changes), reverse=True
    )
    assert len(changes) == 4


def test_without_intervals_no_step_is_clear() -> None:
    assert not any(step.clear for step in steps(_report([[0.1], [0.9]])))


def test_labels_that_move_together_are_found() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(30) * 0.4 + 0.2
    point = np.column_stack([base, base + rng.normal(0, 0.01, 30), 0.9 - base, rng.random(30)])
    for ordered in (True, False):
        pairs = moving_together(_report(point.tolist(), half=0.05, ordered=ordered))
        assert {(pair.first, pair.second) for pair in pairs} == {(0, 1), (0, 2), (1, 2)}
        by_labels = {(pair.first, pair.second): pair for pair in pairs}
        assert by_labels[0, 1].correlation > 0.9
        assert by_labels[0, 2].correlation < -0.99
        assert max(pair.chance for pair in pairs) <= 0.05


def test_a_common_trend_is_no_reason_to_call_labels_related() -> None:
    rng = np.random.default_rng(1)
    trend = np.linspace(0.2, 0.6, 24)[:, np.newaxis]
    point = trend + rng.normal(0, 0.02, (24, 6))
    assert moving_together(_report(point.tolist(), half=0.02)) == []


def test_independent_labels_are_rarely_called_related() -> None:
    found = 0
    for seed in range(40):
        point = np.random.default_rng(seed).random((12, 8)) * 0.5
        found += bool(moving_together(_report(point.tolist(), half=0.02, ordered=False)))
    # One report in twenty is allowed; nine of forty would be a chance of one in a thousand.
    assert found < 9


def test_noise_and_few_batches_say_nothing() -> None:
    rng = np.random.default_rng(0)
    noise = (0.3 + rng.normal(0, 0.01, (20, 4))).tolist()
    assert moving_together(_report(noise, half=0.05)) == []
    assert moving_together(_report(rng.random((FEWEST_BATCHES - 1, 3)).tolist())) == []


def test_the_largest_group_comes_first_and_the_rest_last() -> None:
    names = ["a", "(none)", "b", "3 groups with fewer than 20 items", "c"]
    report = BatchResult(
        ["x"], names, [10, 99, 30, 50, 20], [[k / 10] for k in range(5)], [0.3], ordered=False
    )
    arranged = by_size(report)
    assert arranged.batches[:3] == ("b", "c", "a")
    assert arranged.point[:3, 0].tolist() == [0.2, 0.4, 0.0]
    assert arranged.sizes[:3].tolist() == [30, 20, 10]
    assert set(arranged.batches[3:]) == {"(none)", "3 groups with fewer than 20 items"}
    assert focus(report) == 2
