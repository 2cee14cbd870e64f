"""Multinomial logistic regression of several targets on one design, in one go.

For each target (column of `targets`) with classes k = 0, ..., K - 1 the solution minimises
scikit-learn's objective ``0.5 sum_k |w_k|^2 + C sum_i s_i (log sum_k exp(z_ik) - z_i,y_i)`` with
``z_ik = x_i w_k + b_k``, the intercepts free. Every class is a column; the columns of all targets
and settings share their products with the items. The solver is in `linear_newton` and
`linear_path`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.solvers.design import Array
from prevalens.solvers.losses import (
    SoftmaxLoss,
    check_sample_weight,
    check_stopping,
    check_strengths,
)
from prevalens.solvers.path import PathSolution, Problems, solve_path
from prevalens.types import Floats
from prevalens.validation import InputError, Matrix, check_matrix, check_same_length

__all__ = ["MultinomialFit", "fit_multinomial", "fit_multinomial_path"]


@dataclass(frozen=True)
class MultinomialFit:
    """One multinomial logistic regression.

    Attributes
    ----------
    coef : array, shape (n_classes, n_features)
    intercept : array, shape (n_classes,)
        They sum to zero.
    objective : float
    n_iter : int
        Newton steps.
    converged : bool
    """

    coef: Array
    intercept: Array
    objective: float
    n_iter: int
    converged: bool


def fit_multinomial(
    X: Matrix,
    targets: Any,
    *,
    C: float | Array = 1.0,
    class_weight: str | Sequence[Any] | None = None,
    sample_weight: Array | None = None,
    tol: float = 1e-8,
    max_iter: int = 100,
    fit_intercept: bool = True,
) -> list[MultinomialFit]:
    """Fit one multinomial logistic regression per target.

    Parameters
    ----------
    X : array or sparse matrix, shape (n_items, n_features)
    targets : array of int, shape (n_items, n_targets)
        Class numbers; each target uses all of 0, ..., its largest.
    C : float or array of float, shape (n_targets,)
    class_weight : None, "balanced", or a list with an entry per target
        An entry is one of these or an array with the weights of the classes.
    sample_weight, tol, max_iter, fit_intercept
        As for `fit_logistic`.

    Returns
    -------
    list of MultinomialFit, one per target

    Notes
    -----
    Two classes are a softmax like any other, as if C were doubled in a binary regression. The time
    is that of `fit_logistic` for as many labels as there are classes in all.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
    >>> (fit,) = fit_multinomial(X, [[0], [0], [1], [1], [2], [2]])
    >>> fit.coef.round(2).ravel().tolist()
    [-0.95, -0.0, 0.95]
    """
    targets = _check_targets(targets)
    C = check_strengths(C, targets.shape[1])[np.newaxis]
    return _fit(X, targets, C, class_weight, sample_weight, tol, max_iter, fit_intercept)[0]


def fit_multinomial_path(
    X: Matrix,
    targets: Any,
    *,
    Cs: Sequence[float] = (0.1, 1.0, 10.0, 100.0, 1000.0),
    class_weight: str | Sequence[Any] | None = None,
    sample_weight: Array | None = None,
    tol: float = 1e-8,
    max_iter: int = 100,
    fit_intercept: bool = True,
) -> list[list[MultinomialFit]]:
    """Fit multinomial logistic regressions for several values of C.

    Parameters
    ----------
    X, targets, class_weight, sample_weight, tol, max_iter, fit_intercept
        As for `fit_multinomial`.
    Cs : list of float

    Returns
    -------
    list of lists of MultinomialFit
        One list per value of C, in it one fit per target.

    Examples
    --------
    >>> X, targets = [[0.0], [1.0], [2.0]], [[0], [1], [2]]
    >>> weak, strong = fit_multinomial_path(X, targets, Cs=[0.1, 10.0])
    >>> bool(abs(weak[0].coef).max() < abs(strong[0].coef).max())
    True
    """
    targets = _check_targets(targets)
    if not len(Cs):
        raise InputError("A path needs at least one value in Cs.")
    C = check_strengths(Cs, len(Cs))
    order = np.argsort(C, kind="stable")
    rising = np.broadcast_to(C[order, np.newaxis], (len(C), targets.shape[1]))
    fits = _fit(X, targets, rising, class_weight, sample_weight, tol, max_iter, fit_intercept)
    return [fits[place] for place in np.argsort(order)]


def _fit(
    X: Matrix,
    targets: npt.NDArray[np.int64],
    C: Array,
    class_weight: Any,
    sample_weight: Any,
    tol: float,
    max_iter: int,
    fit_intercept: bool,
) -> list[list[MultinomialFit]]:
    """Fits for each row of `C`, shape (n_steps, n_targets)."""
    X = check_matrix(X)
    check_same_length(X.shape[0], "X", len(targets), "targets")
    tol, max_iter = check_stopping(tol, max_iter)
    items = _Items(targets, class_weight, check_sample_weight(sample_weight, len(targets)))
    intercept = items.log_shares() if fit_intercept else np.zeros(items.n_columns)
    start = np.zeros((items.n_columns, X.shape[1])), intercept
    problems = Problems(
        groups=[group for group in items.groups if len(group) > 1],
        C=np.repeat(C, items.sizes, axis=1),
        make_loss=items.loss,
        start=start,
    )
    found = solve_path(X, problems, fit_intercept=fit_intercept, tol=tol, max_iter=max_iter)
    return [[_one(found, step, group) for group in items.groups] for step in range(len(C))]


def _one(found: PathSolution, step: int, group: Array) -> MultinomialFit:
    intercept = found.intercept[step, group]
    first = group[0]
    return MultinomialFit(
        found.coef[step, group],
        intercept - intercept.mean(),
        float(found.value[step, first]),
        int(found.n_iter[step, first]),
        bool(found.converged[step, first]),
    )


class _Items:
    """Targets and weights of all items."""

    def __init__(
        self, targets: npt.NDArray[np.int64], class_weight: Any, sample_weight: Array | None
    ) -> None:
        self.targets = targets
        self.sizes = targets.max(axis=0) + 1
        self.n_columns = int(self.sizes.sum())
        self.groups = np.split(np.arange(self.n_columns), np.cumsum(self.sizes)[:-1])
        counts = np.ones(len(targets)) if sample_weight is None else sample_weight
        self._counts = [
            np.bincount(target, weights=counts, minlength=size).astype(np.float64)
            for target, size in zip(targets.T, self.sizes, strict=True)
        ]
        per_target = _one_per_target(class_weight, targets.shape[1])
        self._class_weights = [
            _class_weights(weight, count)
            for weight, count in zip(per_target, self._counts, strict=True)
        ]
        self._sample_weight = sample_weight

    def log_shares(self) -> Array:
        """Centred logarithms of the weighted class shares: the best intercepts without features."""
        parts = []
        for count, weight in zip(self._counts, self._class_weights, strict=True):
            share = count * weight
            # A class all of whose items weigh nothing starts as if it had a little.
            logarithm = np.log(np.maximum(share, 1e-3 * share.max()))
            parts.append(logarithm - logarithm.mean())
        return np.concatenate(parts)

    def loss(self, columns: Array, C: Array, curvature_type: npt.DTypeLike) -> SoftmaxLoss:
        """The loss of the targets that `columns` belong to."""
        chosen = [number for number, group in enumerate(self.groups) if group[0] in columns]
        sizes = self.sizes[chosen]
        starts = np.cumsum(sizes) - sizes
        weights = np.ones((1, len(chosen))) * C[starts]
        if any(np.any(self._class_weights[number] != 1) for number in chosen):
            weights = weights * np.column_stack(
                [self._class_weights[number][self.targets[:, number]] for number in chosen]
            )
        if self._sample_weight is not None:
            weights = weights * self._sample_weight[:, np.newaxis]
        return SoftmaxLoss(self.targets[:, chosen] + starts, sizes, weights, curvature_type)


def _one_per_target(class_weight: Any, n_targets: int) -> Sequence[Any]:
    if class_weight is None or isinstance(class_weight, str):
        return [class_weight] * n_targets
    if isinstance(class_weight, Mapping) or len(class_weight) != n_targets:
        raise InputError(
            f"class_weight must be None, 'balanced', or a list with one entry for each of the "
            f"{n_targets} targets; got {class_weight!r}."
        )
    return list(class_weight)


def _class_weights(weight: Any, counts: Floats) -> Floats:
    if weight is None:
        return np.ones(len(counts))
    if isinstance(weight, str) and weight == "balanced":
        return counts.sum() / (len(counts) * np.where(counts > 0, counts, np.inf))
    weights = np.asarray(weight, dtype=np.float64)
    if weights.shape != (len(counts),) or not np.all(weights > 0):
        raise InputError(
            f"The class weights of a target must be {len(counts)} positive numbers; got {weight!r}."
        )
    return weights


def _check_targets(targets: Any) -> npt.NDArray[np.int64]:
    array = np.asarray(targets)
    if (
        array.ndim != 2
        or array.shape[0] == 0
        or array.shape[1] == 0
        or array.dtype.kind not in "iub"
    ):
        raise InputError(
            "targets must be whole numbers of shape (n_items, n_targets), at least one each; got "
            f"shape {array.shape} of type {array.dtype}."
        )
    array = array.astype(np.int64)
    for number, target in enumerate(array.T):
        counts = np.bincount(target) if target.min() >= 0 else np.zeros(1)
        if not counts.all():
            raise InputError(
                f"Target {number} must use every class number from 0 to {target.max()}; number "
                "its classes anew with numpy.unique(target, return_inverse=True)."
            )
    return array
