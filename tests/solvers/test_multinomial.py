"""Batched multinomial logistic regression against scikit-learn's, target by target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from prevalens.solvers.logistic import fit_logistic
from prevalens.solvers.multinomial import MultinomialLogistic, fit_multinomial
from prevalens.validation import InputError


def problem(seed: int, classes: int = 4, n: int = 80, d: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Items and one target that uses every class."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.lognormal(size=d)
    target = np.argmax(
        X @ rng.normal(size=(d, classes)) + 2 * rng.normal(size=(n, classes)), axis=1
    )
    target[:classes] = np.arange(classes)
    return X, target


def objective(X: np.ndarray, y: np.ndarray, coef: Any, intercept: Any, C: float, w: Any) -> float:
    each = np.asarray(w)[y]
    losses = -log_softmax(X @ coef.T + intercept, axis=1)[np.arange(len(y)), y]
    return 0.5 * float(np.square(coef).sum()) + C * float(each @ losses)


def balanced(y: np.ndarray) -> np.ndarray:
    counts = np.bincount(y)
    return len(y) / (len(counts) * counts)


@settings(max_examples=15)
@given(
    st.integers(0, 10_000),
    st.integers(3, 6),
    st.sampled_from([0.1, 1.0, 100.0]),
    st.sampled_from([None, "balanced"]),
    st.booleans(),
)
def test_the_minimum_is_scikit_learns(
    seed: int, classes: int, C: float, weight: str | None, sparse: bool
) -> None:
    X, y = problem(seed, classes)
    items = sp.csr_matrix(X) if sparse else X
    (solution,) = fit_multinomial(items, y[:, np.newaxis], C=C, class_weight=weight)
    best = LogisticRegression(
        C=C, class_weight=weight, solver="newton-cholesky", tol=1e-10, max_iter=1000
    ).fit(X, y)
    weights = np.ones(classes) if weight is None else balanced(y)
    theirs = objective(X, y, best.coef_, best.intercept_, C, weights)
    ours = objective(X, y, solution.coef, solution.intercept, C, weights)
    assert solution.converged
    assert ours <= theirs * (1 + 1e-6)
    assert solution.objective == pytest.approx(ours, rel=1e-6)
    np.testing.assert_allclose(
        softmax(X @ solution.coef.T + solution.intercept, axis=1), best.predict_proba(X), atol=1e-3
    )


def test_coefficients_and_intercepts_sum_to_zero_over_the_classes() -> None:
    X, y = problem(3)
    (solution,) = fit_multinomial(X, y[:, np.newaxis])
    np.testing.assert_allclose(solution.coef.sum(axis=0), 0, atol=1e-6)
    assert solution.intercept.sum() == pytest.approx(0, abs=1e-9)


def test_without_intercept_is_scikit_learns() -> None:
    X, y = problem(4)
    (solution,) = fit_multinomial(X + 1, y[:, np.newaxis], fit_intercept=False)
    best = LogisticRegression(fit_intercept=False, tol=1e-10, max_iter=5000).fit(X + 1, y)
    np.testing.assert_array_equal(solution.intercept, 0)
    np.testing.assert_allclose(solution.coef, best.coef_, atol=1e-3)


def test_two_classes_are_a_binary_regression_with_twice_the_c() -> None:
    X, y = problem(5, classes=2)
    (softmaxed,) = fit_multinomial(X, y[:, np.newaxis], C=3.0)
    binary = fit_logistic(X, y[:, np.newaxis], C=6.0)
    np.testing.assert_allclose(
        softmaxed.coef[1] - softmaxed.coef[0], binary.coef[0], rtol=1e-3, atol=1e-5
    )


def test_targets_together_are_targets_alone() -> None:
    X, first = problem(6, classes=3)
    second = np.random.default_rng(0).permutation(problem(6, classes=5)[1])
    constant = np.zeros_like(first)
    together = fit_multinomial(
        X,
        np.column_stack([first, constant, second]),
        C=[0.5, 1.0, 20.0],
        class_weight=["balanced", None, [1.0, 2.0, 3.0, 4.0, 5.0]],
    )
    alone = [
        fit_multinomial(X, first[:, np.newaxis], C=0.5, class_weight="balanced")[0],
        fit_multinomial(X, second[:, np.newaxis], C=20.0, class_weight=[[1.0, 2.0, 3.0, 4.0, 5.0]])[
            0
        ],
    ]
    for single, expected in zip([together[0], together[2]], alone, strict=True):
        np.testing.assert_allclose(single.coef, expected.coef, rtol=1e-3, atol=1e-4)
        assert single.objective == pytest.approx(expected.objective, rel=1e-6)
    assert together[1].converged
    np.testing.assert_array_equal(together[1].coef, np.zeros((1, X.shape[1])))


def test_a_weight_is_a_repeated_row() -> None:
    X, y = problem(8)
    times = np.random.default_rng(0).integers(1, 4, size=len(X))
    (weighted,) = fit_multinomial(X, y[:, np.newaxis], sample_weight=times.astype(float))
    (repeated,) = fit_multinomial(np.repeat(X, times, axis=0), np.repeat(y, times)[:, np.newaxis])
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-6)
    np.testing.assert_allclose(weighted.coef, repeated.coef, rtol=1e-3, atol=1e-4)


def test_more_features_than_items() -> None:
    X, y = problem(9, n=30, d=200)
    (solution,) = fit_multinomial(sp.csr_matrix(X), y[:, np.newaxis], C=10.0)
    (dense,) = fit_multinomial(X, y[:, np.newaxis], C=10.0)
    assert solution.converged
    assert solution.objective == pytest.approx(dense.objective, rel=1e-6)


@pytest.mark.parametrize(
    ("targets", "arguments", "sentence"),
    [
        ([0, 1, 2], {}, r"shape \(n_items, n_targets\)"),
        ([[0.5], [1.0], [2.0]], {}, "whole numbers"),
        ([[0], [2], [2]], {}, "every class number from 0 to 2"),
        ([[0], [-1], [1]], {}, "every class number"),
        ([[0], [1]], {}, "targets"),
        ([[0], [1], [2]], {"class_weight": {0: 2.0}}, "class_weight must be None, 'balanced'"),
        ([[0], [1], [2]], {"class_weight": [[1.0, 2.0]]}, "must be 3 positive numbers"),
        ([[0], [1], [2]], {"C": 0.0}, "C must be positive"),
        ([[0], [1], [2]], {"tol": 0.0}, "tol"),
        ([[0], [1], [2]], {"sample_weight": [1.0]}, "sample_weight must have one number per item"),
    ],
)
def test_bad_arguments(targets: Any, arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        fit_multinomial([[0.0], [1.0], [2.0]], targets, **arguments)


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_estimator_of_any_number_of_classes_is_scikit_learns(classes: int, form: Any) -> None:
    X, y = problem(1, classes, 150, 3)
    ours = MultinomialLogistic(C=2.0).fit(form(X), 2 * y + 1)
    theirs = LogisticRegression(C=2.0, tol=1e-8, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(form(X)), theirs.predict_proba(X), atol=1e-4)
    assert ours.classes_.tolist() == [2 * number + 1 for number in range(classes)]
    np.testing.assert_array_equal(ours.predict(form(X)), 2 * theirs.predict(X) + 1)


def test_the_estimator_takes_features_of_any_scale() -> None:
    X, y = problem(2, 3, 150, 3)
    scale = np.array([1e-3, 1.0, 1e4])
    model = MultinomialLogistic(C=1e3).fit(X * scale, y)
    plain = MultinomialLogistic(C=1e3).fit(X, y)
    assert (model.predict(X * scale) == plain.predict(X)).mean() > 0.9
