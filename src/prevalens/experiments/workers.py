"""Computing groups of cells here, in processes of loky, or on any executor of `concurrent.futures`.

Loky starts the processes, distributes the work and notices a process that has died. Two things
are added, as no executor offers them: groups that need the same scores are not computed at the same
time where that can be avoided, and the cells that were being computed when a process died are
computed again one by one, so that a cell that kills its process affects no other cell.

`dask_executor` is an executor on a Dask cluster, checked to be able to take part. Dask distributes
the cells and computes those of a worker that dies on another one.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import joblib
from loky import ProcessPoolExecutor
from threadpoolctl import threadpool_limits

from prevalens.catalogue import load_parts, own_modules
from prevalens.cluster import ENVIRONMENT, LOCAL, connected
from prevalens.experiments.cache import ScoreCache
from prevalens.experiments.cells import Cell, DataSource, data_checksum
from prevalens.experiments.run import CellResult, Failure, failure_of, run_cells, versions
from prevalens.experiments.specs import Parts
from prevalens.files import make_folder
from prevalens.validation import InputError, PrevalensWarning, check_int

Outcome: TypeAlias = CellResult | Failure
Group: TypeAlias = Sequence[Cell]
#: Computes a group of cells; can be sent to another process.
Task: TypeAlias = Callable[[Group], list[Outcome]]


def compute(
    groups: Sequence[Group],
    n_jobs: int | None = 1,
    *,
    executor: Executor | None = None,
    cache_folder: Path | None = None,
    parts: Parts | None = None,
) -> Generator[Outcome, None, None]:
    """Compute groups of cells and yield results and failures as they are ready.

    Parameters
    ----------
    groups : list of lists of Cell
        The cells of a group share a fitted quantifier.
    n_jobs : int or None
        Without an executor: 1 computes in this process, more start that many processes. With an
        executor: how many groups it is given at a time; None gives it all of them at once.
    executor : concurrent.futures.Executor, optional
        Where to compute. It is not shut down.
    cache_folder : Path, optional
        Where scores are kept; it is made. Processes that cannot write there keep none.
    parts : mapping of str to CatalogueEntry, optional
        Parts that the methods may name in addition to those of the catalogue.
    """
    waiting = list(groups)
    if cache_folder is not None and waiting:
        # A process elsewhere has another working directory.
        cache_folder = make_folder(cache_folder.resolve())
    task = partial(_run_group, own_modules(), cache_folder, parts)
    with _one_thread:
        if executor is not None:
            lost = yield from _dispatch(executor, task, waiting, n_jobs or len(waiting))
            error = BrokenExecutor(
                "The executor stopped before this cell was done; run the plan again to go on "
                "with it."
            )
            yield from (failure_of(cell, error) for group in lost + waiting for cell in group)
        elif n_jobs == 1:
            for group in groups:
                yield from run_cells(group, _cache(cache_folder), parts)
        else:
            yield from _in_processes(task, waiting, min(n_jobs or 1, len(waiting)))


def _run_group(
    modules: Sequence[str], cache_folder: Path | None, parts: Parts | None, cells: Group
) -> list[Outcome]:
    """Compute a group of cells in the current process or thread."""
    for module in modules:
        load_parts(module)
    with _one_thread:
        return list(run_cells(cells, _cache(cache_folder), parts))


def _cache(folder: Path | None) -> ScoreCache | None:
    """The cache in a folder, unless this machine does not have the folder."""
    return ScoreCache(folder) if folder is not None and os.access(folder, os.W_OK) else None


class _SharedLimit:
    """Limits libraries to one thread while any thread of this process is in a block of it.

    If each thread had a limit of its own, the first to finish would lift that of the others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limits = threadpool_limits(limits=1)
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limits.restore_original_limits()


_one_thread = _SharedLimit()


def _in_processes(task: Task, waiting: list[Group], n_jobs: int) -> Iterator[Outcome]:
    """Compute groups in processes; if one of these dies, go on with new ones."""
    while waiting:
        with _processes(n_jobs) as pool:
            lost = yield from _dispatch(pool, task, waiting, n_jobs)
        if lost:
            warnings.warn(
                f"A worker process died; {sum(map(len, lost))} cells that were being computed are "
                "computed again, one at a time.",
                PrevalensWarning,
                stacklevel=2,
            )
        for cell in (cell for group in lost for cell in group):
            yield _run_alone(task, cell)


def _run_alone(task: Task, cell: Cell) -> Outcome:
    """Compute a cell in a process of its own; if that dies, the cell is the cause."""
    with _processes(1) as pool:
        try:
            (outcome,) = pool.submit(task, [cell]).result()
        except BrokenExecutor as error:
            codes = re.search(r"\{(.+?)\}", str(error))
            reason = f" ({codes[1]})" if codes else ""
            sentence = f"The process that computed it died{reason}."
            return Failure(cell, sentence, f"{sentence}\n\n{error}")
    return outcome


