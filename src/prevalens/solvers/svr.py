"""Linear support vector regression of many targets on one design, in one go.

For each target (column ``y`` of `Y`) the solution minimises scikit-learn's `LinearSVR` objective
``0.5 (|w|^2 + b^2) + C sum_i loss(y_i - x_i w - b)``, the intercept being penalised as one more
coefficient. The targets share their rows, so they share the singular value decomposition of the
design, and every product with it is one matrix product for all targets.

Two phases. A splitting method (ADMM), whose every step is one shared linear map, brings all
targets near their solutions. The method of multipliers with Newton steps then finishes each: its
linear systems hold only the rows whose residual is near the kink of the loss, a few per
coefficient. Every iterate gives a lower bound of the minimum through the dual, so a target is
finished when its relative duality gap is below `tol`: the answer carries its own certificate.

References: Boyd et al., "Distributed optimization and statistical learning via the alternating
direction method of multipliers", 2011 (ADMM); Li, Sun and Toh, "A highly efficient semismooth
Newton augmented Lagrangian method for solving Lasso problems", SIAM J. Optim. 2018 (the second
phase, there for another loss); Ho and Lin, "Large-scale linear support vector regression", JMLR
2012 (primal and dual).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from prevalens.solvers.svr_steps import (
    Absolute,
    Array,
    Basis,
    Loss,
    Record,
    Squared,
    State,
    descend,
)
from prevalens.validation import (
    InputError,
    check_choice,
    check_int,
    check_matrix,
    check_same_length,
)

__all__ = ["LinearSVRSolution", "fit_linear_svr", "linear_svr_path"]

LOSSES: dict[str, type[Absolute] | type[Squared]] = {
    "epsilon_insensitive": Absolute,
    "squared_epsilon_insensitive": Squared,
}
#: Bytes of one (targets, rows) array; more targets are taken in blocks.
_BLOCK_BYTES = 2**23


@dataclass(frozen=True)
class LinearSVRSolution:
    """Coefficients of all targets, and how near each is to its minimum.

    Attributes
    ----------
    coef : array, shape (n_targets, n_features)
    intercept : array, shape (n_targets,)
    objective : array, shape (n_targets,)
        Value of the minimised function.
    gap : array, shape (n_targets,)
        Proven bound of ``(objective - minimum) / objective``.
    n_iter : int
        Newton steps of the target that took most.
    """

    coef: Array
    intercept: Array
    objective: Array
    gap: Array
    n_iter: int


def fit_linear_svr(
    X: Any,
    Y: Any,
    *,
    C: float | Sequence[float] | Array = 1.0,
    epsilon: float = 0.0,
    loss: str = "epsilon_insensitive",
    fit_intercept: bool = True,
    tol: float = 1e-4,
    max_iter: int = 300,
) -> LinearSVRSolution:
    """Fit one linear support vector regression per column of `Y`.

    Parameters
    ----------
    X : array or sparse matrix, shape (n_rows, n_features)
        Made dense.
    Y : array, shape (n_rows, n_targets)
    C : float, or one per target
        Weight of the loss against the penalty of the coefficients.
    epsilon : float
        Residuals up to here cost nothing.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
        ``max(0, |r| - epsilon)``, or its square.
    fit_intercept : bool
        Whether to append a column of ones, penalised like any other (liblinear's way).
    tol : float
        Relative duality gap at which a target is finished.
    max_iter : int
        Newton steps per target at most.

    Returns
    -------
    LinearSVRSolution
        Compare its `gap` with `tol`: a target that ran into `max_iter` has a larger one.

    Notes
    -----
    With r = min(n_rows, n_features), O(n_rows r^2) once, O(n_rows r) per target and step, and
    O(r^3) per target and Newton step. Slow for thousands of features: the systems are dense.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(6.0).reshape(-1, 1)
    >>> solution = fit_linear_svr(x, np.hstack([2 * x + 3, 1 - x]), C=100.0)
    >>> solution.coef.ravel().round(2).tolist(), solution.intercept.round(2).tolist()
    ([2.0, -1.0], [3.0, 1.0])
    """
    values = np.asarray(C, dtype=np.float64)
    task = _Task(
        X,
        Y,
        epsilon=epsilon,
        loss=loss,
        fit_intercept=fit_intercept,
        tol=tol,
        max_iter=max_iter,
    )
    if values.shape not in ((), (len(task.targets),)):
        raise InputError(
            f"Give one C for all targets or one per target ({len(task.targets)}); got {C!r}."
        )
    return task.solve([np.broadcast_to(values, len(task.targets))])[0]


def linear_svr_path(
    X: Any,
    Y: Any,
    *,
    Cs: Sequence[float],
    epsilon: float = 0.0,
    loss: str = "epsilon_insensitive",
    fit_intercept: bool = True,
    tol: float = 1e-4,
    max_iter: int = 300,
) -> list[LinearSVRSolution]:
    """Solve for several C, each from the solution of the next smaller; parameters as above.

    Returns one solution per entry of `Cs`, in the order given.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(6.0).reshape(-1, 1)
    >>> [round(float(s.coef[0, 0]), 2) for s in linear_svr_path(x, 2 * x, Cs=[100.0, 0.01])]
    [2.0, 0.15]
    """
    if len(Cs) == 0:
        raise InputError("Cs is empty; give at least one value of C.")
    task = _Task(
        X,
        Y,
        epsilon=epsilon,
        loss=loss,
        fit_intercept=fit_intercept,
        tol=tol,
        max_iter=max_iter,
    )
    order = np.argsort(Cs, kind="stable")
    solved = task.solve([np.full(len(task.targets), float(Cs[i])) for i in order])
    return [solved[position] for position in np.argsort(order)]


class _Task:
    """One design and its targets, checked, and what all values of C share."""

    def __init__(
        self,
        X: Any,
        Y: Any,
        *,
        epsilon: float,
        loss: str,
        fit_intercept: bool,
        tol: float,
        max_iter: int,
    ) -> None:
        X = check_matrix(X)
        design = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
        targets = np.asarray(check_matrix(Y, "Y"), dtype=np.float64)
        check_same_length(design.shape[0], "X", targets.shape[0], "Y")
        check_choice(loss, "loss", tuple(LOSSES))
        self.loss: Loss = LOSSES[loss](_not_negative(epsilon, "epsilon"))
        self.tol = _not_negative(tol, "tol")
        self.max_iter = check_int(max_iter, "max_iter", minimum=0)
        self.n_ones = int(fit_intercept)
        self.targets = np.ascontiguousarray(targets.T)
        self.basis = Basis.of(np.hstack([design, np.ones((design.shape[0], self.n_ones))]))

    def solve(self, path: list[Array]) -> list[LinearSVRSolution]:
        """One solution per entry of `path`, each an array with one C per target."""
        if not all(np.isfinite(C).all() and (C > 0).all() for C in path):
            raise InputError("C must be a positive, finite number.")
        n_targets, n_rows = self.targets.shape
        size = max(1, _BLOCK_BYTES // (8 * n_rows))
        parts = [
            self._solve_block(slice(start, start + size), path)
            for start in range(0, n_targets, size)
        ]
        return [self._join(records) for records in zip(*parts, strict=True)]

    def _solve_block(self, block: slice, path: list[Array]) -> list[Record]:
        state = State.blank(self.targets[block], len(self.basis.strength))
        return [
            descend(self.basis, self.loss, state, C[block], tol=self.tol, max_iter=self.max_iter)
            for C in path
        ]

    def _join(self, records: tuple[Record, ...]) -> LinearSVRSolution:
        weights = self.basis.weights(np.vstack([record.coordinates for record in records]))
        primal = np.concatenate([record.primal for record in records])
        gap = np.maximum(primal - np.concatenate([record.dual for record in records]), 0.0)
        n_features = weights.shape[1] - self.n_ones
        return LinearSVRSolution(
            coef=weights[:, :n_features],
            intercept=weights[:, n_features:].sum(axis=1),
            objective=primal,
            gap=np.divide(gap, primal, out=np.zeros_like(gap), where=primal > 0),
            n_iter=max(record.n_iter for record in records),
        )


def _not_negative(value: object, name: str) -> float:
    number = float(value)  # type: ignore[arg-type]
    if not 0.0 <= number < np.inf:
        raise InputError(f"{name} must be zero or positive; got {value!r}.")
    return number
