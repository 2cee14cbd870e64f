"""One function for items from anywhere: files, frames, Arrow streams, Dask and Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prevalens.engines.arrow import summarise_stream, table_of
from prevalens.engines.dask import summarise_dask
from prevalens.engines.spark import summarise_spark
from prevalens.errors import InputError
from prevalens.model.groups import MIN_ITEMS, grouping_of
from prevalens.model.model import Model
from prevalens.model.quantify import quantify_files, quantify_tables
from prevalens.model.result import BatchResult
from prevalens.model.summarise import (
    ENDING,
    quantify_summaries,
    quantify_summary,
    summarise_files,
)
from prevalens.summary import Summary


def quantify(
    model: Model | str | Path,
    source: Any,
    *,
    by: str | None = None,
    by_time: str | None = None,
    freq: str | None = None,
    date_form: str | None = None,
    min_items: int = MIN_ITEMS,
    interval: float | None = 0.9,
) -> BatchResult:
    """Estimate the prevalence of each label in batches of items from anywhere.

    Parameters
    ----------
    model : Model, or the path of one
    source : items
        Paths, patterns or folders of files, or of summaries; a data frame; a DuckDB relation, Ibis
        table, Polars lazy frame, pyarrow dataset or reader, or anything else with
        ``__arrow_c_stream__``; a Dask or Spark data frame; a `Summary`.
    by : str, optional
        A column whose values are the batches. Without any grouping, every file is a batch, and all
        items of another source are one.
    by_time : str, optional
        A column of dates; every period is a batch.
    freq : {"D", "W", "M", "Q", "Y"}, optional
        The periods: days, ISO weeks, months (the default), quarters or years.
    date_form : str, optional
        Format of the dates, as in `datetime.strptime`; detected if omitted.
    min_items : int
        Values of `by` with fewer items are put together as one batch, at the end; 1 keeps all.
    interval : float, optional
        Level of the intervals; None leaves them out.

    Examples
    --------
    >>> import duckdb, prevalens  # doctest: +SKIP
    >>> rows = duckdb.sql("select text, month from 'tickets/*.parquet'")  # doctest: +SKIP
    >>> prevalens.quantify("tickets.prevalens", rows, by="month")  # doctest: +SKIP
    """
    settings: dict[str, Any] = {"by": by, "by_time": by_time, "freq": freq, "date_form": date_form}
    loaded = model if isinstance(model, Model) else Model.load(model)
    how: dict[str, Any] = {"min_items": min_items, "interval": interval}
    if isinstance(source, Summary) or (_are_paths(source) and _first(source).endswith(ENDING)):
        _check_ungrouped(settings)
        read = quantify_summary if isinstance(source, Summary) else quantify_summaries
        return read(loaded, source, **how)
    if _are_paths(source):
        return quantify_files(loaded, source, **settings, **how)
    if _library(source) in ("dask", "pyspark"):
        return quantify_summary(loaded, summarise(loaded, source, **settings), **how)
    table = table_of(source)
    return quantify_tables(loaded, [table], grouping_of([table], **settings), **how)


def summarise(
    model: Model | str | Path,
    source: Any,
    *,
    by: str | None = None,
    by_time: str | None = None,
    freq: str | None = None,
    date_form: str | None = None,
) -> Summary:
    """The sums that estimates need of items from anywhere; parameters as in `quantify`."""
    settings: dict[str, Any] = {"by": by, "by_time": by_time, "freq": freq, "date_form": date_form}
    if _are_paths(source):
        return summarise_files(model, source, **settings)
    engines: dict[str, Any] = {"dask": summarise_dask, "pyspark": summarise_spark}
    found: Summary = engines.get(_library(source), summarise_stream)(model, source, **settings)
    return found


def _check_ungrouped(settings: dict[str, Any]) -> None:
    given = [name for name, value in settings.items() if value is not None]
    if given:
        raise InputError(
            f"{given[0]} needs the items, and a summary has sums alone; use it with summarise."
        )


def _are_paths(source: Any) -> bool:
    several = source if isinstance(source, (list, tuple)) else [source]
    return bool(several) and all(isinstance(path, (str, Path)) for path in several)


def _first(paths: Any) -> str:
    return str(paths[0] if isinstance(paths, (list, tuple)) else paths)


def _library(source: Any) -> str:
    """The library that a collection of partitions is of; they are told apart without an import."""
    first = source[0] if isinstance(source, (list, tuple)) and source else source
    return type(first).__module__.partition(".")[0]
