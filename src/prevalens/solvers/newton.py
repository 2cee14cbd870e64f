"""Newton systems of many columns, solved together by preconditioned conjugate gradients.

An iteration is two matrix products for all columns. The preconditioner of a column eliminates the
intercept, which pulls against all features at once, and takes a power of the diagonal of what
remains. When the column has spent more products in one solve than a factorisation costs, it becomes
a Cholesky factor of the (sampled) Hessian; where a factorisation is cheap, it is that from the
start.

References: Hsia, Chiang and Lin, "Preconditioned conjugate gradient methods in truncated Newton
frameworks for large-scale linear classification", ACML 2018; Roosta-Khorasani and Mahoney,
"Sub-sampled Newton methods", Math. Programming 2019; Nash and Sofer, "Assessing a search direction
within a truncated-Newton method", Oper. Res. Letters 1990.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import get_lapack_funcs

from prevalens.solvers.columns import column_dots, join_columns, select_columns, visible_only
from prevalens.solvers.design import Array, Design
from prevalens.solvers.losses import Loss

__all__ = ["Batch", "NewtonStream", "NewtonSystems", "Source"]

#: A system is solved when its residual is this share of the gradient.
_FORCING = 0.4
#: Where the step promises so little that the column is near its end, a system that is hardly solved
#: promises too little. There the share is smaller, and an iteration must have added little to the
#: promise: no more than this share, if all iterations had added the same (Nash and Sofer); or the
#: residual is nothing.
_LAST_FORCING = 0.1
_LAST_GAIN = 0.5
_NOTHING = 0.01
#: Between no scaling, best for very many features, and full scaling, best for few.
_POWER = 0.75
#: A factorisation no dearer than this many products is made at once, and again after a solve that
#: took more than _WORN products.
_CHEAP = 8.0
_WORN = 3
#: Products a solve may take at least, and where no factorisation can help.
_LEAST_PRODUCTS = 10
_MOST_PRODUCTS = 500


@dataclass
class NewtonSystems:
    """The systems of some columns; each is open, that is being solved, or closed.

    Attributes
    ----------
    step : array, shape (n_params, n_columns)
        The solutions so far.
    open : array of bool, shape (n_columns,)
    solved : array of bool, shape (n_columns,)
        Which of the closed systems are solved well enough.
    """

    model: Design
    step: Array
    residual: Array
    direction: Array
    centre: Array
    scale: Array
    energy: Array
    start: Array
    decrease: Array
    little: Array
    products: npt.NDArray[np.int64]
    open: npt.NDArray[np.bool_]
    solved: npt.NDArray[np.bool_]
    wanted: npt.NDArray[np.bool_]
    factors: list[Array | None]

    @classmethod
    def closed(cls, model: Design, n_columns: int) -> NewtonSystems:
        """Systems that have not begun."""
        nothing = np.zeros((model.n_params, n_columns), dtype=model.dtype)
        none = np.zeros(n_columns, dtype=model.dtype)
        never = np.zeros(n_columns, dtype=bool)
        return cls(
            model=model,
            step=nothing,
            residual=nothing.copy(),
            direction=nothing.copy(),
            centre=nothing.copy(),
            scale=np.ones_like(nothing),
            energy=none,
            start=none.copy(),
            decrease=none.copy(),
            little=none.copy(),
            products=np.zeros(n_columns, dtype=np.int64),
            open=never,
            solved=never.copy(),
            wanted=np.full(n_columns, model.gram_cost <= _CHEAP),
            factors=[None] * n_columns,
        )

    def select(self, columns: Array) -> NewtonSystems:
        """The systems of some columns."""
        return select_columns(self, columns)

    def join(self, other: NewtonSystems) -> NewtonSystems:
        """These systems with those of other columns behind."""
        return join_columns(self, other)

    def begin(self, columns: Array, gradient: Array, loss: Loss, little: Array) -> None:
        """Set up the systems of some columns.

        Parameters
        ----------
        columns : array of int
        gradient : array, shape (n_params, len(columns))
        loss : Loss
            Of these columns.
        little : array, shape (len(columns),)
            A step that promises no more than this decrease must be solved for in earnest.
        """
        self._precondition(columns, loss)
        residual = -gradient.astype(self.model.dtype)
        everywhere = np.ones(len(columns), dtype=bool)
        direction = loss.project(self._preconditioned(residual, columns, everywhere))
        energy = loss.pool(column_dots(residual, direction))
        self.step[:, columns] = 0.0
        self.residual[:, columns], self.direction[:, columns] = residual, direction
        self.energy[columns], self.start[columns] = energy, energy
        self.decrease[columns], self.little[columns] = 0.0, little
        self.products[columns] = 0
        # Without a gradient there is nothing to solve.
        self.solved[columns], self.open[columns] = energy == 0, energy != 0

    def iterate(self, loss: Loss) -> None:
        """One iteration for all columns; closed systems stay as they are."""
        tiny = np.finfo(self.model.dtype).tiny
        image = visible_only(_hessian_product(self.model, loss, self.direction), loss.visible)
        curvature = loss.pool(column_dots(self.direction, image))
        length = np.where(self.open, self.energy / np.maximum(curvature, tiny), 0.0)
        length = length.astype(self.model.dtype)
        self.step += length * self.direction
        image *= length
        self.residual -= image
        columns = np.arange(len(self.open))
        ahead = loss.project(self._preconditioned(self.residual, columns, self.open))
        energy = loss.pool(column_dots(self.residual, ahead))
        growth = np.where(self.open, energy / np.maximum(self.energy, tiny), 0.0)
        self.direction *= growth.astype(self.model.dtype)
        self.direction += ahead
        gain = length * self.energy
        self.decrease += gain
        self.energy = energy
        self.products += self.open
        self._close(self.products * gain <= _LAST_GAIN * self.decrease)

    def _close(self, settled: npt.NDArray[np.bool_]) -> None:
        """Close what is solved or given up; `settled` where the promise hardly grows any more."""
        cost = self.model.gram_cost
        most = int(min(_MOST_PRODUCTS, max(_LEAST_PRODUCTS, 2 * cost)))
        last = np.where(settled, _LAST_FORCING, _NOTHING)
        forcing = np.where(self.decrease <= self.little, last, _FORCING)
        # A NaN is not above its goal and closes the system; the line search will refuse its step.
        done = self.open & ~(self.energy > forcing**2 * self.start)
        given_up = self.open & ~done & (self.products >= most)
        self.solved[done], self.solved[given_up] = True, False
        closed = done | given_up
        self.open &= ~closed
        self.wanted[closed] = self.products[closed] > (_WORN if cost <= _CHEAP else cost)

    def _precondition(self, columns: Array, loss: Loss) -> None:
        curvature, visible = loss.diagonal(), loss.visible
        wanted = np.flatnonzero(self.wanted[columns])
        if len(wanted):
            for place, gram in self.model.grams(curvature, wanted):
                if visible is not None:
                    _hide(gram, ~visible[:, place])
                self.factors[columns[place]] = _cholesky(gram, self.model.penalty)
        if any(self.factors[column] is None for column in columns):
            centre, self.scale[:, columns] = self._arrow(curvature)
            self.centre[:, columns] = visible_only(centre, visible)

    def _arrow(self, curvature: Array) -> tuple[Array, Array]:
        """Centres of the features where the curvature is, and scales of the centred features."""
        sums, squares = self.model.moments(curvature)
        penalty = self.model.penalty
        if penalty[-1] > 0:
            return np.zeros_like(sums), (squares + penalty) ** _POWER
        total = np.maximum(sums[-1], np.finfo(sums.dtype).tiny)
        centre = sums / total
        variance = np.maximum(squares - sums * centre, 0.0) + penalty
        scale = variance**_POWER
        centre[-1], scale[-1] = 0.0, total
        return centre, scale

    def _preconditioned(
        self, residual: Array, columns: Array, needed: npt.NDArray[np.bool_]
    ) -> Array:
        """Solve with the preconditioners of some columns, at least where it is needed."""
        factors = [self.factors[column] for column in columns]
        if all(factor is not None for factor in factors):
            out = np.zeros_like(residual)
        else:
            chosen = slice(None) if len(columns) == self.scale.shape[1] else columns
            centre = self.centre[:, chosen]
            out = (residual - centre * residual[-1]) / self.scale[:, chosen]
            out[-1] -= column_dots(centre, out)
        (potrs,) = get_lapack_funcs(("potrs",), (residual,))
        for place in np.flatnonzero(needed):
            factor = factors[place]
            if factor is not None:
                out[:, place] = potrs(factor, residual[:, place])[0]
        return out


def _hide(gram: Array, hidden: npt.NDArray[np.bool_]) -> None:
    """Make parameters play no part in a Gram matrix; it keeps a factor."""
    gram[hidden] = 0.0
    gram[:, hidden] = 0.0
    gram[hidden, hidden] = 1.0


def _cholesky(gram: Array, penalty: Array) -> Array | None:
    """The upper factor of Gram matrix plus penalty; None if rounding leaves it without one."""
    diagonal = np.einsum("ii->i", gram)
    # Rounding may make a nearly singular matrix indefinite.
    rounding = 10 * len(gram) * np.finfo(gram.dtype).eps * diagonal.mean()
    diagonal += penalty[:, 0] + rounding
    (potrf,) = get_lapack_funcs(("potrf",), (gram,))
    factor, failed = potrf(gram.T, lower=False, clean=False, overwrite_a=True)
    return None if failed else factor


def _hessian_product(model: Design, loss: Loss, directions: Array) -> Array:
    """Hessians times directions."""
    out = model.penalty * directions
    for block, rows in enumerate(model.rows):
        Q = model.forward(block, directions)
        loss.curve(rows, Q)
        model.adjoint(block, Q, out)
    return np.asarray(out)


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
