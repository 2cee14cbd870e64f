"""Independent tasks: computed in this process, or by any executor of `concurrent.futures`.

The code that divides its work calls `compute`; whoever starts the work says where it is done, with
`computing_on`. `prevalens.cluster.computing_on_cluster` does so for a Dask cluster.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

#: Seconds between two calls of `waiting` while tasks are computed.
_PATIENCE = 0.5
#: Values that are kept where the tasks are computed; the items and labels of the last calls.
_MOST_SHARED = 4


class _Workers:
    """An executor, and what was shared with its workers."""

    def __init__(
        self, executor: Executor, share: Callable[[Any], Any], waiting: Callable[[], None]
    ) -> None:
        self._executor, self._share, self._waiting = executor, share, waiting
        self._shared: dict[int, tuple[Any, Any]] = {}

    def share(self, value: Any) -> Any:
        """What tasks are given instead of a value; the same for the same object."""
        # The value is kept with it, so that no other object gets its id.
        found = self._shared.pop(id(value), None) or (value, self._share(value))
        self._shared[id(value)] = found
        while len(self._shared) > _MOST_SHARED:
            del self._shared[next(iter(self._shared))]
        return found[1]

    def compute(
        self,
        function: Callable[..., Any],
        shared: Sequence[Any],
        tasks: Sequence[Sequence[Any]],
        progress: Callable[[int], None],
    ) -> list[Any]:
        """See `compute`."""
        sent = [self.share(value) for value in shared]
        futures = [self._executor.submit(_run, function, sent, task) for task in tasks]
        try:
            for n_done in self._finished(futures):
                if n_done < len(futures):
                    progress(n_done)
            outcomes = [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()
        _warn_again([warning for outcome in outcomes for warning in outcome.warnings])
        return [outcome.result for outcome in outcomes]

    def _finished(self, futures: Sequence[Future[Any]]) -> Iterator[int]:
        """How many tasks are done, whenever that changes; raises the error of one that failed."""
        done: set[Future[Any]] = set()
        yield 0
        while len(done) < len(futures):
            self._waiting()
            left = set(futures) - done
            now = wait(left, timeout=_PATIENCE, return_when=FIRST_COMPLETED).done
            for future in now:
                future.result()
            if now:
                done |= now
                yield len(done)


class _Outcome(NamedTuple):
    """The result of a task, and the warnings that it gave."""

    result: Any
    warnings: list[tuple[Warning | str, type[Warning], str, int]]


_workers: ContextVar[_Workers | None] = ContextVar("workers", default=None)


def compute(
    function: Callable[..., Any],
    shared: Sequence[Any],
    tasks: Sequence[Sequence[Any]],
    *,
    n_jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Any]:
    """``[function(*shared, *task) for task in tasks]``, wherever `computing_on` says.

    Parameters
    ----------
    function : callable
        Defined in a module, so that other processes find it. What it warns of is passed on.
    shared : sequence
        Its first arguments, the same for all tasks: sent once.
    tasks : sequence of sequences
        Its other arguments.
    n_jobs : int, optional
        Tasks computed at the same time by joblib, outside of `computing_on`.
    progress : callable, optional
        Called with the number of tasks that are done, before the first and after others.

    Examples
    --------
    >>> compute(pow, [2], [[3], [4]])
    [8, 16]
    """
    tell = progress or (lambda _: None)
    workers = _workers.get()
    if workers is not None:
        return workers.compute(function, shared, tasks, tell)

    def jobs() -> Iterator[Any]:
        for number, task in enumerate(tasks):
            tell(number)
            yield delayed(function)(*shared, *task)

    return list(Parallel(n_jobs=n_jobs)(jobs()))


def is_elsewhere() -> bool:
    """Whether `compute` hands its tasks to an executor."""
    return _workers.get() is not None


@contextmanager
def computing_on(
    executor: Executor,
    *,
    share: Callable[[Any], Any] = lambda value: value,
    waiting: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Within the block, independent tasks of fits and comparisons are computed by an executor.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        Of processes with one thread each, here or elsewhere.
    share : callable, optional
        Sends a large value to the workers, and returns what stands for it in the arguments of
        tasks. Default: it is sent with every task.
    waiting : callable, optional
        Called about twice a second while tasks are computed; what it raises ends the work.

    Notes
    -----
    Here and in the tasks, linear algebra uses one thread: the number of threads changes the last
    digits of results. They equal, bit for bit, those of a process with ``OMP_NUM_THREADS=1``.

    Examples
    --------
    >>> from concurrent.futures import ProcessPoolExecutor
    >>> with ProcessPoolExecutor(2) as pool, computing_on(pool):  # doctest: +SKIP
    ...     Quantifier().fit(X, Y)
    """
    token = _workers.set(_Workers(executor, share, waiting))
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        _workers.reset(token)


def _run(function: Callable[..., Any], shared: Sequence[Any], task: Sequence[Any]) -> _Outcome:
    """Compute a task in a worker."""
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(limits=1):
        warnings.simplefilter("always")
        result = function(*shared, *task)
    given = [(each.message, each.category, each.filename, each.lineno) for each in caught]
    return _Outcome(result, given)


def _warn_again(given: Sequence[tuple[Warning | str, type[Warning], str, int]]) -> None:
    """Give the warnings of tasks here, where the filters of this process apply."""
    registry: dict[Any, Any] = {}
    for message, category, filename, line in given:
        warnings.warn_explicit(message, category, filename, line, registry=registry)
