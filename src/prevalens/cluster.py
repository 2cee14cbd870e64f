"""Dask clusters: connecting to one, checking its workers' version, and computing tasks on it."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from prevalens._version import __version__
from prevalens.errors import InputError
from prevalens.parallel import computing_on

#: Name of a cluster on this machine, which lives as long as the work.
LOCAL = "local"
#: Seconds until a scheduler must have answered, and until it must have a worker.
_ANSWER, _FIRST_WORKER = 5, 6
#: Settings of Dask. By default a client tries for 30 seconds to fetch a result from a dead worker
#: before the result is computed again; and it warns of tasks with the row numbers of large folds.
_SETTINGS = {
    "distributed.comm.timeouts.connect": "5s",
    "distributed.admin.large-graph-warning-threshold": "10GB",
}
#: The environment of worker processes: one thread each, as processes times threads must not
#: exceed the cores, and another number could change the last digits of a result.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "LOKY_MAX_CPU_COUNT": "1",
    # A worker may keep a dataset; loky would take that for a leak and replace the worker.
    "LOKY_MAX_MEMORY_LEAK_SIZE": "1e18",
}


@contextmanager
def connected(
    scheduler: str, *, n_workers: int | None = None, preload: Sequence[str] = ()
) -> Iterator[Any]:
    """A client of a Dask cluster; needs the extra ``dask``.

    Parameters
    ----------
    scheduler : str
        Address of a scheduler, such as ``tcp://host:8786``; or ``local``, which starts worker
        processes on this machine and ends them afterwards.
    n_workers : int, optional
        Processes of a local cluster; one per core if omitted.
    preload : sequence of str
        Modules whose `dask_setup` every worker of a local cluster calls at its start.

    Yields
    ------
    distributed.Client
    """
    library = dask_library()
    with import_module("dask").config.set(_SETTINGS):
        yield from _clients(library, scheduler, n_workers, preload)


def _clients(
    library: Any, scheduler: str, n_workers: int | None, preload: Sequence[str]
) -> Iterator[Any]:
    """The one client of `connected`."""
    if scheduler == LOCAL:
        with (
            _local_cluster(library, n_workers or os.cpu_count() or 1, preload) as cluster,
            library.Client(cluster, set_as_default=False) as client,
        ):
            yield client
        return
    _check_reachable(scheduler)
    with library.Client(scheduler, timeout=_ANSWER, set_as_default=False) as client:
        _check_workers(client, scheduler)
        yield client


@contextmanager
def computing_on_cluster(
    scheduler: str | None,
    *,
    n_workers: int | None = None,
    waiting: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Within the block, folds, forests and methods of fits and comparisons are computed by Dask.

    Parameters
    ----------
    scheduler : str, optional
        As in `connected`; None computes here.
    n_workers : int, optional
        Processes of a local cluster; one per core if omitted.
    waiting : callable, optional
        Called about twice a second while workers compute; what it raises ends the work.

    Notes
    -----
    The items are sent to every worker, once. What a worker that dies was computing is computed by
    another one. Results equal those of one process, see `prevalens.parallel.computing_on`.

    Examples
    --------
    >>> with computing_on_cluster("tcp://host:8786"):  # doctest: +SKIP
    ...     Quantifier().fit(X, Y)
    """
    if scheduler is None:
        yield
        return
    library = dask_library()
    with connected(scheduler, n_workers=n_workers) as client:

        def share(value: Any) -> Any:
            # In a list, as the parts of a list would be sent one by one; without a hash, so that
            # values of a call that has ended are not taken away from the next.
            return client.scatter([value], broadcast=True, hash=False)[0]

        try:
            with computing_on(client.get_executor(pure=False), share=share, waiting=waiting):
                yield
        except (library.KilledWorker, CancelledError) as error:
            raise InputError(
                "All workers that were to compute a part of the fit died, perhaps for want of "
                "memory; give them more memory, or fit without a scheduler."
            ) from error


def dask_library() -> Any:
    """The module ``distributed``, or an error if it is not installed."""
    try:
        return import_module("distributed")
    except ImportError as error:
        raise InputError(
            'This needs Dask, which is not installed: pip install "prevalens[dask]".'
        ) from error


def _local_cluster(library: Any, n_workers: int, preload: Sequence[str]) -> Any:
    return library.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        # Dask would stop a worker that uses more than its share; other processes are not stopped.
        memory_limit=None,
        # Any free port: with None two clusters on a machine would ask for the same one.
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
        env=ENVIRONMENT,
        preload=list(preload),
    )


def _check_reachable(address: str) -> None:
    """Raise an error if there is no scheduler; a client would wait forever for a silent port."""
    try:
        # In a thread, as notebooks have a running loop.
        with ThreadPoolExecutor(1) as thread:
            found = thread.submit(asyncio.run, _type_of_server(address)).result()
    # Another protocol at the port leads to errors of any kind.
    except Exception as error:
        reason = str(error).rstrip(".") or f"no answer within {_ANSWER} seconds"
        raise InputError(
            f"No Dask scheduler answers at {address!r} ({reason}); start one there (dask "
            f"scheduler), or use {LOCAL!r} for workers on this machine."
        ) from error
    if found != "Scheduler":
        raise InputError(f"At {address!r} is a Dask {found.lower()}; give the scheduler's address.")


async def _type_of_server(address: str) -> str:
    core, security = import_module("distributed.core"), import_module("distributed.security")
    given = security.Security().get_connection_args("client")
    async with asyncio.timeout(_ANSWER), core.rpc(address, connection_args=given) as server:
        return str((await server.identity())["type"])


def _check_workers(client: Any, address: str) -> None:
    """Refuse a cluster that has no workers, or workers that would compute something else."""
    ask = _question()
    # The scheduler reads the tasks that it hands on, so it needs the package too.
    _check_versions(f"The Dask scheduler at {address}", client.run_on_scheduler(ask))
    try:
        client.wait_for_workers(1, timeout=_FIRST_WORKER)
    except TimeoutError as error:
        raise InputError(
            f"The Dask scheduler at {address} has no worker; start one: dask worker {address}"
        ) from error
    for worker, versions in client.run(ask).items():
        _check_versions(f"The Dask worker at {worker}", versions)


def _question() -> Callable[[], tuple[str | None, str]]:
    """A function that returns the versions of prevalens, None without it, and of Python.

    It is a closure so that it travels as code: a worker without the package can run it.
    """

    def versions() -> tuple[str | None, str]:
        import platform

        try:
            from prevalens._version import __version__ as version
        except ImportError:
            return None, platform.python_version()
        return version, platform.python_version()

    return versions


def _check_versions(who: str, versions: tuple[str | None, str]) -> None:
    version, python = versions
    if version is None:
        raise InputError(f"{who} has no prevalens; install prevalens {__version__} there.")
    if version != __version__:
        raise InputError(
            f"{who} has prevalens {version}, but this process has {__version__}; install the "
            "same version on both."
        )
    here = platform.python_version()
    if python.split(".")[:2] != here.split(".")[:2]:
        raise InputError(f"{who} runs Python {python}, but this process {here}; use the same.")
