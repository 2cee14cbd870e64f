"""Newton systems of many columns, solved together by preconditioned conjugate gradients.

An iteration is two matrix products for all columns. The preconditioner of a column eliminates the
intercept, which interacts with all features at once, and takes a power of the diagonal of what
remains. When the column has spent more products in one solve than a factorisation costs, the
preconditioner becomes a Cholesky factor of the (sampled) Hessian; if a factorisation is cheap, it
is that from the start.

`NewtonStream` takes columns from a source, makes truncated Newton steps with backtracking line
search, first in single and then in double precision, and gives the solutions back. Along a path of
rising loss weights, a column first tries to extrapolate from its last two solutions.

References: Hsia, Chiang and Lin, "Preconditioned conjugate gradient methods in truncated Newton
frameworks for large-scale linear classification", ACML 2018; Roosta-Khorasani and Mahoney,
"Sub-sampled Newton methods", Math. Programming 2019; Nash and Sofer, "Assessing a search direction
within a truncated-Newton method", Oper. Res. Letters 1990.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.linalg import get_lapack_funcs

from prevalens.solvers.design import Array, Design, column_dots, visible_only
from prevalens.solvers.losses import Loss

#: A system is solved when its residual is this share of the gradient.
_FORCING = 0.4
#: If the predicted decrease is so small that the column is near its minimum, a system that is
#: hardly solved predicts too little. Then the share is smaller, and the iteration must have added
#: little to the predicted decrease: no more than this share, if all iterations had added the same
#: (Nash and Sofer); or the residual is negligible.
_FINAL_FORCING = 0.1
_FINAL_GAIN = 0.5
_NEGLIGIBLE = 0.01
#: Power of the diagonal: 0 is best for very many features, 1 for few.
_POWER = 0.75
#: A factorisation that costs no more than this many products is made at once, and again after a
#: solve that took more than _OUTDATED products.
_CHEAP = 8.0
_OUTDATED = 3
#: Products that a solve may take at least, and if no factorisation can help.
_MIN_PRODUCTS = 10
_MAX_PRODUCTS = 500


@runtime_checkable
class HasColumns(Protocol):
    """Something that is kept per column of parameters, such as a loss."""

    def select(self, columns: Array) -> Self:
        """The part of some columns."""

    def join(self, other: Self) -> Self:
        """Own columns, then those of another."""


@dataclass
class ColumnState:
    """A dataclass with values per column of parameters.

    Columns are the last axis of arrays and the entries of lists; a value that `HasColumns` selects
    its part itself; all other values are shared by all columns.
    """

    def select(self, columns: Array) -> Self:
        """The state of some columns, copied."""
        return replace(self, **{name: _part(value, columns) for name, value in self._values()})

    def join(self, other: Self) -> Self:
        """Own columns, then those of another state."""
        pairs = zip(self._values(), other._values(), strict=True)
        return replace(self, **{name: _joined(left, right) for (name, left), (_, right) in pairs})

    def _values(self) -> list[tuple[str, Any]]:
        return [(field.name, vars(self)[field.name]) for field in fields(self)]


def _part(value: Any, columns: Array) -> Any:
    if isinstance(value, np.ndarray):
        return value[..., columns]
    if isinstance(value, list):
        return [value[column] for column in columns]
    return value.select(columns) if isinstance(value, HasColumns) else value


def _joined(left: Any, right: Any) -> Any:
    if isinstance(left, np.ndarray):
        return np.concatenate([left, right], axis=-1)
    if isinstance(left, list):
        return left + right
    return left.join(right) if isinstance(left, HasColumns) else left


@dataclass
class NewtonSystems(ColumnState):
    """The systems of some columns; each is open, that is being solved, or closed.

    Attributes
    ----------
    model : Design
    step, residual, direction : array, shape (n_params, n_columns)
        Of conjugate gradients: the solution so far, what is left of the right-hand side, and the
        search direction.
    centre, scale : array, shape (n_params, n_columns)
        The diagonal preconditioner: centres and scales of the features.
    factors : list of array or None
        The Cholesky factors that replace it.
    energy, initial_energy : array, shape (n_columns,)
        Residual times preconditioned residual, now and at the start.
    decrease : array, shape (n_columns,)
        Predicted decrease of the objective along the solution so far.
    small_decrease : array, shape (n_columns,)
        A system with a predicted decrease up to here is solved with a stricter forcing.
    products : array of int, shape (n_columns,)
        Products with the Hessian since the start.
    open : array of bool, shape (n_columns,)
    solved : array of bool, shape (n_columns,)
        Which of the closed systems are solved well enough.
    refactor : array of bool, shape (n_columns,)
        Which get a new Cholesky factor before their next solve.
    """

    model: Design
    step: Array
    residual: Array
    direction: Array
    centre: Array
    scale: Array
    energy: Array
    initial_energy: Array
    decrease: Array
    small_decrease: Array
    products: npt.NDArray[np.int64]
    open: npt.NDArray[np.bool_]
    solved: npt.NDArray[np.bool_]
    refactor: npt.NDArray[np.bool_]
    factors: list[Array | None]

    @classmethod
    def closed(cls, model: Design, n_columns: int) -> NewtonSystems:
        """Systems that have not begun."""
        shape, never = (model.n_params, n_columns), np.zeros(n_columns, dtype=bool)
        matrices = ("step", "residual", "direction", "centre")
        vectors = ("energy", "initial_energy", "decrease", "small_decrease")
        return cls(
            model=model,
            **{name: np.zeros(shape, dtype=model.dtype) for name in matrices},
            **{name: np.zeros(n_columns, dtype=model.dtype) for name in vectors},
            scale=np.ones(shape, dtype=model.dtype),
            products=np.zeros(n_columns, dtype=np.int64),
            open=never,
            solved=never.copy(),
            refactor=np.full(n_columns, model.gram_cost <= _CHEAP),
            factors=[None] * n_columns,
        )

    def begin(self, columns: Array, gradient: Array, loss: Loss, small_decrease: Array) -> None:
        """Set up the systems of some columns.

        Parameters
        ----------
        columns : array of int
        gradient : array, shape (n_params, len(columns))
        loss : Loss
            Of these columns.
        small_decrease : array, shape (len(columns),)
        """
        self._precondition(columns, loss)
        residual = -gradient.astype(self.model.dtype)
        everywhere = np.ones(len(columns), dtype=bool)
        direction = loss.project(self._preconditioned(residual, columns, everywhere))
        energy = loss.pool(column_dots(residual, direction))
        self.step[:, columns] = 0.0
        self.residual[:, columns], self.direction[:, columns] = residual, direction
        self.energy[columns], self.initial_energy[columns] = energy, energy
        self.decrease[columns], self.small_decrease[columns] = 0.0, small_decrease
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
        preconditioned = loss.project(self._preconditioned(self.residual, columns, self.open))
        energy = loss.pool(column_dots(self.residual, preconditioned))
        conjugacy = np.where(self.open, energy / np.maximum(self.energy, tiny), 0.0)
        self.direction *= conjugacy.astype(self.model.dtype)
        self.direction += preconditioned
        gain = length * self.energy
        self.decrease += gain
        self.energy = energy
        self.products += self.open
        self._close(self.products * gain <= _FINAL_GAIN * self.decrease)

    def _close(self, settled: npt.NDArray[np.bool_]) -> None:
        """Close systems that are solved or given up; `settled`: the decrease hardly grows."""
        cost = self.model.gram_cost
        most = int(min(_MAX_PRODUCTS, max(_MIN_PRODUCTS, 2 * cost)))
        final = np.where(settled, _FINAL_FORCING, _NEGLIGIBLE)
        forcing = np.where(self.decrease <= self.small_decrease, final, _FORCING)
        # A NaN is not above its goal and closes the system; the line search will refuse its step.
        done = self.open & ~(self.energy > forcing**2 * self.initial_energy)
        given_up = self.open & ~done & (self.products >= most)
        closed = done | given_up
        if not closed.any():
            return
        self.solved[done], self.solved[given_up] = True, False
        self.open &= ~closed
        self.refactor[closed] = self.products[closed] > (_OUTDATED if cost <= _CHEAP else cost)

    def _precondition(self, columns: Array, loss: Loss) -> None:
        curvature, visible = loss.diagonal(), loss.visible
        refactor = np.flatnonzero(self.refactor[columns])
        if len(refactor):
            for place, gram in self.model.grams(curvature, refactor):
                if visible is not None:
                    # Hidden parameters become rows and columns of the identity.
                    hidden = ~visible[:, place]
                    gram[hidden], gram[:, hidden] = 0.0, 0.0
                    gram[hidden, hidden] = 1.0
                self.factors[columns[place]] = _cholesky(gram, self.model.penalty)
        if any(self.factors[column] is None for column in columns):
            centre, self.scale[:, columns] = self._diagonal(curvature)
            self.centre[:, columns] = visible_only(centre, visible)

    def _diagonal(self, curvature: Array) -> tuple[Array, Array]:
        """Means of the features weighted by the curvature, and scales of the centred features."""
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
        """Apply the preconditioners of some columns; factors only to those that are `needed`."""
        factors = [self.factors[column] for column in columns]
        n_factors = sum(factor is not None for factor in factors)
        if n_factors == len(factors):
            out = np.zeros_like(residual)
        else:
            chosen = slice(None) if len(columns) == self.scale.shape[1] else columns
            centre = self.centre[:, chosen]
            out = (residual - centre * residual[-1]) / self.scale[:, chosen]
            out[-1] -= column_dots(centre, out)
        if not n_factors:
            return out
        (potrs,) = get_lapack_funcs(("potrs",), (residual,))
        for place in np.flatnonzero(needed):
            factor = factors[place]
            if factor is not None:
                out[:, place] = potrs(factor, residual[:, place])[0]
        return out


def _cholesky(gram: Array, penalty: Array) -> Array | None:
    """The upper factor of Gram matrix plus penalty; None if rounding made it indefinite."""
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


#: Single precision ends at this predicted decrease, as a share of the value.
_SINGLE_TOL = 1e-3
#: A tolerance from here on is met in single precision alone.
_SINGLE_SUFFICES = 1e-5
#: Share of the columns that wait before they are evaluated.
_WAITING = 0.2
#: Share of the predicted decrease that a step must bring (Armijo).
_ARMIJO = 1e-4
#: The same for the final step of a coarse `tol`: half of what the quadratic model predicts.
_ARMIJO_FINAL = 0.25
#: How often a step is shortened.
_MAX_BACKTRACKS = 30


@dataclass(frozen=True)
class Batch:
    """New columns for the stream, of whole problems.

    Attributes
    ----------
    places : array of int, shape (n_columns,)
        Their positions in the source.
    loss : Loss
    start : array, shape (n_params, n_columns)
    """

    places: Array
    loss: Loss
    start: Array


class Source(Protocol):
    """Gives columns to the stream and receives their solutions."""

    def take(self, n_columns: int) -> Batch | None:
        """Up to so many new columns, at least one problem; None when there are no more."""

    def give(self, places: Array, T: Array, value: Array, n_iter: Array, converged: Array) -> Array:
        """Receive solutions; returns the factors of the next weights, 0 for finished columns."""


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
                columns.systems.iterate(columns.loss)
            self._finish(columns)
            columns = self._refilled(columns)

    def _next(self, n_columns: int) -> _Columns | None:
        batch = None if self._exhausted else self._source.take(n_columns)
        self._exhausted = batch is None
        return None if batch is None else _Columns.new(self._design, self._model, batch, self._tol)

    def _finish(self, columns: _Columns) -> None:
        """Propose the steps of closed systems and give back the columns that are done."""
        done, converged = columns.propose(self._max_iter)
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
            columns = columns.select(kept)
        return columns if new is None else columns.join(new)

    def _kept(self, present: npt.NDArray[np.bool_], *, full: bool) -> Array:
        """The columns to go on with; some that have left may fill up to an even width."""
        left = np.flatnonzero(present)
        if not full or not len(left):
            return left
        filling = np.flatnonzero(~present)[: -len(left) % self._align]
        return np.sort(np.concatenate([left, filling]))


@dataclass
class _LineSearch(ColumnState):
    """The steps that columns try.

    Attributes
    ----------
    step : array, shape (n_params, n_columns)
    slope, length : array, shape (n_columns,)
        Directional derivative along the step, and how much of the step is tried.
    n_backtracks : array of int, shape (n_columns,)
        How often the step was shortened.
    active : array of bool, shape (n_columns,)
        Whether there is a point to evaluate.
    final : array of bool, shape (n_columns,)
        Whether the column has converged if the step brings enough of its predicted decrease.
    """

    step: Array
    slope: Array
    length: Array
    n_backtracks: npt.NDArray[np.int64]
    active: npt.NDArray[np.bool_]
    final: npt.NDArray[np.bool_]

    @classmethod
    def blank(cls, T: Array) -> _LineSearch:
        """No steps yet for parameters in the form of `T`."""
        none, never = np.zeros(T.shape[1]), np.zeros(T.shape[1], dtype=bool)
        backtracks = np.zeros(T.shape[1], dtype=np.int64)
        return cls(np.zeros_like(T), none, none.copy(), backtracks, never, never.copy())

    def try_step(self, columns: Array, slope: Array | float, length: Array | float) -> None:
        """Let columns try a multiple of the step that was set."""
        self.slope[columns], self.length[columns] = slope, length
        self.active[columns] = True


@dataclass
class _Extrapolation(ColumnState):
    """How columns are extrapolated from one weight of their loss to the next.

    Attributes
    ----------
    previous : array, shape (n_params, n_columns)
        The solution with the previous weight.
    log_ratio : array, shape (n_columns,)
        Logarithm of the ratio of the last two weights; 0 at the first weight.
    factor : array, shape (n_columns,)
        How far to extrapolate from the next point that is evaluated, in units of the difference of
        the last two solutions; 0 to stay.
    """

    previous: Array
    log_ratio: Array
    factor: Array


@dataclass
class _Columns(ColumnState):
    """The columns in work.

    Attributes
    ----------
    design, model : Design
    tol : float
    loss : Loss
    systems : NewtonSystems
    search : _LineSearch
    extrapolation : _Extrapolation
    places : array of int
        Positions of the columns in the source.
    T, gradient : array, shape (n_params, n_columns)
        The parameters of each column, and the gradient there.
    value : array
        The value there; infinite before the first evaluation.
    n_iter : array of int
        Newton steps taken.
    double : array of bool
        Whether double precision is used.
    present : array of bool
        False for columns that have left.
    """

    design: Design
    model: Design
    tol: float
    loss: Loss
    systems: NewtonSystems
    search: _LineSearch
    extrapolation: _Extrapolation
    places: Array
    T: Array
    gradient: Array
    value: Array
    n_iter: npt.NDArray[np.int64]
    double: npt.NDArray[np.bool_]
    present: npt.NDArray[np.bool_]

    @classmethod
    def new(cls, design: Design, model: Design, batch: Batch, tol: float) -> _Columns:
        """Columns that were never evaluated."""
        start, n_columns = batch.start, batch.start.shape[1]
        self = cls(
            design=design,
            model=model,
            tol=tol,
            loss=batch.loss,
            systems=NewtonSystems.closed(model, n_columns),
            search=_LineSearch.blank(start),
            extrapolation=_Extrapolation(start.copy(), np.zeros(n_columns), np.zeros(n_columns)),
            places=batch.places,
            T=start,
            gradient=np.zeros_like(start),
            value=np.zeros(n_columns),
            n_iter=np.zeros(n_columns, dtype=np.int64),
            double=np.zeros(n_columns, dtype=bool),
            present=np.ones(n_columns, dtype=bool),
        )
        self._evaluate_anew(np.arange(n_columns), double=model is design)
        return self

    def restart(self, columns: Array, factors: Array) -> None:
        """Multiply the weights of the loss and go on from the present parameters."""
        if not len(columns):
            return
        self.loss.reweight(columns, factors)
        self.n_iter[columns] = 0
        self._evaluate_anew(columns, double=self.model is self.design)
        ratio, last = np.log(factors), self.extrapolation.log_ratio[columns]
        self.extrapolation.factor[columns] = np.divide(
            ratio, last, out=np.ones_like(ratio), where=last > 0
        )
        self.extrapolation.log_ratio[columns] = ratio

    def enough_waiting(self) -> bool:
        """Whether enough systems are closed to evaluate their columns together."""
        waiting = self.present & ~self.systems.open
        return int(waiting.sum()) >= _WAITING * int(self.present.sum())

    def propose(self, max_iter: int) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Propose the steps of closed systems; which columns are done, and which converged.

        The others have a point to evaluate, unless their systems are still open.
        """
        search = self.search
        waits = self.present & ~search.active
        near = self._propose(np.flatnonzero(waits & ~search.final & ~self.systems.open))
        converged = waits & search.final
        if self._single_suffices:
            search.final[near] = True
        else:
            # Take full steps and trust the decrease that the quadratic model predicts.
            self.T[:, near] += search.step[:, near]
            self.value[near] += 0.5 * search.slope[near]
            converged[near] = self.double[near]
            self._evaluate_anew(near[~self.double[near]], double=True)
        exhausted = (search.n_backtracks > _MAX_BACKTRACKS) | (self.n_iter >= max_iter)
        done = np.flatnonzero(self.present & (converged | (exhausted & ~search.final)))
        return done, converged[done]

    @property
    def _single_suffices(self) -> bool:
        """Whether single precision meets `tol`; then a final step is long enough to be checked."""
        return self.tol >= _SINGLE_SUFFICES

    def _propose(self, columns: Array) -> Array:
        """Let columns try their Newton steps; returns those that are near their minimum."""
        self.search.step[:, columns] = self.systems.step[:, columns]
        slope = self.loss.pool(column_dots(self.gradient, self.search.step))[columns]
        self.search.try_step(columns, slope, 1.0)
        self.search.n_backtracks[columns] = 0
        self.n_iter[columns] += 1
        small = self._tolerance(columns) * self.value[columns]
        return columns[self.systems.solved[columns] & (-slope <= small)]

    def _tolerance(self, columns: Array) -> Array:
        """The predicted decrease, as a share of the value, at which a precision has done enough."""
        return np.where(self.double[columns] | self._single_suffices, self.tol, _SINGLE_TOL)

    def _evaluate_anew(self, columns: Array, *, double: bool) -> None:
        """Have columns evaluated at their present parameters; earlier values do not count."""
        self.value[columns], self.search.step[:, columns] = np.inf, 0.0
        self.search.try_step(columns, 0.0, 1.0)
        self.search.n_backtracks[columns], self.search.final[columns] = 0, False
        self.double[columns] = double

    def evaluate(self) -> None:
        """Evaluate all columns that have a point to evaluate, each in its precision."""
        for double, design in ((False, self.model), (True, self.design)):
            columns = np.flatnonzero(self.present & self.search.active & (self.double == double))
            if len(columns):
                self._evaluate(columns, design)

    def _evaluate(self, columns: Array, design: Design) -> None:
        search = self.search
        trial = self.T[:, columns] + search.length[columns] * search.step[:, columns]
        loss = self.loss.fresh(columns, design.dtype)
        value, gradient = _evaluate(design, loss, trial.astype(design.dtype, copy=False))
        old, predicted = self.value[columns], (search.length * search.slope)[columns]
        rounding = 100 * np.finfo(design.dtype).eps * np.where(np.isinf(old), 0.0, np.abs(old))
        accepted = value <= old + _ARMIJO * predicted + rounding
        refused = columns[~accepted]
        search.length[refused] *= _backtracking_factor(old, value, predicted)[~accepted]
        search.n_backtracks[refused] += 1
        search.final[columns] &= value <= old + _ARMIJO_FINAL * predicted + rounding
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
        search, moved = self.search, columns[accepted]
        self.T[:, moved], self.value[moved] = trial[:, accepted], value[accepted]
        self.gradient[:, moved], search.active[moved] = gradient[:, accepted], False
        self._extrapolate(moved[self.extrapolation.factor[moved] > 0])
        chosen = np.flatnonzero(accepted & ~search.final[columns] & ~search.active[columns])
        if not len(chosen):
            return
        if len(chosen) < len(columns):
            columns, loss = columns[chosen], loss.select(chosen)
            value, gradient = value[chosen], gradient[:, chosen]
        self.loss.update(columns, loss)
        self.systems.begin(columns, gradient, loss, self._tolerance(columns) * value)

    def _extrapolate(self, columns: Array) -> None:
        """Let columns with new weights try to go on along the line of their last two solutions."""
        if not len(columns):
            return
        search, path = self.search, self.extrapolation
        search.step[:, columns] = self.T[:, columns] - path.previous[:, columns]
        path.previous[:, columns] = self.T[:, columns]
        slope = self.loss.pool(column_dots(self.gradient, search.step))
        descent = columns[slope[columns] < 0]
        search.try_step(descent, slope[descent], path.factor[descent])
        path.factor[columns] = 0.0


def _evaluate(design: Design, loss: Loss, T: Array) -> tuple[Array, Array]:
    """Values and gradients of all columns."""
    gradient = design.penalty * T
    value = 0.5 * column_dots(gradient, T).astype(np.float64)
    for block, rows in enumerate(design.rows):
        Z = design.forward(block, T)
        value += loss.evaluate(rows, Z)
        design.adjoint(block, Z, gradient)
    return loss.pool(value), visible_only(gradient, loss.visible)


def _backtracking_factor(old: Array, new: Array, predicted: Array) -> Array:
    """The minimum of the parabola through two values and a slope, within bounds."""
    best = -0.5 * predicted / (new - old - predicted)
    return np.clip(np.where(np.isfinite(best), best, 0.1), 0.1, 0.5)
