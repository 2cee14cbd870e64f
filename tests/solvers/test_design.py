"""Sparse matrices with full columns, against the dense matrices they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from prevalens.solvers import design as design_module
from prevalens.solvers.design import (
    DenseDesign,
    MixedDesign,
    SparseDesign,
    linear_predictor,
    make_design,
)
from prevalens.solvers.logistic import fit_logistic, fit_logistic_path

N_ITEMS, N_THIN, N_FULL, N_COLUMNS = 60, 9, 20, 3


def items(seed: int = 0) -> Any:
    """Thin and full columns in turn, so that their order matters."""
    rng = np.random.default_rng(seed)
    thin = (rng.random((N_ITEMS, N_THIN)) < 0.1) * rng.normal(size=(N_ITEMS, N_THIN))
    full = rng.normal(size=(N_ITEMS, N_FULL)) * np.geomspace(0.1, 10, N_FULL) + 2
    return sp.csr_matrix(np.hstack([full[:, :7], thin, full[:, 7:]]))


def labels(X: Any, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    hidden = X @ rng.normal(size=(X.shape[1], N_COLUMNS))
    noisy = hidden - np.median(hidden, axis=0) + rng.normal(size=hidden.shape) * 20
    return (noisy > 0).astype(np.int8)


@pytest.fixture(params=["scipy", "compiled"])
def mixed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mixed design even for a small matrix, in blocks of few rows, with either product."""
    monkeypatch.setattr(design_module, "_FEW_PARAMETERS", 0)
    monkeypatch.setattr(design_module, "_LEAST_CELLS", 0)
    monkeypatch.setattr("prevalens.solvers.design._BLOCK_SIZE", 12 * N_COLUMNS)
    if request.param == "compiled":
        pytest.importorskip("numba")
        monkeypatch.setattr(design_module, "_WORTH_COMPILING", 0)


def as_matrix(design: Any) -> np.ndarray:
    unit = np.eye(design.n_params, dtype=design.dtype)
    return np.vstack([design.forward(block, unit) for block in range(len(design.rows))])


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize("intercept", [True, False])
def test_a_mixed_design_is_the_matrix(intercept: bool) -> None:
    X, rng = items(), np.random.default_rng(2)
    coef = rng.normal(size=(N_COLUMNS, X.shape[1]))
    constant = rng.normal(size=N_COLUMNS) * intercept
    D = rng.random((N_ITEMS, N_COLUMNS))
    pair = make_design(X, intercept=intercept, width=N_COLUMNS)
    for design, tolerance in zip(pair, (2e-4, 1e-10), strict=True):
        assert isinstance(design, MixedDesign)
        assert design.n_params == X.shape[1] + intercept
        T, A = design.parameters(coef, constant), as_matrix(design)
        np.testing.assert_allclose(A @ T, X @ coef.T + constant, atol=100 * tolerance)
        np.testing.assert_allclose((design.penalty * T**2).sum(0), (coef**2).sum(1), rtol=1e-4)
        back, constant_back = design.coefficients(T)
        np.testing.assert_allclose(back, coef, rtol=1e-9)
        np.testing.assert_allclose(constant_back, constant, atol=1e-9)
        out = np.ones((design.n_params, N_COLUMNS), dtype=design.dtype)
        weights = D.astype(design.dtype)
        for block, rows in enumerate(design.rows):
            design.adjoint(block, np.ascontiguousarray(weights[rows]), out)
        np.testing.assert_allclose(out, 1 + A.T @ D, atol=tolerance)
        sums, squares = design.moments(weights)
        np.testing.assert_allclose(sums, A.T @ D, atol=tolerance)
        np.testing.assert_allclose(squares, (A**2).T @ D, rtol=tolerance, atol=tolerance)


def test_the_intercept_is_the_last_parameter_and_free() -> None:
    full = np.ones(N_FULL + N_THIN, dtype=bool)
    full[7 : 7 + N_THIN] = False
    design = MixedDesign(items(), full, intercept=True, width=4, fast=False)
    assert design.penalty[-1] == 0
    assert (design.penalty[:-1] > 0).all()
    np.testing.assert_allclose(as_matrix(design)[:, -1], 1.0)


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize("sparse_type", [sp.csr_matrix, sp.csr_array])
def test_solutions_are_those_of_the_dense_matrix(sparse_type: Any) -> None:
    X = items()
    Y = labels(X)
    solution = fit_logistic_path(sparse_type(X), Y, Cs=[0.1, 10.0])
    expected = fit_logistic_path(X.toarray(), Y, Cs=[0.1, 10.0])
    np.testing.assert_allclose(solution.objective, expected.objective, rtol=1e-7)
    np.testing.assert_allclose(solution.coef, expected.coef, atol=2e-3)
    assert solution.converged.all()


@pytest.mark.usefixtures("mixed")
def test_hidden_features_stay_hidden() -> None:
    X = items()
    visible = np.random.default_rng(3).random((N_COLUMNS, X.shape[1])) < 0.5
    solution = fit_logistic(X, labels(X), visible=visible)
    expected = fit_logistic(X.toarray(), labels(X), visible=visible)
    assert (solution.coef[~visible] == 0).all()
    np.testing.assert_allclose(solution.objective, expected.objective, rtol=1e-7)


def test_each_matrix_gets_its_design(monkeypatch: pytest.MonkeyPatch) -> None:
    def kind(X: Any) -> type:
        return type(make_design(X, intercept=True, width=8)[1])

    X = items()
    wide = sp.hstack([X, sp.csr_matrix((N_ITEMS, 500))], format="csr")
    assert kind(X.toarray()) is DenseDesign
    assert kind(X) is DenseDesign  # full enough, and few parameters
    assert kind(wide) is SparseDesign  # too small to be taken apart
    monkeypatch.setattr(design_module, "_LEAST_CELLS", N_ITEMS * N_FULL)
    assert kind(wide) is MixedDesign
    assert kind(wide[:, 4:]) is SparseDesign  # four full columns less
    assert kind(X) is DenseDesign
    monkeypatch.setattr(design_module, "_FEW_PARAMETERS", X.shape[1] - 1)
    assert kind(X) is MixedDesign


@pytest.mark.parametrize("columns", [slice(None), slice(4, 7 + N_THIN)], ids=["many", "few"])
@pytest.mark.parametrize("sparse_type", [sp.csr_matrix, sp.csr_array])
def test_the_predictor_is_the_product(
    sparse_type: Any, columns: slice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(design_module, "_LEAST_CELLS", 0)
    X = items()[:, columns]
    rng = np.random.default_rng(4)
    coef, intercept = rng.normal(size=(N_COLUMNS, X.shape[1])), rng.normal(size=N_COLUMNS)
    solution = linear_predictor(sparse_type(X), coef, intercept)
    np.testing.assert_allclose(solution, X.toarray() @ coef.T + intercept, rtol=1e-9)


def test_a_matrix_without_rows_has_a_predictor_without_rows() -> None:
    coef = np.ones((2, 30))
    assert linear_predictor(sp.csr_matrix((0, 30)), coef, np.zeros(2)).shape == (0, 2)
