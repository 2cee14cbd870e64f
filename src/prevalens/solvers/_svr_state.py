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

__all__ = [
    "Array",
    "Basis",
    "Loss",
    "Record",
    "State",
    "agreement",
    "bounds",
    "excess",
    "pull",
]

Array = npt.NDArray[np.float64]

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
