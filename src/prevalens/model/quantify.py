"""Quantify batches of items in files, chunk by chunk, with notices on what looks unusual."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.errors import InputError
from prevalens.files import damaged
from prevalens.model.file import provenance
from prevalens.model.groups import Grouping, grouping_of
from prevalens.model.items import chunk_items, stacked
from prevalens.model.model import Model
from prevalens.model.progress import Cancelled, Progress, Watch
from prevalens.model.result import BatchResult, Notice
from prevalens.scores import Scores
from prevalens.tables.column_guard import FEWEST_ROWS, Drift
from prevalens.tables.opening import Reading, expand
from prevalens.tables.preparation import CellError
from prevalens.tables.table import Chunk, Table
from prevalens.types import Floats, Items


class Guarding:
    """Applies the model's column guard to each batch, and remembers which columns had drifted.

    The classifier's own guard sees a chunk as a whole, in which the drift of one batch may be
    averaged out. Here each batch is checked alone, and then the whole chunk, for batches that are
    too small to be checked alone. The classifier's guard finds nothing more after that.

    Parameters
    ----------
    model : Model
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._guard = model.guard
        self._drifts: dict[int, Drift] = {}

    def mend(self, X: Items, codes: npt.NDArray[np.int32]) -> Items:
        """The chunk, with columns that are adrift in a batch of it held at the training mean."""
        if self._guard is None:
            return X
        found, counts = np.unique(codes, return_counts=True)
        if len(found) > 1:
            X = self._by_batch(X, codes, found[counts >= FEWEST_ROWS].tolist())
        X, drift = self._guard.mend(X)
        for code in found.tolist():
            self._note(code, drift)
        return X

    def _by_batch(self, X: Items, codes: npt.NDArray[np.int32], large: Sequence[int]) -> Items:
        assert self._guard is not None
        rows, parts = [], []
        for code in large:
            mine = np.flatnonzero(codes == code)
            part, drift = self._guard.mend(X[mine])
            if drift:
                self._note(code, drift)
                rows.append(mine)
                parts.append(part)
        return _replaced(X, rows, parts) if rows else X

    def _note(self, code: int, drift: Drift) -> None:
        if drift:
            self._drifts[code] = drift | self._drifts.get(code, {})

    def notices(self, names: Sequence[str], order: Sequence[int]) -> list[Notice]:
        """A sentence for every set of columns that were adrift, and the batches they were so in."""
        together: dict[tuple[int, ...], list[int]] = {}
        for place, code in enumerate(order):
            if code in self._drifts:
                together.setdefault(tuple(sorted(self._drifts[code])), []).append(place)
        return [
            self._notice(columns, [names[i] for i in places], [order[i] for i in places])
            for columns, places in together.items()
        ]

    def _notice(self, columns: Sequence[int], names: Sequence[str], codes: Sequence[int]) -> Notice:
        assert self._guard is not None
        means = np.mean([[self._drifts[code][j] for j in columns] for code in codes], axis=0)
        drift = dict(zip(columns, means.tolist(), strict=True))
        where = names[0] if len(names) == 1 else f"{len(names)} batches (the first is {names[0]})"
        features = self.model.preparation.get_feature_names_out()
        text = self._guard.sentence(drift, features, where=where)
        return Notice(text, "warning", names[0] if len(names) == 1 else "")


def _replaced(X: Items, rows: Sequence[npt.NDArray[np.intp]], parts: Sequence[Items]) -> Items:
    """A copy of a matrix with other rows in some places."""
    kept = np.setdiff1d(np.arange(X.shape[0]), np.concatenate(rows))
    return stacked([X[kept], *parts])[np.argsort(np.concatenate([kept, *rows]))]


#: Items of each batch whose words are compared with the training data.
_LOOKED_AT = 300
#: A batch smaller than this is named.
_TINY = 50
#: Sums of features are kept up to this many numbers.
_MOST_SUMS = 20_000_000


