"""Newton systems of many columns against direct solutions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from prevalens.solvers.design import Design, make_design
from prevalens.solvers.losses import BinaryLoss
from prevalens.solvers.newton import NewtonSystems

N_ITEMS, N_COLUMNS = 90, 4
EVERY = np.arange(N_COLUMNS)


def setting(*, sparse: bool, cost: float | None = None) -> tuple[Design, BinaryLoss, np.ndarray]:
    """A design, a loss that has its curvature, and gradients."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ITEMS, 7)) * (rng.random((N_ITEMS, 7)) < 0.6)
    items = sp.csr_matrix(X) if sparse else X
    _, design = make_design(items, intercept=True, width=N_COLUMNS)
    if cost is not None:
        design.gram_cost = cost
    signs = rng.choice([-1, 1], size=(N_ITEMS, N_COLUMNS)).astype(np.int8)
    loss = BinaryLoss(signs, np.full((1, N_COLUMNS), 3.0), np.float64)
    loss.evaluate(slice(0, N_ITEMS), rng.normal(size=(N_ITEMS, N_COLUMNS)))
    return design, loss, rng.normal(size=(design.n_params, N_COLUMNS))


def solutions(design: Design, loss: BinaryLoss, gradient: np.ndarray) -> np.ndarray:
    A = np.vstack([design.forward(b, np.eye(design.n_params)) for b in range(len(design.rows))])
    hessians = [A.T @ (d[:, np.newaxis] * A) + np.diag(design.penalty[:, 0]) for d in _curves(loss)]
    return np.column_stack(
        [np.linalg.solve(H, -g) for H, g in zip(hessians, gradient.T, strict=True)]
    )


def _curves(loss: BinaryLoss) -> np.ndarray:
    return loss.diagonal().T


def solved(
    design: Design, loss: BinaryLoss, gradient: np.ndarray, small_decrease: float = 0.0
) -> NewtonSystems:
    systems = NewtonSystems.closed(design, N_COLUMNS)
    systems.begin(EVERY, gradient, loss, np.full(N_COLUMNS, small_decrease))
    while systems.open.any():
        systems.iterate(loss)
    return systems


@pytest.mark.parametrize("cost", [np.inf, 1.0], ids=["diagonal", "factor"])
@pytest.mark.parametrize("sparse", [True, False])
def test_steps_predict_nearly_the_decrease_of_newton_steps(sparse: bool, cost: float) -> None:
    design, loss, gradient = setting(sparse=sparse, cost=cost)
    solution, best = solved(design, loss, gradient), solutions(design, loss, gradient)
    predicted = -(gradient * solution.step).sum(axis=0)
    most = -(gradient * best).sum(axis=0)
    assert solution.solved.all()
    assert np.all(predicted <= most * (1 + 1e-9))
    assert np.all(predicted >= 0.5 * most)
    np.testing.assert_allclose(predicted, solution.decrease, rtol=1e-6)


def test_steps_near_the_end_are_solved_more_exactly() -> None:
    design, loss, gradient = setting(sparse=True, cost=np.inf)
    rough, exact = (
        solved(design, loss, gradient, small_decrease) for small_decrease in (0.0, np.inf)
    )
    best = solutions(design, loss, gradient)
    assert np.all(exact.products > rough.products)
    np.testing.assert_allclose(
        (gradient * exact.step).sum(axis=0), (gradient * best).sum(axis=0), rtol=0.02
    )


def test_an_exact_factor_needs_one_product() -> None:
    design, loss, gradient = setting(sparse=True, cost=1.0)
    solution = solved(design, loss, gradient)
    assert solution.products.tolist() == [1] * N_COLUMNS
    np.testing.assert_allclose(solution.step, solutions(design, loss, gradient), rtol=1e-6)


def test_closed_systems_stay_as_they_are() -> None:
    design, loss, gradient = setting(sparse=True, cost=np.inf)
    systems = NewtonSystems.closed(design, N_COLUMNS)
    systems.begin(EVERY, gradient, loss, np.zeros(N_COLUMNS))
    systems.iterate(loss)
    systems.open[1] = False
    before = systems.step[:, 1].copy()
    systems.iterate(loss)
    np.testing.assert_array_equal(systems.step[:, 1], before)
    assert systems.products[1] == 1


def test_without_a_gradient_there_is_nothing_to_solve() -> None:
    design, loss, gradient = setting(sparse=False)
    solution = solved(design, loss, np.zeros_like(gradient))
    assert solution.solved.all()
    assert not solution.step.any()


def test_a_column_alone_is_solved_as_among_others() -> None:
    design, loss, gradient = setting(sparse=True, cost=np.inf)
    together = solved(design, loss, gradient)
    alone = NewtonSystems.closed(design, N_COLUMNS).select(np.array([2]))
    part = loss.select(np.array([2]))
    alone.begin(np.array([0]), gradient[:, [2]], part, np.zeros(1))
    while alone.open.any():
        alone.iterate(part)
    np.testing.assert_allclose(alone.step[:, 0], together.step[:, 2], rtol=1e-9)
