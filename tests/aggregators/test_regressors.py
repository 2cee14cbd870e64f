from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.utils.estimator_checks import check_estimator

from prevalens.aggregators.regressors import (
    REGRESSORS,
    BatchedLinearSVR,
    NormalisedLasso,
    NormalisedRidge,
    check_regressor,
)
from prevalens.validation import InputError


def pairs(n_rows=300, n_labels=4, seed=0):
    rng = np.random.default_rng(seed)
    Y = rng.binomial(100, rng.beta(1, 4, size=(n_rows, n_labels))) / 100
    X = 0.2 + 0.5 * Y @ (np.eye(n_labels) + 0.2) + 0.02 * rng.standard_normal(Y.shape)
    return X, Y


def small(regressor):
    """Seeded, and with few trees."""
    quick = {"random_state": 0, "n_estimators": 20}
    return regressor(**{k: v for k, v in quick.items() if k in regressor().get_params()})


@pytest.mark.parametrize("regressor", REGRESSORS, ids=lambda maker: maker.code)
def test_they_are_scikit_learn_regressors(regressor):
    failed = [
        (result["check_name"], result["exception"])
        for result in check_estimator(small(regressor), on_fail=None, on_skip=None)
        if result["status"] == "failed"
    ]
    assert failed == []


@pytest.mark.parametrize("regressor", REGRESSORS, ids=lambda maker: maker.code)
def test_they_undo_a_linear_distortion(regressor):
    X, Y = pairs()
    made = small(regressor)
    error = np.abs(made.fit(X, Y).predict(X) - Y).mean()
    assert error < 0.6 * np.abs(Y - Y.mean(axis=0)).mean()


@pytest.mark.parametrize("regressor", REGRESSORS, ids=lambda maker: maker.code)
def test_one_target_flat_or_as_a_column(regressor):
    X, Y = pairs()
    made = small(regressor)
    flat = clone(made).fit(X, Y[:, 0]).predict(X)
    column = clone(made).fit(X, Y[:, [0]]).predict(X)
    assert flat.shape == (300,)
    np.testing.assert_array_equal(flat[:, np.newaxis], column)


def test_ridge_is_what_normalize_was():
    """Inputs of mean 0 and norm 1, a penalty of alpha; worked out here by the normal equations."""
    X, Y = pairs()
    centred = X - X.mean(axis=0)
    norm = np.sqrt(np.square(centred).sum(axis=0))
    scaled = centred / norm
    weights = np.linalg.solve(scaled.T @ scaled + 0.3 * np.eye(4), scaled.T @ (Y - Y.mean(axis=0)))
    ours = NormalisedRidge(alpha=0.3).fit(X, Y).predict(X)
    np.testing.assert_allclose(ours, scaled @ weights + Y.mean(axis=0), atol=1e-12)


def test_lasso_is_what_normalize_was():
    """The conditions of the minimum on inputs of norm 1, input by input."""
    X, Y = pairs()
    alpha = 2e-4
    lasso = NormalisedLasso(alpha, tol=1e-10).fit(X, Y)
    centred = X - X.mean(axis=0)
    norm = np.sqrt(np.square(centred).sum(axis=0))
    weights = lasso.regressor_.coef_.T / lasso.scaler_.scale_[:, np.newaxis] * norm[:, np.newaxis]
    pull = (centred / norm).T @ (Y - lasso.predict(X)) / len(X)
    strength = np.linalg.norm(weights, axis=1)
    assert (strength > 0).any()
    used = strength > 0
    np.testing.assert_allclose(
        pull[used], alpha * weights[used] / strength[used, np.newaxis], atol=1e-8
    )
    assert (np.linalg.norm(pull[~used], axis=1) <= alpha * (1 + 1e-6)).all()


def test_by_name_by_object_or_by_default():
    assert isinstance(check_regressor(None), BatchedLinearSVR)
    for maker in REGRESSORS:
        assert type(check_regressor(maker.code)) is maker
    mine = LinearRegression()
    assert check_regressor(mine) is mine
    with pytest.raises(InputError, match="no regressor called 'rdige'; there are svr, "):
        check_regressor("rdige")
    with pytest.raises(InputError, match="must have fit and predict; got 3"):
        check_regressor(3)


def test_ridge_without_penalty_is_least_squares():
    X, Y = pairs()
    np.testing.assert_allclose(
        NormalisedRidge(0.0).fit(X, Y).predict(X), Ridge(0.0).fit(X, Y).predict(X), atol=1e-10
    )
