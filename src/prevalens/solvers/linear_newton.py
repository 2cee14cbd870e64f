"""Truncated Newton steps for a stream of columns.

A fixed number of columns is in work at a time. Each is either having its Newton system solved, or
waits to be evaluated at a new point; evaluations are made when enough columns wait, and finished
columns are replaced by new ones from the stream. So the matrix products stay wide from the first
column to nearly the last, however different the columns are.

A column starts in single precision, which halves the cost of its products. When its next step
promises to lower its value by a small share only, values and gradients are taken in double
precision, with curvature still in single, which only directs the steps; a coarse ``tol`` is met
without. It is finished when the decrease promised by its last Newton step is below ``tol`` times
its value: a criterion that does not change with the scale of features, weights or labels. The step
is still taken, so that what remains is far smaller; with a coarse ``tol`` it must keep its promise.

A column that goes on with a larger weight of its loss first tries to go on as it went between the
two weights before: along a path of weights, parameters move about evenly in the logarithm of the
weight, and evenly indeed once the classes are separated, where Newton steps are short. One
evaluation so saves several steps.

Reference: Dembo and Steihaug, "Truncated-Newton algorithms for large-scale unconstrained
optimization", Math. Programming 1983.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from prevalens.solvers.linear_columns import (
    column_dots,
    join_columns,
    select_columns,
    visible_only,
)
from prevalens.solvers.linear_design import Array, Design
from prevalens.solvers.linear_systems import NewtonSystems
from prevalens.solvers.logistic_loss import Loss

__all__ = ["Batch", "NewtonStream", "Source"]

#: Where single precision stops: the promised decrease as a share of the value.
_COARSE = 1e-3
#: A tolerance from here on is met in single precision alone.
_SINGLE = 1e-5
#: Share of the columns that wait before they are evaluated.
_WAITING = 0.2
#: Share of the promised decrease that a step must bring (Armijo).
_SUFFICIENT = 1e-4
#: The same for the last step of a coarse `tol`: half of what the parabola says.
_KEPT = 0.25
#: How often a step is shortened.
_MOST_CUTS = 30


@dataclass(frozen=True)
class Batch:
    """New columns for the stream, of whole problems.

    Attributes
    ----------
    places : array of int, shape (n_columns,)
        What the source calls them.
    loss : Loss
    start : array, shape (n_params, n_columns)
    """

    places: Array
    loss: Loss
    start: Array


class Source(Protocol):
    """Where columns come from and solutions go."""

    def take(self, n_columns: int) -> Batch | None:
        """Up to so many new columns, at least one problem; None when there are no more."""

    def give(self, places: Array, T: Array, value: Array, n_iter: Array, converged: Array) -> Array:
        """Receive solutions; the factors of the weights with which to go on, 0 where done."""


class NewtonStream:
    """Solve all columns of a source.

    Parameters
    ----------
    design : Design
        In double precision, for values and gradients.
    model : Design
        For curvature, and for values and gradients of the first steps: the same design in
        single precision, or `design` itself.
    source : Source
    width : int
        Columns in work.
    align : int
        The number of columns is kept a multiple of this, for speed; 1 if columns belong together.
    tol : float
    max_iter : int
        Newton steps per column at most.

    Notes
    -----
    Time: two products per Newton step and two per iteration of conjugate gradients. Memory: the
    curvature, n_items x width, and a dozen arrays n_params x width.
    """

    def __init__(
        self,
        design: Design,
        model: Design,
        source: Source,
        *,
        width: int,
        align: int,
        tol: float,
        max_iter: int,
    ) -> None:
        self._design, self._model, self._source = design, model, source
        self._width, self._align, self._max_iter = width, align, max_iter
        self._tol = max(tol, 100 * float(np.finfo(design.dtype).eps))
        self._exhausted = False

    def run(self) -> None:
        """Work until the source is empty and all its columns are given back."""
        columns = self._next(self._width)
        while columns is not None:
            columns.evaluate()
            while not columns.enough_waiting():
                columns.iterate()
            self._finish(columns)
            columns = self._refilled(columns)

    def _next(self, n_columns: int) -> _Columns | None:
        batch = None if self._exhausted else self._source.take(n_columns)
        self._exhausted = batch is None
        return None if batch is None else _Columns.new(self._design, self._model, batch, self._tol)

    def _finish(self, columns: _Columns) -> None:
        """Take up closed systems and give back the columns that are done."""
        done, converged = columns.promise(self._max_iter)
        if not len(done):
            return
        factors = self._source.give(
            columns.places[done],
            columns.T[:, done],
            columns.value[done],
            columns.n_iter[done],
            converged,
        )
        goes_on = factors > 0
        columns.restart(done[goes_on], factors[goes_on])
        columns.present[done[~goes_on]] = False

    def _refilled(self, columns: _Columns) -> _Columns | None:
        """Take new columns, and drop those that have left, when a good part has."""
        n_free = self._width - int(columns.present.sum())
        if n_free < _WAITING * self._width and columns.present.any():
            return columns
        new = self._next(n_free)
        kept = self._kept(columns.present, full=new is None)
        if not len(kept):
            return new
        if len(kept) < len(columns.present):
            columns = select_columns(columns, kept)
        return columns if new is None else join_columns(columns, new)

    def _kept(self, present: npt.NDArray[np.bool_], *, full: bool) -> Array:
        """The columns to go on with; some that have left may fill up to an even width."""
        left = np.flatnonzero(present)
        if not full or not len(left):
            return left
        filling = np.flatnonzero(~present)[: -len(left) % self._align]
        return np.sort(np.concatenate([left, filling]))


@dataclass
class _Columns:
    """The columns in work.

    Attributes
    ----------
    design, model : Design
    tol : float
    loss : Loss
    systems : NewtonSystems
    places : array of int
        What the source calls the columns.
    T, gradient : array, shape (n_params, n_columns)
        Where each column is, and the gradient there.
    value : array
        The value there; infinite before the first evaluation.
    step, slope, length : array
        The step it tries, the change of value per length of it, and the length.
    cuts, n_iter : array of int
        How often the step was shortened; Newton steps taken.
    before : array, shape (n_params, n_columns)
        Where the column was at the end with the weights of its loss before these.
    rise, stride : array
        The logarithm of the factor between the last two weights, 0 where there was one only. How
        far the column shall leap from where it is evaluated next, in units of its way between them.
    fine, trying, last, present : array of bool
        Whether double precision is used; whether there is a step to try; whether that step is the
        last if it keeps its promise; False for columns that have left.
    """

    design: Design
    model: Design
    tol: float
    loss: Loss
    systems: NewtonSystems
    places: Array
    T: Array
    gradient: Array
    value: Array
    step: Array
    slope: Array
    length: Array
    cuts: npt.NDArray[np.int64]
    n_iter: npt.NDArray[np.int64]
    before: Array
    rise: Array
    stride: Array
    fine: npt.NDArray[np.bool_]
    trying: npt.NDArray[np.bool_]
    last: npt.NDArray[np.bool_]
    present: npt.NDArray[np.bool_]

    @classmethod
    def new(cls, design: Design, model: Design, batch: Batch, tol: float) -> _Columns:
        """Columns that were never evaluated."""
        n_columns = batch.start.shape[1]
        self = cls(
            design=design,
            model=model,
            tol=tol,
            loss=batch.loss,
            systems=NewtonSystems.closed(model, n_columns),
            places=batch.places,
            T=batch.start,
            gradient=np.zeros_like(batch.start),
            value=np.zeros(n_columns),
            step=np.zeros_like(batch.start),
            slope=np.zeros(n_columns),
            length=np.zeros(n_columns),
            cuts=np.zeros(n_columns, dtype=np.int64),
            n_iter=np.zeros(n_columns, dtype=np.int64),
            before=batch.start.copy(),
            rise=np.zeros(n_columns),
            stride=np.zeros(n_columns),
            fine=np.zeros(n_columns, dtype=bool),
            trying=np.zeros(n_columns, dtype=bool),
            last=np.zeros(n_columns, dtype=bool),
            present=np.ones(n_columns, dtype=bool),
        )
        self._try_here(np.arange(n_columns), fine=model is design)
        return self

    def restart(self, columns: Array, factors: Array) -> None:
        """Go on with other weights of the loss, from where the columns are."""
        if len(columns):
            self.loss.reweight(columns, factors)
            self.n_iter[columns] = 0
            self._try_here(columns, fine=self.model is self.design)
            rise, last = np.log(factors), self.rise[columns]
            self.stride[columns] = np.divide(rise, last, out=np.ones_like(rise), where=last > 0)
            self.rise[columns] = rise

    def enough_waiting(self) -> bool:
        """Whether so many systems are closed that an evaluation is worth while."""
        waiting = self.present & ~self.systems.open
        return int(waiting.sum()) >= _WAITING * int(self.present.sum())

    def iterate(self) -> None:
        """Bring all open systems nearer to their solution."""
        self.systems.iterate(self.loss)

    def promise(self, max_iter: int) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Take up the closed systems; which columns are done, and which of these converged.

        The others have a point to try, unless their systems are still open.
        """
        waits = self.present & ~self.trying
        near = self._propose(np.flatnonzero(waits & ~self.last & ~self.systems.open))
        converged = waits & self.last
        if self._rough:
            self.last[near] = True
        else:
            self._step_unseen(near)
            converged[near] = self.fine[near]
            self._try_here(near[~self.fine[near]], fine=True)
        given_up = ((self.cuts > _MOST_CUTS) | (self.n_iter >= max_iter)) & ~self.last
        done = np.flatnonzero(self.present & (converged | given_up))
        return done, converged[done]

    @property
    def _rough(self) -> bool:
        """Whether single precision will do; then a last step is far enough to need a check."""
        return self.tol >= _SINGLE

    def _step_unseen(self, columns: Array) -> None:
        """Take steps and trust their promise."""
        self.T[:, columns] += self.step[:, columns]
        self.value[columns] += 0.5 * self.slope[columns]

    def _propose(self, columns: Array) -> Array:
        """Let some columns try their Newton steps; those that promise little are near the end."""
        self.step[:, columns] = self.systems.step[:, columns]
        slope = self.loss.pool(column_dots(self.gradient, self.step))[columns]
        self.slope[columns], self.length[columns], self.cuts[columns] = slope, 1.0, 0
        self.trying[columns] = True
        self.n_iter[columns] += 1
        little = self._share(columns) * self.value[columns]
        return columns[self.systems.solved[columns] & (-slope <= little)]

    def _share(self, columns: Array) -> Array:
        """The promised decrease, as a share of the value, at which each column's stage ends."""
        return np.where(self.fine[columns] | self._rough, self.tol, _COARSE)

    def _try_here(self, columns: Array, *, fine: bool) -> None:
        """Evaluate some columns where they are, whatever their values were before."""
        self.value[columns], self.step[:, columns] = np.inf, 0.0
        self.slope[columns], self.length[columns], self.cuts[columns] = 0.0, 1.0, 0
        self.fine[columns], self.trying[columns], self.last[columns] = fine, True, False

    def evaluate(self) -> None:
        """Evaluate all columns that have a point to try, each in its precision."""
        for fine, design in ((False, self.model), (True, self.design)):
            columns = np.flatnonzero(self.present & self.trying & (self.fine == fine))
            if len(columns):
                self._evaluate(columns, design)

    def _evaluate(self, columns: Array, design: Design) -> None:
        trial = self.T[:, columns] + self.length[columns] * self.step[:, columns]
        loss = self.loss.fresh(columns, design.dtype)
        value, gradient = _evaluate(design, loss, trial.astype(design.dtype, copy=False))
        old, promised = self.value[columns], (self.length * self.slope)[columns]
        rounding = 100 * np.finfo(design.dtype).eps * np.where(np.isinf(old), 0.0, np.abs(old))
        accepted = value <= old + _SUFFICIENT * promised + rounding
        refused = columns[~accepted]
        self.length[refused] *= _shortening(old, value, promised)[~accepted]
        self.cuts[refused] += 1
        self.last[columns] &= value <= old + _KEPT * promised + rounding
        self._accept(columns, accepted, trial, value, gradient, loss)

    def _accept(
        self,
        columns: Array,
        accepted: npt.NDArray[np.bool_],
        trial: Array,
        value: Array,
        gradient: Array,
        loss: Loss,
    ) -> None:
        """Move the accepted columns to their points; begin the systems of those that go on."""
        moved = columns[accepted]
        self.T[:, moved], self.value[moved] = trial[:, accepted], value[accepted]
        self.gradient[:, moved], self.trying[moved] = gradient[:, accepted], False
        self._leap(moved[self.stride[moved] > 0])
        chosen = np.flatnonzero(accepted & ~self.last[columns] & ~self.trying[columns])
        if not len(chosen):
            return
        if len(chosen) < len(columns):
            columns, loss = columns[chosen], loss.select(chosen)
            value, gradient = value[chosen], gradient[:, chosen]
        self.loss.update(columns, loss)
        self.systems.begin(columns, gradient, loss, self._share(columns) * value)

    def _leap(self, columns: Array) -> None:
        """Let columns with new weights try to go on as they went between the weights before."""
        if not len(columns):
            return
        self.step[:, columns] = self.T[:, columns] - self.before[:, columns]
        self.before[:, columns] = self.T[:, columns]
        slope = self.loss.pool(column_dots(self.gradient, self.step))
        falls = columns[slope[columns] < 0]
        self.slope[falls], self.length[falls] = slope[falls], self.stride[falls]
        self.trying[falls], self.stride[columns] = True, 0.0


def _evaluate(design: Design, loss: Loss, T: Array) -> tuple[Array, Array]:
    """Values and gradients of all columns."""
    gradient = design.penalty * T
    value = 0.5 * column_dots(gradient, T).astype(np.float64)
    for block, rows in enumerate(design.rows):
        Z = design.forward(block, T)
        value += loss.evaluate(rows, Z)
        design.adjoint(block, Z, gradient)
    return loss.pool(value), visible_only(gradient, loss.visible)


def _shortening(old: Array, new: Array, promised: Array) -> Array:
    """Where the parabola through two values and a slope has its minimum, within bounds."""
    best = -0.5 * promised / (new - old - promised)
    return np.clip(np.where(np.isfinite(best), best, 0.1), 0.1, 0.5)
