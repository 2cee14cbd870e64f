"""Summaries of files: made where the items are, added and estimated anywhere."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from loky import get_reusable_executor

from prevalens.errors import InputError
from prevalens.files import digest
from prevalens.model.drift import BatchTimes, price_of_drift
from prevalens.model.groups import (
    MIN_ITEMS,
    NONE,
    Folded,
    batch_names,
    by_name,
    folded_name,
    grouping_of,
)
from prevalens.model.model import Model
from prevalens.model.progress import Cancelled, Progress, Watch
from prevalens.model.quantify import (
    BatchMonitor,
    counts_of,
    estimated,
    model_columns,
    notices_of,
    provenance_of,
    scored,
    summed,
)
from prevalens.model.result import BatchResult
from prevalens.summary import Summary, add_up
from prevalens.tables.cells import is_period
from prevalens.tables.opening import Reading, expand
from prevalens.tables.scores import unknown_labels_warned_once
from prevalens.tables.table import Table
from prevalens.validation import check_int

#: Ending of the files that summaries are kept in.
ENDING = ".summary"

#: Makes the summaries of files, in their order: of a model (or its path), the arguments of
#: `summarise_file` for each file, and a watch.
Engine: TypeAlias = Callable[[Any, Sequence[Any], Watch], Iterator[Summary]]


def summarise_files(
    model: Model | str | Path,
    paths: str | Path | Iterable[str | Path],
    *,
    by: str | None = None,
    by_time: str | None = None,
    freq: str | None = None,
    date_form: str | None = None,
    min_group: int = 1,
    reading: Reading | None = None,
    n_jobs: int = 1,
    engine: Engine | None = None,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> Summary:
    """The sums that estimates need of batches of items in files.

    Parameters
    ----------
    model : Model, or the path of one
    paths, by, by_time, freq, date_form, reading : as in `quantify_files`
    min_group : int
        Batches with fewer items are left out, for their privacy.
    n_jobs : int
        Number of processes, which share the files among them.
    engine : callable, optional
        Where the files are summarised instead; see `Engine`.
    progress : callable, optional
        Called with every `Step`.
    cancelled : callable, optional
        The work stops with a `CancelledError` when this returns True.
    """
    check_int(min_group, "min_group", minimum=1)
    files = expand(paths)
    settings = {"by": by, "by_time": by_time, "freq": freq, "date_form": date_form}
    names = [""] * len(files)
    if by is None and by_time is None:
        names = batch_names([str(path) for path in files])
    watch = Watch(progress, cancelled)
    tasks = [
        (str(path), name, settings, reading or Reading())
        for path, name in zip(files, names, strict=True)
    ]
    if engine is None:
        alone = check_int(n_jobs, "n_jobs", minimum=1) == 1 or len(files) == 1
        engine = _here if alone else partial(_in_processes, n_jobs)
    whole = add_up(engine(model, tasks, watch))
    return whole.without_small(min_group) if min_group > 1 else whole


def summarise_file(
    model: Model,
    path: str,
    name: str,
    settings: dict[str, Any],
    reading: Reading,
    *,
    watch: Watch | None = None,
) -> Summary:
    """The summary of one file.

    Parameters
    ----------
    model : Model
    path : str
    name : str
        Of the batch that its items are; empty if `settings` divide them.
    settings : dict
        Arguments of `grouping_of`.
    reading : Reading
    watch : Watch, optional
    """
    summary = summarise_tables(model, [reading.open(path)], settings, watch=watch)
    if name:
        summary.names = (name,)
    if path != "-":
        summary.sources = {digest(path): Path(path).name}
    return summary


@unknown_labels_warned_once()
def summarise_tables(
    model: Model,
    tables: Sequence[Table],
    settings: dict[str, Any],
    *,
    watch: Watch | None = None,
) -> Summary:
    """The summary of tables that are open; see `summarise_file` for the settings."""
    model.quantifier.summed_statistics()
    grouping = grouping_of(tables, **settings)
    grouping.keeps_items = False
    times = BatchTimes(model.quantifier, model.time_column, tables, grouping)
    monitor = BatchMonitor(model, 0)
    parts = scored(model, tables, grouping, times, monitor, None, watch or Watch(None, None))
    return summed(model, parts, grouping)


def columns_read(model: Model, table: Table, settings: dict[str, Any]) -> tuple[str, ...]:
    """The columns of a table that its summary needs; refused if one of them is not there."""
    grouping = grouping_of([table], **settings)
    times = BatchTimes(model.quantifier, model.time_column, [table], grouping)
    needed = (*model_columns(model, [table]), *grouping.columns, *times.columns)
    table.check_columns(needed)
    return tuple(dict.fromkeys(needed))


def _here(model: Model | str | Path, tasks: Sequence[Any], watch: Watch) -> Iterator[Summary]:
    """The summaries of files, made by this process."""
    loaded = model if isinstance(model, Model) else Model.load(model)
    return (summarise_file(loaded, *task, watch=watch) for task in tasks)


@cache
def _loaded(path: str) -> Model:
    return Model.load(path)


def _summarise_in_worker(model: str, *task: Any) -> Summary:
    return summarise_file(_loaded(model), *task)


def _in_processes(
    n_jobs: int, model: Model | str | Path, tasks: Sequence[Any], watch: Watch
) -> Iterator[Summary]:
    """The summaries of files, in the order of the files, made by several processes."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(model)
        if isinstance(model, Model):
            path = str(Path(folder) / "model.prevalens")
            model.save(path)
        pool = get_reusable_executor(max_workers=min(n_jobs, len(tasks)))
        futures = [pool.submit(_summarise_in_worker, path, *task) for task in tasks]
        try:
            for number, _ in enumerate(as_completed(futures), 1):
                watch.step("scoring", number, len(tasks))
            yield from (future.result() for future in futures)
        finally:
            for future in futures:
                future.cancel()