@contextmanager
def _processes(n_jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Start worker processes; they are killed at the end, even in the middle of a cell."""
    pool = ProcessPoolExecutor(
        n_jobs, env=ENVIRONMENT, initializer=_start_worker, initargs=(os.getpid(),)
    )
    try:
        yield pool
    finally:
        pool.shutdown(kill_workers=True)


def _start_worker(parent: int) -> None:
    # Ctrl-C reaches every process of a terminal; the parent decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What a library prints does not belong to the command's output.
    os.dup2(2, 1)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when its parent has ended; loky would first finish the cell.

    On Windows, a process does not see the end of its parent in this way.
    """
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


def _dispatch(
    executor: Executor, task: Task, waiting: list[Group], width: int
) -> Generator[Outcome, None, list[Group]]:
    """Hand groups to an executor, at most `width` at a time, until none waits or it breaks.

    Groups are taken out of `waiting`. Those that were lost when the executor broke are returned.
    """
    running: dict[Future[list[Outcome]], Group] = {}
    lost: list[Group] = []
    try:
        while (waiting or running) and not lost:
            while waiting and len(running) < width and not lost:
                group = _take_next(waiting, running.values())
                try:
                    running[executor.submit(task, group)] = group
                except BrokenExecutor:
                    lost.append(group)
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                group = running.pop(future)
                # Dask cancels what it cannot compute any more, as when its scheduler has ended.
                error = CancelledError() if future.cancelled() else future.exception()
                if error is None:
                    yield from future.result()
                elif isinstance(error, (BrokenExecutor, CancelledError)):
                    lost.append(group)
                else:
                    yield from (failure_of(cell, error) for cell in group)
        # A broken executor computes nothing any more.
        return lost + list(running.values())
    finally:
        for future in running:
            future.cancel()


def _take_next(waiting: list[Group], running: Iterable[Group]) -> Group:
    """Take the first group whose scores nobody is computing, or else the first."""
    busy = {group[0].scores_key() for group in running}
    free = (i for i, group in enumerate(waiting) if group[0].scores_key() not in busy)
    return waiting.pop(next(free, 0))


def check_own_parts() -> None:
    """Raise an error if registered parts cannot be imported in another process."""
    if "__main__" in own_modules():
        raise InputError(
            "Other processes cannot see parts that are registered in a script or notebook; put "
            "them into a module that is imported, or compute in this process (n_jobs=1)."
        )


def check_jobs(n_jobs: int) -> int:
    """The number of processes to start: -1 is one per core, and more than cores are not used."""
    cores = int(joblib.cpu_count())
    asked = cores if n_jobs == -1 else check_int(n_jobs, "n_jobs", minimum=1)
    if asked > cores:
        warnings.warn(
            f"{asked} processes were asked for, but there are {cores} cores; {cores} are used.",
            PrevalensWarning,
            stacklevel=3,
        )
    return min(asked, cores)


#: Versions of libraries, and checksums of datasets.
State: TypeAlias = tuple[dict[str, str], dict[str, str]]


@contextmanager
def dask_executor(
    scheduler: str, *, n_workers: int = 1, cells: Collection[Cell] = ()
) -> Iterator[Executor]:
    """An executor that computes on a Dask cluster; needs the extra ``dask``.

    Parameters
    ----------
    scheduler : str
        Address of a scheduler, such as ``tcp://host:8786``; or ``local``, which starts worker
        processes on this machine and ends them afterwards.
    n_workers : int
        Processes of a local cluster, with one thread each; -1 is one per core.
    cells : list of Cell
        What is to be computed: the workers at an address must have the same data of these, and be
        able to import the modules of registered parts.

    Notes
    -----
    The scheduler and the workers at an address must have the same versions of prevalens, Python
    and the numerical libraries, so that results do not depend on where they are computed.

    Examples
    --------
    >>> with dask_executor("local", n_workers=2) as executor:  # doctest: +SKIP
    ...     run_plan(plan, store, executor=executor)
    """
    check_own_parts()
    jobs = check_jobs(n_workers)
    with connected(scheduler, n_workers=jobs, preload=[__name__]) as client:
        if scheduler != LOCAL:
            _check_workers(client, cells)
        yield client.get_executor(pure=False)


def dask_setup(worker: object) -> None:  # noqa: ARG001
    """Keep what cells print and warn of out of the command's output; called by Dask."""
    os.dup2(2, 1)
    warnings.simplefilter("ignore")


def _check_workers(client: Any, cells: Collection[Cell]) -> None:
    """Raise an error if a worker could not compute the cells as this process does."""
    sources = list({cell.dataset: cell.source for cell in cells}.values())
    modules = own_modules()
    here = _state(modules, sources)
    for worker, state in client.run(_answer, modules, sources, on_error="return").items():
        _check_state(f"The Dask worker at {worker}", state, here)


def _state(modules: Sequence[str], sources: Sequence[DataSource]) -> State:
    """What results depend on in this process."""
    for module in modules:
        load_parts(module)
    return versions(), {source.name: data_checksum(source) for source in sources}


async def _answer(modules: Sequence[str], sources: Sequence[DataSource]) -> State:
    """The state of a worker; in a thread, as a worker must go on answering its scheduler."""
    return await asyncio.to_thread(_state, modules, sources)


def _check_state(who: str, state: State | Exception, here: State) -> None:
    if isinstance(state, Exception):
        raise InputError(f"{who} cannot compute the plan: {state}")
    for (name, version), own in zip(state[0].items(), here[0].values(), strict=True):
        if version != own:
            raise InputError(
                f"{who} has {name} {version}, but this process has {own}; install the same "
                "version, as results could differ."
            )
    _check_data(who, state[1], here[1])


def _check_data(who: str, data: Mapping[str, str], here: Mapping[str, str]) -> None:
    for name, checksum in data.items():
        if checksum != here[name]:
            raise InputError(
                f"{who} has other data of {name!r} than this process; copy the files, or set "
                "PREVALENS_DATA there to the folder of the same data."
            )
