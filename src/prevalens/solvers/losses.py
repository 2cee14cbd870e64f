"""Losses of the batched solvers: two classes per column, or several columns per softmax.

A loss knows the targets and weights of some columns. For a block of rows it turns the linear
predictor into values and residuals, remembers the curvature there, and multiplies by that curvature
later. `pool` sums over the columns of a problem: a problem has one column in the binary loss, and a
column per class in the softmax loss. With it, the same solver serves both.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from prevalens.solvers.design import Array, visible_only
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import InputError, check_fraction, check_int


class Loss(Protocol):
    """A loss, as a solver uses it. Columns are always those of whole problems.

    Attributes
    ----------
    visible : array of bool, shape (n_params, n_columns), or None
        The parameters that each column may use; None if all.
    """

    visible: npt.NDArray[np.bool_] | None

    def select(self, columns: Array) -> Self:
        """The loss of some columns, with their curvature."""

    def fresh(self, columns: Array, value_type: npt.DTypeLike) -> Self:
        """The loss of some columns for values in another precision, curvature unknown."""

    def join(self, other: Self) -> Self:
        """Own columns with those of another loss behind."""

    def update(self, columns: Array, other: Self) -> None:
        """Take over the curvature that `other` has for some columns."""

    def reweight(self, columns: Array, factor: Array) -> None:
        """Multiply the weights of some columns."""

    def evaluate(self, rows: slice, Z: Array) -> Array:
        """Values per column; turns predictors `Z` into residuals in place, keeps the curvature."""

    def curve(self, rows: slice, Q: Array) -> None:
        """Multiply a direction's predictors `Q` by the curvature, in place."""

    def diagonal(self) -> Array:
        """The curvature of each column alone, shape (n_items, n_columns)."""

    def pool(self, per_column: Array) -> Array:
        """Sums over the columns of each problem, at each of its columns."""

    def project(self, T: Array) -> Array:
        """Remove the component of parameters that does not change the loss."""


def _of_rows(weights: Array, rows: slice) -> Array:
    """Weights of a block; a single row of weights holds for all rows."""
    return weights if len(weights) == 1 else weights[rows]


def _side_by_side(left: Array, right: Array) -> Array:
    """Weights of two groups of columns; one row if both have one."""
    n_rows = max(len(left), len(right))
    return np.hstack([np.broadcast_to(part, (n_rows, part.shape[1])) for part in (left, right)])


