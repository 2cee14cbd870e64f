"""Losses: residuals and curvature are the derivatives of the values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from prevalens.solvers.losses import BinaryLoss, SoftmaxLoss

N_ITEMS = 8
SIZES = np.array([3, 2])
ALL = slice(0, N_ITEMS)


def binary(*, rows_differ: bool) -> BinaryLoss:
    rng = np.random.default_rng(0)
    signs = rng.choice([-1, 1], size=(N_ITEMS, 5)).astype(np.int8)
    weights = rng.random((N_ITEMS if rows_differ else 1, 5)) + 0.5
    return BinaryLoss(signs, weights, np.float64)


def softmax(*, rows_differ: bool) -> SoftmaxLoss:
    rng = np.random.default_rng(0)
    targets = np.column_stack([rng.integers(0, 3, N_ITEMS), rng.integers(3, 5, N_ITEMS)])
    weights = rng.random((N_ITEMS if rows_differ else 1, 2)) + 0.5
    return SoftmaxLoss(targets, SIZES, weights, np.float64)


LOSSES = pytest.mark.parametrize("make", [binary, softmax])
ROWS = pytest.mark.parametrize("rows_differ", [True, False])


def predictors() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(N_ITEMS, 5)) * 2


def evaluated(loss: Any, Z: np.ndarray) -> tuple[float, np.ndarray]:
    residuals = Z.copy()
    value = loss.evaluate(ALL, residuals).sum()
    return value, residuals


@LOSSES
@ROWS
def test_residuals_are_the_slopes_of_the_value(make: Any, rows_differ: bool) -> None:
    loss, Z, h = make(rows_differ=rows_differ), predictors(), 1e-6
    _, residuals = evaluated(loss, Z)
    for i, j in np.ndindex(*Z.shape):
        ahead, behind = Z.copy(), Z.copy()
        ahead[i, j] += h
        behind[i, j] -= h
        slope = (evaluated(loss, ahead)[0] - evaluated(loss, behind)[0]) / (2 * h)
        assert residuals[i, j] == pytest.approx(slope, abs=1e-7)


@LOSSES
@ROWS
def test_curvature_is_the_slope_of_the_residuals(make: Any, rows_differ: bool) -> None:
    loss, Z, h = make(rows_differ=rows_differ), predictors(), 1e-6
    Q = np.random.default_rng(2).normal(size=Z.shape)
    change = (evaluated(loss, Z + h * Q)[1] - evaluated(loss, Z - h * Q)[1]) / (2 * h)
    evaluated(loss, Z)
    curved = Q.copy()
    loss.curve(ALL, curved)
    np.testing.assert_allclose(curved, change, atol=1e-7)


@LOSSES
def test_the_diagonal_is_the_curvature_of_each_column_alone(make: Any) -> None:
    loss = make(rows_differ=True)
    evaluated(loss, predictors())
    diagonal = loss.diagonal()
    for column in range(5):
        alone = np.zeros((N_ITEMS, 5))
        alone[:, column] = 1.0
        loss.curve(ALL, alone)
        np.testing.assert_allclose(diagonal[:, column], alone[:, column])


@LOSSES
def test_parts_joined_are_the_whole(make: Any) -> None:
    whole = make(rows_differ=True)
    joined = whole.select(np.arange(3)).join(whole.select(np.arange(3, 5)))
    value, residuals = evaluated(whole, predictors())
    value_joined, residuals_joined = evaluated(joined, predictors())
    assert value_joined == pytest.approx(value)
    np.testing.assert_allclose(residuals_joined, residuals)
    np.testing.assert_allclose(joined.diagonal(), whole.diagonal())


@LOSSES
def test_a_weight_multiplies_its_problem_alone(make: Any) -> None:
    loss, Z = make(rows_differ=False), predictors()
    _, before = evaluated(loss, Z)
    loss.reweight(np.arange(3), np.full(3, 7.0))
    _, after = evaluated(loss, Z)
    np.testing.assert_allclose(after[:, :3], 7 * before[:, :3])
    np.testing.assert_allclose(after[:, 3:], before[:, 3:])


def test_small_losses_count_in_single_precision() -> None:
    """Far on the right side, 1 + exp(-z) is rounded to few digits or to 1."""
    Z = np.linspace(5.0, 40.0, 50, dtype=np.float32)[:, np.newaxis]
    loss = BinaryLoss(np.full((50, 1), -1, np.int8), np.ones((1, 1), np.float32), np.float32)
    exact = np.logaddexp(0.0, -Z.astype(np.float64)).sum()
    assert loss.evaluate(slice(0, 50), Z)[0] == pytest.approx(exact, rel=1e-6)


def test_a_softmax_pools_and_projects_over_its_columns() -> None:
    loss = softmax(rows_differ=True)
    np.testing.assert_allclose(loss.pool(np.array([1.0, 2, 3, 4, 5])), [6, 6, 6, 9, 9])
    projected = loss.project(np.arange(10.0).reshape(2, 5))
    np.testing.assert_allclose(projected[:, :3].sum(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(projected[:, 3:].sum(axis=1), 0.0, atol=1e-12)
