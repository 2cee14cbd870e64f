"""The parts of `svr`: a design, where its targets stand, and what is proven of them.

Rows of every array here are targets; coordinates are with respect to the left singular vectors of
the design, in which ``|w|^2`` is a weighted sum of squares and the fit an orthonormal map.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from prevalens.types import Floats

__all__ = [
    "Absolute",
    "Array",
    "Basis",
    "Loss",
    "Record",
    "Squared",
    "State",
    "agreement",
    "bounds",
    "descend",
    "excess",
    "pull",
]

Array = Floats

#: Directions of the design this much weaker than the strongest are left out.
_RANK_TOLERANCE = 1e-9


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
class State:
    """Where each target stands. `limit` is the width over which the loss is smoothed."""

    targets: Array  # (n_targets, n_rows)
    C: Array
    sigma: Array
    limit: Array
    floor: Array  # least limit
    shift: Array  # (n_targets, n_rows): multipliers / sigma
    coordinates: Array  # (n_targets, rank)
    residual: Array  # (n_targets, n_rows)
    streak: Array  # steps in a row that sufficed (positive) or did not (negative)

    @classmethod
    def blank(cls, targets: Array, rank: int) -> State:
        """Before the first C: all coordinates zero."""
        blank = np.zeros(len(targets))
        return cls(
            targets=targets,
            C=blank.copy(),
            sigma=blank,
            limit=blank.copy(),
            floor=blank.copy(),
            shift=np.zeros_like(targets),
            coordinates=np.zeros((len(targets), rank)),
            residual=targets - np.median(targets, axis=1, keepdims=True),
            streak=blank.copy(),
        )

    def take(self, rows: Any) -> State:
        """The state of some targets."""
        return State(*(getattr(self, field.name)[rows] for field in fields(self)))

    def put(self, rows: Any, part: State) -> None:
        """Write the state of some targets back."""
        for field in fields(self):
            if field.name != "targets":
                getattr(self, field.name)[rows] = getattr(part, field.name)


@dataclass
class Record:
    """Best value of each target so far, its proven lower bound, and where the value was taken."""

    primal: Array
    dual: Array
    coordinates: Array
    n_iter: int = 0

    def keep(self, rows: npt.NDArray[np.intp], primal: Array, dual: Array, at: Array) -> None:
        """Remember what is better than before."""
        better = primal < self.primal[rows]
        self.primal[rows[better]] = primal[better]
        self.coordinates[rows[better]] = at[better]
        self.dual[rows] = np.maximum(self.dual[rows], dual)

    def gap(self, rows: npt.NDArray[np.intp]) -> Array:
        """How far each may still be from its minimum."""
        return np.asarray(self.primal[rows] - self.dual[rows])

    def unfinished(
        self, rows: npt.NDArray[np.intp], state: State, tol: float
    ) -> npt.NDArray[np.bool_]:
        """Which have a gap above `tol`; a gap that rounding can make counts as none."""
        exact = self.gap(rows) <= 1e-13 * state.C * np.abs(state.targets).sum(axis=1)
        self.dual[rows[exact]] = self.primal[rows[exact]]
        gap = self.gap(rows)
        return np.asarray(~np.isfinite(gap) | (gap > tol * self.primal[rows]))


class Loss(Protocol):
    """What the descent needs to know of a loss."""

    @property
    def epsilon(self) -> float:
        """Residuals up to here cost nothing."""

    def approach(self, basis: Basis, state: State, C: Array, record: Record, tol: float) -> None:
        """Move to the next C, and near the solutions by steps that all targets share."""

    def value(self, state: State) -> Array:
        """The loss at the residuals, times C."""

    def dual(self, state: State, alpha: Array) -> Array:
        """The dual value at the multipliers `alpha`, but for the part of the coefficients."""

    def update(self, state: State, easy: npt.NDArray[np.bool_], n_inside: Array) -> None:
        """Move the multipliers of targets on which Newton has done its work (`easy`)."""


def pull(values: Array, epsilon: float, limit: Array) -> Array:
    """Slope of the smoothed loss: the part of each value beyond epsilon, up to `limit`."""
    limit = limit[:, np.newaxis]
    if epsilon == 0.0:
        return np.clip(values, -limit, limit)
    beyond = np.abs(values)
    beyond -= epsilon
    np.clip(beyond, 0.0, limit, out=beyond)
    return np.copysign(beyond, values)


def excess(residual: Array, epsilon: float) -> Array:
    """What of each residual lies beyond epsilon."""
    beyond = np.abs(residual)
    beyond -= epsilon
    return np.maximum(beyond, 0.0, out=beyond)


def agreement(state: State, alpha: Array) -> Array:
    """Products of the targets and the multipliers `alpha`, summed."""
    return np.asarray(np.einsum("ij,ij->i", state.targets, alpha))


def bounds(
    basis: Basis, loss: Loss, state: State, slope: Array, along: Array
) -> tuple[Array, Array]:
    """Value of the problem, and of its dual at the multipliers shrunk towards zero as is best."""
    primal = 0.5 * (np.square(state.coordinates) @ basis.penalty) + loss.value(state)
    alpha = slope * state.sigma[:, np.newaxis]
    linear = loss.dual(state, alpha)
    curve = state.sigma**2 * (np.square(along) @ np.square(basis.strength))
    share = np.clip(np.divide(linear, curve, out=np.ones_like(linear), where=curve > 0), 0.0, 1.0)
    return primal, share * linear - 0.5 * np.square(share) * curve


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
#: than _ENOUGH; with fewer rows than coordinates its systems are nearly singular, its steps short.
_ROWS_AT_START = 3
_ENOUGH = 2.0
_TIGHTEN = 2.0
#: Newton steps in a row that each sufficed for an update of the multipliers, after which sigma
#: is too timid; and steps in a row that did not, after which it is too bold.
_EASY = 3
_HARD = 8
#: The narrowest the smoothed kink becomes at the start, and ever, in units of its first width:
#: tied residuals would ask for less than rounding allows.
_NARROWEST_START = 1e-3
_NARROWEST = 1e-6
#: Newton has done its work on the augmented Lagrangian when what it can still gain is this share
#: of the duality gap.
_SHARE_OF_GAP = 0.1
#: A step is taken if it leaves this share of the slope at most; else its length is searched.
_SLOPE_LEFT = 0.5
_LENGTH_SEARCHES = 12
#: Least diagonal added to a Newton system whose rows are orthonormal columns' rows.
_JITTER = 1e-11


@dataclass(frozen=True)
class Absolute:
    """``C max(0, |r| - epsilon)``, through the augmented Lagrangian with multipliers in [-C, C]."""

    epsilon: float

    def approach(self, basis: Basis, state: State, C: Array, record: Record, tol: float) -> None:
        """Rounds of ADMM, then a sigma that leaves few rows near the kink."""
        n_rows, rank = basis.left.shape
        n_rounds = int(np.clip(0.2 * rank**2 / n_rows, 1, _MAX_ROUNDS))
        penalty = _SHARED_PENALTY if n_rounds == 1 else _LONG_PENALTY
        width = _deviations(state.targets) / penalty
        # Each multiplier keeps its share of the bound C.
        state.shift *= np.divide(width, state.limit, out=width.copy(), where=state.limit > 0)[
            :, np.newaxis
        ]
        state.C, state.limit, state.floor = np.array(C), width, _NARROWEST * width
        state.sigma = state.C / state.limit
        live = np.arange(len(width))
        part, split = state.take(live), state.residual
        for _ in range(n_rounds):
            split = self._shared_round(basis, part, split)
            found = bounds(basis, self, part, part.shift, part.shift @ basis.left)
            record.keep(live, *found, part.coordinates)
            going = record.unfinished(live, part, tol)
            state.put(live, part)
            live, part, split = live[going], part.take(going), split[going]
            if len(live) == 0:
                break
        self._narrow(state, rank)

    def _shared_round(self, basis: Basis, state: State, split: Array) -> Array:
        """Steps of ADMM, every one the same linear map for all targets but for a scale.

        Large problems take them in single precision, which is faster: what they lead to is
        judged in double precision, and a step in error is corrected by the next.
        """
        left: npt.NDArray[Any] = basis.left if basis.left.size < _LARGE else basis.single_left
        kind: Any = left.dtype
        targets, split = state.targets.astype(kind, copy=False), split.astype(kind, copy=False)
        shift, limit = state.shift.astype(kind), state.limit.astype(kind)
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
            shift = pull(mixed, self.epsilon, limit)
            split = mixed - shift
        # Rounding must not bring the multipliers beyond their bound, nor part residual and fit.
        bound = state.limit[:, np.newaxis]
        state.shift = np.clip(shift.astype(np.float64), -bound, bound)
        state.coordinates = coordinates.astype(np.float64)
        state.residual = state.targets - state.coordinates @ basis.left.T
        return split.astype(np.float64)

    def _narrow(self, state: State, rank: int) -> None:
        place = min(state.targets.shape[1] - 1, _ROWS_AT_START * rank)
        distance = np.abs(np.abs(state.residual) - self.epsilon)
        width = np.partition(distance, place, axis=1)[:, place]
        self._grow(state, 1.0 / np.clip(width / state.limit, _NARROWEST_START, 1.0))

    @staticmethod
    def _grow(state: State, factor: Array) -> None:
        """Multiply sigma; the multipliers sigma * shift stay."""
        state.sigma *= factor
        state.limit /= factor
        state.shift /= factor[:, np.newaxis]

    def value(self, state: State) -> Array:
        """See `Loss`."""
        return state.C * excess(state.residual, self.epsilon).sum(axis=1)

    def dual(self, state: State, alpha: Array) -> Array:
        """See `Loss`."""
        return agreement(state, alpha) - self.epsilon * np.abs(alpha).sum(axis=1)

    def update(self, state: State, easy: npt.NDArray[np.bool_], n_inside: Array) -> None:
        """Multipliers where easy; sigma up while that is cheap, down where steps got short."""
        rows = np.flatnonzero(easy)
        state.shift[rows] = pull(
            state.residual[rows] + state.shift[rows], self.epsilon, state.limit[rows]
        )
        state.streak = np.where(
            easy, np.maximum(state.streak, 0.0) + 1.0, np.minimum(state.streak, 0.0) - 1.0
        )
        rank = state.coordinates.shape[1]
        factor = np.ones(len(easy))
        tighten = easy & ((n_inside > _ENOUGH * rank) | (state.streak >= _EASY))
        factor[tighten & (state.limit > state.floor)] = _TIGHTEN
        factor[~easy & ((n_inside < rank) | (state.streak <= -_HARD))] = 1.0 / _TIGHTEN
        self._grow(state, factor)


@dataclass(frozen=True)
class Squared:
    """``C max(0, |r| - epsilon)^2``: smooth, so Newton works on the problem itself."""

    epsilon: float

    def approach(
        self,
        basis: Basis,
        state: State,
        C: Array,
        record: Record,  # noqa: ARG002 - what the ridge regression is worth is found out later
        tol: float,  # noqa: ARG002
    ) -> None:
        """Ridge regression, which is the answer for epsilon = 0."""
        state.C = np.array(C)
        state.sigma = 2.0 * state.C
        state.limit = np.full(len(C), np.inf)
        shrink = state.sigma[:, np.newaxis] / (state.sigma[:, np.newaxis] + basis.penalty)
        state.coordinates = (state.targets @ basis.left) * shrink
        state.residual = state.targets - state.coordinates @ basis.left.T

    def value(self, state: State) -> Array:
        """See `Loss`."""
        return state.C * np.square(excess(state.residual, self.epsilon)).sum(axis=1)

    def dual(self, state: State, alpha: Array) -> Array:
        """See `Loss`."""
        squares = np.square(alpha).sum(axis=1) / (4.0 * state.C)
        return agreement(state, alpha) - self.epsilon * np.abs(alpha).sum(axis=1) - squares

    def update(self, state: State, easy: npt.NDArray[np.bool_], n_inside: Array) -> None:
        """Nothing to update: there are no multipliers."""


def descend(
    basis: Basis, loss: Loss, whole: State, C: Array, *, tol: float, max_iter: int
) -> Record:
    """Solve for one C per target, until each has a relative gap below `tol`.

    `whole` is left where the descent ended, for a start at another C.
    """
    never = np.full(len(C), np.inf)
    record = Record(never, -never, np.zeros_like(whole.coordinates))
    loss.approach(basis, whole, C, record, tol)
    live = np.flatnonzero(record.unfinished(np.arange(len(C)), whole, tol))
    state = whole.take(live)
    for record.n_iter in range(max_iter + 1):
        slope = pull(state.residual + state.shift, loss.epsilon, state.limit)
        along = slope @ basis.left
        record.keep(live, *bounds(basis, loss, state, slope, along), state.coordinates)
        going = record.unfinished(live, state, tol)
        if not going.all():
            whole.put(live[~going], state.take(~going))
            live, state, along = live[going], state.take(going), along[going]
        if len(live) == 0 or record.n_iter == max_iter:
            break
        _newton_step(basis, loss, state, along, record.gap(live))
    whole.put(live, state)
    return record


def _deviations(targets: Array) -> Array:
    """Mean distance of each target from its median; something positive where that is zero."""
    distance = np.abs(targets - np.median(targets, axis=1, keepdims=True))
    scale = np.maximum(distance.mean(axis=1), 1e-6 * np.abs(targets).max(axis=1))
    return np.where(scale > 0, scale, 1.0)


def _newton_step(basis: Basis, loss: Loss, state: State, along: Array, gap: Array) -> None:
    gradient = state.coordinates * basis.penalty - state.sigma[:, np.newaxis] * along
    step, n_inside = _directions(basis, loss.epsilon, state, gradient)
    change = step @ basis.left.T
    gain = -np.einsum("ij,ij->i", gradient, step)
    length = _lengths(basis, loss.epsilon, state, step, change, gain)
    state.coordinates = state.coordinates + length[:, np.newaxis] * step
    state.residual = state.residual - length[:, np.newaxis] * change
    loss.update(state, (gain <= _SHARE_OF_GAP * gap) & (length == 1.0), n_inside)


def _directions(basis: Basis, epsilon: float, state: State, gradient: Array) -> tuple[Array, Array]:
    """Newton directions, and how many rows each system holds."""
    reach = np.abs(state.residual + state.shift)
    inside = reach < (epsilon + state.limit)[:, np.newaxis]
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
    basis: Basis, epsilon: float, state: State, step: Array, change: Array, gain: Array
) -> Array:
    """Full steps where they leave little of the slope; elsewhere the slope's zero is bracketed."""
    reach = state.residual + state.shift
    begin = np.einsum("ij,ij->i", state.coordinates * basis.penalty, step)
    curve = np.square(step) @ basis.penalty

    def slope(length: Array, rows: Any) -> Array:
        moved = reach[rows] - length[:, np.newaxis] * change[rows]
        pulled = pull(moved, epsilon, state.limit[rows])
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

    Where it is not found, the last place at which the function was negative: going there
    descends.
    """
    low, high = np.zeros_like(low_slope), np.ones_like(low_slope)
    found = np.zeros(len(low), dtype=bool)
    for search in range(_LENGTH_SEARCHES):
        share = np.clip(low_slope / (low_slope - high_slope), 0.1, 0.9)
        if search > 1:
            # A nearly singular system can ask for steps too long by many orders of magnitude.
            share[low == 0.0] = 0.03
        middle = np.where(found, low, low + share * (high - low))
        here = slope(middle)
        found |= np.abs(here) <= enough
        if found.all():
            return middle
        left = found | (here < 0)
        low, low_slope = np.where(left, middle, low), np.where(left, here, low_slope)
        high, high_slope = np.where(left, high, middle), np.where(left, high_slope, here)
    return low
