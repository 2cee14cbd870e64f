"""Dask: summaries of files, frames, bags and delayed parts, made by the workers of a cluster.

Every file or partition is one task, whose result is a small summary. Dask computes the tasks of a
worker that dies again on another one; a summary is added when its task has ended, so no item is
lost or counted twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from prevalens.cluster import connected, dask_library
from prevalens.engines.arrow import ITEMS
from prevalens.errors import InputError
from prevalens.model.model import Model
from prevalens.model.progress import Watch
from prevalens.model.summarise import (
    columns_read,
    summarise_file,
    summarise_files,
    summarise_tables,
)
from prevalens.summary import Summary, add_up
from prevalens.tables.formats import as_table

#: How often a task that failed for an error of the system, such as a lost file share, is repeated.
_RETRIES = 2


def summarise_files_dask(
    model: Model | str | Path,
    paths: str | Path | Sequence[str | Path],
    scheduler: str,
    *,
    n_workers: int | None = None,
    **settings: Any,
) -> Summary:
    """As `summarise_files`, with one task per file on a Dask cluster.

    Parameters
    ----------
    model : Model, or the path of one
        Sent to every worker once.
    paths : path, pattern or folder, or several
        The workers read the files, so all of them must see them under the same names.
    scheduler : str
        Address of a scheduler, such as ``tcp://host:8786``; or ``local`` for processes on this
        machine.
    n_workers : int, optional
        Processes of a local cluster; one per core if omitted.
    **settings
        Other arguments of `summarise_files`.
    """
    if "-" in ([paths] if isinstance(paths, (str, Path)) else list(map(str, paths))):
        raise InputError(
            "Workers cannot read the standard input of this process; name files, or leave out the "
            "scheduler."
        )
    with connected(scheduler, n_workers=n_workers) as client:
        return summarise_files(model, paths, engine=partial(_on_workers, client), **settings)


def _on_workers(
    client: Any, model: Model | str | Path, tasks: Sequence[Any], watch: Watch
) -> Iterator[Summary]:
    """The summaries of files, in the order of the files, made by the workers of a cluster."""
    loaded = model if isinstance(model, Model) else Model.load(model)
    sent = _sent(client, loaded)
    futures = [
        client.submit(
            summarise_file, sent, str(Path(path).resolve()), *rest, pure=False, retries=_RETRIES
        )
        for path, *rest in tasks
    ]
    names = [task[0] for task in tasks]
    # Not returned as it is: the model must be kept until the end, for the tasks of dead workers.
    yield from _results(client, futures, names, watch)


def _sent(client: Any, model: Model) -> Any:
    # Without a hash, so that the model of a call that has ended is not taken away from the next.
    return client.scatter(model, broadcast=True, hash=False)


def _results(client: Any, futures: list[Any], names: Sequence[str], watch: Watch) -> Iterator[Any]:
    """The results in order; each is released when it has been fetched."""
    library = dask_library()
    total = len(futures)
    try:
        for number, name in enumerate(names, 1):
            try:
                result = futures.pop(0).result()
            except (library.KilledWorker, CancelledError) as error:
                raise InputError(
                    f"All workers that were to summarise {name} died, perhaps for want of memory; "
                    "give them more memory, or cut the data into smaller parts."
                ) from error
            watch.step("scoring", number, total)
            yield result
    finally:
        client.cancel(futures)


def summarise_dask(
    model: Model | str | Path,
    data: Any,
    *,
    by: str | None = None,
    by_time: str | None = None,
    freq: str | None = None,
    date_form: str | None = None,
    client: Any = None,
) -> Summary:
    """The sums that estimates need of items in a Dask collection.

    Parameters
    ----------
    model : Model, or the path of one
        Sent to every worker once.
    data : dask.dataframe.DataFrame, dask.bag.Bag, or list of dask.delayed
        Partitions are frames, or lists of records or texts. Of a frame, only the columns that are
        needed are read.
    by, by_time, freq, date_form : as in `quantify_files`
        Without any grouping, all items are one batch. The form of dates that are texts is detected
        in each partition; give it if it is not ISO.
    client : distributed.Client, optional
        Default: the current one; without one, the scheduler of `dask.compute`.

    Examples
    --------
    >>> import dask.dataframe as dd  # doctest: +SKIP
    >>> summarise_dask("m.prevalens", dd.read_parquet("s3://..."), by="month")  # doctest: +SKIP
    """
    loaded = model if isinstance(model, Model) else Model.load(model)
    loaded.quantifier.summed_statistics()
    settings = {"by": by, "by_time": by_time, "freq": freq, "date_form": date_form}
    parts = _partitions(loaded, data, settings)
    names = [f"partition {number}" for number in range(len(parts))]
    library = dask_library()
    client = client or _current(library)
    delayed = import_module("dask").delayed
    # As a task of its own, so that a scheduler of threads does not copy or hash it.
    sent = delayed(loaded, pure=False) if client is None else _sent(client, loaded)
    task = delayed(_summarise_partition, pure=False)
    tasks = [task(sent, part, name, settings) for part, name in zip(parts, names, strict=True)]
    if client is None:
        found = import_module("dask").compute(*tasks)
    else:
        futures = client.compute(tasks, retries=_RETRIES)
        found = _results(client, futures, names, Watch(None, None))
    return add_up(part for part in found if part is not None)


def _current(library: Any) -> Any:
    try:
        return library.get_client()
    except ValueError:
        return None


def _partitions(model: Model, data: Any, settings: dict[str, Any]) -> list[Any]:
    """The partitions of a collection, as delayed objects."""
    if hasattr(data, "_meta") and hasattr(data, "columns"):
        table = as_table({str(name): [] for name in data.columns}, name="the Dask frame")
        data = data[list(columns_read(model, table, settings))]
    if hasattr(data, "to_delayed"):
        return list(data.to_delayed())
    parts = list(data) if isinstance(data, (list, tuple)) else [data]
    if not parts or not all(hasattr(part, "dask") for part in parts):
        raise InputError(
            f"Dask items are a data frame, a bag or a list of delayed parts; got "
            f"{type(data).__name__}."
        )
    return parts


def _summarise_partition(
    model: Model, part: Any, name: str, settings: dict[str, Any]
) -> Summary | None:
    """The summary of a partition; None if it is empty."""
    if not len(part):
        return None
    summary = summarise_tables(model, [as_table(part, name=name)], settings)
    return one_batch(summary, settings)


def one_batch(summary: Summary, settings: dict[str, Any]) -> Summary:
    """The summary; without a grouping, the batch is not named after the part of the data."""
    if settings["by"] is None and settings["by_time"] is None:
        summary.names = (ITEMS,)
    return summary