class BinaryLoss:
    """Weighted logistic loss of one label per column.

    Parameters
    ----------
    signs : array of int8, shape (n_items, n_columns)
        -1 where the item has the label, 1 where not.
    weights : array, shape (1, n_columns) or (n_items, n_columns)
    curvature_type : dtype
        Precision in which the curvature is kept.
    visible : array of bool, shape (n_params, n_columns), optional
        The parameters that each column may use.
    """

    def __init__(
        self,
        signs: LabelMatrix,
        weights: Array,
        curvature_type: npt.DTypeLike,
        visible: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        self.visible = visible
        self._signs = signs
        self._weights = weights
        self._curvature = np.zeros(signs.shape, dtype=curvature_type)

    def select(self, columns: Array) -> BinaryLoss:
        """The loss of some columns."""
        other = self.fresh(columns, self._weights.dtype)
        other._curvature = self._curvature[:, columns]
        return other

    def fresh(self, columns: Array, value_type: npt.DTypeLike) -> BinaryLoss:
        """The loss of some columns, not evaluated yet."""
        weights = self._weights[:, columns].astype(value_type, copy=False)
        visible = None if self.visible is None else self.visible[:, columns]
        return BinaryLoss(self._signs[:, columns], weights, self._curvature.dtype, visible)

    def join(self, other: BinaryLoss) -> BinaryLoss:
        """Both losses' columns."""
        joined: BinaryLoss = object.__new__(BinaryLoss)
        joined.visible = None
        if self.visible is not None and other.visible is not None:
            joined.visible = np.hstack([self.visible, other.visible])
        joined._signs = np.hstack([self._signs, other._signs])
        joined._weights = _side_by_side(self._weights, other._weights)
        joined._curvature = np.hstack([self._curvature, other._curvature])
        return joined

    def update(self, columns: Array, other: BinaryLoss) -> None:
        """Take over the curvature of some columns."""
        self._curvature[:, columns] = other._curvature

    def reweight(self, columns: Array, factor: Array) -> None:
        """Multiply the weights of some columns."""
        self._weights[:, columns] *= factor

    def evaluate(self, rows: slice, Z: Array) -> Array:
        """Values per column; `Z` becomes the residuals.

        One exponential of a negative number serves the value, the residual and the curvature.
        """
        signs, weights = self._signs[rows], _of_rows(self._weights, rows)
        Z *= signs
        exponential = np.copysign(Z, -1.0)
        np.exp(exponential, out=exponential)
        inverse = exponential + 1.0
        values = np.log(inverse)
        # For items far on the right side, the loss is the part that the sum has rounded away.
        rounded = inverse - 1.0
        np.subtract(exponential, rounded, out=rounded)
        np.reciprocal(inverse, out=inverse)
        rounded *= inverse
        values += rounded
        values += np.maximum(Z, 0.0)
        values *= weights
        exponential *= inverse
        exponential *= inverse
        np.multiply(exponential, weights, out=self._curvature[rows], casting="same_kind")
        inverse -= 0.5
        np.copysign(inverse, Z, out=Z)
        Z += 0.5
        Z *= signs
        Z *= weights
        return np.asarray(values.sum(axis=0, dtype=np.float64))

    def curve(self, rows: slice, Q: Array) -> None:
        """Multiply by the curvature."""
        Q *= self._curvature[rows]

    def diagonal(self) -> Array:
        """The curvature itself: the columns are independent."""
        return self._curvature

    def pool(self, per_column: Array) -> Array:
        """Nothing to add up: every column is a problem of its own."""
        return per_column

    def project(self, T: Array) -> Array:
        """Set the parameters that columns may not use to zero."""
        return visible_only(T, self.visible)


class SoftmaxLoss:
    """Weighted cross-entropy of several multi-class problems, one column per class.

    Parameters
    ----------
    targets : array of int, shape (n_items, n_problems)
        The column of each item's class.
    sizes : array of int, shape (n_problems,)
        Number of classes, and of neighbouring columns, of each problem.
    weights : array, shape (1, n_problems) or (n_items, n_problems)
    curvature_type : dtype
        Precision in which the probabilities are kept.
    """

    visible: npt.NDArray[np.bool_] | None = None

    def __init__(
        self,
        targets: Array,
        sizes: Array,
        weights: Array,
        curvature_type: npt.DTypeLike,
    ) -> None:
        self._targets, self._sizes, self._weights = targets, sizes, weights
        self._starts = np.cumsum(sizes) - sizes
        self._posteriors = np.zeros((len(targets), int(sizes.sum())), dtype=curvature_type)

    def select(self, columns: Array) -> SoftmaxLoss:
        """The loss of the problems that `columns` belong to."""
        other = self.fresh(columns, self._weights.dtype)
        other._posteriors = self._posteriors[:, columns]
        return other

    def fresh(self, columns: Array, value_type: npt.DTypeLike) -> SoftmaxLoss:
        """The loss of the problems that `columns` belong to, not evaluated yet."""
        chosen = np.isin(self._starts, columns)
        sizes = self._sizes[chosen]
        moved = self._targets[:, chosen] - self._starts[chosen] + np.cumsum(sizes) - sizes
        weights = self._weights[:, chosen].astype(value_type, copy=False)
        return SoftmaxLoss(moved, sizes, weights, self._posteriors.dtype)

    def join(self, other: SoftmaxLoss) -> SoftmaxLoss:
        """Both losses' problems."""
        joined = SoftmaxLoss(
            np.hstack([self._targets, other._targets + self._posteriors.shape[1]]),
            np.concatenate([self._sizes, other._sizes]),
            _side_by_side(self._weights, other._weights),
            self._posteriors.dtype,
        )
        joined._posteriors = np.hstack([self._posteriors, other._posteriors])
        return joined

    def update(self, columns: Array, other: SoftmaxLoss) -> None:
        """Take over the probabilities of some columns."""
        self._posteriors[:, columns] = other._posteriors

    def reweight(self, columns: Array, factor: Array) -> None:
        """Multiply the weights of the problems that `columns` belong to."""
        chosen = np.isin(self._starts, columns)
        self._weights[:, chosen] *= factor[np.isin(columns, self._starts)]

    def evaluate(self, rows: slice, Z: Array) -> Array:
        """Values, at the first column of each problem; `Z` becomes the residuals."""
        weights = _of_rows(self._weights, rows)
        targets = self._targets[rows]
        Z -= self._spread(np.maximum.reduceat(Z, self._starts, axis=1))
        at_target = np.take_along_axis(Z, targets, axis=1)
        np.exp(Z, out=Z)
        totals = np.add.reduceat(Z, self._starts, axis=1)
        Z /= self._spread(totals)
        self._posteriors[rows] = Z
        values = np.zeros(Z.shape[1])
        losses = (np.log(totals) - at_target) * weights
        values[self._starts] = losses.sum(axis=0, dtype=np.float64)
        reduced = np.take_along_axis(Z, targets, axis=1) - 1.0
        np.put_along_axis(Z, targets, reduced, axis=1)
        Z *= self._spread(weights)
        return values

    def curve(self, rows: slice, Q: Array) -> None:
        """Multiply by the curvature of the softmax, ``diag(p) - p p'`` for each item."""
        P = self._posteriors[rows]
        Q -= self._spread(np.add.reduceat(P * Q, self._starts, axis=1))
        Q *= P
        Q *= self._spread(_of_rows(self._weights, rows)).astype(Q.dtype, copy=False)

    def diagonal(self) -> Array:
        """The diagonal of the curvature."""
        P = self._posteriors
        weights = self._spread(self._weights).astype(P.dtype, copy=False)
        return np.asarray(weights * P * (1.0 - P))

    def pool(self, per_column: Array) -> Array:
        """Sums over the classes of each problem."""
        return np.repeat(np.add.reduceat(per_column, self._starts), self._sizes)

    def project(self, T: Array) -> Array:
        """Subtract the mean over the classes of each problem: it shifts all predictors alike.

        Along that direction only the penalty is curved, which no preconditioner of single columns
        knows.
        """
        sums = np.add.reduceat(T, self._starts, axis=1)
        return T - self._spread(sums / self._sizes.astype(T.dtype))

    def _spread(self, per_problem: Array) -> Array:
        return np.repeat(per_problem, self._sizes, axis=1)


def check_strengths(C: Any, n: int) -> Floats:
    """Return C as `n` positive numbers; a single one is repeated."""
    values = np.asarray(C, dtype=np.float64)
    if values.ndim > 1 or (values.ndim == 1 and len(values) != n):
        raise InputError(f"C must be one number or {n} of them; its shape is {values.shape}.")
    bad = ~(values > 0) | np.isinf(values)
    if bad.any():
        raise InputError(f"C must be positive and finite; got {values[bad].flat[0]}.")
    return np.broadcast_to(values, (n,))


def check_stopping(tol: float, max_iter: int) -> tuple[float, int]:
    """Check and return the tolerance and the number of steps."""
    return check_fraction(tol, "tol"), check_int(max_iter, "max_iter", minimum=1)


def check_sample_weight(sample_weight: Any, n_items: int) -> Floats | None:
    """Return weights of items as float64, or None."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_items,):
        raise InputError(
            f"sample_weight must have one number per item ({n_items}); its shape is "
            f"{weights.shape}."
        )
    if not np.all(weights >= 0) or not np.any(weights > 0) or not np.all(np.isfinite(weights)):
        raise InputError("sample_weight must be finite, not negative, and not zero everywhere.")
    return weights
