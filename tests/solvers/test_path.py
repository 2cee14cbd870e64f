"""Paths of problems: threads, precision and memory change nothing but time."""

from __future__ import annotations

import time
from itertools import count
from typing import Any

import numpy as np
import pytest

from prevalens.solvers import path
from prevalens.solvers.losses import BinaryLoss
from prevalens.solvers.path import LinearFit, Problems, solve_path

N_ITEMS, N_FEATURES, N_LABELS = 120, 5, 9
CS = np.array([0.1, 10.0])


def items() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ITEMS, N_FEATURES))
    Y = X @ rng.normal(size=(N_FEATURES, N_LABELS)) + rng.normal(size=(N_ITEMS, N_LABELS)) > 0.5
    return X, Y.astype(np.int8)


def problems(Y: np.ndarray, Cs: np.ndarray = CS) -> Problems:
    def make_loss(columns: np.ndarray, C: np.ndarray, curvature_type: object) -> BinaryLoss:
        return BinaryLoss(1 - 2 * Y[:, columns], C[np.newaxis].copy(), curvature_type)  # type: ignore[arg-type]

    n_labels = Y.shape[1]
    return Problems(
        groups=[np.array([label]) for label in range(n_labels)],
        C=np.repeat(Cs[:, np.newaxis], n_labels, axis=1),
        make_loss=make_loss,
        start=(np.zeros((n_labels, N_FEATURES)), np.zeros(n_labels)),
    )


def solved(max_iter: int = 100, Cs: np.ndarray = CS) -> LinearFit:
    X, Y = items()
    return solve_path(X, problems(Y, Cs), fit_intercept=True, tol=1e-10, max_iter=max_iter)


def test_a_step_of_the_path_is_its_problem_alone() -> None:
    path = solved()
    assert path.converged.all()
    for step, C in enumerate(CS):
        alone = solved(Cs=np.array([C]))
        np.testing.assert_allclose(path.coef[step], alone.coef[0], atol=1e-4)
        np.testing.assert_allclose(path.objective[step], alone.objective[0], rtol=1e-8)


@pytest.mark.parametrize(
    ("name", "value"), [("_SMALL", 0), ("_WORK_BYTES", 1), ("_WIDTH", 2), ("_PATIENCE", 1)]
)
def test_precision_and_width_change_nothing(
    name: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = solved()
    monkeypatch.setattr(path, "_SMALL", 0)
    monkeypatch.setattr(path, name, value)
    other = solved()
    assert other.converged.all()
    np.testing.assert_allclose(other.coef, usual.coef, atol=1e-4)
    np.testing.assert_allclose(other.objective, usual.objective, rtol=1e-8)


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = solved()
    monkeypatch.setattr(path, "_n_threads", lambda: 3)
    np.testing.assert_allclose(solved().coef, usual.coef, atol=1e-4)


def test_what_fails_in_a_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "_n_threads", lambda: 2)
    X, Y = items()
    with pytest.raises(ValueError, match="broadcast"):
        solve_path(X, problems(Y[:50]), fit_intercept=True, tol=1e-8, max_iter=10)


def test_too_few_steps_are_reported() -> None:
    solution = solved(max_iter=1)
    assert not solution.converged.any()
    assert np.all(solution.n_iter >= 1)


def test_no_problems_have_no_solutions() -> None:
    X, Y = items()
    solution = solve_path(X, problems(Y[:, :0]), fit_intercept=True, tol=1e-8, max_iter=10)
    assert solution.coef.shape == (len(CS), 0, N_FEATURES)


@pytest.mark.parametrize("late", [0, 1])
def test_a_thread_that_is_late_changes_no_bit(monkeypatch: pytest.MonkeyPatch, late: int) -> None:
    monkeypatch.setattr(path, "_n_threads", lambda: 2)
    monkeypatch.setattr(path, "_width", lambda *_: 2)
    expected = solved()
    take, calls = path._Path.take, count()

    def slow(self: path._Path, n_columns: int) -> Any:
        if next(calls) == late:
            time.sleep(0.1)
        return take(self, n_columns)

    monkeypatch.setattr(path._Path, "take", slow)
    np.testing.assert_array_equal(solved().coef, expected.coef)
    np.testing.assert_array_equal(solved().n_iter, expected.n_iter)
