"""The kernel of `svr`: many regressions on one design, each brought below a duality gap.

Rows of every array here are targets; coordinates are with respect to the left singular vectors of
the design, in which ``|w|^2`` is a weighted sum of squares and the fit an orthonormal map.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

__all__ = ["Absolute", "Array", "Basis", "Loss", "Record", "Squared", "State", "descend"]

Array = npt.NDArray[np.float64]

#: Shared steps before the Newton steps, and their penalty in units of C per mean deviation.
#: On 159 targets and 5,000 rows, 50 steps at 3 cost less in all than 30, 60 or 100 at 0.1 to 10.
_SHARED_STEPS = 50
_SHARED_PENALTY = 3.0
_OVER_RELAXATION = 1.7
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
    def blank(cls, targets: Array, C: Array, rank: int) -> State:
        """All coordinates zero."""
        blank = np.zeros(len(targets))
        return cls(
            targets=targets,
            C=np.array(C),
            sigma=blank,
            limit=blank.copy(),
            floor=blank.copy(),
            shift=np.zeros_like(targets),
            coordinates=np.zeros((len(targets), rank)),
            residual=targets.copy(),
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


class Loss(Protocol):
    """What the descent needs to know of a loss."""

    @property
    def epsilon(self) -> float:
        """Residuals up to here cost nothing."""

    def start(self, basis: Basis, state: State) -> None:
        """Set sigma, limit, shift and a first guess."""

    def rescale(self, state: State, C: Array) -> None:
        """Move to another C."""

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


def _excess(residual: Array, epsilon: float) -> Array:
    beyond = np.abs(residual)
    beyond -= epsilon
    return np.maximum(beyond, 0.0, out=beyond)


def _agreement(state: State, alpha: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", state.targets, alpha))


@dataclass(frozen=True)
class Absolute:
    """``C max(0, |r| - epsilon)``, through the augmented Lagrangian with multipliers in [-C, C]."""

    epsilon: float

    def start(self, basis: Basis, state: State) -> None:
        """Shared ADMM steps, then a sigma that leaves few rows near the kink."""
        middle = np.median(state.targets, axis=1, keepdims=True)
        spread = np.abs(state.targets - middle).mean(axis=1)
        scale = np.maximum(spread, 1e-6 * np.abs(state.targets).max(axis=1))
        state.limit = np.where(scale > 0, scale, 1.0) / _SHARED_PENALTY
        state.floor = _NARROWEST * state.limit
        state.sigma = state.C / state.limit
        shrink = state.sigma[:, np.newaxis] / (state.sigma[:, np.newaxis] + basis.penalty)
        split = state.targets - middle
        for _ in range(_SHARED_STEPS):
            wanted = state.targets - split
            wanted += state.shift
            state.coordinates = (wanted @ basis.left) * shrink
            state.residual = state.targets - state.coordinates @ basis.left.T
            mixed = _OVER_RELAXATION * state.residual
            mixed += (1.0 - _OVER_RELAXATION) * split
            mixed += state.shift
            state.shift = pull(mixed, self.epsilon, state.limit)
            split = mixed - state.shift
        self._narrow(state, len(basis.strength))

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

    def rescale(self, state: State, C: Array) -> None:
        """Keep shift and limit, so that each multiplier keeps its share of the bound C."""
        state.sigma = C / state.limit
        state.C = np.array(C)

    def value(self, state: State) -> Array:
        """See `Loss`."""
        return state.C * _excess(state.residual, self.epsilon).sum(axis=1)

    def dual(self, state: State, alpha: Array) -> Array:
        """See `Loss`."""
        return _agreement(state, alpha) - self.epsilon * np.abs(alpha).sum(axis=1)

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

    def start(self, basis: Basis, state: State) -> None:
        """Ridge regression, which is the answer for epsilon = 0."""
        self.rescale(state, state.C)
        shrink = state.sigma[:, np.newaxis] / (state.sigma[:, np.newaxis] + basis.penalty)
        state.coordinates = (state.targets @ basis.left) * shrink
        state.residual = state.targets - state.coordinates @ basis.left.T

    def rescale(self, state: State, C: Array) -> None:
        """See `Loss`."""
        state.C = np.array(C)
        state.sigma = 2.0 * state.C
        state.limit = np.full(len(C), np.inf)

    def value(self, state: State) -> Array:
        """See `Loss`."""
        return state.C * np.square(_excess(state.residual, self.epsilon)).sum(axis=1)

    def dual(self, state: State, alpha: Array) -> Array:
        """See `Loss`."""
        squares = np.square(alpha).sum(axis=1) / (4.0 * state.C)
        return _agreement(state, alpha) - self.epsilon * np.abs(alpha).sum(axis=1) - squares

    def update(self, state: State, easy: npt.NDArray[np.bool_], n_inside: Array) -> None:
        """Nothing to update: there are no multipliers."""


def descend(basis: Basis, loss: Loss, whole: State, *, tol: float, max_iter: int) -> Record:
    """Newton steps for all targets side by side, until each has a gap below `tol`.

    `whole` is left where the descent ended, for a start at another C.
    """
    n_targets = len(whole.targets)
    bounds = np.full(n_targets, np.inf)
    record = Record(bounds, -bounds, whole.coordinates.copy())
    live = np.arange(n_targets)
    state = whole.take(live)
    for record.n_iter in range(max_iter + 1):
        slope = pull(state.residual + state.shift, loss.epsilon, state.limit)
        along = slope @ basis.left
        record.keep(live, *_bounds(basis, loss, state, slope, along), state.coordinates)
        gap = record.primal[live] - record.dual[live]
        exact = gap <= 1e-13 * state.C * np.abs(state.targets).sum(axis=1)  # rounding makes more
        record.dual[live[exact]] = record.primal[live[exact]]
        going = ~exact & (gap > tol * record.primal[live])
        if not going.all():
            whole.put(live[~going], state.take(~going))
            live, state, along, gap = live[going], state.take(going), along[going], gap[going]
        if len(live) == 0 or record.n_iter == max_iter:
            break
        _newton_step(basis, loss, state, along, gap)
    whole.put(live, state)
    return record


def _bounds(
    basis: Basis, loss: Loss, state: State, slope: Array, along: Array
) -> tuple[Array, Array]:
    """Value of the problem, and of its dual at the multipliers shrunk towards zero as is best."""
    primal = 0.5 * (np.square(state.coordinates) @ basis.penalty) + loss.value(state)
    alpha = slope * state.sigma[:, np.newaxis]
    linear = loss.dual(state, alpha)
    curve = state.sigma**2 * (np.square(along) @ np.square(basis.strength))
    share = np.clip(np.divide(linear, curve, out=np.ones_like(linear), where=curve > 0), 0.0, 1.0)
    return primal, share * linear - 0.5 * np.square(share) * curve


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
