"""Support vector machines over pairs, against a general solver of quadratic programs."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from prevalens.solvers import pairs
from prevalens.solvers.pairs import fit_pairs

clarabel = pytest.importorskip("clarabel")


def problem(seed, n_rows=12, n_columns=3, n_vectors=4, n_constraints=40):
    rng = np.random.default_rng(seed)
    first = rng.integers(n_vectors, size=n_constraints)
    second = (first + rng.integers(1, n_vectors, size=n_constraints)) % n_vectors
    X = rng.normal(size=(n_rows, n_columns))
    rows = rng.integers(n_rows, size=n_constraints)
    return X, rows, (first, second), rng.random(n_constraints) * 3, n_vectors


def quadratic_program(X, rows, both, bounds, n_vectors):
    """The primal problem in weights and slacks, solved by an interior point method."""
    n_weights, n_slacks = n_vectors * X.shape[1], len(rows)
    margins = np.zeros((n_slacks, n_vectors, X.shape[1]))
    margins[np.arange(n_slacks), both[0]] += X[rows]
    margins[np.arange(n_slacks), both[1]] -= X[rows]
    identity = np.eye(n_slacks)
    A = np.block(
        [[-margins.reshape(n_slacks, -1), -identity], [np.zeros((n_slacks, n_weights)), -identity]]
    )
    P = sp.diags_array(np.repeat([1.0, 0.0], [n_weights, n_slacks]), format="csc")
    q = np.concatenate([np.zeros(n_weights), bounds])
    b = np.concatenate([-np.ones(n_slacks), np.zeros(n_slacks)])
    options = clarabel.DefaultSettings()
    options.verbose = False
    cones = [clarabel.NonnegativeConeT(len(b))]
    found = clarabel.DefaultSolver(P, q, sp.csc_array(A), b, cones, options).solve()
    return np.array(found.x[:n_weights]).reshape(n_vectors, -1), found.obj_val


@given(seed=st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_it_finds_the_minimum_of_the_quadratic_program(seed):
    given_problem = problem(seed)
    weights, objective = quadratic_program(*given_problem)
    found = fit_pairs(*given_problem, tol=1e-8, max_iter=20_000)
    assert found.gap <= 1e-8
    assert found.objective == pytest.approx(objective, rel=1e-6)
    np.testing.assert_allclose(found.weights, weights, atol=1e-4)


@pytest.mark.parametrize("max_iter", [1, 7, 50])
def test_the_gap_is_a_bound_wherever_it_stops(max_iter):
    given_problem = problem(3)
    _, least = quadratic_program(*given_problem)
    found = fit_pairs(*given_problem, tol=0.0, max_iter=max_iter)
    assert found.n_iter == max_iter
    assert 0 <= found.objective - least <= found.gap * found.objective + 1e-9


def test_rows_of_zeros_cost_their_bounds():
    pair = np.array([0]), np.array([1])
    found = fit_pairs(np.zeros((1, 2)), np.array([0]), pair, np.array([2.5]), 2)
    assert found.objective == pytest.approx(2.5)
    np.testing.assert_array_equal(found.weights, 0)


def test_no_constraints_leave_the_weights_at_zero():
    nothing = np.zeros(0, dtype=np.intp)
    found = fit_pairs(np.ones((2, 2)), nothing, (nothing, nothing), np.zeros(0), 3)
    assert found.weights.shape == (3, 2)
    assert found.gap == 0


def test_compiled_or_not_it_is_the_same(monkeypatch):
    given_problem = problem(5)
    compiled = fit_pairs(*given_problem, tol=1e-6)
    monkeypatch.setattr(pairs, "_sweep", getattr(pairs._sweep, "py_func", pairs._sweep))
    np.testing.assert_allclose(fit_pairs(*given_problem, tol=1e-6).weights, compiled.weights)
