"""A stream of columns against scikit-learn, column by column."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from prevalens.solvers.design import make_design
from prevalens.solvers.losses import BinaryLoss
from prevalens.solvers.newton import Batch, NewtonStream, NewtonSystems, _Columns

N_ITEMS, N_FEATURES, N_LABELS = 80, 4, 7


class Listed:
    """A source of labels in their order, each with a list of rising weights."""

    def __init__(self, Y: np.ndarray, n_params: int, weights: list[float]) -> None:
        self.Y, self.n_params, self.weights = Y, n_params, weights
        self.next = 0
        self.widest = 0
        self.solutions: dict[tuple[int, int], tuple[np.ndarray, float, int, bool]] = {}

    def take(self, n_columns: int) -> Batch | None:
        places = np.arange(self.next, min(self.next + n_columns, self.Y.shape[1]))
        if not len(places):
            return None
        self.next = places[-1] + 1
        self.widest = max(self.widest, len(places))
        weights = np.full((1, len(places)), self.weights[0])
        loss = BinaryLoss(1 - 2 * self.Y[:, places], weights, np.float32)
        return Batch(places, loss, np.zeros((self.n_params, len(places))))

    def give(
        self,
        places: np.ndarray,
        T: np.ndarray,
        value: np.ndarray,
        n_iter: np.ndarray,
        converged: np.ndarray,
    ) -> np.ndarray:
        factors = []
        for place, *answer in zip(places, T.T.copy(), value, n_iter, converged, strict=True):
            step = sum(1 for label, _ in self.solutions if label == place)
            self.solutions[int(place), step] = tuple(answer)
            more = step + 1 < len(self.weights)
            factors.append(self.weights[step + 1] / self.weights[step] if more else 0.0)
        return np.array(factors)


def problem(seed: int) -> tuple[sp.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ITEMS, N_FEATURES)) * (rng.random((N_ITEMS, N_FEATURES)) < 0.7)
    noise = rng.normal(size=(N_ITEMS, N_LABELS))
    Y = (X @ rng.normal(size=(N_FEATURES, N_LABELS)) + noise > 0.3).astype(np.int8)
    Y[:2] = [[0] * N_LABELS, [1] * N_LABELS]
    return sp.csr_matrix(X), Y


def run(
    X: sp.csr_matrix, Y: np.ndarray, weights: list[float], *, tol: float, max_iter: int = 100
) -> Listed:
    single, double = make_design(X, intercept=True, width=3)
    source = Listed(Y, double.n_params, weights)
    with np.errstate(all="ignore"):
        NewtonStream(double, single, source, width=3, align=1, tol=tol, max_iter=max_iter).run()
    return source


def objective(X: sp.csr_matrix, y: np.ndarray, T: np.ndarray, C: float) -> float:
    margin = (2.0 * y - 1) * (X @ T[:-1] + T[-1])
    return 0.5 * float(T[:-1] @ T[:-1]) + C * float(np.logaddexp(0, -margin).sum())


def least(X: sp.csr_matrix, y: np.ndarray, C: float) -> float:
    model = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10).fit(X.toarray(), y)
    return objective(X, y, np.append(model.coef_[0], model.intercept_[0]), C)


@settings(max_examples=20)
@given(
    st.integers(0, 10_000),
    st.sampled_from([1e-3, 1e-4, 1e-8]),
    st.sampled_from([[0.1, 10.0, 1000.0], [0.1, 1.0, 1.0, 1.1, 1000.0]]),
)
def test_each_column_ends_at_its_minimum_for_every_weight(
    seed: int, tol: float, weights: list[float]
) -> None:
    X, Y = problem(seed)
    source = run(X, Y, weights, tol=tol)
    assert len(source.solutions) == N_LABELS * len(weights)
    assert source.widest <= 3
    for (label, step), (T, value, n_iter, converged) in source.solutions.items():
        reached = objective(X, Y[:, label], T, weights[step])
        assert converged
        assert n_iter >= 1
        assert reached <= least(X, Y[:, label], weights[step]) * (1 + tol) + 1e-9
        assert value == pytest.approx(reached, rel=1e-5, abs=1e-9)


def test_columns_that_run_out_of_steps_say_so() -> None:
    X, Y = problem(0)
    source = run(X, Y, [1000.0], tol=1e-8, max_iter=1)
    assert len(source.solutions) == N_LABELS
    assert not any(converged for *_, converged in source.solutions.values())


def test_a_source_without_columns_is_nothing_to_do() -> None:
    X, Y = problem(0)
    assert run(X, Y[:, :0], [1.0], tol=1e-4).solutions == {}


def products(monkeypatch: pytest.MonkeyPatch, weights: list[float], *, extrapolate: bool) -> int:
    """Products with the Hessian on the way to the solutions of labels that a plane separates."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N_ITEMS, N_FEATURES))
    Y = (X @ rng.normal(size=(N_FEATURES, N_LABELS)) > 0.3).astype(np.int8)
    spent = 0
    iterate = NewtonSystems.iterate

    def count(self: NewtonSystems, loss: BinaryLoss) -> None:
        nonlocal spent
        spent += int(self.open.sum())
        iterate(self, loss)

    with monkeypatch.context() as patch:
        patch.setattr(NewtonSystems, "iterate", count)
        if not extrapolate:
            patch.setattr(_Columns, "_extrapolate", lambda self, columns: None)
        source = run(sp.csr_matrix(X), Y, weights, tol=1e-4)
    for (label, step), (T, *_, converged) in source.solutions.items():
        C = weights[step]
        assert converged
        assert objective(X, Y[:, label], T, C) <= least(sp.csr_matrix(X), Y[:, label], C) * 1.0001
    return spent


@pytest.mark.parametrize("weights", [[10.0**k for k in range(7)], [1.0, 10.0, 1e3, 1e4, 1e6]])
def test_extrapolation_saves_products_if_classes_are_separated(
    monkeypatch: pytest.MonkeyPatch, weights: list[float]
) -> None:
    with_it = products(monkeypatch, weights, extrapolate=True)
    assert with_it < 0.85 * products(monkeypatch, weights, extrapolate=False)
