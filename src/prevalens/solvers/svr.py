"""Linear support vector regression of many targets on one design, at once.

For each target (column ``y`` of `Y`) the solution minimises scikit-learn's `LinearSVR` objective
``0.5 (|w|^2 + b^2) + C sum_i loss(y_i - x_i w - b)``, the intercept being penalised as one more
coefficient. The targets share their rows, so they share the singular value decomposition of the
design, and every product with it is one matrix product for all targets.

There are two phases. A splitting method (ADMM), each step of which is one linear map for all
targets, approaches the solutions. Then the method of multipliers with Newton steps finishes each
target: its linear systems hold only the rows whose residual is near the kink of the loss, a few per
coefficient. Every iterate gives a lower bound of the minimum through the dual, and a target is
finished when its relative duality gap is below `tol`; the solution contains that gap.

Rows of every array are targets. Coordinates refer to the left singular vectors of the design, in
which ``|w|^2`` is a weighted sum of squares and the fit is an orthonormal map.

References: Boyd et al., "Distributed optimization and statistical learning via the alternating
direction method of multipliers", 2011 (ADMM); Li, Sun and Toh, "A highly efficient semismooth
Newton augmented Lagrangian method for solving Lasso problems", SIAM J. Optim. 2018 (the second
phase, there for another loss); Ho and Lin, "Large-scale linear support vector regression", JMLR
2012 (primal and dual).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import lapack

from prevalens.types import Floats
from prevalens.validation import (
    InputError,
    check_choice,
    check_int,
    check_matrix,
    check_same_length,
)

Array = Floats

#: Directions of the design this much weaker than the strongest are left out.
_RANK_TOLERANCE = 1e-9
#: Bytes of one (targets, rows) array; more targets are taken in blocks.
_BLOCK_BYTES = 2**23
#: Shared steps come in rounds, between which finished targets are left out. Their penalty, in
#: units of C per mean deviation, and their number: on 159 targets and 5,000 rows, 50 steps at 3
#: before the Newton steps cost less in all than 30, 60 or 100 at 0.1 to 10. With 983 targets
#: a Newton step costs 160 shared ones, so rounds go on, at 1: after ten at C = 1000 the median gap
#: of 24 targets was 1e-3, against 7e-3 at 3.
_STEPS_PER_ROUND = 50
_MAX_ROUNDS = 20
_SHARED_PENALTY = 3.0
_LONG_PENALTY = 1.0
_OVER_RELAXATION = 1.7
#: Cells of the design from which shared steps are taken in single precision.
_LARGE = 2**20
#: Newton starts with this many rows near the kink per coordinate, and tightens while there are more
#: than _ENOUGH_ROWS; with fewer rows than coordinates its systems are nearly singular.
_ROWS_AT_START = 3
_ENOUGH_ROWS = 2.0
_TIGHTEN = 2.0
#: After this many Newton steps in a row that each sufficed for an update of the multipliers, sigma
#: is too small; after this many that did not, it is too large.
_MANY_SOLVED = 3
_MANY_UNSOLVED = 8
#: The narrowest the smoothed kink becomes at the start, and ever, in units of its first width:
#: tied residuals would ask for less than rounding allows.
_NARROWEST_START = 1e-3
_NARROWEST = 1e-6
#: A subproblem is solved when the predicted decrease of the augmented Lagrangian is this share of
#: the duality gap.
_SHARE_OF_GAP = 0.1
#: A step is taken if it leaves this share of the slope at most; else its length is searched.
_SLOPE_LEFT = 0.5
_LENGTH_SEARCHES = 12
#: Least diagonal added to a Newton system whose rows are orthonormal columns' rows.
_JITTER = 1e-11


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
    task = _Task(X, Y, epsilon, loss, fit_intercept, tol, max_iter)
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
    task = _Task(X, Y, epsilon, loss, fit_intercept, tol, max_iter)
    order = np.argsort(Cs, kind="stable")
    solved = task.solve([np.full(len(task.targets), float(Cs[i])) for i in order])
    return [solved[position] for position in np.argsort(order)]


@dataclass(frozen=True)
class Basis:
    """The design as ``left * diag(strength) * right``."""

    left: Array  # (n_rows, rank), orthonormal columns
    strength: Array  # (rank,)
    right: Array  # (rank, n_columns)

    @classmethod
    def of(cls, design: Array) -> Basis:
        """Decompose a design, shape (n_rows, n_columns)."""
        left, strength, right = np.linalg.svd(design, full_matrices=False)
        kept = strength > max(strength[0] * _RANK_TOLERANCE, float(np.finfo(np.float64).tiny))
        return cls(np.ascontiguousarray(left[:, kept]), strength[kept], right[kept])

    @cached_property
    def single_left(self) -> npt.NDArray[np.float32]:
        """`left` in single precision."""
        return self.left.astype(np.float32)

    @property
    def penalty(self) -> Array:
        """Weight of each squared coordinate in ``|w|^2``."""
        return self.strength**-2.0

    def weights(self, coordinates: Array) -> Array:
        """Coefficients of the design's columns, shape (n_targets, n_columns)."""
        return np.asarray((coordinates / self.strength) @ self.right)


