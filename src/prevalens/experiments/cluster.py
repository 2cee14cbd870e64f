"""Computing cells on a Dask cluster: connecting to it and checking that it can take part.

Dask distributes the cells and computes those of a worker that dies on another one; `run_plan` gets
an executor of `concurrent.futures`, as it does for processes on this machine.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, TypeAlias

from prevalens.catalogue import load_parts, own_modules
from prevalens.cluster import LOCAL, connected
from prevalens.experiments.cells import Cell, DataSource, data_checksum
from prevalens.experiments.run import versions
from prevalens.experiments.runner import check_jobs, check_own_parts
from prevalens.validation import InputError

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
