"""Running a plan: the cells that the store does not have are computed and stored."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import Ridge
from tqdm import tqdm

from prevalens._version import __version__
from prevalens.experiments.cache import ScoreCache
from prevalens.experiments.cells import Cell, data_checksum
from prevalens.experiments.plan import Plan
from prevalens.experiments.run import CellResult, Failure, failure_of
from prevalens.experiments.store import Store
from prevalens.experiments.workers import Outcome, check_jobs, check_own_parts, compute
from prevalens.records import Record, Result
from prevalens.validation import InputError, PrevalensWarning, check_int

#: Strength of the ridge penalty, which pulls a dataset or method with few cells to the average.
_SHRINK = 0.05


class Durations:
    """Estimates how long cells take, from those that are done.

    The logarithm of a cell's seconds is modelled as the sum of an effect of its dataset, one of
    its method and one of its protocol, estimated by ridge regression.

    Examples
    --------
    >>> from prevalens.experiments.cells import DataSource
    >>> from prevalens.experiments.specs import MethodSpec, ProtocolSpec
    >>> def cell(dataset, method):
    ...     return Cell(DataSource(dataset), MethodSpec(method, method), ProtocolSpec("p", "p"), 0)
    >>> durations = Durations()
    >>> for dataset, method, seconds in [("a", "x", 1), ("a", "y", 10), ("b", "x", 2)]:
    ...     durations.add(cell(dataset, method), seconds)
    >>> 15 < durations.expected([cell("b", "y")]) < 25
    True
    """

    def __init__(self) -> None:
        self._terms: list[dict[str, str]] = []
        self._logs: list[float] = []

    def add(self, cell: Cell, seconds: float) -> None:
        """Note how long a cell took."""
        self._terms.append(_terms(cell))
        self._logs.append(float(np.log(max(seconds, 1e-3))))

    def expected(self, cells: Sequence[Cell]) -> float | None:
        """Return the seconds that cells will take in sequence; None if no cell is done yet."""
        if not self._logs or not cells:
            return 0.0 if self._logs else None
        indicators = DictVectorizer(sparse=False)
        mean = np.mean(self._logs)
        effects = Ridge(_SHRINK, fit_intercept=False)
        effects.fit(indicators.fit_transform(self._terms), np.asarray(self._logs) - mean)
        wanted = indicators.transform([_terms(cell) for cell in cells])
        return float(np.exp(mean + effects.predict(wanted)).sum())


def _terms(cell: Cell) -> dict[str, str]:
    # The first of several protocols pays for the training of all.
    return {"data": cell.dataset, "method": cell.method.name, "protocol": cell.protocol.name}


def format_duration(seconds: float | None) -> str:
    """A duration as text, in seconds, minutes or hours.

    Examples
    --------
    >>> [format_duration(seconds) for seconds in (1.23, 12.3, 150, 9000, None)]
    ['1.2 s', '12 s', '2 min', '2.5 h', '?']
    """
    if seconds is None:
        return "?"
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class Progress:
    """Shows the progress of a run: a bar on a terminal, a line per cell elsewhere.

    Parameters
    ----------
    pending : list of Cell
        The cells that are to be computed.
    durations : Durations
        The durations of the cells that were computed before.
    n_jobs : int or None
        How many cells are computed at the same time; None to derive it from the cells done so far.
    enabled : bool
    """

    def __init__(
        self, pending: Sequence[Cell], durations: Durations, *, n_jobs: int | None, enabled: bool
    ) -> None:
        self._pending = list(pending)
        self._total = len(pending)
        self._durations = durations
        self._n_jobs = n_jobs
        self._start = time.monotonic()
        self._spent = 0.0
        self._lines = enabled and not sys.stderr.isatty()
        self._bar = tqdm(
            total=self._total,
            desc="Cells",
            unit="cell",
            disable=not enabled or self._lines or not pending,
            bar_format="{desc}: {n}/{total} |{bar}| {elapsed}{postfix}",
        )

    def __enter__(self) -> Self:
        self._show("")
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def done(self, cell: Cell, seconds: float) -> None:
        """Show that a cell has been stored."""
        self._durations.add(cell, seconds)
        self._spent += seconds
        self._step(cell, format_duration(seconds))

    def failed(self, cell: Cell) -> None:
        """Show that a cell has failed."""
        self._step(cell, "failed")

    def _step(self, cell: Cell, outcome: str) -> None:
        self._pending.remove(cell)
        self._bar.update()
        self._show(f"{cell}: {outcome}")

    def _show(self, text: str) -> None:
        seconds = self._durations.expected(self._pending)
        jobs = self._n_jobs or self._spent / max(time.monotonic() - self._start, 1e-3)
        left = seconds / jobs if seconds is not None and jobs > 0 else None
        left_text = f"about {format_duration(left)} left"
        self._bar.set_postfix_str(left_text)
        if self._lines and text:
            position = self._total - len(self._pending)
            print(f"{position}/{self._total} {text}; {left_text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class FailedCell:
    """A cell without a result, the reason, and the file with the traceback."""

    cell: Cell
    sentence: str
    log: Path


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run.

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
    """The key of every cell; the checksum of each dataset is computed once.

    Parameters
    ----------
    cells : list of Cell
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        sources = {cell.dataset: cell.source for cell in cells}
        self._checksums = {name: data_checksum(source) for name, source in sources.items()}

    def __getitem__(self, cell: Cell) -> str:
        return cell.key(self._checksums[cell.dataset])


