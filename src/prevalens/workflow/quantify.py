"""Quantify batches in files with a model."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from prevalens.errors import InputError
from prevalens.inputs import Chunk, Reading, Table, expand
from prevalens.inputs.table import damaged
from prevalens.model import Model
from prevalens.model.items import chunk_items
from prevalens.model.provenance import provenance
from prevalens.preparation import CellError
from prevalens.scores import Scores
from prevalens.workflow.groups import Grouping, grouping_of
from prevalens.workflow.guarding import Guarding
from prevalens.workflow.notices import Observed
from prevalens.workflow.progress import Cancelled, Progress, Watch
from prevalens.workflow.result import BatchResult

__all__ = ["quantify_files", "quantify_tables"]


def quantify_files(
    model: Model | str | Path,
    paths: str | Path | Iterable[str | Path],
    *,
    by: str | None = None,
    by_time: str | None = None,
    freq: str | None = None,
    date_form: str | None = None,
    interval: float | None = 0.9,
    reading: Reading | None = None,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> BatchResult:
    """Estimate the prevalence of each label in batches of items in files.

    Parameters
    ----------
    model : Model, or the path of one
    paths : path, pattern or folder, or several
        CSV, TSV, JSON lines, JSON, Parquet or Excel, also compressed. Files of any size: items
        are scored chunk by chunk, and only their scores are kept.
    by : str, optional
        A column whose values are the batches. Without any grouping, every file is a batch.
    by_time : str, optional
        A column of dates; every period is a batch.
    freq : {"D", "W", "M", "Q", "Y"}, optional
        The periods: days, ISO weeks, months (the default), quarters or years.
    date_form : str, optional
        The form of the dates as `datetime.strptime` has it, where they do not tell themselves.
    interval : float, optional
        Level of the intervals; None leaves them out.
    reading : Reading, optional
        Delimiter, encoding, sheet.
    progress : callable, optional
        Is told of every `Step`.
    cancelled : callable, optional
        The work stops with a `CancelledError` when this returns True.
    """
    loaded = model if isinstance(model, Model) else Model.load(model)
    tables = [(reading or Reading()).open(path) for path in expand(paths)]
    grouping = grouping_of(tables, by, by_time, freq, date_form)
    return quantify_tables(
        loaded, tables, grouping, interval=interval, watch=Watch(progress, cancelled)
    )


def quantify_tables(
    model: Model,
    tables: Sequence[Table],
    grouping: Grouping,
    *,
    interval: float | None = 0.9,
    watch: Watch | None = None,
) -> BatchResult:
    """As `quantify_files`, for tables that are open."""
    watch = watch or Watch(None, None)
    columns = _model_columns(model, tables)
    for table in tables:
        table.check_columns([*columns, *grouping.columns])
    observed, guarding = Observed(model), Guarding(model)
    scores = _scores(model, tables, columns, grouping, (observed, guarding), watch)
    watch.step("estimating", n_items=scores.n_items)
    samples, names = grouping.samples()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimate = model.aggregate(scores, samples, interval=interval, index=names)
    counted = samples.mean(scores.values) if _is_plain(scores) else None
    order = [grouping.code(name) for name in names]
    warned = [str(one.message) for one in caught]
    source = {
        "files": [{"name": table.name, "size": table.total} for table in tables],
        "rows": scores.n_items,
        "interval": interval,
        "model": model.provenance,
    }
    return BatchResult(
        groups=tuple(names),
        sizes=samples.sizes,
        estimate=estimate,
        training=model.prevalence,
        counted=counted,
        notices=(
            *guarding.notices(names, order),
            *observed.notices(names, samples.sizes, order, warned),
        ),
        provenance=provenance(model.summary.method, source),
        ordered=grouping.ordered,
        feature_means=observed.feature_means(order),
    )


def _model_columns(model: Model, tables: Sequence[Table]) -> tuple[str, ...]:
    if model.columns is not None:
        return model.columns
    if model.summary.kind == "text" and all("text" in table.columns for table in tables):
        return ("text",)
    raise InputError(
        "The model was not trained on a table, so it does not know which columns to read; fit it "
        "with text=... or columns=..., or call the column of texts 'text'."
    )


def _scores(
    model: Model,
    tables: Sequence[Table],
    columns: Sequence[str],
    grouping: Grouping,
    watchers: tuple[Observed, Guarding],
    watch: Watch,
) -> Scores:
    observed, guarding = watchers

    def prepared() -> Iterator[Any]:
        wanted = [*columns, *grouping.columns]
        for table, chunk in watch.over("scoring", tables, wanted):
            codes = grouping.add(table, chunk)
            items = chunk_items(chunk, model.preparation, columns)
            X = guarding.mend(_prepared(model, items, chunk), codes)
            observed.add(items, X, codes)
            yield X

    return model.score_prepared(prepared())


def _prepared(model: Model, items: Any, chunk: Chunk) -> Any:
    try:
        return model.preparation.transform(items)
    except CellError as error:
        raise damaged(chunk.place(error.row), error.what) from None


def _is_plain(scores: Scores) -> bool:
    return scores.kind != "features" and scores.states is None