def quantify_summaries(
    model: Model | str | Path,
    paths: str | Path | Iterable[str | Path],
    *,
    min_items: int = MIN_ITEMS,
    interval: float | None = 0.9,
) -> BatchResult:
    """Estimate the prevalence of each label in batches that were summarised.

    Parameters
    ----------
    model : Model, or the path of one
        The one that made the summaries.
    paths : path or several
        Files that `prevalens summarise` wrote; batches of the same name are one batch.
    min_items : int
        Groups that are no periods of time and have fewer items are put together, at the end.
    interval : float, optional
        Level of the intervals; None leaves them out.
    """
    loaded = model if isinstance(model, Model) else Model.load(model)
    files = [Path(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)]
    if not files:
        raise InputError("No summary is named; give at least one.")
    whole = add_up(Summary.load(path) for path in files)
    return quantify_summary(loaded, whole, min_items=min_items, interval=interval)


def quantify_summary(
    model: Model,
    summary: Summary,
    *,
    min_items: int = MIN_ITEMS,
    interval: float | None = 0.9,
) -> BatchResult:
    """As `quantify_summaries`, of a summary in memory."""
    model.quantifier.check_made(summary)
    ordered = all(is_period(name) for name in summary.names if name != NONE)
    summary, folded = _folded(summary, 1 if ordered else min_items)
    names = list(summary.names)
    times = BatchTimes(model.quantifier, None, [], grouping_of([], None, None, None, None))
    at = times.of(summary.times)
    given = {"interval": interval, "index": names, "time": at}
    estimate, _ = estimated(model, summary, None, given)
    price = price_of_drift(model.quantifier, summary, interval, at)
    source = provenance_of(model, [], summary.n_items, interval, price)
    return BatchResult.from_estimate(
        estimate,
        sizes=summary.sizes,
        training=model.prevalence,
        counted=counts_of(model, summary),
        notices=(*notices_of(estimate, folded), *times.notices(names)),
        provenance=source | {"files": [{"name": name} for name in summary.sources.values()]},
        ordered=ordered,
    )


def _folded(summary: Summary, least: int) -> tuple[Summary, Folded | None]:
    """The batches in the order they are shown in, small ones put together at the end."""
    order = sorted(range(len(summary)), key=lambda row: by_name(summary.names[row]))
    summary = summary[np.array(order)]
    small = [
        name
        for name, size in zip(summary.names, summary.sizes.tolist(), strict=True)
        if size < least
    ]
    if not small or len(summary) == 1:
        return summary, None
    name = folded_name(small, least)
    whole = summary.renamed([name if each in small else each for each in summary.names])
    last = sorted(range(len(whole)), key=lambda row: whole.names[row] == name)
    return whole[np.array(last)], Folded(name, small, [])
