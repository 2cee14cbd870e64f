"""Spark: summaries of the partitions of a data frame, added up by the driver.

`mapInArrow` scores the items of each partition where they are and returns one row, a serialised
summary; no item travels.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from prevalens._version import __version__
from prevalens.engines.arrow import ITEMS, ArrowTable
from prevalens.errors import InputError, PrevalensError
from prevalens.model.model import Model
from prevalens.model.summarise import columns_read, summarise_tables
from prevalens.summary import Summary, add_up
from prevalens.tables.formats import as_table

#: The rows that come back: a summary, or the sentence of an error.
_SCHEMA = "summary binary, error string"


def summarise_spark(
    model: Model | str | Path,
    frame: Any,
    *,
    by: str | None = None,
    by_time: str | None = None,
    freq: str | None = None,
    date_form: str | None = None,
) -> Summary:
    """The sums that estimates need of the items of a Spark data frame.

    Parameters
    ----------
    model : Model, or the path of one
        Sent to every executor once.
    frame : pyspark.sql.DataFrame
        Only the columns that are needed are read.
    by, by_time, freq, date_form : as in `quantify_files`
        Without any grouping, all items are one batch.

    Notes
    -----
    A partition gives one summary, whose size grows with the number of batches in it but not with
    the items; the driver holds all of them at once. Spark repeats tasks that fail.

    Examples
    --------
    >>> frame = spark.read.parquet("s3://tickets/")  # doctest: +SKIP
    >>> summarise_spark("tickets.prevalens", frame, by="month")  # doctest: +SKIP
    Summary(12 batches, 48,211,003 items)
    """
    given = {"by": by, "by_time": by_time, "freq": freq, "date_form": date_form}
    rows = _collected(partial_summaries(model, frame, **given))
    for row in rows:
        if row["error"] is not None:
            raise InputError(row["error"])
    return add_up(Summary.from_bytes(bytes(row["summary"])) for row in rows)


def partial_summaries(
    model: Model | str | Path,
    frame: Any,
    *,
    by: str | None = None,
    by_time: str | None = None,
    freq: str | None = None,
    date_form: str | None = None,
) -> Any:
    """A Spark data frame with the summary of each partition; parameters as in `summarise_spark`.

    Returns
    -------
    pyspark.sql.DataFrame
        Columns ``summary``, the content of a file of `Summary.save`, and ``error``, a sentence if
        there is none. Nothing is computed before it is collected or written.
    """
    loaded = model if isinstance(model, Model) else Model.load(model)
    loaded.quantifier.summed_statistics()
    settings = {"by": by, "by_time": by_time, "freq": freq, "date_form": date_form}
    table = as_table({name: [] for name in frame.columns}, name="the Spark frame")
    columns = columns_read(loaded, table, settings)
    shared = _shared(loaded, frame)
    version = __version__

    def summarise(batches: Iterator[Any]) -> Iterator[Any]:
        return summarise_batches(shared(), batches, settings, version)

    chosen = [frame[f"`{name}`"] for name in columns]
    return frame.select(*chosen).mapInArrow(summarise, _SCHEMA)


def _shared(model: Model, frame: Any) -> Any:
    """A function that returns the model on the executors, where it is sent once."""
    context = getattr(frame.sparkSession, "_sc", None)
    if context is None:
        return lambda: model
    if "PYSPARK_PYTHON" not in os.environ and context.master.startswith("local"):
        # Else Spark would start whatever python3 is on the path.
        os.environ["PYSPARK_PYTHON"] = context.pythonExec = sys.executable
    held = context.broadcast(model)
    return lambda: held.value


def summarise_batches(
    model: Model, batches: Iterable[Any], settings: dict[str, Any], version: str
) -> Iterator[Any]:
    """Turn the record batches of a partition into one with its summary; none if it is empty.

    Parameters
    ----------
    model : Model
    batches : iterable of pyarrow.RecordBatch
    settings : dict
        Arguments of `grouping_of`.
    version : str
        Of prevalens, where the summaries are added up.
    """
    arrow = import_module("pyarrow")
    filled = (batch for batch in batches if batch.num_rows)
    first = next(filled, None)
    if first is None:
        return
    summary, error = None, None
    try:
        if version != __version__:
            raise InputError(
                f"A Spark worker has prevalens {__version__}, but the driver has {version}; "
                "install the same version on both."
            )
        reader = arrow.RecordBatchReader.from_batches(first.schema, chain([first], filled))
        found = summarise_tables(model, [ArrowTable(reader, ITEMS)], settings)
        summary = found.to_bytes()
    # As a row, as Spark would repeat the task and wrap the sentence in two tracebacks.
    except PrevalensError as problem:
        error = str(problem)
    yield arrow.record_batch(
        {
            "summary": arrow.array([summary], arrow.binary()),
            "error": arrow.array([error], arrow.string()),
        }
    )


def _collected(rows: Any) -> list[Any]:
    try:
        return list(rows.collect())
    except Exception as error:
        if "No module named 'prevalens" in str(error):
            raise InputError(
                f"The Spark workers have no prevalens; install prevalens {__version__} there, or "
                "set PYSPARK_PYTHON to a Python that has it."
            ) from error
        raise
