"""Labels from the target: against the formulas, and against doing without."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens import Quantifier
from prevalens.aggregators import PACC, HDx
from prevalens.classifiers import PerLabel
from prevalens.datasets import synthetic
from prevalens.estimate import PrevalenceEstimate
from prevalens.protocols import MLAPP
from prevalens.uncertainty import Bootstrap, with_labels
from prevalens.uncertainty.target import check_labelled, ppi_mean, ppi_of_batch
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
    part = check_labelled((np.arange(5), y), 50, 1)
    mean, variance = ppi_of_batch(part, np.full((50, 1), 0.7), np.array([0.4]))
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
        (([0], [[1, 0]]), "2 labels; there must be 1"),
        (([0, 1], [[1]]), "labelled rows"),
    ],
)
def test_bad_labels(labelled: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check_labelled(labelled, 10, 1)


def test_needs_intervals() -> None:
    with pytest.raises(InputError, match="that has intervals"):
        with_labels(PrevalenceEstimate([0.5], ["a"]), np.zeros((5, 1)), ([0], [[1]]))