@dataclass
class TargetState:
    """The iterate of each target.

    Attributes
    ----------
    targets, residual : array, shape (n_targets, n_rows)
    coordinates : array, shape (n_targets, rank)
    C : array, shape (n_targets,)
    sigma : array, shape (n_targets,)
        Penalty of the augmented Lagrangian.
    width, min_width : array, shape (n_targets,)
        The width over which the kink of the loss is smoothed, C / sigma, and its least value.
    multipliers : array, shape (n_targets, n_rows)
        Divided by sigma.
    streak : array, shape (n_targets,)
        Newton steps in a row that sufficed (positive) or did not (negative).
    """

    targets: Array
    C: Array
    sigma: Array
    width: Array
    min_width: Array
    multipliers: Array
    coordinates: Array
    residual: Array
    streak: Array

    @classmethod
    def blank(cls, targets: Array, rank: int) -> TargetState:
        """Before the first C: all coordinates zero."""
        blank = np.zeros(len(targets))
        return cls(
            targets=targets,
            C=blank.copy(),
            sigma=blank,
            width=blank.copy(),
            min_width=blank.copy(),
            multipliers=np.zeros_like(targets),
            coordinates=np.zeros((len(targets), rank)),
            residual=targets - np.median(targets, axis=1, keepdims=True),
            streak=blank.copy(),
        )

    def take(self, rows: Any) -> TargetState:
        """The state of some targets."""
        return TargetState(*(vars(self)[field.name][rows] for field in fields(self)))

    def put(self, rows: Any, part: TargetState) -> None:
        """Write the state of some targets back."""
        for field in fields(self):
            if field.name != "targets":
                vars(self)[field.name][rows] = vars(part)[field.name]


@dataclass
class Certificate:
    """Best value of each target so far, its coordinates, and a lower bound of the minimum."""

    primal: Array
    dual: Array
    coordinates: Array
    n_iter: int = 0

    def keep(self, rows: npt.NDArray[np.intp], primal: Array, dual: Array, at: Array) -> None:
        """Remember values and bounds that are better than before."""
        better = primal < self.primal[rows]
        self.primal[rows[better]] = primal[better]
        self.coordinates[rows[better]] = at[better]
        self.dual[rows] = np.maximum(self.dual[rows], dual)

    def gap(self, rows: npt.NDArray[np.intp]) -> Array:
        """How far each may still be from its minimum."""
        return np.asarray(self.primal[rows] - self.dual[rows])

    def unfinished(
        self, rows: npt.NDArray[np.intp], state: TargetState, tol: float
    ) -> npt.NDArray[np.bool_]:
        """Which have a gap above `tol`; a gap that rounding can make counts as none."""
        exact = self.gap(rows) <= 1e-13 * state.C * np.abs(state.targets).sum(axis=1)
        self.dual[rows[exact]] = self.primal[rows[exact]]
        gap = self.gap(rows)
        return np.asarray(~np.isfinite(gap) | (gap > tol * self.primal[rows]))


