"""Arrow streams: tables of record batches, read one batch at a time.

DuckDB relations, Ibis tables, Polars lazy frames, pyarrow datasets and readers, and anything else
with ``__arrow_c_stream__``. Frames that are in memory are read as they are, without Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import narwhals as nw

from prevalens.errors import InputError
from prevalens.model.model import Model
from prevalens.model.progress import Cancelled, Progress, Watch
from prevalens.model.summarise import summarise_tables
from prevalens.summary import Summary
from prevalens.tables.formats import arrow_numbers, as_table
from prevalens.tables.table import Chunk, Table, check_header

#: Name of items in memory or of a stream, in messages and as a batch.
ITEMS = "items"


class ArrowTable(Table):
    """Record batches of Arrow; a table that can be read once if its source can.

    Parameters
    ----------
    source : object with ``__arrow_c_stream__``, Polars LazyFrame, pyarrow Dataset or Scanner
    name : str
        For messages.

    Notes
    -----
    Memory is that of one record batch of the columns asked for. Sources that can select columns
    (frames, relations, datasets) read no others.
    """

    def __init__(self, source: Any, name: str = ITEMS) -> None:
        self._source, self.name = _opened(source), name
        self.columns = check_header(name, _column_names(self._source))

    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        return self._score_chunks(columns, frozenset(), chunk_rows)

    def _score_chunks(
        self, columns: tuple[str, ...], scores: frozenset[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        done = 0
        for batch in _batches(self._source, columns):
            for start in range(0, batch.num_rows, chunk_rows):
                part = batch.slice(start, chunk_rows)
                cells = {
                    name: arrow_numbers(part.column(name))
                    if name in scores
                    else part.column(name).to_pylist()
                    for name in columns
                }
                done += part.num_rows
                first = done - part.num_rows + 1
                yield Chunk(cells, part.num_rows, first, self.name, done)


def _arrow() -> Any:
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise InputError(
            'Arrow streams need pyarrow to be read: pip install "prevalens[frames]".'
        ) from error


def _is_frame(source: Any) -> bool:
    """Whether narwhals can select columns of it without reading it."""
    return isinstance(nw.from_native(source, pass_through=True), (nw.DataFrame, nw.LazyFrame))


def _opened(source: Any) -> Any:
    """The source if its columns can be selected, else a reader of its record batches."""
    if _is_frame(source) or hasattr(source, "scanner"):
        return source
    if hasattr(source, "__arrow_c_stream__"):
        return _arrow().RecordBatchReader.from_stream(source)
    if hasattr(source, "to_reader"):
        return source.to_reader()
    raise InputError(
        f"Items come from files, data frames, Arrow streams (DuckDB, Ibis, Polars, pyarrow), Dask "
        f"or Spark; got {type(source).__name__}."
    )


def _column_names(source: Any) -> list[str]:
    frame = nw.from_native(source, pass_through=True)
    if isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
        return list(frame.collect_schema().names())
    return list(source.schema.names)


def _batches(source: Any, columns: Sequence[str]) -> Iterator[Any]:
    """The record batches of a source, with at least these columns."""
    reader = _arrow().RecordBatchReader
    frame = nw.from_native(source, pass_through=True)
    if isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
        source = frame.select(*columns).to_native()
        if not hasattr(source, "__arrow_c_stream__"):
            # A lazy frame of Polars, which runs part by part in recent versions.
            lazy = getattr(source, "collect_batches", None)
            for part in [source.collect()] if lazy is None else lazy():
                yield from reader.from_stream(part)
            return
        yield from reader.from_stream(source)
    elif hasattr(source, "scanner"):
        yield from source.scanner(columns=list(columns)).to_reader()
    else:
        yield from source


def table_of(source: Any, name: str = ITEMS) -> Table:
    """A table of anything that has columns: a frame, columns, records, or an Arrow stream."""
    if isinstance(source, (Table, dict, list)):
        return as_table(source, name=name)
    eager = nw.from_native(source, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(eager, (nw.DataFrame, nw.Series)):
        return as_table(source, name=name)
    return ArrowTable(source, name)


def summarise_stream(
    model: Model | str | Path,
    source: Any,
    *,
    by: str | None = None,
    by_time: str | None = None,
    freq: str | None = None,
    date_form: str | None = None,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> Summary:
    """The sums that estimates need of the items of a frame or an Arrow stream.

    Parameters
    ----------
    model : Model, or the path of one
    source : data frame, or what `ArrowTable` reads
    by, by_time, freq, date_form : as in `quantify_files`
        Without any grouping, all items are one batch.
    progress : callable, optional
        Called with every `Step`.
    cancelled : callable, optional
        The work stops with a `CancelledError` when this returns True.

    Examples
    --------
    >>> import duckdb  # doctest: +SKIP
    >>> rows = duckdb.sql("select text, month from 'tickets/*.parquet'")  # doctest: +SKIP
    >>> summarise_stream("tickets.prevalens", rows, by="month")  # doctest: +SKIP
    Summary(12 batches, 48,211 items)
    """
    loaded = model if isinstance(model, Model) else Model.load(model)
    settings = {"by": by, "by_time": by_time, "freq": freq, "date_form": date_form}
    return summarise_tables(loaded, [table_of(source)], settings, watch=Watch(progress, cancelled))
