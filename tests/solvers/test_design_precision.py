"""Designs against the matrix they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from prevalens.solvers import design as design_module
from prevalens.solvers.design import Design, make_design

N_ITEMS, N_FEATURES, N_COLUMNS = 70, 6, 5


def items(*, sparse: bool, binary: bool = False) -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ITEMS, N_FEATURES)) * 3 + 1
    X[rng.random(X.shape) < 0.5] = 0.0
    if binary:
        X = (X != 0).astype(np.float64)
    return sp.csr_matrix(X) if sparse else X


def dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else X


@pytest.fixture(params=["scipy", "compiled"])
def products(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds of sparse products, in blocks of few rows."""
    if request.param == "compiled":
        pytest.importorskip("numba")
        monkeypatch.setattr(design_module, "_WORTH_COMPILING", 0)
    monkeypatch.setattr(design_module, "_BLOCK_SIZE", 12 * N_COLUMNS)


def both(X: Any, *, intercept: bool) -> tuple[Design, Design]:
    return make_design(X, intercept=intercept, width=N_COLUMNS)


def as_matrix(design: Design) -> np.ndarray:
    """The design itself, as the predictors of unit parameters."""
    unit = np.eye(design.n_params, dtype=design.dtype)
    return np.vstack([design.forward(block, unit) for block in range(len(design.rows))])


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_parameters_predict_what_the_coefficients_do(sparse: bool, intercept: bool) -> None:
    X, rng = items(sparse=sparse), np.random.default_rng(1)
    coef, constant = rng.normal(size=(N_COLUMNS, N_FEATURES)), rng.normal(size=N_COLUMNS)
    constant *= intercept
    expected = dense(X) @ coef.T + constant
    for design, tolerance in zip(both(X, intercept=intercept), (1e-4, 1e-10), strict=True):
        T = design.parameters(coef, constant)
        assert len(T) == design.n_params == N_FEATURES + intercept
        np.testing.assert_allclose(as_matrix(design) @ T, expected, atol=tolerance)
        np.testing.assert_allclose((design.penalty * T**2).sum(0), (coef**2).sum(1), rtol=1e-5)
        back, constant_back = design.coefficients(T)
        np.testing.assert_allclose(back, coef)
        np.testing.assert_allclose(constant_back, constant, atol=1e-12)


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_adjoint_moments_and_grams_are_those_of_the_matrix(sparse: bool, binary: bool) -> None:
    X, rng = items(sparse=sparse, binary=binary), np.random.default_rng(2)
    D = rng.random((N_ITEMS, N_COLUMNS))
    for design, tolerance in zip(both(X, intercept=True), (1e-4, 1e-11), strict=True):
        A, weights = as_matrix(design), D.astype(design.dtype)
        out = np.ones((design.n_params, N_COLUMNS), dtype=design.dtype)
        for block, rows in enumerate(design.rows):
            design.adjoint(block, np.ascontiguousarray(weights[rows]), out)
        np.testing.assert_allclose(out, 1 + A.T @ D, rtol=tolerance, atol=tolerance)
        sums, squares = design.moments(weights)
        np.testing.assert_allclose(sums, A.T @ D, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(squares, (A**2).T @ D, rtol=tolerance, atol=tolerance)
        by_column = dict(design.grams(weights, np.array([3, 1])))
        assert sorted(by_column) == [1, 3]
        for column, gram in by_column.items():
            exact = A.T @ (D[:, [column]] * A)
            np.testing.assert_allclose(np.tril(gram), np.tril(exact), atol=10 * tolerance)


def test_many_rows_are_sampled_in_proportion_to_their_weight() -> None:
    rng = np.random.default_rng(3)
    X, weight = rng.normal(size=(4000, 2)), rng.random((4000, 1)) ** 4
    _, design = make_design(X, intercept=True, width=1)
    A = as_matrix(design)
    ((_, gram),) = design.grams(weight, np.array([0]))
    exact = A.T @ (weight * A)
    assert np.trace(gram) == pytest.approx(np.trace(exact), rel=0.5)
    assert gram[2, 2] == pytest.approx(exact[2, 2])


def test_a_gram_matrix_costs_more_where_rows_are_full() -> None:
    thin = sp.random(200, 50, density=0.05, format="csr", random_state=0)
    full = sp.random(200, 50, density=0.2, format="csr", random_state=0)
    costs = [make_design(X, intercept=True, width=8)[1].gram_cost for X in (thin, full)]
    assert costs[0] < costs[1] < np.inf


def test_gram_matrices_of_very_many_features_are_never_made() -> None:
    X = sp.random(20, 3000, density=0.01, format="csr", random_state=0)
    assert make_design(X, intercept=True, width=8)[1].gram_cost == np.inf