@dataclass(frozen=True)
class RegressionLoss(ABC):
    """A loss of residuals, of which those up to `epsilon` cost nothing."""

    epsilon: float

    @abstractmethod
    def initialise(
        self, basis: Basis, state: TargetState, C: Array, certificate: Certificate, tol: float
    ) -> None:
        """Change to the next C, and approach the solutions by steps that all targets share."""

    @abstractmethod
    def value(self, state: TargetState) -> Array:
        """The loss at the residuals, times C."""

    def dual(self, state: TargetState, alpha: Array) -> Array:
        """The dual value at the multipliers `alpha`, without the term of the coefficients."""
        products = np.einsum("ij,ij->i", state.targets, alpha)
        return np.asarray(products - self.epsilon * np.abs(alpha).sum(axis=1))

    def update(  # noqa: B027 - a loss without multipliers has nothing to update
        self, state: TargetState, solved: npt.NDArray[np.bool_], n_inside: Array
    ) -> None:
        """Update the multipliers of targets whose subproblem is `solved`.

        `n_inside` is the number of rows in each target's Newton system.
        """


def smoothed_slope(values: Array, epsilon: float, width: Array) -> Array:
    """Slope of the smoothed loss: the part of each value beyond epsilon, up to `width`."""
    limit = width[:, np.newaxis]
    if epsilon == 0.0:
        return np.clip(values, -limit, limit)
    beyond = np.abs(values)
    beyond -= epsilon
    np.clip(beyond, 0.0, limit, out=beyond)
    return np.copysign(beyond, values)


def beyond_epsilon(residual: Array, epsilon: float) -> Array:
    """The part of each absolute residual that lies beyond epsilon."""
    beyond = np.abs(residual)
    beyond -= epsilon
    return np.maximum(beyond, 0.0, out=beyond)


def primal_and_dual(
    basis: Basis, loss: RegressionLoss, state: TargetState, slope: Array, along: Array
) -> tuple[Array, Array]:
    """Value of the problem, and of its dual at the multipliers shrunk towards zero as is best."""
    primal = 0.5 * (np.square(state.coordinates) @ basis.penalty) + loss.value(state)
    alpha = slope * state.sigma[:, np.newaxis]
    linear = loss.dual(state, alpha)
    curve = state.sigma**2 * (np.square(along) @ np.square(basis.strength))
    share = np.clip(np.divide(linear, curve, out=np.ones_like(linear), where=curve > 0), 0.0, 1.0)
    return primal, share * linear - 0.5 * np.square(share) * curve


