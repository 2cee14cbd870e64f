"""Linear support vector machines over pairs of weight vectors, by dual coordinate descent.

Minimises ``0.5 sum_k |w_k|^2 + sum_t bound_t max(0, 1 - (w_a - w_b) x)``, where each constraint t
names a row x of the design and two weight vectors a and b: the first should score the row higher
than the second, by a margin of 1. Every step solves the dual problem in one multiplier exactly.

References: Hsieh et al., "A dual coordinate descent method for large-scale linear SVM", ICML 2008.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from prevalens.solvers.compiled import just_in_time
from prevalens.types import Floats, Ints

try:
    import numba
except ImportError:
    numba = None

#: Sweeps between two computations of the duality gap: one over all constraints, and then over those
#: alone whose multipliers are neither 0 nor at their bound, which are few where items are many.
_SWEEPS = 10


@dataclass(frozen=True)
class PairSolution:
    """Weight vectors, and how near they are to the minimum.

    Attributes
    ----------
    weights : array, shape (n_vectors, n_columns)
    objective : float
        Value of the minimised function.
    gap : float
        Proven bound of ``(objective - minimum) / objective``.
    n_iter : int
        Sweeps over the constraints.
    """

    weights: Floats
    objective: float
    gap: float
    n_iter: int


def fit_pairs(
    X: Floats,
    rows: Ints,
    pairs: tuple[Ints, Ints],
    bounds: Floats,
    n_vectors: int,
    *,
    tol: float = 1e-4,
    max_iter: int = 1000,
) -> PairSolution:
    """Find weight vectors that score the first of each pair above the second.

    Parameters
    ----------
    X : array of float64 in C order, shape (n_rows, n_columns)
    rows : array of int, shape (n_constraints,)
        The row of `X` of each constraint.
    pairs : two arrays of int, shape (n_constraints,)
        The vector that should score the row higher, and the other.
    bounds : array of float, shape (n_constraints,)
        Cost of each constraint per unit of violation.
    n_vectors : int
    tol : float
        Relative duality gap at which to stop.
    max_iter : int
        Most sweeps over the constraints; compare `gap` with `tol`.

    Notes
    -----
    O(n_constraints x n_columns) for one sweep of ten, less for the others; compiled if numba is
    installed. Constraints are visited in random orders that are the same in every call.

    Examples
    --------
    >>> X, first = np.array([[1.0], [-1.0]]), np.array([0, 1])
    >>> solution = fit_pairs(X, np.arange(2), (first, 1 - first), np.ones(2), 2)
    >>> solution.weights.round(3).tolist()
    [[0.5], [-0.5]]
    """
    first, second = pairs
    alpha, weights = np.zeros(len(rows)), np.zeros((n_vectors, X.shape[1]))
    # A row of zeros has no margin; its multiplier goes to its bound.
    curvature = np.maximum(2 * np.einsum("ij,ij->i", X, X), np.finfo(np.float64).tiny)
    rng = np.random.default_rng(0)
    objective, gap, n_iter = 0.0, np.inf, 0
    while gap > tol and n_iter < max_iter:
        visited = np.arange(len(rows))
        for sweep in range(min(_SWEEPS, max_iter - n_iter)):
            if sweep == 1:
                visited = np.flatnonzero((alpha > 0) & (alpha < bounds))
            n_iter += 1
            order = rng.permutation(visited)
            _sweep(X, curvature, rows, first, second, bounds, order, alpha, weights)
        scores = X @ weights.T
        violations = np.maximum(1 - scores[rows, first] + scores[rows, second], 0)
        penalty = 0.5 * float((weights**2).sum())
        objective = penalty + float(bounds @ violations)
        gap = (objective - (float(alpha.sum()) - penalty)) / max(objective, np.finfo(float).tiny)
    return PairSolution(weights, objective, gap, n_iter)


def _sweep(
    X: Any,
    curvature: Any,
    rows: Any,
    first: Any,
    second: Any,
    bounds: Any,
    order: Any,
    alpha: Any,
    weights: Any,
) -> None:
    """Minimise the dual in each multiplier of `order` in turn; changes `alpha` and `weights`."""
    for t in order:
        x, above, below = X[rows[t]], weights[first[t]], weights[second[t]]
        slope = np.dot(above, x) - np.dot(below, x) - 1.0
        moved = min(max(alpha[t] - slope / curvature[rows[t]], 0.0), bounds[t])
        step = moved - alpha[t]
        if step != 0.0:
            alpha[t] = moved
            above += step * x
            below -= step * x


_sweep = just_in_time(numba, _sweep)
