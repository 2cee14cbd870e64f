"""RLLS against the published program, solved numerically sample by sample."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from prevalens.aggregators.adjusted import PACC
from prevalens.aggregators.label_shift import RLLS
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import InputError

rng = np.random.default_rng(0)
Y = (rng.random((150, 2)) < [0.2, 0.6]).astype(np.int8)
SCORES = Scores(rng.beta(1 + 2 * Y, 3 - 2 * Y))
SAMPLES = Samples.from_indices(
    [np.flatnonzero(Y[:, 0]), np.flatnonzero(1 - Y[:, 0]), np.arange(50)], n_items=150
)


def program(posteriors, y, sample, alpha, delta):
    """min |C t - b| + rho |t| over t >= -1, from several starts."""
    both = np.column_stack([1 - posteriors, posteriors])
    C = np.stack([both[y == k].sum(axis=0) for k in (0, 1)], axis=1) / len(y)
    b = np.array([-1.0, 1.0]) * (sample.mean() - posteriors.mean())
    n, L = len(y), np.log(4 / delta)
    rho = alpha * 3 * (2 * L / (3 * n) + np.sqrt(2 * L / n))

    def loss(t):
        return np.linalg.norm(C @ t - b) + rho * np.linalg.norm(t)

    starts = [(0.01, -0.01), (-0.5, 0.5), (0.5, -0.5), (1.0, -0.9), (-0.9, 2.0)]
    options = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 5000}
    fits = [
        minimize(loss, x, method="Nelder-Mead", bounds=[(-1, None)] * 2, options=options)
        for x in starts
    ]
    w = 1 + min(fits, key=lambda fit: fit.fun).x
    share = y.mean()
    return share * w[1] / (share * w[1] + (1 - share) * w[0])


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.2, 0.5, 2.0])
def test_it_is_the_program(alpha: float) -> None:
    estimates = RLLS(alpha, 0.1).fit(SCORES, Y).aggregate(SCORES, SAMPLES)
    for j in range(2):
        column = SCORES.values[:, j]
        for i, bag in enumerate(SAMPLES):
            expected = program(column, Y[:, j], column[bag], alpha, 0.1)
            assert estimates[i, j] == pytest.approx(expected, abs=1e-4)


def test_none_is_adjusted_counting_and_much_is_the_training_prevalence() -> None:
    plain = PACC(guard=None).fit(SCORES, Y).aggregate(SCORES, SAMPLES)
    np.testing.assert_allclose(RLLS(0).fit(SCORES, Y).aggregate(SCORES, SAMPLES), plain, atol=1e-9)
    held = RLLS(100).fit(SCORES, Y).aggregate(SCORES, SAMPLES)
    np.testing.assert_allclose(held, np.tile(Y.mean(axis=0), (3, 1)), atol=1e-9)


def test_more_regularisation_stays_nearer_to_training() -> None:
    away = [
        np.abs(RLLS(alpha).fit(SCORES, Y).aggregate(SCORES, SAMPLES) - Y.mean(axis=0)).sum()
        for alpha in (0.01, 0.1, 0.2, 0.4)
    ]
    assert sorted(away, reverse=True) == away
    assert away[-1] < 0.9 * away[0]


def test_constant_labels_are_counted() -> None:
    truth = Y.copy()
    truth[:, 0], truth[:, 1] = 0, 1
    estimates = RLLS().fit(SCORES, truth).aggregate(SCORES, SAMPLES)
    np.testing.assert_allclose(estimates, SAMPLES.mean(SCORES.values))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"alpha": -1}, "alpha must be a number, 0 or more; got -1"),
        ({"alpha": "x"}, "alpha must be a number, 0 or more; got 'x'"),
        ({"delta": 5}, "delta must lie strictly between 0 and 1; got 5"),
    ],
)
def test_strange_parameters_are_named(options: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        RLLS(**options).fit(SCORES, Y)