class Observed:
    """Collects texts, sums of features and counts of empty items, per batch.

    Parameters
    ----------
    model : Model
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._texts: dict[int, list[Any]] = {}
        self._sums: dict[int, Floats] = {}
        self._counts: dict[int, int] = {}
        self._empty: dict[int, int] = {}

    def add(self, items: Items, X: Items, codes: npt.NDArray[np.int32]) -> None:
        """Note a chunk of items, their matrix and the numbers of their batches."""
        found, inverse = np.unique(codes, return_inverse=True)
        pick = sp.csr_matrix(
            (np.ones(len(codes)), (inverse.ravel(), np.arange(len(codes)))),
            shape=(len(found), len(codes)),
        )
        sums = pick @ X
        sums = sums.toarray() if sp.issparse(sums) else np.asarray(sums)
        empty = _empty_rows(X)
        for row, code in enumerate(found.tolist()):
            rows = np.flatnonzero(codes == code) if len(found) > 1 else np.arange(len(codes))
            self._counts[code] = self._counts.get(code, 0) + len(rows)
            self._empty[code] = self._empty.get(code, 0) + int(empty[rows].sum())
            self._keep(code, items, rows)
            if (len(self._sums) + 1) * X.shape[1] <= _MOST_SUMS or code in self._sums:
                self._sums[code] = self._sums.get(code, 0) + sums[row]

    def _keep(self, code: int, items: Items, rows: npt.NDArray[np.intp]) -> None:
        if self.model.summary.kind != "text":
            return
        kept = self._texts.setdefault(code, [])
        kept += [items[row] for row in rows[: _LOOKED_AT - len(kept)].tolist()]

    def feature_means(self, order: Sequence[int]) -> npt.NDArray[np.float32] | None:
        """Means of the prepared items of each batch; None if there were too many numbers."""
        if any(code not in self._sums for code in order):
            return None
        means = [self._sums[code] / self._counts[code] for code in order]
        return np.asarray(means, dtype=np.float32)

    def notices(
        self,
        names: Sequence[str],
        sizes: npt.NDArray[np.int64],
        order: Sequence[int],
        warned: Sequence[str],
    ) -> tuple[Notice, ...]:
        """Warnings and notes, batch by batch."""
        found = [Notice(text) for text in dict.fromkeys(warned)]
        for name, size, code in zip(names, sizes.tolist(), order, strict=True):
            found += self._of_batch(name, size, code)
        return tuple(found)

    def _of_batch(self, name: str, size: int, code: int) -> list[Notice]:
        found = []
        if size < _TINY:
            items = "item" if size == 1 else "items"
            found.append(
                Notice(f"{name} has {size} {items} only; its estimates are rough.", "note", name)
            )
        empty = self._empty[code] / size
        if empty > 0.05:
            found.append(
                Notice(
                    f"{empty:.0%} of the items of {name} hold nothing the model knows.",
                    "warning",
                    name,
                )
            )
        unfamiliar = self._unfamiliar(name, code)
        return found if unfamiliar is None else [*found, unfamiliar]

    def _unfamiliar(self, name: str, code: int) -> Notice | None:
        kept = self._texts.get(code)
        found = self.model.preparation.unfamiliar(kept) if kept else None
        if found is None or found.share < 2 * found.usual + 0.05:
            return None
        examples = ", ".join(found.examples[:5])
        return Notice(
            f"{found.share:.0%} of the words in {name} were not seen in training (usual: "
            f"{found.usual:.0%}), such as {examples}; estimates may be off.",
            "warning",
            name,
        )


def _empty_rows(X: Items) -> npt.NDArray[np.bool_]:
    if sp.issparse(X):
        return np.diff(X.indptr) == 0
    return np.zeros(X.shape[0], dtype=bool)


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
        Format of the dates, as in `datetime.strptime`; detected if omitted.
    interval : float, optional
        Level of the intervals; None leaves them out.
    reading : Reading, optional
        Delimiter, encoding, sheet.
    progress : callable, optional
        Called with every `Step`.
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
    counted = None if scores.kind == "features" else samples.mean(scores.values)
    order = [grouping.code(name) for name in names]
    warned = [str(one.message) for one in caught]
    source = {
        "files": [{"name": table.name, "size": table.total} for table in tables],
        "rows": scores.n_items,
        "interval": interval,
        "model": model.provenance,
    }
    return BatchResult.from_estimate(
        estimate,
        sizes=samples.sizes,
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

    def prepared() -> Iterator[Items]:
        wanted = [*columns, *grouping.columns]
        for table, chunk in watch.over("scoring", tables, wanted):
            codes = grouping.add(table, chunk)
            items = chunk_items(chunk, model.preparation, columns)
            X = guarding.mend(_prepared(model, items, chunk), codes)
            observed.add(items, X, codes)
            yield X

    return model.score_prepared(prepared())


def _prepared(model: Model, items: Items, chunk: Chunk) -> Items:
    try:
        return model.preparation.transform(items)
    except CellError as error:
        raise damaged(chunk.place(error.row), error.what) from None
