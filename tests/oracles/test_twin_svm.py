"""ML-TSVM against a general solver of quadratic programs, and against scikit-multilearn."""

import numpy as np
import pytest
import scipy.sparse as sp
from skmultilearn import adapt

from prevalens.classifiers.twin_svm import MLTSVM

clarabel = pytest.importorskip("clarabel")


def data(n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X @ rng.normal(size=(3, 2)) + 0.4 * rng.normal(size=(n, 2)) > 0).astype(np.int8)


def sides(X, y):
    items = np.column_stack([X, np.ones(len(X))])
    return items[y == 1], items[y == 0]


def plane(X, y, C, alpha):
    model = MLTSVM(C, alpha, tol=1e-9, max_iter=50_000)
    model.gap_, model.n_iter_ = 0.0, 0
    return model._plane(*sides(X, y))


def objective(u, X, y, C, alpha):
    """What the publication minimises for one label."""
    near, far = sides(X, y)
    return (
        0.5 * np.sum((near @ u) ** 2)
        + 0.5 * alpha * np.sum(u**2)
        + C * np.maximum(0, 1 + far @ u).sum()
    )


def quadratic_program(X, y, C, alpha):
    near, far = sides(X, y)
    n_far, n = far.shape
    P = sp.block_diag([near.T @ near + alpha * np.eye(n), np.zeros((n_far, n_far))], format="csc")
    A = np.block([[far, -np.eye(n_far)], [np.zeros((n_far, n)), -np.eye(n_far)]])
    b = np.repeat([-1.0, 0.0], n_far)
    options = clarabel.DefaultSettings()
    options.verbose = False
    cones = [clarabel.NonnegativeConeT(2 * n_far)]
    q = np.repeat([0.0, C], [n, n_far])
    return np.array(clarabel.DefaultSolver(P, q, sp.csc_array(A), b, cones, options).solve().x[:n])


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("C", "alpha"), [(0.05, 1.0), (0.5, 0.1), (5.0, 3.0)])
def test_a_plane_is_the_solution_of_the_quadratic_program(seed, C, alpha):
    X, Y = data(seed=seed)
    np.testing.assert_allclose(
        plane(X, Y[:, 0], C, alpha), quadratic_program(X, Y[:, 0], C, alpha), atol=1e-5
    )


@pytest.mark.parametrize("C", [0.01, 0.05, 0.5, 5.0])
def test_scikit_multilearn_is_never_nearer_to_the_minimum(C):
    # It keeps multipliers within their bounds after whole sweeps only, and so misses the minimum.
    X, Y = data()
    y = Y[:, 0]
    # The negatives of every label are those of the second label there, so both are the same.
    theirs = adapt.MLTSVM(c_k=C, lambda_param=1.0)
    theirs.fit(X, np.column_stack([y, y]))
    ours, library = (objective(u, X, y, C, 1.0) for u in (plane(X, y, C, 1.0), theirs.wk_bk[1]))
    assert ours <= library + 1e-9
    if C == 0.01:
        # Every multiplier is at its bound.
        assert ours == pytest.approx(library, rel=0.02)


def test_votes_are_distances_up_to_the_common_bound():
    X, Y = data(n=60)
    model = MLTSVM(0.5, normalize=False, tol=1e-8, max_iter=20_000).fit(X, Y)
    planes = np.array([quadratic_program(X, y, 0.5, 1.0) for y in Y.T])
    norms = np.linalg.norm(planes[:, :-1], axis=1)
    distances = np.abs(X @ planes[:, :-1].T + planes[:, -1]) / norms
    margins = 1 - distances * norms.max()
    np.testing.assert_allclose(model.decision_function(X), margins, atol=1e-4)
    # Items at the bound itself, which support vectors are, go either way.
    clear = np.abs(margins) > 1e-3
    np.testing.assert_array_equal(model.predict(X)[clear], (distances <= 1 / norms.max())[clear])
