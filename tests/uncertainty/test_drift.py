"""Drift: an allowance that no batch size removes, and what a backtest makes of its errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import t

from prevalens.aggregators import PCC, TrainingPrevalence
from prevalens.batches import ScoredSamples
from prevalens.estimate import Intervals
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.uncertainty.drift import (
    DEFAULT_DRIFT,
    Backtest,
    LaterBatches,
    TimeAxis,
    arcsine,
    as_numbers,
    check_drift,
    drift_between_groups,
    from_arcsine,
    label_noise,
    quantile,
    together,
    weighted_median,
    widened,
)
from prevalens.validation import InputError

NAMES = ("lower", "upper", "band_lower", "band_upper")
shares = st.floats(0.0, 1.0)


def around(point: np.ndarray, half: float, band: float) -> Intervals:
    ends = (point - half, point + half, point - band, point + band)
    return Intervals(*(np.clip(end, 0.0, 1.0) for end in ends))


@given(p=shares)
def test_the_scale_and_back(p: float) -> None:
    assert from_arcsine(arcsine(p)) == pytest.approx(p, abs=1e-12)


def test_beyond_the_ends_of_the_scale_lie_0_and_1() -> None:
    np.testing.assert_allclose(from_arcsine([-1.0, 0.0, np.pi / 2, 4.0]), [0, 0, 1, 1])
    np.testing.assert_allclose(arcsine([-0.1, 1.1]), [0, np.pi / 2])


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_on_the_scale_noise_is_the_same_for_all_shares(p: float) -> None:
    found = np.random.default_rng(0).binomial(400, p, size=20_000) / 400
    assert arcsine(found).var() == pytest.approx(1 / 1600, rel=0.05)


@given(
    point=arrays(float, (2, 3), elements=shares),
    half=st.floats(0, 0.5),
    drift=st.floats(0, 0.3),
    more=st.floats(0, 0.3),
    level=st.floats(0.5, 0.99),
)
def test_widening_moves_no_end_inwards_and_grows_with_drift(
    point: np.ndarray, half: float, drift: float, more: float, level: float
) -> None:
    own = around(point, half, 1.5 * half)
    first, second = (widened(own, point, each, level) for each in (drift, drift + more))
    for narrow, wide in ((own, first), (first, second)):
        for low, high in (("lower", "upper"), ("band_lower", "band_upper")):
            assert np.all(getattr(wide, low) <= getattr(narrow, low) + 1e-12)
            assert np.all(getattr(wide, high) >= getattr(narrow, high) - 1e-12)
    assert np.all(first.band_lower <= first.lower + 1e-12)
    assert np.all(first.upper <= first.band_upper + 1e-12)
    assert all(np.all((getattr(second, n) >= 0) & (getattr(second, n) <= 1)) for n in NAMES)


def test_without_drift_nothing_is_widened() -> None:
    own = around(np.full((1, 2), 0.3), 0.1, 0.2)
    assert widened(own, np.full((1, 2), 0.3), 0.0, 0.9) is own


def test_the_width_does_not_vanish_and_the_p_value_stays() -> None:
    point = np.array([[0.1, 0.5]])
    own = replace(around(point, 0.0, 0.0), p_value=np.array([0.4]))
    found = widened(own, point, DEFAULT_DRIFT, 0.9)
    # The sentence at the default: 1.8 points of deviation for 10 %, 3 points for 50 %.
    half = (found.upper - found.lower)[0] / 2
    np.testing.assert_allclose(half / quantile(0.9), [0.018, 0.03], rtol=0.02)
    np.testing.assert_array_equal(found.p_value, [0.4])


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_bands_reach_less_far_than_for_independent_errors(level: float) -> None:
    ratios = [together(n, level) for n in (1, 2, 5, 50)]
    assert ratios[0] == 1.0
    assert ratios == sorted(ratios)
    assert len(set(ratios)) == 4
    for n_labels, ratio in zip((2, 5, 50), ratios[1:], strict=True):
        independent = t.ppf(0.5 + level ** (1 / n_labels) / 2, 5) / t.ppf(0.5 + level / 2, 5)
        assert 1.0 < ratio < independent


def test_bands_hold_all_errors_of_one_common_scale_as_often_as_asked() -> None:
    rng = np.random.default_rng(0)
    errors = rng.normal(size=(100_000, 8)) / np.sqrt(rng.chisquare(5, size=(100_000, 1)) / 5)
    reach = together(8, 0.9) * t.ppf(0.95, 5)
    assert np.mean(np.abs(errors).max(axis=1) <= reach) == pytest.approx(0.9, abs=0.005)


odd = st.integers(0, 4).map(lambda k: 2 * k + 1)


@given(values=odd.flatmap(lambda n: arrays(float, (n, 2, 3), elements=shares)), w=st.floats(0.1, 9))
def test_equal_weights_give_the_median(values: np.ndarray, w: float) -> None:
    found = weighted_median(values, np.full((2, len(values)), w))
    np.testing.assert_array_equal(found, np.median(values, axis=0))


@given(
    values=arrays(float, (4, 1, 2), elements=shares),
    counts=arrays(int, (1, 4), elements=st.integers(1, 3)),
)
def test_weights_count_as_copies(values: np.ndarray, counts: np.ndarray) -> None:
    repeated = np.sort(np.repeat(values, counts[0], axis=0), axis=0)
    middle = repeated[(len(repeated) + 1) // 2 - 1]
    np.testing.assert_array_equal(weighted_median(values, counts.astype(float)), middle)


def test_scores_that_say_nothing_leave_the_noise_of_a_share() -> None:
    rng = np.random.default_rng(0)
    samples = Samples.from_indices([np.arange(40), np.arange(10)], n_items=40)

    def noise_of(scores: Scores) -> np.ndarray:
        return label_noise(ScoredSamples(scores, samples), np.full((2, 2), 0.3))

    flat = Scores(np.full((40, 2), 0.3))
    expected = np.array([[1 / 160] * 2, [1 / 40] * 2])
    np.testing.assert_allclose(noise_of(flat), expected)
    features = Scores(rng.normal(size=(40, 2)), "features")
    np.testing.assert_allclose(noise_of(features), expected)
    sure = Scores((rng.random((40, 2)) < 0.3).astype(float))
    np.testing.assert_allclose(noise_of(sure), expected / 10)


DAYS = ["2024-01-01", "2024-01-02", "2024-03-01"]


@pytest.mark.parametrize(
    "times",
    [DAYS, np.array(DAYS), np.array(DAYS, "datetime64[D]"), np.array(DAYS, "datetime64[ns]")],
)
def test_dates_of_all_kinds_are_days(times: Any) -> None:
    numbers, dates = as_numbers(times)
    assert dates
    np.testing.assert_allclose(np.diff(numbers), [1, 59])


def test_time_zones_are_respected() -> None:
    numbers, dates = as_numbers(["2024-01-01T12:00:00Z", "2024-01-01T12:00:00+06:00"])
    assert dates
    np.testing.assert_allclose(np.diff(numbers), -0.25)


@pytest.mark.parametrize(
    "times",
    [
        [3, 5, 9],
        [3.0, 5.0, 9.0],
        np.array([3, 5, 9], np.uint8),
        np.array([3, 5.0, np.int64(9)], object),
    ],
)
def test_numbers_stay_numbers(times: Any) -> None:
    numbers, dates = as_numbers(times)
    assert not dates
    np.testing.assert_array_equal(numbers, [3.0, 5.0, 9.0])


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        ([[1, 2]], r"time must have one entry per item; got shape \(1, 2\)"),
        (["soon", "later"], r"time must be dates such as 2024-05-31, or numbers; got .*soon"),
        ([1.0, np.nan, 2.0], "time is missing for item 1; drop such items"),
        ([1.0, np.inf], "time is missing for item 1"),
        (["2024-01-01", "NaT"], "time is missing for item 1"),
        (np.array(["2024-01-01", None], dtype=object), "time is missing for item 1"),
        (np.array([{}, {}], dtype=object), "time must be dates"),
    ],
)
def test_refused_times(times: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        as_numbers(times)


@pytest.mark.parametrize("value", [-0.1, 1.5, "much", True, None, float("nan")])
def test_refused_drifts(value: Any) -> None:
    with pytest.raises(InputError, match="drift must be a number from 0"):
        check_drift(value)


def test_accepted_drifts() -> None:
    assert [check_drift(value) for value in (0, 0.025, 1, np.float64(0.1))] == [0, 0.025, 1, 0.1]


@pytest.mark.parametrize(
    ("ahead", "words"),
    [
        (0.2, "1 day"), (3, "3 days"), (10, "10 days"), (14, "2 weeks"), (30, "1 month"),
        (61, "2 months"), (365, "1 year"), (1000, "3 years"),
    ],
)  # fmt: skip
def test_durations_for_people(ahead: float, words: str) -> None:
    assert TimeAxis(0.0, 100.0, dates=True).words(ahead) == words
    assert TimeAxis(0.0, 100.0, dates=False).words(ahead) == f"{ahead:.3g} units of time"


def test_horizons_are_shares_of_the_span_and_never_nothing() -> None:
    axis = TimeAxis.of(np.array([10.0, 30.0, 20.0]), dates=False)
    assert (axis.last, axis.span) == (30.0, 20.0)
    np.testing.assert_allclose(
        axis.horizon(np.array([5.0, 30.0, 40.0, 70.0])), [0.02, 0.02, 0.5, 2]
    )


def test_horizons_need_a_span() -> None:
    numbers, dates = as_numbers(np.array(["2025-01-01"] * 2, dtype="datetime64[D]"))
    with pytest.raises(InputError, match="All training items are of 2025-01-01"):
        TimeAxis.of(numbers, dates=dates)


def make_batches(
    drift: float, *, seed: int = 0, n_batches: int = 400, n_labels: int = 3, bias: float = 0.5
) -> LaterBatches:
    """Batches of 1,000 items; one candidate is off by drift that grows with the horizon."""
    rng = np.random.default_rng(seed)
    horizon = rng.uniform(0.1, 0.5, n_batches)
    angle = rng.uniform(0.4, 0.9, (n_batches, n_labels))
    noise = np.full(angle.shape, 1 / 4000)
    deviation = np.sqrt(noise + drift**2 * np.sqrt(horizon / 0.3)[:, np.newaxis])
    good = from_arcsine(angle + deviation * rng.normal(size=angle.shape))
    return LaterBatches(
        np.stack([good, from_arcsine(angle + bias)]),
        from_arcsine(angle),
        noise,
        horizon,
        100 * horizon,
        np.ones(n_batches),
        np.ones(angle.shape, dtype=bool),
        np.zeros(n_batches),
    )


AXIS = TimeAxis(100.0, 100.0, dates=False)


def learn(batches: LaterBatches, n_origins: int = 4, drawn: Any = (1.0, 1.0)) -> Backtest:
    parts = np.array_split(np.arange(len(batches.true)), n_origins)
    origins = [
        LaterBatches(batches.estimated[:, rows], *(field[rows] for field in batches[1:]))
        for rows in parts
    ]
    return Backtest.of(origins, np.array(drawn), ("good", "bad"), AXIS)


def test_the_variance_of_the_drift_is_found() -> None:
    found = learn(make_batches(0.06))
    assert np.sqrt(found.variance) == pytest.approx(0.06, rel=0.1)
    assert found.reference == pytest.approx(0.3, abs=0.02)
    assert found.losses[0] == 1.0
    assert found.losses[1] > 3.0
    assert found.n_origins == 4


def test_intervals_of_a_backtest_cover_new_batches_of_the_same_drift() -> None:
    found, new = learn(make_batches(0.06)), make_batches(0.06, seed=1)
    point = new.estimated[0]
    intervals = found.intervals(around(point, 0.0, 0.0), point, new.noise, new.horizon, 0.9)
    inside = (intervals.lower <= new.true) & (new.true <= intervals.upper)
    banded = (intervals.band_lower <= new.true) & (new.true <= intervals.band_upper)
    # The default counts as three more origins, of less drift than these.
    assert 0.8 < inside.mean() < 0.95
    assert 0.85 < banded.all(axis=1).mean() < 0.99


def test_intervals_hold_the_own_ones_and_the_point() -> None:
    found = learn(make_batches(0.06))
    point = np.array([[0.2, 0.5, 0.9]])
    own = around(point, 0.3, 0.35)
    noise, horizon = np.full((1, 3), 1e-4), np.array([0.3])
    intervals = found.intervals(own, point, noise, horizon, 0.9)
    assert np.all((intervals.lower <= own.lower) & (own.upper <= intervals.upper))
    aside = around(np.array([[0.6, 0.6, 0.6]]), 0.01, 0.01)
    intervals = found.intervals(aside, point, noise, horizon, 0.9)
    assert np.all((intervals.lower <= point) & (point <= intervals.upper))


def test_width_grows_with_the_horizon_and_not_with_certainty() -> None:
    found = learn(make_batches(0.06))
    point = np.full((3, 3), 0.3)
    horizon = np.array([0.02, 0.3, 2.0])
    narrow = around(point, 0.0, 0.0)
    for noise in (1e-3, 1e-12):
        each = found.intervals(narrow, point, np.full((3, 3), noise), horizon, 0.9)
        assert np.all(np.diff((each.upper - each.lower)[:, 0]) > 0)
        assert np.all(each.upper - each.lower > 0.02)


def test_ranking_counts_less_beyond_the_horizons_of_the_backtest() -> None:
    found = learn(make_batches(0.06, bias=0.2))
    weights = found.weights(np.array([0.02, found.reference, 1.0, 1e9]))
    np.testing.assert_array_equal(weights[0], weights[1])
    assert np.all(np.diff(weights[1:, 1]) > 0)
    np.testing.assert_allclose(weights[-1], 1.0)
    assert np.all(weights[:, 0] == 1.0)


def test_unknown_losses_under_drawn_shifts_leave_those_of_the_backtest() -> None:
    batches = make_batches(0.06, bias=0.2)
    unknown = learn(batches, drawn=(np.nan, np.nan)).losses
    np.testing.assert_allclose(unknown, [1.0, learn_ratio(batches)])
    part = learn(batches, drawn=(np.nan, 1.0)).losses
    equal = learn(batches, drawn=(3.0, 3.0)).losses
    expected = [1.0, 1 + (learn_ratio(batches) - 1) / 2]
    np.testing.assert_allclose(part, expected)
    np.testing.assert_allclose(equal, expected)


def learn_ratio(batches: LaterBatches) -> float:
    errors = np.abs(batches.estimated - batches.true).mean(axis=(1, 2))
    return float(errors[1] / errors[0])


def test_labels_that_do_not_count_do_not_count() -> None:
    batches = make_batches(0.06)
    wrong = batches.estimated.copy()
    wrong[:, :, 2] = 1.0
    counted = np.tile([True, True, False], (len(batches.true), 1))
    found = learn(batches._replace(estimated=wrong, counted=counted))
    expected = learn(
        batches._replace(
            estimated=batches.estimated[:, :, :2],
            true=batches.true[:, :2],
            noise=batches.noise[:, :2],
            counted=counted[:, :2],
        )
    )
    assert found.variance == pytest.approx(expected.variance)
    np.testing.assert_allclose(found.largest, expected.largest)


def test_batches_without_a_time_get_the_reference_horizon() -> None:
    found = learn(make_batches(0.06))
    np.testing.assert_array_equal(found.horizon(None, 3), [found.reference] * 3)
    np.testing.assert_allclose(found.horizon(150, 2), [0.5, 0.5])
    np.testing.assert_allclose(found.horizon([150.0, 90.0], 2), [0.5, 0.02])


def test_dates_and_numbers_are_not_compared() -> None:
    found = learn(make_batches(0.06))
    with pytest.raises(InputError, match="fitted with numbers as times; the batch has dates"):
        found.horizon("2024-01-01", 1)
    dated = replace(found, axis=replace(AXIS, dates=True))
    with pytest.raises(InputError, match="fitted with dates as times; the batch has numbers"):
        dated.horizon(3, 1)


def test_the_sentence_about_errors_by_horizon() -> None:
    found = learn(make_batches(0.06))
    assert len(found.errors) == 3
    assert [ahead for ahead, _ in found.errors] == sorted(ahead for ahead, _ in found.errors)
    assert found.describe().startswith("In a backtest over 4 origins, estimates were off ")
    assert found.describe().count(" points") == 3
    assert "one origin" in learn(make_batches(0.06), 1).describe()


def groups_of_items(spread: float) -> tuple[Scores, np.ndarray, np.ndarray, np.ndarray]:
    """Items of 20 groups of 50, whose scores are off by a group's own amount."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 50)
    p = rng.beta(2, 4, size=(1000, 3))
    Y = (rng.random(p.shape) < p).astype(np.int8)
    off = spread * rng.normal(size=(20, 3))[groups]
    scores = Scores(np.clip(p + off, 0.0, 1.0))
    return scores, Y, groups, groups % 5


def test_drift_between_groups_grows_with_their_differences() -> None:
    found = []
    for spread in (0.0, 0.1, 0.2):
        scores, Y, groups, folds = groups_of_items(spread)
        found.append(drift_between_groups(PCC(), scores, Y, groups, folds))
    assert found == sorted(found)
    assert found[0] < DEFAULT_DRIFT
    assert found[2] > 3 * DEFAULT_DRIFT


def test_names_of_groups_do_not_matter() -> None:
    scores, Y, groups, folds = groups_of_items(0.1)
    names = np.array([f"site {19 - group}" for group in groups])
    expected = drift_between_groups(PCC(), scores, Y, groups, folds)
    assert drift_between_groups(PCC(), scores, Y, names, folds) == pytest.approx(expected)


def test_few_groups_small_ones_or_no_folds_leave_the_default() -> None:
    scores, Y, groups, folds = groups_of_items(0.2)
    naive = TrainingPrevalence()
    assert drift_between_groups(naive, scores, Y, groups // 7, folds) == DEFAULT_DRIFT
    assert drift_between_groups(naive, scores, Y, np.arange(1000) // 19, folds) == DEFAULT_DRIFT
    assert drift_between_groups(naive, scores, Y, groups, None) == DEFAULT_DRIFT