class AbsoluteLoss(RegressionLoss):
    """``C max(0, |r| - epsilon)``, through the augmented Lagrangian with multipliers in [-C, C]."""

    def initialise(
        self, basis: Basis, state: TargetState, C: Array, certificate: Certificate, tol: float
    ) -> None:
        """Rounds of ADMM, then a sigma that leaves few rows near the kink."""
        n_rows, rank = basis.left.shape
        n_rounds = int(np.clip(0.2 * rank**2 / n_rows, 1, _MAX_ROUNDS))
        penalty = _SHARED_PENALTY if n_rounds == 1 else _LONG_PENALTY
        width = _deviations(state.targets) / penalty
        # Each multiplier keeps its share of the bound C.
        state.multipliers *= np.divide(width, state.width, out=width.copy(), where=state.width > 0)[
            :, np.newaxis
        ]
        state.C, state.width, state.min_width = np.array(C), width, _NARROWEST * width
        state.sigma = state.C / state.width
        active = np.arange(len(width))
        part, split = state.take(active), state.residual
        for _ in range(n_rounds):
            split = self._shared_round(basis, part, split)
            values = primal_and_dual(
                basis, self, part, part.multipliers, part.multipliers @ basis.left
            )
            certificate.keep(active, *values, part.coordinates)
            unfinished = certificate.unfinished(active, part, tol)
            state.put(active, part)
            active, part, split = active[unfinished], part.take(unfinished), split[unfinished]
            if len(active) == 0:
                break
        # A sigma with which few rows of each target are near the kink.
        place = min(n_rows - 1, _ROWS_AT_START * rank)
        distance = np.abs(np.abs(state.residual) - self.epsilon)
        width = np.partition(distance, place, axis=1)[:, place]
        self._scale_penalty(state, 1.0 / np.clip(width / state.width, _NARROWEST_START, 1.0))

    def _shared_round(self, basis: Basis, state: TargetState, split: Array) -> Array:
        """Steps of ADMM, every one the same linear map for all targets but for a scale.

        Large problems take them in single precision, which is faster: what they lead to is
        judged in double precision, and a step in error is corrected by the next.
        """
        left: npt.NDArray[Any] = basis.left if basis.left.size < _LARGE else basis.single_left
        kind: Any = left.dtype
        targets, split = state.targets.astype(kind, copy=False), split.astype(kind, copy=False)
        shift, limit = state.multipliers.astype(kind), state.width.astype(kind)
        shrink = state.sigma[:, np.newaxis] / (state.sigma[:, np.newaxis] + basis.penalty)
        shrink = shrink.astype(kind)
        for _ in range(_STEPS_PER_ROUND):
            wanted = targets - split
            wanted += shift
            coordinates = (wanted @ left) * shrink
            residual = targets - coordinates @ left.T
            mixed = _OVER_RELAXATION * residual
            mixed += (1.0 - _OVER_RELAXATION) * split
            mixed += shift
            shift = smoothed_slope(mixed, self.epsilon, limit)
            split = mixed - shift
        # Rounding must not bring the multipliers beyond their bound, nor part residual and fit.
        bound = state.width[:, np.newaxis]
        state.multipliers = np.clip(shift.astype(np.float64), -bound, bound)
        state.coordinates = coordinates.astype(np.float64)
        state.residual = state.targets - state.coordinates @ basis.left.T
        return split.astype(np.float64)

    @staticmethod
    def _scale_penalty(state: TargetState, factor: Array) -> None:
        """Multiply sigma; the multipliers sigma * shift stay."""
        state.sigma *= factor
        state.width /= factor
        state.multipliers /= factor[:, np.newaxis]

    def value(self, state: TargetState) -> Array:
        """See `RegressionLoss`."""
        return state.C * beyond_epsilon(state.residual, self.epsilon).sum(axis=1)

    def update(self, state: TargetState, solved: npt.NDArray[np.bool_], n_inside: Array) -> None:
        """Update multipliers of solved targets; raise sigma if cheap, lower it on short steps."""
        rows = np.flatnonzero(solved)
        state.multipliers[rows] = smoothed_slope(
            state.residual[rows] + state.multipliers[rows], self.epsilon, state.width[rows]
        )
        state.streak = np.where(
            solved, np.maximum(state.streak, 0.0) + 1.0, np.minimum(state.streak, 0.0) - 1.0
        )
        rank = state.coordinates.shape[1]
        factor = np.ones(len(solved))
        tighten = solved & ((n_inside > _ENOUGH_ROWS * rank) | (state.streak >= _MANY_SOLVED))
        factor[tighten & (state.width > state.min_width)] = _TIGHTEN
        factor[~solved & ((n_inside < rank) | (state.streak <= -_MANY_UNSOLVED))] = 1.0 / _TIGHTEN
        self._scale_penalty(state, factor)


