"""Batched logistic regression against scikit-learn's, label by label and setting by setting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from prevalens import datasets
from prevalens.solvers.logistic import fit_logistic, fit_logistic_folds, fit_logistic_path
from prevalens.validation import InputError

GRID = [(C, weight) for weight in (None, "balanced") for C in (0.1, 1.0, 10.0, 100.0, 1000.0)]


def problem(seed: int, n: int = 60, d: int = 5, labels: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.lognormal(size=d)
    Y = (X @ rng.normal(size=(d, labels)) + 2 * rng.normal(size=(n, labels)) > 0.5).astype(np.int8)
    Y[:2] = [[0] * labels, [1] * labels]
    return X, Y


def objective(X: Any, y: np.ndarray, w: np.ndarray, b: float, C: float, weight: Any) -> float:
    n, positives = len(y), y.sum()
    each = np.ones(n)
    if weight == "balanced":
        each = np.where(y > 0, n / (2 * positives), n / (2 * (n - positives)))
    margin = (2 * y - 1) * (np.asarray(X @ w).ravel() + b)
    return 0.5 * float(w @ w) + C * float(each @ np.logaddexp(0, -margin))


def reference(X: Any, y: np.ndarray, C: float, weight: Any) -> LogisticRegression:
    solver = "newton-cg" if sp.issparse(X) else "newton-cholesky"
    model = LogisticRegression(C=C, class_weight=weight, solver=solver, tol=1e-10, max_iter=10_000)
    return model.fit(X, y)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from(GRID), st.booleans())
def test_the_minimum_is_scikit_learns(seed: int, setting: tuple[float, Any], sparse: bool) -> None:
    C, weight = setting
    X, Y = problem(seed)
    items = sp.csr_matrix(X) if sparse else X
    solution = fit_logistic(items, Y, C=C, class_weight=weight)
    assert solution.converged.all()
    for label, y in enumerate(Y.T):
        best = reference(X, y, C, weight)
        theirs = objective(X, y, best.coef_[0], best.intercept_[0], C, weight)
        ours = objective(X, y, solution.coef[label], solution.intercept[label], C, weight)
        assert ours <= theirs * (1 + 1e-4)
        assert solution.objective[label] == pytest.approx(ours, rel=1e-6)


@settings(max_examples=10)
@given(st.integers(0, 10_000))
def test_a_path_is_its_settings_one_by_one(seed: int) -> None:
    X, Y = problem(seed)
    path = fit_logistic_path(X, Y)
    assert list(path.settings) == GRID
    for number, (C, weight) in enumerate(path.settings):
        alone = fit_logistic(X, Y, C=C, class_weight=weight)
        ours = expit(X @ path[number].coef.T + path[number].intercept)
        np.testing.assert_allclose(ours, expit(X @ alone.coef.T + alone.intercept), atol=1e-3)


def test_each_label_its_own_setting() -> None:
    X, Y = problem(0)
    mixed = fit_logistic(X, Y, C=[0.1, 1.0, 10.0], class_weight=["balanced", None, None])
    for label, (C, weight) in enumerate([(0.1, "balanced"), (1.0, None), (10.0, None)]):
        alone = fit_logistic(X, Y[:, [label]], C=C, class_weight=weight)
        np.testing.assert_allclose(mixed.coef[label], alone.coef[0], rtol=1e-3, atol=1e-4)


def test_a_weight_is_a_repeated_row() -> None:
    X, Y = problem(1)
    times = np.random.default_rng(0).integers(1, 4, size=len(X))
    weighted = fit_logistic(X, Y, sample_weight=times.astype(float))
    repeated = fit_logistic(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    np.testing.assert_allclose(weighted.coef, repeated.coef, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("tol", [1e-5, 1e-8])
def test_a_label_may_use_some_features_only(tol: float, sparse: bool, fit_intercept: bool) -> None:
    X, Y = problem(3)
    items = sp.csr_matrix(X) if sparse else X
    visible = np.array([[1, 1, 0, 0, 1], [0, 0, 1, 1, 1], [0, 0, 0, 0, 0]], dtype=bool)
    options: dict[str, Any] = {"tol": tol, "fit_intercept": fit_intercept}
    solution = fit_logistic(items, Y, visible=visible, **options)
    assert not solution.coef[~visible].any()
    for label, seen in enumerate(visible[:2]):
        alone = fit_logistic(items[:, seen], Y[:, [label]], **options)
        np.testing.assert_allclose(solution.coef[label, seen], alone.coef[0], atol=1e-2)
        assert solution.objective[label] == pytest.approx(alone.objective[0], rel=tol)
    share = Y[:, 2].mean()
    blind = np.log(share / (1 - share)) if fit_intercept else 0.0
    assert solution.intercept[2] == pytest.approx(blind)


def test_constant_labels_are_certain() -> None:
    X, Y = problem(2)
    Y[:, 0], Y[:, 1] = 0, 1
    solution = fit_logistic(X, Y)
    assert solution.intercept[0] == -np.inf
    assert solution.intercept[1] == np.inf
    assert np.isfinite(solution.intercept[2])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"C": -1.0}, "C"),
        ({"class_weight": "heavy"}, "class_weight must be None, 'balanced'"),
        ({"class_weight": [None]}, "class_weight has 1 entries but there are 3 labels"),
        ({"tol": 0.0}, "tol"),
        ({"visible": np.ones((3, 2), dtype=bool)}, r"one column per feature, \(3, 5\)"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], sentence: str) -> None:
    X, Y = problem(0)
    with pytest.raises(InputError, match=sentence):
        fit_logistic(X, Y, **arguments)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["emotions", "scene", "yeast", "medical", "enron"])
def test_posteriors_are_scikit_learns_on_real_data(name: str) -> None:
    """Settings of the paper's grid, on labels from frequent to rare.

    With many features, where the reference takes a second for each, the frequent label without
    and the rare one with class weights.
    """
    data = datasets.load(name)
    order = np.argsort(-data.train.prevalence)
    wide = data.train.X.shape[1] > 500
    some = order[np.linspace(0, len(order) - 1, 2 if wide else 4).astype(int)]
    dense = data.train.X.toarray() if sp.issparse(data.train.X) else data.train.X
    Cs = [0.1, 1000.0] if wide else [0.1, 1.0, 10.0, 100.0, 1000.0]
    path = fit_logistic_path(data.train.X, data.train.Y[:, some], Cs=Cs)
    for number, (C, weight) in enumerate(path.settings):
        ours = expit(dense @ path[number].coef.T + path[number].intercept)
        for column, label in enumerate(some):
            if wide and bool(weight) != bool(column):
                continue
            best = reference(dense, data.train.Y[:, label], C, weight)
            theirs = best.predict_proba(dense)[:, 1]
            np.testing.assert_allclose(ours[:, column], theirs, atol=1e-3)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_folds_solved_together_are_the_paths_of_their_items(class_weight):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    Y = (X @ rng.normal(size=(4, 3)) + rng.normal(size=(60, 3)) > 0.5).astype(np.int8)
    Y[:, 2] = 0
    Y[40:45, 2] = 1
    # The last fold has no positives of the last label; strengths come in any order.
    rows = [np.arange(20, 60), np.r_[0:20, 40:60], np.arange(40)]
    options = {"Cs": [10.0, 0.1], "tol": 1e-10}
    fits = fit_logistic_folds(X, Y, rows, class_weight=class_weight, **options)
    for chosen, fit in zip(rows, fits, strict=True):
        alone = fit_logistic_path(X[chosen], Y[chosen], class_weights=[class_weight], **options)
        np.testing.assert_allclose(fit.coef, alone.coef, atol=1e-4)
        np.testing.assert_allclose(fit.intercept, alone.intercept, atol=1e-4)
    assert np.all(fits[2].intercept[:, 2] == -np.inf)
