import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVR

from prevalens.solvers import svr
from prevalens.solvers.svr import LOSSES, fit_linear_svr, linear_svr_path
from prevalens.validation import InputError


def objective(X, y, coef, intercept, *, C, epsilon, loss):
    excess = np.maximum(np.abs(y - X @ coef - intercept) - epsilon, 0.0)
    cost = excess.sum() if loss == "epsilon_insensitive" else np.square(excess).sum()
    return 0.5 * (coef @ coef + intercept**2) + C * cost


def prevalences(n_rows=400, n_labels=5, seed=0):
    """Rows like those of RQ: shares of 100 items, shrunk and noisy inputs, many zeros."""
    rng = np.random.default_rng(seed)
    rate = rng.beta(0.5, 4.0, size=(n_rows, n_labels))
    Y = rng.binomial(100, rate) / 100
    X = np.clip(0.1 + 0.5 * Y @ rng.dirichlet(np.ones(n_labels), n_labels), 0, 1)
    return X + 0.02 * rng.standard_normal(X.shape), Y


@pytest.mark.parametrize("loss", list(LOSSES))
@pytest.mark.parametrize("epsilon", [0.0, 0.02])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_objective_is_that_of_scikit_learn_at_convergence(C, epsilon, loss):
    X, Y = prevalences()
    ours = fit_linear_svr(X, Y, C=C, epsilon=epsilon, loss=loss)
    for j, y in enumerate(Y.T):
        rival = LinearSVR(
            C=C, epsilon=epsilon, loss=loss, tol=1e-6, max_iter=1_000_000, random_state=0
        )
        rival.fit(X, y)
        best = objective(X, y, rival.coef_, rival.intercept_[0], C=C, epsilon=epsilon, loss=loss)
        reached = objective(X, y, ours.coef[j], ours.intercept[j], C=C, epsilon=epsilon, loss=loss)
        assert reached == pytest.approx(ours.objective[j], rel=1e-9)
        assert reached == pytest.approx(best, rel=2e-4)


@pytest.mark.parametrize("loss", list(LOSSES))
@pytest.mark.parametrize("C", [100.0, 1000.0])
def test_large_c_converges_with_a_certificate(C, loss):
    """Liblinear does not get there; the duality gap proves that this solver does."""
    X, Y = prevalences(n_rows=600, n_labels=8, seed=1)
    solution = fit_linear_svr(X, Y, C=C, loss=loss)
    assert solution.gap.max() <= 1e-4
    nearly_exact = fit_linear_svr(X, Y, C=C, loss=loss, tol=1e-6)
    assert nearly_exact.gap.max() <= 1e-6
    np.testing.assert_allclose(solution.objective, nearly_exact.objective, rtol=1e-4)


@pytest.mark.parametrize("epsilon", [0.0, 0.02])
def test_single_precision_on_the_way_leaves_the_certificate_true(monkeypatch, epsilon):
    X, Y = prevalences(n_rows=600, n_labels=8, seed=1)
    settings = {"Cs": [0.1, 10.0, 1000.0], "epsilon": epsilon, "tol": 1e-5}
    expected = linear_svr_path(X, Y, **settings)
    monkeypatch.setattr(svr, "_LARGE", 0)
    solution = linear_svr_path(X, Y, **settings)
    for C, single, other in zip(settings["Cs"], solution, expected, strict=True):
        assert single.gap.max() <= 1e-5
        np.testing.assert_allclose(single.objective, other.objective, rtol=2e-5)
        recomputed = [
            objective(X, y, w, b, C=C, epsilon=epsilon, loss="epsilon_insensitive")
            for y, w, b in zip(Y.T, single.coef, single.intercept, strict=True)
        ]
        np.testing.assert_allclose(single.objective, recomputed, rtol=1e-9)
        # The gap is a bound: no solution may lie below what it allows.
        assert (other.objective >= single.objective * (1 - single.gap) - 1e-12).all()


def test_nothing_near_the_solution_is_better():
    X, Y = prevalences(n_rows=200, n_labels=3, seed=2)
    C = 5.0
    solution = fit_linear_svr(X, Y, C=C, tol=1e-7)
    rng = np.random.default_rng(0)
    for j, y in enumerate(Y.T):
        for scale in (1e-3, 1e-2, 1e-1):
            coef = solution.coef[j] + scale * rng.standard_normal(3)
            intercept = solution.intercept[j] + scale * rng.standard_normal()
            other = objective(X, y, coef, intercept, C=C, epsilon=0, loss="epsilon_insensitive")
            assert other >= solution.objective[j] * (1 - 1e-7)


def test_squared_loss_without_epsilon_is_ridge_regression():
    X, Y = prevalences(seed=3)
    design = np.hstack([X, np.ones((len(X), 1))])
    C = 3.0
    ridge = np.linalg.solve(design.T @ design + np.eye(6) / (2 * C), design.T @ Y)
    solution = fit_linear_svr(X, Y, C=C, loss="squared_epsilon_insensitive")
    np.testing.assert_allclose(solution.coef, ridge[:-1].T, atol=1e-10)
    np.testing.assert_allclose(solution.intercept, ridge[-1], atol=1e-10)
    assert solution.n_iter == 0