def run_plan(
    plan: Plan,
    store: Store,
    *,
    executor: Executor | None = None,
    n_jobs: int | None = None,
    progress: bool = True,
    cells: Sequence[Cell] | None = None,
    remember: bool = True,
) -> RunOutcome:
    """Compute every cell of a plan that the store does not have yet.

    Parameters
    ----------
    plan : Plan
    store : Store
    executor : concurrent.futures.Executor, optional
        Where to compute the cells: threads, processes, or a cluster (`dask_executor`). By default
        in this process or in processes of loky.
    n_jobs : int, optional
        Processes; -1 is one per core, and 1 (the default) computes in this process. Each works
        with one thread, so that the figures do not depend on this number. More than there are
        cores are not started. With an executor: how many groups of cells it is given at a time;
        by default all of them.
    progress : bool
        Whether to show a bar (or lines) and the time that is left.
    cells : list of Cell, optional
        Only these cells of the plan.
    remember : bool
        Whether the scores of classifiers are kept, in the store's folder ``scores``, so that
        methods with the same classifier share them.

    Returns
    -------
    RunOutcome
        A cell that fails is named there; it is not stored, and the others go on.

    Notes
    -----
    Each cell is stored when it is done. Interrupted or killed at any point, the run goes on
    with the next cell when it is started again, and ends with the same results. Results that
    another version of prevalens has computed are kept, with a warning.

    Cells that share a fitted quantifier are one group; in other processes its results arrive
    together. When a process of loky dies, the cells that were being computed are computed again
    one at a time, and one whose process dies again has failed. An executor that breaks fails all
    cells that it has not finished; Dask itself computes the cells of a dead worker on another one.
    """
    wanted = plan.cells() if cells is None else list(cells)
    if executor is None:
        n_jobs = check_jobs(1 if n_jobs is None else n_jobs)
        if n_jobs > 1:
            check_own_parts()
    elif n_jobs is not None:
        check_int(n_jobs, "n_jobs", minimum=1)
    store.check()
    store.clean()
    keys = Keys(wanted)
    done = {keys[cell]: cell for cell in wanted if keys[cell] in store}
    pending = {keys[cell]: cell for cell in wanted if keys[cell] not in done}
    _warn_of_other_versions(store, done)
    durations = _durations(store, done)
    scores = store.folder / "scores" if remember else None
    failed = []
    groups = _groups(pending.values())
    results = compute(groups, n_jobs, executor=executor, cache_folder=scores, parts=plan.parts)
    with (
        closing(results),
        Progress(list(pending.values()), durations, n_jobs=n_jobs, enabled=progress) as shown,
    ):
        for outcome in (_checked(outcome, keys) for outcome in results):
            if isinstance(outcome, CellResult):
                store.write(outcome)
                shown.done(outcome.cell, outcome.usage.seconds if outcome.usage else 0.0)
            else:
                log = store.write_failure(keys[outcome.cell], outcome)
                failed.append(FailedCell(outcome.cell, outcome.sentence, log))
                shown.failed(outcome.cell)
    if scores is not None:
        ScoreCache(scores).trim()
    return RunOutcome(len(done), len(pending) - len(failed), tuple(failed))


def plan_records(cells: Sequence[Cell], store: Store) -> list[Record]:
    """Mean errors of those cells that are finished, under the names they have in the plan."""
    finished = _finished(cells, store)
    return [record for cell, key in finished for record in store.read(key).records(cell)]


def plan_results(cells: Sequence[Cell], store: Store) -> list[Result]:
    """The errors of those cells that are finished, sample by sample, named as in the plan."""
    return [store.read(key).result(cell) for cell, key in _finished(cells, store)]


def finished_cells(cells: Sequence[Cell], store: Store) -> list[Cell]:
    """The finished cells among some cells, in the same order."""
    return [cell for cell, _ in _finished(cells, store)]


def _finished(cells: Sequence[Cell], store: Store) -> Iterator[tuple[Cell, str]]:
    """Finished cells and their keys."""
    keys = Keys(cells)
    return ((cell, keys[cell]) for cell in cells if keys[cell] in store)


def _warn_of_other_versions(store: Store, keys: Collection[str]) -> None:
    """Warn of results that another version has computed."""
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


def _checked(outcome: Outcome, keys: Keys) -> Outcome:
    """The outcome; a failure if it is the result of other data or parts than there are here."""
    if isinstance(outcome, Failure) or outcome.key == keys[outcome.cell]:
        return outcome
    error = InputError(
        f"It was computed elsewhere with other data of {outcome.cell.dataset!r} or other "
        "registered parts; copy the files of this machine there."
    )
    return failure_of(outcome.cell, error)


def _durations(store: Store, done: Mapping[str, Cell]) -> Durations:
    """Durations of finished cells; a damaged result is reported before the work starts."""
    durations = Durations()
    for key, cell in done.items():
        usage = store.read(key).usage
        if usage is not None:
            durations.add(cell, usage.seconds)
    return durations


def _groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Group the cells that need the same fitted quantifier."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.training_key(), []).append(cell)
    return list(groups.values())
