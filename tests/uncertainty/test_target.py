"""Labels from the target: against the formulas, and against doing without."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens import Quantifier
from prevalens.aggregators import PACC, HDx
from prevalens.batches import ScoredSamples
from prevalens.classifiers import PerLabel
from prevalens.datasets import synthetic
from prevalens.estimate import PrevalenceEstimate
from prevalens.protocols import MLAPP
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.uncertainty import (
    Bootstrap,
    ScoredLabels,
    with_labels,
    with_labels_of_batches,
    with_labels_of_sums,
)
from prevalens.uncertainty.target import BatchScores, check_labelled, ppi_mean, ppi_of_batch
from prevalens.validation import InputError

DATA = synthetic(n_train=500, n_test=1000, n_labels=4, n_features=8, random_state=3)


def test_ppi_by_hand() -> None:
    y, predicted = np.array([[1.0], [0.0], [1.0], [0.0]]), np.array([[0.9], [0.2], [0.6], [0.3]])
    elsewhere = np.array([[0.5], [0.7], [0.1], [0.9], [0.8], [0.6], [0.4], [0.2]])
    cov = np.cov(y[:, 0], predicted[:, 0])[0, 1]
    power = cov / (1.5 * np.var(np.r_[predicted, elsewhere], ddof=1))
    mean, variance = ppi_mean(y, predicted, elsewhere)
    rest = y - power * predicted
    assert mean[0] == pytest.approx(power * elsewhere.mean() + rest.mean())
    assert variance[0] == pytest.approx(power**2 * elsewhere.var(ddof=1) / 8 + rest.var(ddof=1) / 4)


def test_ppi_is_unbiased_and_knows_its_variance() -> None:
    rng = np.random.default_rng(0)
    f = rng.random((4000, 150))
    y = (rng.random(f.shape) < f).astype(float)
    mean, variance = ppi_mean(y[:100], f[:100], f[100:1000])
    plain = y[:100].mean(axis=0)
    assert abs(mean.mean() - 0.5) < 0.01
    assert (mean - 0.5).var() < 0.85 * (plain - 0.5).var()
    assert variance.mean() == pytest.approx((mean - 0.5).var(), rel=0.35)


def test_useless_scores_leave_the_labelled_share() -> None:
    y = np.array([[1], [0], [0], [1], [0]])
    part = check_labelled((np.arange(5), y), 50, ["a"])
    mean, variance = ppi_of_batch(
        part, BatchScores.of(np.full((50, 1), 0.7), part.rows), np.array([0.4])
    )
    assert mean[0] == pytest.approx(0.4)
    assert variance[0] >= 0.25 * 0.4 * 0.6 / 5


def test_all_items_labelled_is_the_truth() -> None:
    rng = np.random.default_rng(0)
    Y = (rng.random((40, 3)) < 0.4).astype(int)
    estimate = PrevalenceEstimate(
        [0.9] * 3, ["a", "b", "c"], lower=[0.8] * 3, upper=[1.0] * 3, level=0.9
    )
    intervals = with_labels(estimate, rng.random((40, 3)), (np.arange(40), Y))
    np.testing.assert_allclose(intervals.point, Y.mean(axis=0))
    np.testing.assert_allclose(intervals.lower, intervals.upper)


def test_never_outside_what_is_known() -> None:
    estimate = PrevalenceEstimate([0.01], ["a"], lower=[0.0], upper=[0.02], level=0.9)
    rows, Y = np.arange(30), np.ones((30, 1))
    intervals = with_labels(estimate, np.full((100, 1), 0.1), (rows, Y))
    assert intervals.lower[0] >= 0.3
    assert intervals.band_lower[0] <= intervals.lower[0] <= intervals.point[0] <= intervals.upper[0]


def test_a_sure_estimate_that_agrees_stays() -> None:
    estimate = PrevalenceEstimate([0.5], ["a"], lower=[0.499], upper=[0.501], level=0.9)
    combined = with_labels(estimate, np.full((200, 1), 0.5), (np.arange(4), [[1], [0], [0], [1]]))
    assert combined.point[0] == pytest.approx(0.5, abs=0.01)


def test_labels_do_not_hurt_and_help_in_the_end() -> None:
    quantifier = Quantifier(PerLabel(), PACC(), uncertainty=Bootstrap(replicas=8))
    quantifier.fit(DATA.train.X, DATA.train.Y)
    X, Y = DATA.test.X, DATA.test.Y
    rng = np.random.default_rng(0)
    errors = []
    for bag in MLAPP(100, max_samples=40).draw(Y, 0):
        known = rng.choice(100, 25, replace=False)
        both = quantifier.quantify(X[bag], labelled=(known, Y[bag][known]))
        guesses = (quantifier.quantify(X[bag]).point, Y[bag][known].mean(axis=0), both.point)
        errors.append([np.abs(guess - Y[bag].mean(axis=0)).mean() for guess in guesses])
    alone, labels, both = np.mean(errors, axis=0)
    assert both < min(alone, labels)


def test_without_scores_the_labels_count_alone() -> None:
    quantifier = Quantifier(None, HDx()).fit(DATA.train.X, DATA.train.Y)
    combined = quantifier.quantify(
        DATA.test.X[:50], labelled=(np.arange(50), DATA.test.Y[:50]), interval=0.8
    )
    np.testing.assert_allclose(combined.point, DATA.test.Y[:50].mean(axis=0))
    assert combined.level == 0.8


@pytest.mark.parametrize(
    ("labelled", "sentence"),
    [
        (None, "must be a pair"),
        (([0.5], [[1]]), "a list of row numbers"),
        (([0, 0], [[1], [0]]), "distinct numbers from 0 to 9"),
        (([10], [[1]]), "distinct numbers from 0 to 9"),
        (([0], [[1, 0]]), "2 label columns but 1 label names"),
        (([0, 1], [[1]]), "labelled rows"),
        (([0, 1], [[1], [0]], [1.0]), "their weights"),
        (([0, 1], [[1], [0]], [1.0, 0.0]), "must be positive numbers"),
        (([0, 1], [[1], [0]], [1.0, np.inf]), "must be positive numbers"),
        (([0, 1], [[1], [0]], ["a", "b"]), "must be numbers"),
    ],
)
def test_bad_labels(labelled: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check_labelled(labelled, 10, ["a"])


def test_needs_intervals() -> None:
    with pytest.raises(InputError, match="that has intervals"):
        with_labels(PrevalenceEstimate([0.5], ["a"]), np.zeros((5, 1)), ([0], [[1]]))


def _estimate(point: list[float], half: float) -> PrevalenceEstimate:
    centre = np.array(point)
    ends = {"lower": np.clip(centre - half, 0, 1), "upper": np.clip(centre + half, 0, 1)}
    return PrevalenceEstimate(point, [f"l{j}" for j in range(len(point))], level=0.9, **ends)


def test_equal_weights_are_no_weights_and_only_ratios_count() -> None:
    rng = np.random.default_rng(0)
    scores, Y = rng.random((200, 3)), (rng.random((30, 3)) < 0.4).astype(int)
    rows, estimate = np.arange(30), _estimate([0.3, 0.4, 0.5], 0.1)
    plain = with_labels(estimate, scores, (rows, Y))
    same = with_labels(estimate, scores, (rows, Y, np.full(30, 7.0)))
    np.testing.assert_allclose(plain.point, same.point)
    weights = rng.uniform(1, 3, 30)
    first = with_labels(estimate, scores, (rows, Y, weights))
    second = with_labels(estimate, scores, (rows, Y, 100 * weights))
    np.testing.assert_allclose(first.point, second.point)
    assert not np.allclose(first.point, plain.point)


def test_the_weighted_mean_is_unbiased_and_knows_its_variance() -> None:
    """Items of one half are drawn four times as often, and have the label more often."""
    rng = np.random.default_rng(1)
    Y = np.r_[rng.random((500, 1)) < 0.7, rng.random((500, 1)) < 0.2].astype(int)
    truth, scores = Y.mean(), np.zeros((1000, 1))
    means, variances, plain = [], [], []
    for _ in range(400):
        rows = np.r_[rng.choice(500, 80, replace=False), 500 + rng.choice(500, 20, replace=False)]
        weights = np.r_[np.full(80, 500 / 80), np.full(20, 500 / 20)]
        part = check_labelled((rows, Y[rows], weights), 1000, ["a"])
        mean, variance = ppi_of_batch(part, BatchScores.of(scores, rows), np.array([truth]))
        means.append(mean[0])
        variances.append(variance[0])
        plain.append(Y[rows].mean())
    assert np.mean(means) == pytest.approx(truth, abs=0.01)
    assert abs(np.mean(plain) - truth) > 0.1
    # Strata are not used, so the variance is not less than the true one.
    assert 0.95 * np.var(means) < np.mean(variances) < 2.0 * np.var(means)


def test_a_quantifier_that_is_far_off_is_overruled() -> None:
    """Labels that disagree with most claims lower the weight of all of them."""
    rng = np.random.default_rng(2)
    Y = (rng.random((300, 8)) < 0.5).astype(int)
    scores, rows = np.full((300, 8), 0.5), np.arange(60)
    off = with_labels(_estimate([0.1] * 8, 0.01), scores, (rows, Y[:60]))
    np.testing.assert_allclose(off.point, Y[:60].mean(axis=0), atol=0.06)
    near = with_labels(_estimate([0.5] * 8, 0.01), scores, (rows, Y[:60]))
    assert np.abs(near.point - 0.5).max() < np.abs(Y[:60].mean(axis=0) - 0.5).max() / 2
    mixed = with_labels(_estimate([0.1] * 7 + [0.5], 0.01), scores, (rows, Y[:60]))
    width = np.asarray(mixed.upper) - np.asarray(mixed.lower)
    assert width[7] > (np.asarray(near.upper) - np.asarray(near.lower))[7]


def test_the_side_of_the_interval_decides() -> None:
    rows, Y = np.arange(40), np.repeat([[1], [0]], [14, 26], axis=0)
    scores = np.full((400, 1), 0.2)
    ends = {"up": ([0.18], [0.5]), "down": ([0.05], [0.22])}
    moved = {}
    for name, (lower, upper) in ends.items():
        estimate = PrevalenceEstimate([0.2], ["a"], lower=lower, upper=upper, level=0.9)
        combined = with_labels(estimate, scores, (rows, Y))
        moved[name] = combined.point[0]
        assert combined.lower is not None
        assert combined.upper is not None
        assert combined.lower[0] <= combined.point[0] <= combined.upper[0]
    assert 0.2 < moved["down"] < moved["up"] < 0.36


def test_ends_are_numbers_of_items() -> None:
    estimate = _estimate([0.3, 0.01], 0.1)
    combined = with_labels(estimate, np.zeros((200, 2)), (np.arange(20), np.zeros((20, 2))))
    for end in (combined.lower, combined.upper, combined.band_lower, combined.band_upper):
        inside = np.asarray(end)[np.asarray(end) != combined.point]
        np.testing.assert_allclose(inside * 200, np.round(inside * 200), atol=1e-9)


def test_so_many_more_labels_halve_the_interval() -> None:
    rng = np.random.default_rng(3)
    Y = (rng.random((5000, 30)) < rng.uniform(0.2, 0.8, 30)).astype(int)
    # As far off as the interval says.
    point = np.clip(Y.mean(axis=0) + rng.normal(0, 0.15 / 1.645, 30), 0, 1)
    estimate, scores = _estimate(point.tolist(), 0.15), np.zeros((5000, 30))
    first = with_labels(estimate, scores, (np.arange(50), Y[:50]))
    assert first.more_labels is not None
    more = int(np.median(first.more_labels))
    second = with_labels(estimate, scores, (np.arange(50 + more), Y[: 50 + more]))
    widths = [np.asarray(one.upper) - np.asarray(one.lower) for one in (first, second)]
    assert np.median(widths[1] / widths[0]) == pytest.approx(0.5, abs=0.05)
    everything = with_labels(estimate, scores, (np.arange(5000), Y))
    assert not np.any(everything.more_labels)


def test_batches_use_their_own_labels() -> None:
    rng = np.random.default_rng(4)
    scores, Y = rng.random((90, 2)), (rng.random((90, 2)) < 0.5).astype(int)
    samples, _ = Samples.by_group(np.arange(90) % 3)
    ends = np.full((3, 2), 0.2), np.full((3, 2), 0.6)
    estimate = PrevalenceEstimate(
        np.full((3, 2), 0.4), ["a", "b"], index=["x", "y", "z"], lower=ends[0], upper=ends[1],
        level=0.9,
    )  # fmt: skip
    rows = np.array([6, 0, 3, 4, 1])
    combined = with_labels_of_batches(estimate, scores, samples, (rows, Y[rows]))
    assert combined.n_labelled is not None
    assert combined.more_labels is not None
    assert combined.n_labelled.tolist() == [3, 2, 0]
    assert combined.sample(0).n_labelled == 3
    np.testing.assert_array_equal(combined.point[2], estimate.point[2])
    assert np.isnan(combined.more_labels[2]).all()
    alone = with_labels(estimate.sample(0), scores[::3], (np.array([2, 0, 1]), Y[[6, 0, 3]]))
    np.testing.assert_allclose(combined.point[0], alone.point)
    np.testing.assert_allclose(combined.sample(0).lower, alone.lower)


@pytest.mark.parametrize("kind", ["posteriors", "votes"])
def test_sums_and_the_scores_of_labelled_items_are_enough(kind: str) -> None:
    rng = np.random.default_rng(0)
    values = rng.random((60, 2)) if kind == "posteriors" else rng.integers(0, 2, (60, 2))
    scores, samples = Scores(values, kind), Samples.by_group(np.arange(60) % 3)[0]
    batches = ScoredSamples(scores, samples)
    estimate = PrevalenceEstimate(
        point := np.full((3, 2), 0.4),
        ["a", "b"],
        lower=point - 0.2,
        upper=point + 0.2,
        band_lower=point - 0.3,
        band_upper=point + 0.3,
        level=0.9,
    )
    rows = np.array([0, 3, 4, 10, 21, 22, 31])
    Y, weights = rng.integers(0, 2, (7, 2)), rng.random(7) + 0.5
    labelled = ScoredLabels(rows % 3, Y, weights, scores.values[rows])
    expected = with_labels_of_batches(estimate, scores.values, samples, (rows, Y, weights))
    found = with_labels_of_sums(estimate, batches, samples.sizes, labelled)
    for name in ("point", "lower", "upper", "band_upper", "n_labelled", "more_labels"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)