def test_targets_do_not_depend_on_each_other_nor_on_blocks(monkeypatch):
    X, Y = prevalences(seed=4)
    together = fit_linear_svr(X, Y, tol=1e-9)
    alone = [fit_linear_svr(X, Y[:, [j]], tol=1e-9).coef[0] for j in range(Y.shape[1])]
    np.testing.assert_allclose(together.coef, alone, atol=1e-5)
    monkeypatch.setattr(svr, "_BLOCK_BYTES", 1)
    np.testing.assert_allclose(fit_linear_svr(X, Y, tol=1e-9).coef, together.coef, atol=1e-5)


def test_one_c_per_target():
    X, Y = prevalences(n_labels=3, seed=5)
    Cs = [0.1, 1.0, 10.0]
    mixed = fit_linear_svr(X, Y, C=Cs, tol=1e-8)
    for j, C in enumerate(Cs):
        alone = fit_linear_svr(X, Y[:, [j]], C=C, tol=1e-8)
        assert mixed.objective[j] == pytest.approx(alone.objective[0], rel=1e-7)


@pytest.mark.parametrize("loss", list(LOSSES))
def test_the_path_gives_the_same_minima_in_the_order_asked(loss):
    X, Y = prevalences(seed=6)
    Cs = [1000.0, 0.1, 10.0, 1.0, 100.0]
    path = linear_svr_path(X, Y, Cs=Cs, loss=loss, epsilon=0.01)
    for C, solution in zip(Cs, path, strict=True):
        assert solution.gap.max() <= 1e-4
        alone = fit_linear_svr(X, Y, C=C, loss=loss, epsilon=0.01)
        np.testing.assert_allclose(solution.objective, alone.objective, rtol=1e-4)


def test_without_intercept_and_from_a_sparse_design():
    X, Y = prevalences(seed=7)
    X = np.where(X > 0.2, X, 0.0)
    dense = fit_linear_svr(X, Y, fit_intercept=False)
    sparse = fit_linear_svr(sp.csr_matrix(X), Y, fit_intercept=False)
    np.testing.assert_array_equal(dense.coef, sparse.coef)
    assert not dense.intercept.any()


def test_degenerate_designs_and_targets():
    X, Y = prevalences(n_rows=60, n_labels=4, seed=8)
    X = np.hstack([X, X[:, :2], np.zeros((60, 1)), np.full((60, 1), 0.3)])
    Y = np.hstack([Y, np.zeros((60, 1)), np.ones((60, 1)), np.full((60, 1), 0.25)])
    solution = fit_linear_svr(X, Y, C=10.0)
    assert solution.gap.max() <= 1e-4
    predicted = X @ solution.coef.T + solution.intercept
    np.testing.assert_allclose(predicted[:, 4:], Y[:, 4:], atol=1e-3)


def test_fewer_rows_than_features():
    rng = np.random.default_rng(9)
    X, Y = rng.random((6, 20)), rng.random((6, 3))
    solution = fit_linear_svr(X, Y, C=1000.0)
    assert solution.gap.max() <= 1e-4
    np.testing.assert_allclose(X @ solution.coef.T + solution.intercept, Y, atol=1e-3)


def test_a_stop_before_convergence_shows_in_the_gap():
    X, Y = prevalences(seed=10)
    hurried = fit_linear_svr(X, Y, C=100.0, max_iter=0)
    patient = fit_linear_svr(X, Y, C=100.0)
    assert hurried.gap.max() > 1e-4 >= patient.gap.max()
    assert (hurried.objective * (1 - hurried.gap) <= patient.objective * (1 + 1e-12)).all()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 60),
    n_features=st.integers(1, 8),
    C=st.sampled_from([1e-3, 0.1, 1.0, 30.0, 1000.0]),
    epsilon=st.sampled_from([0.0, 0.05]),
    loss=st.sampled_from(list(LOSSES)),
    step=st.sampled_from([0.01, 0.1]),
)
def test_any_small_problem_is_solved_to_its_certificate(
    seed, n_rows, n_features, C, epsilon, loss, step
):
    """Values on a coarse grid, so that ties, duplicates and exact fits abound."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n_rows, n_features)) / step) * step
    Y = np.round(rng.random((n_rows, 3)) / step) * step
    solution = fit_linear_svr(X, Y, C=C, epsilon=epsilon, loss=loss)
    assert solution.gap.max() <= 1e-4
    for j in range(3):
        value = objective(
            X, Y[:, j], solution.coef[j], solution.intercept[j], C=C, epsilon=epsilon, loss=loss
        )
        assert value == pytest.approx(solution.objective[j], rel=1e-6, abs=1e-12)


def test_refusals():
    X, Y = prevalences(n_rows=20)
    with pytest.raises(InputError, match="C must be a positive"):
        fit_linear_svr(X, Y, C=0.0)
    with pytest.raises(InputError, match="epsilon must be zero or positive; got -1"):
        fit_linear_svr(X, Y, epsilon=-1)
    with pytest.raises(InputError, match="loss must be one of"):
        fit_linear_svr(X, Y, loss="huber")
    with pytest.raises(InputError, match="X has 19 rows but Y has 20"):
        fit_linear_svr(X[1:], Y)
    with pytest.raises(InputError, match="Cs is empty"):
        linear_svr_path(X, Y, Cs=[])
    with pytest.raises(InputError, match="one C for all targets or one per target"):
        fit_linear_svr(X, Y, C=[1.0, 2.0])
