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

import numpy as np
import numpy.typing as npt
from scipy.linalg import get_lapack_funcs

from prevalens.solvers.linear_columns import (
    column_dots,
    join_columns,
    select_columns,
    visible_only,
)
from prevalens.solvers.linear_design import Array, Design
from prevalens.solvers.logistic_loss import Loss

__all__ = ["NewtonSystems"]

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
