"""Computing cells on a Dask cluster: connecting to it and checking that it can take part.

Dask distributes the cells and computes those of a worker that dies on another one; `run_plan` gets
an executor of `concurrent.futures`, as it does for processes on this machine.
"""

from __future__ import annotations

import asyncio
import logging
import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pydoc import locate
from typing import Any, TypeAlias

from prevalens._version import __version__
from prevalens.catalogue import load_parts, own_modules
from prevalens.experiments.cells import Cell, DataSource, data_checksum
from prevalens.experiments.run import versions
from prevalens.experiments.runner import check_jobs, check_own_parts
from prevalens.experiments.workers import ENVIRONMENT
from prevalens.validation import InputError

#: Name of a cluster on this machine, which lives as long as the run.
LOCAL = "local"
#: Seconds until a scheduler must have answered.
_ANSWER = 4
#: Seconds until a scheduler must have a worker.
_FIRST_WORKER = 10

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
    dask = _library()
    check_own_parts()
    if scheduler == LOCAL:
        with _local_cluster(dask, n_workers) as cluster, dask.Client(cluster) as client:
            yield client.get_executor(pure=False)
        return
    _check_reachable(scheduler)
    with dask.Client(scheduler, timeout=_ANSWER, set_as_default=False) as client:
        _check_cluster(client, scheduler, cells)
        yield client.get_executor(pure=False)


def _library() -> Any:
    try:
        return import_module("distributed")
    except ImportError as error:
        raise InputError(
            'A scheduler needs Dask, which is not installed: pip install "prevalens[dask]".'
        ) from error


def _local_cluster(dask: Any, n_workers: int) -> Any:
    return dask.LocalCluster(
        n_workers=check_jobs(n_workers),
        threads_per_worker=1,
        # Dask would stop a worker that uses more than its share; a run without it does not either.
        memory_limit=None,
        # Any free port, as another cluster may have the default one.
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
        env=ENVIRONMENT,
        # Every worker, also one that replaces a dead one, starts with `dask_setup`.
        preload=[__name__],
    )


def dask_setup(worker: object) -> None:  # noqa: ARG001
    """Keep what cells print and warn of out of the command's output; called by Dask."""
    os.dup2(2, 1)
    warnings.simplefilter("ignore")


def _check_reachable(address: str) -> None:
    """Raise an error if there is no scheduler; `Client` would wait forever for a silent port."""
    try:
        # In a thread, as there is a running loop in notebooks.
        with ThreadPoolExecutor(1) as thread:
            found = thread.submit(asyncio.run, _identity(address)).result()
    # Another protocol at the port leads to errors of any kind, even to a lack of memory.
    except Exception as error:
        reason = str(error).rstrip(".") or f"no answer within {_ANSWER} seconds"
        raise InputError(
            f"No Dask scheduler answers at {address!r} ({reason}); start one there (dask "
            f"scheduler), or use {LOCAL!r} for workers on this machine."
        ) from error
    if found != "Scheduler":
        raise InputError(f"At {address!r} is a Dask {found.lower()}; give the scheduler's address.")


async def _identity(address: str) -> str:
    core, security = import_module("distributed.core"), import_module("distributed.security")
    given = security.Security().get_connection_args("client")
    async with (
        asyncio.timeout(_ANSWER),
        core.rpc(address, connection_args=given) as server,
    ):
        return str((await server.identity())["type"])


def _check_cluster(client: Any, address: str, cells: Collection[Cell]) -> None:
    """Raise an error if the scheduler or a worker could not compute the cells as this process."""
    # A function of the standard library, which a process without the package can run, too. The
    # scheduler reads the tasks that it hands on, so it needs the package, but no data.
    wanted = "prevalens._version.__version__"
    _check_version(f"The Dask scheduler at {address}", client.run_on_scheduler(locate, wanted))
    try:
        client.wait_for_workers(1, timeout=_FIRST_WORKER)
    except TimeoutError as error:
        raise InputError(
            f"The Dask scheduler at {address} has no worker; start one: dask worker {address}"
        ) from error
    for worker, version in client.run(locate, wanted, on_error="return").items():
        _check_version(f"The Dask worker at {worker}", version)
    sources = list({cell.dataset: cell.source for cell in cells}.values())
    modules = own_modules()
    here = _state(modules, sources)
    for worker, state in client.run(_answer, modules, sources, on_error="return").items():
        _check_state(f"The Dask worker at {worker}", state, here)


def _check_version(who: str, version: object) -> None:
    if isinstance(version, Exception):
        raise InputError(f"{who} cannot import prevalens: {version}")
    if version != __version__:
        found = "has no prevalens" if version is None else f"has prevalens {version}"
        raise InputError(f"{who} {found}; install prevalens {__version__} there.")


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
