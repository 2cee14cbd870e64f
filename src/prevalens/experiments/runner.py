"""From a plan to a full store: skip what is done, compute the rest, go on after failures."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import joblib

from prevalens._version import __version__
from prevalens.experiments.cache import ScoreCache
from prevalens.experiments.cells import Cell
from prevalens.experiments.data import checksum
from prevalens.experiments.plan import Plan
from prevalens.experiments.progress import Durations, Progress
from prevalens.experiments.run import CellResult
from prevalens.experiments.store import Store
from prevalens.experiments.workers import compute
from prevalens.extension import own_modules
from prevalens.records import Record, Result
from prevalens.validation import InputError, PrevalensWarning, check_int

__all__ = [
    "FailedCell",
    "Keys",
    "Summary",
    "finished_cells",
    "plan_records",
    "plan_results",
    "run_plan",
]


@dataclass(frozen=True)
class FailedCell:
    """A cell without a result, why, and the file with the whole story."""

    cell: Cell
    sentence: str
    log: Path


@dataclass(frozen=True)
class Summary:
    """What a run did.

    Attributes
    ----------
    found, computed : int
        Results that were there before, and results computed now; cells that differ in their
        names only have one result.
    failed : tuple of FailedCell
    """

    found: int
    computed: int
    failed: tuple[FailedCell, ...]


class Keys:
    """The key of every cell; the data of each dataset are looked at once.

    Parameters
    ----------
    cells : list of Cell
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        sources = {cell.dataset: cell.source for cell in cells}
        self._checksums = {name: checksum(source) for name, source in sources.items()}

    def __getitem__(self, cell: Cell) -> str:
        return cell.key(self._checksums[cell.dataset])


def run_plan(
    plan: Plan,
    store: Store,
    *,
    n_jobs: int = 1,
    progress: bool = True,
    cells: Sequence[Cell] | None = None,
    remember: bool = True,
) -> Summary:
    """Compute every cell of a plan that the store does not have yet.

    Parameters
    ----------
    plan : Plan
    store : Store
    n_jobs : int
        Processes; -1 is one per core. Each works with one thread, so that the figures do not
        depend on this number. More than there are cores are not started.
    progress : bool
        Whether to show a bar (or lines) and the time that is left.
    cells : list of Cell, optional
        Only these cells of the plan.
    remember : bool
        Whether the scores of classifiers are kept, in the store's folder ``scores``, so that
        methods with the same classifier share them.

    Returns
    -------
    Summary
        A cell that fails is named there; it is not stored, and the others go on.

    Notes
    -----
    Each cell is stored when it is done. Interrupted or killed at any point, the run goes on
    with the next cell when it is started again, and ends with the same results. Results that
    another version of prevalens has computed are kept, with a warning.
    """
    wanted = plan.cells() if cells is None else list(cells)
    n_jobs = _check_jobs(n_jobs)
    _check_own_parts(n_jobs)
    store.check()
    store.clean()
    keys = Keys(wanted)
    done = {keys[cell]: cell for cell in wanted if keys[cell] in store}
    pending = {keys[cell]: cell for cell in wanted if keys[cell] not in done}
    _tell_other_versions(store, done)
    durations = _durations(store, done)
    scores = store.folder / "scores" if remember else None
    failed = []
    results = compute(_groups(pending.values()), n_jobs, scores)
    with (
        closing(results),
        Progress(list(pending.values()), durations, n_jobs=n_jobs, enabled=progress) as shown,
    ):
        for found in results:
            if isinstance(found, CellResult):
                store.write(found)
                shown.done(found.cell, found.usage.seconds if found.usage else 0.0)
            else:
                log = store.write_failure(keys[found.cell], found)
                failed.append(FailedCell(found.cell, found.sentence, log))
                shown.failed(found.cell)
    if scores is not None:
        ScoreCache(scores).trim()
    return Summary(len(done), len(pending) - len(failed), tuple(failed))


def plan_records(cells: Sequence[Cell], store: Store) -> list[Record]:
    """Mean errors of those cells that are finished, under the names they have in the plan."""
    found = _finished(cells, store)
    return [record for cell, key in found for record in store.read(key).records(cell)]


def plan_results(cells: Sequence[Cell], store: Store) -> list[Result]:
    """The errors of those cells that are finished, sample by sample, named as in the plan."""
    return [store.read(key).result(cell) for cell, key in _finished(cells, store)]


def finished_cells(cells: Sequence[Cell], store: Store) -> list[Cell]:
    """Those of some cells that are finished, in the same order."""
    return [cell for cell, _ in _finished(cells, store)]


def _finished(cells: Sequence[Cell], store: Store) -> Iterator[tuple[Cell, str]]:
    """Finished cells and their keys."""
    keys = Keys(cells)
    return ((cell, keys[cell]) for cell in cells if keys[cell] in store)


def _tell_other_versions(store: Store, keys: Collection[str]) -> None:
    """Point out results that this version might not have computed in the same way."""
    versions = [store.version(key) for key in keys]
    others = [version for version in versions if version and version != __version__]
    if others:
        warnings.warn(
            f"{len(others)} of the {len(versions)} results found in {store.folder} were computed "
            f"by prevalens {', '.join(sorted(set(others)))}, and this is {__version__}; they are "
            f"kept. To compute all by one version, give a new folder.",
            PrevalensWarning,
            stacklevel=3,
        )


def _check_own_parts(n_jobs: int) -> None:
    if n_jobs > 1 and "__main__" in own_modules():
        raise InputError(
            f"Other processes cannot see parts that are registered in a script or notebook; put "
            f"them into a module that is imported, or run with n_jobs=1 instead of {n_jobs}."
        )


def _check_jobs(n_jobs: int) -> int:
    cores = int(joblib.cpu_count())
    asked = cores if n_jobs == -1 else check_int(n_jobs, "n_jobs", minimum=1)
    if asked > cores:
        warnings.warn(
            f"{asked} processes were asked for, but there are {cores} cores; {cores} are used.",
            PrevalensWarning,
            stacklevel=3,
        )
    return min(asked, cores)


def _durations(store: Store, done: Mapping[str, Cell]) -> Durations:
    """What finished cells took; reading them here tells of damaged ones before the work starts."""
    durations = Durations()
    for key, cell in done.items():
        usage = store.read(key).usage
        if usage is not None:
            durations.add(cell, usage.seconds)
    return durations


def _groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells that need the same fitted quantifier, together."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.training_key(), []).append(cell)
    return list(groups.values())