class SquaredLoss(RegressionLoss):
    """``C max(0, |r| - epsilon)^2``: smooth, so Newton works on the problem itself."""

    def initialise(
        self,
        basis: Basis,
        state: TargetState,
        C: Array,
        certificate: Certificate,  # noqa: ARG002
        tol: float,  # noqa: ARG002
    ) -> None:
        """Ridge regression, which is the answer for epsilon = 0."""
        state.C = np.array(C)
        state.sigma = 2.0 * state.C
        state.width = np.full(len(C), np.inf)
        shrink = state.sigma[:, np.newaxis] / (state.sigma[:, np.newaxis] + basis.penalty)
        state.coordinates = (state.targets @ basis.left) * shrink
        state.residual = state.targets - state.coordinates @ basis.left.T

    def value(self, state: TargetState) -> Array:
        """See `RegressionLoss`."""
        return state.C * np.square(beyond_epsilon(state.residual, self.epsilon)).sum(axis=1)

    def dual(self, state: TargetState, alpha: Array) -> Array:
        """See `RegressionLoss`."""
        return super().dual(state, alpha) - np.square(alpha).sum(axis=1) / (4.0 * state.C)


def solve_to_gap(
    basis: Basis, loss: RegressionLoss, whole: TargetState, C: Array, *, tol: float, max_iter: int
) -> Certificate:
    """Solve for one C per target, until each has a relative gap below `tol`.

    `whole` is left where the descent ended, for a start at another C.
    """
    never = np.full(len(C), np.inf)
    certificate = Certificate(never, -never, np.zeros_like(whole.coordinates))
    loss.initialise(basis, whole, C, certificate, tol)
    active = np.flatnonzero(certificate.unfinished(np.arange(len(C)), whole, tol))
    state = whole.take(active)
    for certificate.n_iter in range(max_iter + 1):
        slope = smoothed_slope(state.residual + state.multipliers, loss.epsilon, state.width)
        along = slope @ basis.left
        certificate.keep(
            active, *primal_and_dual(basis, loss, state, slope, along), state.coordinates
        )
        unfinished = certificate.unfinished(active, state, tol)
        if not unfinished.all():
            whole.put(active[~unfinished], state.take(~unfinished))
            active, state, along = active[unfinished], state.take(unfinished), along[unfinished]
        if len(active) == 0 or certificate.n_iter == max_iter:
            break
        _newton_step(basis, loss, state, along, certificate.gap(active))
    whole.put(active, state)
    return certificate


def _deviations(targets: Array) -> Array:
    """Mean distance of each target from its median; a positive number if that is zero."""
    distance = np.abs(targets - np.median(targets, axis=1, keepdims=True))
    scale = np.maximum(distance.mean(axis=1), 1e-6 * np.abs(targets).max(axis=1))
    return np.where(scale > 0, scale, 1.0)


def _newton_step(
    basis: Basis, loss: RegressionLoss, state: TargetState, along: Array, gap: Array
) -> None:
    gradient = state.coordinates * basis.penalty - state.sigma[:, np.newaxis] * along
    step, n_inside = _directions(basis, loss.epsilon, state, gradient)
    change = step @ basis.left.T
    gain = -np.einsum("ij,ij->i", gradient, step)
    length = _lengths(basis, loss.epsilon, state, step, change, gain)
    state.coordinates = state.coordinates + length[:, np.newaxis] * step
    state.residual = state.residual - length[:, np.newaxis] * change
    loss.update(state, (gain <= _SHARE_OF_GAP * gap) & (length == 1.0), n_inside)


def _directions(
    basis: Basis, epsilon: float, state: TargetState, gradient: Array
) -> tuple[Array, Array]:
    """Newton directions, and how many rows each system holds."""
    reach = np.abs(state.residual + state.multipliers)
    inside = reach < (epsilon + state.width)[:, np.newaxis]
    if epsilon > 0.0:
        inside &= reach > epsilon
    step = np.empty_like(gradient)
    rank = gradient.shape[1]
    for i in range(len(step)):
        rows = basis.left[np.flatnonzero(inside[i])]
        system = rows.T @ rows
        system.flat[:: rank + 1] += basis.penalty / state.sigma[i] + _JITTER
        _, step[i], _ = lapack.dposv(system, -gradient[i] / state.sigma[i], overwrite_a=1)
    return step, inside.sum(axis=1, dtype=np.float64)


