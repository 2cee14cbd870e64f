"""Logistic regressions with a common distribution of coefficients."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from prevalens.solvers.hierarchical import CoefficientPrior, fit_hierarchical

WEAK = CoefficientPrior(np.zeros(2), np.full(2, 100.0), np.full(2, 100.0), weight=1e6)


def _features(n_targets, n_items, rng):
    return np.stack([np.ones((n_targets, n_items)), rng.normal(size=(n_targets, n_items))], -1)


def test_without_a_prior_each_target_is_a_plain_logistic_regression():
    rng = np.random.default_rng(0)
    features = _features(3, 300, rng)
    linear = features @ np.array([-0.5, 1.5])
    Y = (rng.random((3, 300)) < expit(linear)).T.astype(int)
    theta = fit_hierarchical(features, Y, WEAK)
    for target in range(3):
        plain = LogisticRegression(C=np.inf, tol=1e-10).fit(features[target, :, 1:], Y[:, target])
        expected = [plain.intercept_[0], plain.coef_[0, 0]]
        assert theta[target] == pytest.approx(expected, abs=2e-3)


def test_few_positive_items_borrow_from_the_other_targets():
    rng = np.random.default_rng(1)
    n_targets, n_items = 20, 200
    features = _features(n_targets, n_items, rng)
    constants = np.linspace(-4.5, 0.5, n_targets)
    linear = constants[:, None] + 2.0 * features[..., 1]
    Y = (rng.random(linear.shape) < expit(linear)).T.astype(int)
    prior = CoefficientPrior(np.array([-1.0, 0.0]), np.full(2, 3.0), np.ones(2))
    slopes = fit_hierarchical(features, Y, prior)[:, 1]
    rare = Y.sum(axis=0) < 12
    plain = fit_hierarchical(features, Y, WEAK)[:, 1]
    assert rare.sum() >= 3
    assert np.abs(slopes - 2)[rare].mean() < 0.6 * np.abs(plain - 2)[rare].mean()


@pytest.mark.parametrize("constant", [0, 1])
def test_a_target_without_both_classes_has_finite_coefficients(constant):
    rng = np.random.default_rng(2)
    features = _features(2, 50, rng)
    Y = np.column_stack([features[0, :, 1] > 0, np.full(50, constant)]).astype(int)
    prior = CoefficientPrior(np.zeros(2), np.full(2, 2.0), np.ones(2))
    theta = fit_hierarchical(features, Y, prior)
    assert np.isfinite(theta).all()
    assert (theta[1, 0] > 0) == bool(constant)


def test_the_order_of_targets_does_not_matter():
    rng = np.random.default_rng(3)
    features = _features(4, 80, rng)
    Y = (rng.random((80, 4)) < 0.3).astype(int)
    prior = CoefficientPrior(np.zeros(2), np.full(2, 2.0), np.ones(2))
    theta = fit_hierarchical(features, Y, prior)
    assert fit_hierarchical(features[::-1], Y[:, ::-1], prior)[::-1] == pytest.approx(theta)
