"""The alarm: quiet under label shift, loud when items look otherwise; caution where it rings."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from prevalens.batches import ScoredSamples
from prevalens.estimate import Intervals
from prevalens.protocols import MLAPP, LabelTilt, Natural
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.uncertainty.drift import DEFAULT_DRIFT
from prevalens.uncertainty.goodness_of_fit import MISFIT, cautious, fit_alarm, fit_misfit


def items(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    Y = (rng.normal(size=(n, 4)) + rng.normal(size=(n, 1)) > 0.7).astype(np.int8)
    logits = 2.0 * Y - 1.0 + rng.normal(0, 1.2, Y.shape)
    return 1 / (1 + np.exp(-logits)), Y


TRAIN, Y_TRAIN = items(1000, 0)
POOL, Y_POOL = items(3000, 1)
ALARM = fit_misfit(TRAIN, Y_TRAIN, np.arange(1000) % 5, np.random.default_rng(0))


def of(posteriors: np.ndarray, samples: Samples) -> ScoredSamples:
    return ScoredSamples(Scores(posteriors), samples)


def rate(p_value: np.ndarray) -> float:
    return float(np.mean(p_value < MISFIT))


@pytest.mark.parametrize("size", [20, 100, 500])
@pytest.mark.parametrize("drift", [0.0, DEFAULT_DRIFT])
def test_at_most_one_batch_in_a_hundred_alarms_under_label_shift(size: int, drift: float) -> None:
    protocols = (Natural(size, 400), MLAPP(size, max_samples=400), LabelTilt(size, 400))
    for protocol in protocols:
        p = ALARM.p_value(of(POOL, protocol.draw(Y_POOL, 0)), drift=drift)
        assert np.all((p > 0) & (p <= 1))
        assert rate(p) <= 0.015
    # Not so quiet that it says nothing.
    if drift == 0.0:
        p = ALARM.p_value(of(POOL, protocols[0].draw(Y_POOL, 0)))
        assert np.mean(p < 0.5) > 0.2


@pytest.mark.parametrize("factor", [0.4, 2.5])
def test_loud_when_scores_change_their_look(factor: float) -> None:
    changed = 1 / (1 + np.exp(-factor * np.log(POOL / (1 - POOL))))
    rates = []
    for size in (20, 100, 500):
        samples = MLAPP(size, max_samples=200).draw(Y_POOL, 0)
        rates.append(rate(ALARM.p_value(of(changed, samples), drift=DEFAULT_DRIFT)))
    assert rates == sorted(rates)
    assert rates[1] > 0.5
    assert rates[2] > 0.99


def test_what_drift_explains_is_no_alarm() -> None:
    changed = 1 / (1 + np.exp(-0.7 * np.log(POOL / (1 - POOL))))
    samples = Natural(500, 100).draw(Y_POOL, 0)
    allowed = [ALARM.p_value(of(changed, samples), drift=drift) for drift in (0.0, 0.025, 0.1, 0.5)]
    assert all(np.all(a <= b) for a, b in pairwise(allowed))
    assert rate(allowed[0]) > 0.9
    assert rate(allowed[-1]) == 0.0
    # The larger of both counts.
    slack = 0.025**2 * ALARM.frame.per_drift
    np.testing.assert_array_equal(ALARM.p_value(of(changed, samples), slack=slack), allowed[1])
    each = ALARM.p_value(of(changed, samples), drift=0.025, slack=np.zeros(len(samples)))
    np.testing.assert_array_equal(each, allowed[1])


def test_the_excess_is_what_the_scores_moved_beyond_label_shift() -> None:
    logits = np.log(POOL / (1 - POOL))
    samples = Natural(500, 200).draw(Y_POOL, 0)
    found = [
        ALARM.excess(of(1 / (1 + np.exp(-factor * logits)), samples)) for factor in (1.0, 0.8, 0.5)
    ]
    assert abs(found[0].mean()) < 2 / 500
    assert found[0].mean() < found[1].mean() < found[2].mean()


def test_constant_labels_and_scores_do_no_harm() -> None:
    posteriors, Y = TRAIN.copy(), Y_TRAIN.copy()
    posteriors[:, 0], Y[:, 0] = 0.0, 0
    alarm = fit_misfit(posteriors, Y, np.arange(1000) % 5, np.random.default_rng(0))
    p = alarm.p_value(of(posteriors, Natural(100, 50).draw(Y, 0)))
    assert np.all(np.isfinite(p))
    assert p.mean() > 0.2


def test_scores_that_are_all_the_same_explain_everything() -> None:
    constant = Scores(np.full((200, 4), 0.3))
    alarm = fit_alarm(constant, Y_TRAIN[:200], None)
    samples = Natural(50, 5).draw(Y_TRAIN[:200], 0)
    np.testing.assert_array_equal(alarm.p_value(of(constant.values, samples)), 1.0)
    np.testing.assert_array_equal(alarm.excess(of(constant.values, samples)), 0.0)


def test_folds_of_unequal_size_are_known_by_size_together() -> None:
    alarm = fit_alarm(Scores(TRAIN[:203]), Y_TRAIN[:203], None)
    # A third and a fifth of about forty items.
    assert len(alarm.sizes) <= 4
    assert np.all(np.diff(alarm.sizes) > 0)


def test_no_alarm_without_posteriors_or_with_few_items() -> None:
    assert fit_alarm(Scores(Y_TRAIN.astype(float), "votes"), Y_TRAIN, None) is None
    assert fit_alarm(Scores(TRAIN[:49]), Y_TRAIN[:49], None) is None
    assert fit_alarm(Scores(TRAIN), Y_TRAIN, np.zeros(1000, dtype=int)) is None
    assert fit_alarm(Scores(TRAIN[:50]), Y_TRAIN[:50], None) is not None


def test_the_alarm_is_the_same_each_time() -> None:
    samples = Natural(100, 20).draw(Y_POOL, 0)
    first, second = (
        fit_alarm(Scores(TRAIN), Y_TRAIN, None).p_value(of(POOL, samples)) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


POINT = np.array([[0.6, 0.6, 0.1], [0.6, 0.6, 0.1]])
HALF = np.array([0.01, 0.35, 0.05])
INTERVALS = Intervals(
    np.clip(POINT - HALF, 0, 1),
    np.clip(POINT + HALF, 0, 1),
    np.clip(POINT - 1.5 * HALF, 0, 1),
    np.clip(POINT + 1.5 * HALF, 0, 1),
)
PREVALENCE = np.array([0.1, 0.1, 0.1])


def test_caution_shrinks_wide_estimates_and_keeps_narrow_ones() -> None:
    point = cautious(POINT, INTERVALS, PREVALENCE, 0.9)
    np.testing.assert_array_equal(point[0], point[1])
    assert point[1, 0] == pytest.approx(0.6, abs=0.01)
    assert 0.1 < point[1, 1] < 0.45
    assert point[1, 2] == pytest.approx(0.1)


def test_intervals_that_hold_a_point_move_no_end_inwards() -> None:
    moves = np.array([[0.2, -0.4, 0.0], [0.0, 0.0, 0.3]])
    point = np.clip(POINT + moves, 0, 1)
    found = INTERVALS.holding(point)
    assert np.all((found.lower <= point) & (point <= found.upper))
    assert np.all((found.band_lower <= found.lower) & (found.upper <= found.band_upper))
    assert np.all((found.lower <= INTERVALS.lower) & (INTERVALS.upper <= found.upper))
    inside = (INTERVALS.lower <= point) & (point <= INTERVALS.upper)
    np.testing.assert_array_equal(found.lower[inside], INTERVALS.lower[inside])