def _lengths(
    basis: Basis, epsilon: float, state: TargetState, step: Array, change: Array, gain: Array
) -> Array:
    """Full steps if they leave little of the slope; else the zero of the slope is bracketed."""
    reach = state.residual + state.multipliers
    begin = np.einsum("ij,ij->i", state.coordinates * basis.penalty, step)
    curve = np.square(step) @ basis.penalty

    def slope(length: Array, rows: Any) -> Array:
        moved = reach[rows] - length[:, np.newaxis] * change[rows]
        pulled = smoothed_slope(moved, epsilon, state.width[rows])
        lost = np.einsum("ij,ij->i", pulled, change[rows])
        return np.asarray(begin[rows] + length * curve[rows] - state.sigma[rows] * lost)

    length = np.ones(len(gain))
    high_slope = slope(length, slice(None))
    rows = np.flatnonzero(high_slope > _SLOPE_LEFT * gain)
    if len(rows):
        length[rows] = _bracket(
            lambda t: slope(t, rows), -gain[rows], high_slope[rows], _SLOPE_LEFT * gain[rows]
        )
    return length


def _bracket(slope: Any, low_slope: Array, high_slope: Array, enough: Array) -> Array:
    """Where a rising function is near zero, between 0 (where it is negative) and 1 (positive).

    If no such place is reached, returns the last place at which the function was negative; a step
    to it lowers the objective.
    """
    low, high = np.zeros_like(low_slope), np.ones_like(low_slope)
    near = np.zeros(len(low), dtype=bool)
    for search in range(_LENGTH_SEARCHES):
        share = np.clip(low_slope / (low_slope - high_slope), 0.1, 0.9)
        if search > 1:
            # A nearly singular system can ask for steps too long by many orders of magnitude.
            share[low == 0.0] = 0.03
        middle = np.where(near, low, low + share * (high - low))
        here = slope(middle)
        near |= np.abs(here) <= enough
        if near.all():
            return middle
        left = near | (here < 0)
        low, low_slope = np.where(left, middle, low), np.where(left, here, low_slope)
        high, high_slope = np.where(left, high, middle), np.where(left, high_slope, here)
    return low


LOSSES: dict[str, type[RegressionLoss]] = {
    "epsilon_insensitive": AbsoluteLoss,
    "squared_epsilon_insensitive": SquaredLoss,
}


class _Task:
    """One design and its targets, checked, with everything that all values of C share."""

    def __init__(
        self,
        X: Any,
        Y: Any,
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
        self.loss = LOSSES[loss](_not_negative(epsilon, "epsilon"))
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
        return [self._join(block) for block in zip(*parts, strict=True)]

    def _solve_block(self, block: slice, path: list[Array]) -> list[Certificate]:
        state = TargetState.blank(self.targets[block], len(self.basis.strength))
        return [
            solve_to_gap(
                self.basis, self.loss, state, C[block], tol=self.tol, max_iter=self.max_iter
            )
            for C in path
        ]

    def _join(self, parts: tuple[Certificate, ...]) -> LinearSVRSolution:
        weights = self.basis.weights(np.vstack([part.coordinates for part in parts]))
        primal = np.concatenate([part.primal for part in parts])
        gap = np.maximum(primal - np.concatenate([part.dual for part in parts]), 0.0)
        n_features = weights.shape[1] - self.n_ones
        return LinearSVRSolution(
            coef=weights[:, :n_features],
            intercept=weights[:, n_features:].sum(axis=1),
            objective=primal,
            gap=np.divide(gap, primal, out=np.zeros_like(gap), where=primal > 0),
            n_iter=max(part.n_iter for part in parts),
        )


def _not_negative(value: object, name: str) -> float:
    number = float(value)  # type: ignore[arg-type]
    if not 0.0 <= number < np.inf:
        raise InputError(f"{name} must be zero or positive; got {value!r}.")
    return number
