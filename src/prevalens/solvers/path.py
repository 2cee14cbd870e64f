"""Many problems along rising weights of the loss, in threads, first in single precision.

All problems go through one stream per thread (see `newton`). Those that single precision
cannot bring to an end go through a second stream that works in double precision throughout.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from prevalens.solvers.design import Array, Design, make_design
from prevalens.solvers.losses import Loss
from prevalens.solvers.newton import Batch, NewtonStream
from prevalens.validation import Matrix

#: Newton steps after which single precision is given up.
_PATIENCE = 40
#: Below this many multiplications in a product, single precision saves too little time.
_SMALL = 10**6
#: Columns in work: wide enough for matrix products, narrow enough for the cache.
_WIDTH = 128
_LEAST_WIDTH = 16
#: Vector instructions take this many numbers of single precision.
_ALIGN = 8
#: Bytes of the parameters in work, which are read at random in a sparse product.
_PARAMETER_BYTES = 2**20
#: Bytes of all columns in work; a column has about so many bytes per item and per parameter.
_WORK_BYTES = 2**29
_ITEM_BYTES = 25
_COLUMN_BYTES = 60


@dataclass(frozen=True)
class Problems:
    """Problems to solve: columns of parameters, some of which may belong together.

    Attributes
    ----------
    groups : list of int arrays
        The columns of each problem, in the order in which they shall be solved.
    C : array, shape (n_steps, n_columns)
        Weights of the loss, rising; the solution for one is the start for the next.
    make_loss : function of columns, their weights, and the precision of the curvature
    start : array of coefficients and array of intercepts
        Shapes (n_columns, n_features) and (n_columns,).
    """

    groups: Sequence[Array]
    C: Array
    make_loss: Callable[[Array, Array, npt.DTypeLike], Loss]
    start: tuple[Array, Array]


@dataclass(frozen=True)
class LinearFit:
    """Fitted linear models.

    Attributes
    ----------
    coef : array, shape (..., n_features)
    intercept : array, shape (...)
        Infinite for a label that all items have (or none), if there is an intercept.
    objective : array, shape (...)
    n_iter : array of int, shape (...)
        Newton steps.
    converged : array of bool, shape (...)

    Notes
    -----
    The shape is that of the problem: labels or classes, and steps or settings before them.
    """

    coef: Array
    intercept: Array
    objective: Array
    n_iter: npt.NDArray[np.int64]
    converged: npt.NDArray[np.bool_]

    @classmethod
    def blank(cls, shape: tuple[int, int], n_features: int) -> LinearFit:
        """Solutions of zeros, to be filled."""
        return cls(
            np.zeros((*shape, n_features)),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(shape, dtype=np.int64),
            np.ones(shape, dtype=bool),
        )

    def __getitem__(self, index: Any) -> LinearFit:
        """Some of the models, chosen along the first axes."""
        return LinearFit(*(vars(self)[field.name][index] for field in fields(LinearFit)))


def solve_path(
    X: Matrix, problems: Problems, *, fit_intercept: bool, tol: float, max_iter: int
) -> LinearFit:
    """Solve all problems at all steps."""
    solution = LinearFit.blank(problems.C.shape, X.shape[1])
    n_columns = sum(len(columns) for columns in problems.groups)
    if not n_columns:
        return solution
    threads = min(_n_threads(), len(problems.groups))
    align = _ALIGN if n_columns == len(problems.groups) else 1
    width = _width(X.shape[0], X.shape[1] + fit_intercept, n_columns, threads)
    n_problems = n_columns * len(problems.C)
    single, double = make_design(X, intercept=fit_intercept, width=width, n_problems=n_problems)
    small = double.n_entries * n_columns < _SMALL
    model, patience = (double, max_iter) if small else (single, min(max_iter, _PATIENCE))

    def run(model: Design, problems: Problems, steps: range, max_iter: int) -> None:
        def work(groups: Sequence[Array]) -> None:
            path = _Path(replace(problems, groups=groups), steps, solution, double, model)
            with np.errstate(all="ignore"):
                NewtonStream(
                    double, model, path, width=width, align=align, tol=tol, max_iter=max_iter
                ).run()

        # Divided beforehand, not as threads become free: what is solved together is rounded
        # together, and must not depend on the machine's load.
        _in_threads(work, [problems.groups[first::threads] for first in range(threads)])

    run(model, problems, range(len(problems.C)), patience)
    for step in range(len(problems.C)) if max_iter > patience else ():
        left = replace(
            problems,
            groups=[group for group in problems.groups if not solution.converged[step, group[0]]],
            start=(solution.coef[step].copy(), solution.intercept[step].copy()),
        )
        run(double, left, range(step, step + 1), max_iter - patience)
    return solution


class _Path:
    """Problems as a source of the stream, and their solutions as its sink."""

    def __init__(
        self,
        problems: Problems,
        steps: range,
        solution: LinearFit,
        design: Design,
        model: Design,
    ) -> None:
        self._problems, self._queue, self._stop = problems, deque(problems.groups), steps.stop
        self._solution, self._design, self._model = solution, design, model
        self._at = np.full(problems.C.shape[1], steps.start)

    def take(self, n_columns: int) -> Batch | None:
        """The next problems."""
        chosen: list[Array] = []
        while self._queue and (
            not chosen or sum(map(len, chosen)) + len(self._queue[0]) <= n_columns
        ):
            chosen.append(self._queue.popleft())
        if not chosen:
            return None
        columns = np.concatenate(chosen)
        C = self._problems.C[self._at[columns], columns]
        loss = self._problems.make_loss(columns, C, self._model.dtype)
        coef, intercept = self._problems.start
        start = self._design.parameters(coef[columns], intercept[columns])
        return Batch(columns, loss, start)

    def give(self, places: Array, T: Array, value: Array, n_iter: Array, converged: Array) -> Array:
        """Enter solutions; the factors from these weights to the next."""
        solution, C, at = self._solution, self._problems.C, self._at[places]
        solution.coef[at, places], solution.intercept[at, places] = self._design.coefficients(T)
        solution.objective[at, places], solution.converged[at, places] = value, converged
        solution.n_iter[at, places] += n_iter
        self._at[places] += 1
        after = np.minimum(at + 1, len(C) - 1)
        return np.where(at + 1 < self._stop, C[after, places] / C[at, places], 0.0)


def _width(n_items: int, n_params: int, n_columns: int, threads: int) -> int:
    """Columns in work per thread, so that memory is bounded and all threads have work."""
    bytes_each = _ITEM_BYTES * n_items + _COLUMN_BYTES * n_params
    by_memory = _WORK_BYTES // (bytes_each * threads)
    by_cache = max(_LEAST_WIDTH, _PARAMETER_BYTES // (4 * n_params))
    share = -(-n_columns // threads)
    return max(1, min(_WIDTH, by_cache, by_memory, -(-share // _ALIGN) * _ALIGN))


def _n_threads() -> int:
    """As many threads as the linear algebra library would use here.

    This respects OMP_NUM_THREADS and similar variables, and the limits that joblib sets in its
    workers.
    """
    return max((int(library["num_threads"]) for library in _blas().info()), default=1)


@cache
def _blas() -> Any:
    """The linear algebra libraries; searching for them takes longer than a small problem."""
    return ThreadpoolController().select(user_api="blas")


def _in_threads(work: Callable[[Sequence[Array]], None], parts: Sequence[Sequence[Array]]) -> None:
    """Do each part in a thread of its own, with a single-threaded linear algebra library."""
    if len(parts) == 1:
        work(parts[0])
        return
    with _blas().limit(limits=1), ThreadPoolExecutor(len(parts)) as pool:
        for future in [pool.submit(work, part) for part in parts]:
            future.result()
