"""ML-MPM against the second-order cone program that defines it, solved by a general solver."""

import numpy as np
import pytest
import scipy.sparse as sp

from prevalens.classifiers.minimax import MLMPM

clarabel = pytest.importorskip("clarabel")


def data(n=40, n_labels=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 2.0, 0.5]
    latent = X @ rng.normal(size=(3, n_labels)) + rng.normal(size=(n, n_labels))
    return X, (latent > 0.3).astype(np.int8)


def moments(X, Y, ridge):
    for y in Y.T:
        has, lacks = X[y == 1], X[y == 0]
        spread = [np.cov(side.T, bias=True) + ridge * np.eye(3) for side in (has, lacks)]
        yield has.mean(axis=0), lacks.mean(axis=0), spread


def objective(weights, X, Y, ridge, coupling):
    """Standard deviations of the scores, and differences of scores pair by pair."""
    total = 0.0
    for w, (_, _, spread) in zip(weights, moments(X, Y, ridge), strict=True):
        total += sum(np.sqrt(w @ covariance @ w) for covariance in spread)
    for k in range(Y.shape[1]):
        for m in range(k):
            together = np.sum(Y[:, k] & Y[:, m])
            cosine = together / np.sqrt(Y[:, k].sum() * Y[:, m].sum())
            total += coupling * cosine / 2 * np.var(X @ weights[k] - X @ weights[m])
    return total


def cone_program(X, Y, ridge, coupling):
    """Variables: weights of all labels, then two bounds of standard deviations per label."""
    n_labels, n = Y.shape[1], X.shape[1]
    size = n_labels * n
    counts = Y.T.astype(float) @ Y
    ties = coupling * counts / np.sqrt(np.outer(np.diag(counts), np.diag(counts)))
    np.fill_diagonal(ties, 0)
    laplacian = np.diag(ties.sum(axis=0)) - ties
    P = np.zeros((size + 2 * n_labels, size + 2 * n_labels))
    P[:size, :size] = np.kron(laplacian, np.cov(X.T, bias=True))
    q = np.repeat([0.0, 1.0], [size, 2 * n_labels])
    A, b, cones = [], [], []
    parts = list(moments(X, Y, ridge))
    for k, (mean, other, _) in enumerate(parts):
        row = np.zeros(len(q))
        row[k * n : (k + 1) * n] = mean - other
        A.append(row[None])
        b.append([1.0])
    cones.append(clarabel.ZeroConeT(n_labels))
    for k, (_, _, spread) in enumerate(parts):
        for side in (0, 1):
            block = np.zeros((n + 1, len(q)))
            block[0, size + 2 * k + side] = -1
            block[1:, k * n : (k + 1) * n] = -np.linalg.cholesky(spread[side]).T
            A.append(block)
            b.append(np.zeros(n + 1))
            cones.append(clarabel.SecondOrderConeT(n + 1))
    options = clarabel.DefaultSettings()
    options.verbose = False
    solver = clarabel.DefaultSolver(
        sp.csc_array(P), q, sp.csc_array(np.vstack(A)), np.concatenate(b), cones, options
    )
    solved = solver.solve()
    return np.array(solved.x[:size]).reshape(n_labels, n), solved.obj_val


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("ridge", "coupling"), [(0.1, 0.0), (0.5, 0.3), (0.01, 5.0)])
def test_it_is_the_solution_of_the_cone_program(seed, ridge, coupling):
    X, Y = data(seed=seed)
    expected, least = cone_program(X, Y, ridge, coupling)
    model = MLMPM(ridge, coupling, tol=1e-14, max_iter=5000)
    weights, _ = model._learn(X, Y)
    assert objective(weights, X, Y, ridge, coupling) == pytest.approx(least, rel=1e-6)
    np.testing.assert_allclose(weights, expected, atol=1e-4)


def test_the_boundary_has_equal_worst_cases_on_both_sides():
    X, Y = data()
    model = MLMPM(0.1, 0.0, tol=1e-12, max_iter=5000)
    weights, intercepts = model._learn(X, Y)
    parts = zip(moments(X, Y, 0.1), weights, intercepts, model.bound_, strict=True)
    for (mean, other, spread), w, b, bound in parts:
        for centre, covariance, sign in ((mean, spread[0], 1), (other, spread[1], -1)):
            # Marshall and Olkin: the least probability of the right side is d^2 / (1 + d^2).
            squared = (sign * (w @ centre + b)) ** 2 / (w @ covariance @ w)
            assert sign * (w @ centre + b) > 0
            assert squared / (1 + squared) == pytest.approx(bound)
