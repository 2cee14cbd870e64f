"""Platt and vector scaling against their losses, minimised label by label."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from prevalens.aggregators.sld import SLD
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.solvers.scaling import apply_scaling, fit_scaling


@pytest.mark.parametrize("n_slopes", [1, 2])
def test_scaling_minimises_its_loss(n_slopes: int) -> None:
    rng = np.random.default_rng(6)
    Y = (rng.random((200, 3)) < [0.1, 0.5, 0.8]).astype(np.int8)
    posteriors = expit(3 * rng.normal(size=Y.shape) + 4 * Y - 1)
    slope, intercept = fit_scaling(posteriors, Y, n_slopes)
    assert slope.shape == (n_slopes, 3)
    for j in range(3):
        p, n = posteriors[:, j], Y[:, j].sum()
        target = np.where(Y[:, j] == 1, (n + 1) / (n + 2), 1 / (200 - n + 2))

        def loss(line: np.ndarray, p: np.ndarray = p, target: np.ndarray = target) -> float:
            if n_slopes == 1:
                z = line[0] * logit(p) + line[1]
            else:
                z = line[0] * np.log(p) - line[1] * np.log(1 - p) + line[2]
            return float(np.sum(np.logaddexp(0, z) - target * z))

        start = [1.0] * n_slopes + [0.0]
        best = minimize(loss, start, method="BFGS", options={"gtol": 1e-6})
        np.testing.assert_allclose([*slope[:, j], intercept[j]], best.x, atol=2e-3)


def test_equal_slopes_are_one_slope() -> None:
    p = np.random.default_rng(0).random((2, 50))
    one = apply_scaling(p, np.array([[2.0, 0.5]]), np.array([1.0, -1.0]))
    two = apply_scaling(p, np.array([[2.0, 0.5], [2.0, 0.5]]), np.array([1.0, -1.0]))
    np.testing.assert_allclose(one, two, atol=1e-12)
    np.testing.assert_allclose(one[0], expit(2 * logit(p[0]) + 1), atol=1e-12)


def test_vector_scaling_undoes_what_a_line_cannot() -> None:
    """Posteriors distorted as ``logit = a log q - c log(1 - q) + b`` with a and c apart."""
    rng = np.random.default_rng(7)
    q = rng.beta(0.7, 0.9, (20_000, 1))
    true = expit(3 * np.log(q) - 0.5 * np.log(1 - q) + 1)
    Y = (rng.random(q.shape) < true).astype(np.int8)
    samples = Samples.from_indices(rng.integers(0, 20_000, (20, 500)), n_items=20_000)
    straight = SLD().fit(Scores(true), Y).aggregate(Scores(true), samples)
    errors = [
        np.abs(SLD(form).fit(Scores(q), Y).aggregate(Scores(q), samples) - straight).max()
        for form in ("vector", "platt")
    ]
    assert errors[0] < 0.02
    assert errors[0] < errors[1]


@pytest.mark.parametrize("n_slopes", [1, 2])
def test_noise_gets_no_slope(n_slopes: int) -> None:
    rng = np.random.default_rng(8)
    Y = (rng.random((400, 5)) < 0.05).astype(np.int8)
    slope, intercept = fit_scaling(rng.random(Y.shape), Y, n_slopes)
    assert np.all(slope == 0)
    np.testing.assert_allclose(expit(intercept), Y.mean(axis=0), atol=0.01)


def test_posteriors_of_0_and_1_stay_finite() -> None:
    posteriors = np.array([[0.0], [1.0], [0.5], [1.0], [0.0], [0.2]])
    Y = np.array([[0], [1], [1], [1], [0], [0]])
    for n_slopes in (1, 2):
        slope, intercept = fit_scaling(posteriors, Y, n_slopes)
        assert np.isfinite(slope).all()
        assert np.isfinite(apply_scaling(posteriors.T, slope, intercept)).all()
