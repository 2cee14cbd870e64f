"""Quantify batches of items in files, chunk by chunk, with notices on anything unusual."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.batches import VALUES, Batches, ScoredSamples
from prevalens.classifiers.given import raw_votes
from prevalens.errors import InputError
from prevalens.estimate import PrevalenceEstimate
from prevalens.files import damaged
from prevalens.model.drift import BatchTimes, price_of_drift
from prevalens.model.examples import Examples
from prevalens.model.file import provenance
from prevalens.model.groups import MIN_ITEMS, Folded, Grouping, grouping_of
from prevalens.model.item_sample import ItemSample
from prevalens.model.items import chunk_items, stacked
from prevalens.model.labelling import LabelledItems
from prevalens.model.model import Model
from prevalens.model.progress import Cancelled, Progress, Watch
from prevalens.model.result import BatchResult, Notice
from prevalens.quantifier import Quantifier
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.solvers.score_counts import DistinctScores, ScoreCounts, distinct_scores
from prevalens.summary import Summary, add_up
from prevalens.tables.column_guard import FEWEST_ROWS, Drift
from prevalens.tables.opening import Reading, expand
from prevalens.tables.preparation import CellError
from prevalens.tables.scores import ScorePreparation, column_scores, unknown_labels_once
from prevalens.tables.table import Chunk, Table
from prevalens.types import Floats, Ints, Items
from prevalens.uncertainty import with_labels_of_sums
from prevalens.uncertainty.goodness_of_fit import MISFIT, MisfitWarning, misfit_sentence
from prevalens.validation import check_int

#: Items of each batch whose words are compared with the training data.
_LOOKED_AT = 300
#: A batch smaller than this is named.
_TINY = 50
#: Share of items without known content that is named.
_EMPTY = 0.05
#: Batches that get a notice each; the same of more batches is one notice.
_APART = 5
#: Sums of features are kept up to this many numbers.
_MOST_SUMS = 20_000_000


class BatchMonitor:
    """Follows the batches while their items are scored, for the notices of the result.

    The classifier's own column guard sees a chunk as a whole, in which the drift of one batch may
    be averaged out. Here each batch is checked alone, and then the whole chunk, for batches that
    are too small to be checked alone. The classifier's guard finds nothing more after that.

    Parameters
    ----------
    model : Model
    rough : int
        A batch with fewer items is named.
    """

    def __init__(self, model: Model, rough: int = _TINY) -> None:
        self.model = model
        self.rough = rough
        self._guard = model.guard
        self._drifts: dict[int, Drift] = {}
        self._texts: dict[int, list[Any]] = {}
        self._sums: dict[int, Floats] = {}
        self._votes: dict[int, Floats] = {}
        self._counts: Counter[int] = Counter()
        self._empty: Counter[int] = Counter()

    def mend(self, X: Items, codes: npt.NDArray[np.int32]) -> Items:
        """The chunk, with columns that are adrift in a batch of it held at the training mean."""
        if self._guard is None:
            return X
        batches, counts = np.unique(codes, return_counts=True)
        rows, parts = [], []
        for code in batches[counts >= FEWEST_ROWS].tolist() if len(batches) > 1 else ():
            own = np.flatnonzero(codes == code)
            part, drift = self._guard.mend(X[own])
            if drift:
                self._note(code, drift)
                rows.append(own)
                parts.append(part)
        X, drift = self._guard.mend(_replaced(X, rows, parts) if rows else X)
        for code in batches.tolist():
            self._note(code, drift)
        return X

    def _note(self, code: int, drift: Drift) -> None:
        if drift:
            self._drifts[code] = drift | self._drifts.get(code, {})

    def add(self, items: Items, X: Items, codes: npt.NDArray[np.int32]) -> None:
        """Note a chunk of items, their matrix and the numbers of their batches."""
        if self.model.summary.kind == "scores":
            self._add_scores(X, codes)
            return
        batches, inverse = np.unique(codes, return_inverse=True)
        pick = sp.csr_matrix(
            (np.ones(len(codes)), (inverse.ravel(), np.arange(len(codes)))),
            shape=(len(batches), len(codes)),
        )
        sums = pick @ X
        sums = sums.toarray() if sp.issparse(sums) else np.asarray(sums)
        empty = np.diff(X.indptr) == 0 if sp.issparse(X) else np.zeros(X.shape[0], dtype=bool)
        for row, code in enumerate(batches.tolist()):
            rows = np.flatnonzero(codes == code) if len(batches) > 1 else np.arange(len(codes))
            self._counts[code] += len(rows)
            self._empty[code] += int(empty[rows].sum())
            if self.model.summary.kind == "text":
                kept = self._texts.setdefault(code, [])
                kept += [items[i] for i in rows[: _LOOKED_AT - len(kept)].tolist()]
            if (len(self._sums) + 1) * X.shape[1] <= _MOST_SUMS or code in self._sums:
                self._sums[code] = self._sums.get(code, 0) + sums[row]

    def add_counts(self, scores: ScoreCounts, code: int) -> None:
        """As `add`, of scores that are all of one batch."""
        self._counts[code] += scores.n_items
        own = np.append(scores.votes(), scores.answers())
        self._votes[code] = self._votes.get(code, 0.0) + own

    def _add_scores(self, X: Items, codes: npt.NDArray[np.int32]) -> None:
        """Note how many items of each batch labellers voted for, and how many they answered."""
        n_labels = len(self.model.labels)
        assert isinstance(self.model.preparation, ScorePreparation)  # the kind says so
        X = self.model.preparation.scores_in(X)
        samples, batches = Samples.by_group(codes)
        votes, whole = raw_votes(X, n_labels), len(samples) == 1
        if whole and not np.isnan(X.sum()):
            sums = np.append(votes.sum(axis=0), np.full(n_labels, len(X)))[np.newaxis]
        else:
            answered = ~np.isnan(X).reshape(len(X), -1, n_labels).all(axis=1)
            counts = np.hstack([votes, answered])
            sums = counts.sum(axis=0)[np.newaxis] if whole else samples.sums(counts)
        for code, size, own in zip(batches.tolist(), samples.sizes.tolist(), sums, strict=True):
            self._counts[code] += size
            self._votes[code] = self._votes.get(code, 0.0) + own

    def counted(self, order: Sequence[int]) -> Floats | None:
        """Share of the answers of labellers for each label; None unless the items are scores."""
        if not self._votes:
            return None
        votes, answered = np.hsplit(np.array([self._votes[code] for code in order]), 2)
        return np.asarray(votes / np.maximum(answered, 1))

    def fold(self, codes: Sequence[int]) -> None:
        """Count several batches as the first of them."""
        for code in codes[1:]:
            first = codes[0]
            self._counts[first] += self._counts.pop(code)
            self._empty[first] += self._empty.pop(code)
            self._note(first, self._drifts.pop(code, {}))
            if code in self._votes:
                self._votes[first] = self._votes[first] + self._votes.pop(code)
            if code in self._texts:
                self._texts[first] = [*self._texts[first], *self._texts.pop(code)][:_LOOKED_AT]
            if code in self._sums and first in self._sums:
                self._sums[first] = self._sums[first] + self._sums.pop(code)
            else:
                self._sums.pop(first, None)

    def feature_means(self, order: Sequence[int]) -> npt.NDArray[np.float32] | None:
        """Means of the prepared items of each batch; None if there were too many numbers."""
        if any(code not in self._sums for code in order):
            return None
        means = [self._sums[code] / self._counts[code] for code in order]
        return np.asarray(means, dtype=np.float32)

    def notices(
        self, names: Sequence[str], order: Sequence[int], warned: Iterable[str] = ()
    ) -> tuple[Notice, ...]:
        """Warnings and notes: on drifted columns, then those given, then by batch.

        Parameters
        ----------
        names : sequence of str
            The batches, in the order they are shown in.
        order : sequence of int
            The number of each of them in `codes`.
        warned : iterable of str
            Sentences on all batches together; each is passed on once.
        """
        general = [Notice(text) for text in dict.fromkeys(warned)]
        own: dict[str, list[Notice]] = {kind: [] for kind in self._together}
        for name, code in zip(names, order, strict=True):
            for kind, notice in self._of_batch(name, code):
                own[kind].append(notice)
        batches = {name: place for place, name in enumerate(names)}
        single = [n for notices in own.values() if len(notices) <= _APART for n in notices]
        single.sort(key=lambda notice: batches[notice.batch])
        many = [self._joined(kind, own[kind]) for kind in own if len(own[kind]) > _APART]
        return (*self._of_drift(names, order), *general, *many, *single)

    @property
    def _together(self) -> dict[str, str]:
        """What is said of many batches at once, by the kind of their notices."""
        return {
            "few": f"have fewer than {self.rough} items; their estimates are rough.",
            "empty": f"have more than {_EMPTY:.0%} of items that hold nothing the model knows.",
            "unseen": "have many words that were not seen in training; estimates may be off.",
        }

    def _joined(self, kind: str, notices: Sequence[Notice]) -> Notice:
        """One notice on many batches."""
        names = [notice.batch for notice in notices]
        text = f"{len(names):,} batches (the first is {names[0]}) {self._together[kind]}"
        return Notice.on(names, text, notices[0].level)

    def _of_drift(self, names: Sequence[str], order: Sequence[int]) -> Iterator[Notice]:
        """A notice for every set of columns that were adrift together in some batches."""
        together: dict[tuple[int, ...], list[tuple[str, int]]] = {}
        for name, code in zip(names, order, strict=True):
            if code in self._drifts:
                together.setdefault(tuple(sorted(self._drifts[code])), []).append((name, code))
        for columns, batches in together.items():
            assert self._guard is not None
            first, single = batches[0][0], len(batches) == 1
            named = [name for name, _ in batches]
            means = np.mean([[self._drifts[code][j] for j in columns] for _, code in batches], 0)
            text = self._guard.sentence(
                dict(zip(columns, means.tolist(), strict=True)),
                self.model.preparation.get_feature_names_out(),
                where=first if single else f"{len(batches)} batches (the first is {first})",
            )
            yield Notice.on(named, text, "warning")

    def _of_batch(self, name: str, code: int) -> Iterator[tuple[str, Notice]]:
        """The notices on one batch, with their kinds."""
        size = self._counts[code]
        if size < self.rough:
            items = "item" if size == 1 else "items"
            text = f"{name}: {size} {items} only; the estimates are rough."
            yield "few", Notice(text, "note", name)
        empty = self._empty[code] / size
        if empty > _EMPTY:
            text = f"{empty:.0%} of the items of {name} hold nothing the model knows."
            yield "empty", Notice(text, "warning", name)
        texts = self._texts.get(code)
        unseen = self.model.preparation.unfamiliar(texts) if texts else None
        if unseen is not None and unseen.share >= 2 * unseen.usual + 0.05:
            text = (
                f"{unseen.share:.0%} of the words in {name} were not seen in training (usual: "
                f"{unseen.usual:.0%}), such as {', '.join(unseen.examples[:5])}; estimates may be "
                "off."
            )
            yield "unseen", Notice(text, "warning", name)


def _replaced(X: Items, rows: Sequence[npt.NDArray[np.intp]], parts: Sequence[Items]) -> Items:
    """A copy of a matrix with other rows in some places."""
    kept = np.setdiff1d(np.arange(X.shape[0]), np.concatenate(rows))
    return stacked([X[kept], *parts])[np.argsort(np.concatenate([kept, *rows]))]


def quantify_files(
    model: Model | str | Path,
    paths: str | Path | Iterable[str | Path],
    *,
    by: str | None = None,
    by_time: str | None = None,
    freq: str | None = None,
    date_form: str | None = None,
    min_items: int = MIN_ITEMS,
    interval: float | None = 0.9,
    labelled: str | Path | Iterable[str | Path] | None = None,
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
        are scored chunk by chunk, and only sums over them are kept. Methods that need items
        (those of other libraries, LPQ over SLD) get a random 20,000 of each batch.
    by : str, optional
        A column whose values are the batches. Without any grouping, every file is a batch.
    by_time : str, optional
        A column of dates; every period is a batch.
    freq : {"D", "W", "M", "Q", "Y"}, optional
        The periods: days, ISO weeks, months (the default), quarters or years.
    date_form : str, optional
        Format of the dates, as in `datetime.strptime`; detected if omitted.
    min_items : int
        Values of `by` with fewer items are put together as one batch, at the end; 1 keeps all.
        Small periods of time and small files are not put together but noted.
    interval : float, optional
        Level of the intervals; None leaves them out.
    labelled : path, pattern or folder, or several, optional
        Files that `sample_files` wrote for these batches, filled in. Every batch uses its own
        labelled items.
    reading : Reading, optional
        Delimiter, encoding, sheet of the batches.
    progress : callable, optional
        Called with every `Step`.
    cancelled : callable, optional
        The work stops with a `CancelledError` when this returns True.
    """
    loaded = model if isinstance(model, Model) else Model.load(model)
    tables = [(reading or Reading()).open(path) for path in expand(paths)]
    grouping = grouping_of(tables, by, by_time, freq, date_form)
    return quantify_tables(
        loaded,
        tables,
        grouping,
        min_items=min_items,
        interval=interval,
        labelled=[] if labelled is None else [Reading().open(path) for path in expand(labelled)],
        watch=Watch(progress, cancelled),
    )


class Part(NamedTuple):
    """Scores of a chunk of items, the numbers of their batches, and their times."""

    scores: Scores | ScoreCounts
    codes: npt.NDArray[np.int32]
    times: Floats


def quantify_tables(
    model: Model,
    tables: Sequence[Table],
    grouping: Grouping,
    *,
    min_items: int = MIN_ITEMS,
    interval: float | None = 0.9,
    labelled: Sequence[Table] = (),
    watch: Watch | None = None,
    examples: Examples | None = None,
    with_provenance: bool = True,
) -> BatchResult:
    """As `quantify_files`, for tables that are open.

    Parameters
    ----------
    model, tables, grouping, min_items, interval, labelled, watch : as in `quantify_files`
    examples : Examples, optional
        Keeps items behind the numbers.
    with_provenance : bool
        Whether to state how the result was made, which takes a second look at the intervals.
    """
    watch = watch or Watch(None, None)
    times = BatchTimes(model.quantifier, model.time_column, tables, grouping)
    monitor = BatchMonitor(model, max(_TINY, check_int(min_items, "min_items", minimum=0)))
    there = [name for table in tables for name in table.columns]
    marked = LabelledItems(labelled, model.labels, there) if labelled else None
    parts = scored(model, tables, grouping, times, monitor, marked, watch, examples)
    grouping.keeps_items = False
    with unknown_labels_once() as unknown:
        batches, sizes, means, folded = _read(model, parts, grouping, min_items)
    watch.step("estimating", n_items=(n_items := int(sizes.sum())))
    monitor.fold(() if folded is None else folded.codes)
    names, at = grouping.order(), times.of(means)
    order = [grouping.code(name) for name in names]
    if examples is not None:
        examples.name(names, order, () if folded is None else folded.codes)
    given = {"interval": interval, "index": names, "time": at}
    estimate, warned = estimated(model, batches, given)
    if marked is not None:
        matched = marked.matched(_places(order, folded))
        estimate = with_labels_of_sums(estimate, batches, sizes, matched)
    made: dict[str, Any] = {}
    if with_provenance:
        price = price_of_drift(model.quantifier, batches, interval, at)
        made = provenance_of(model, [*tables, *labelled], n_items, interval, price)
    notices = (
        *grouping.notices(),
        *notices_of(estimate, folded),
        *monitor.notices(names, order, [*unknown, *warned]),
        *times.notices(names),
    )
    return BatchResult.from_estimate(
        estimate,
        sizes=sizes,
        training=model.prevalence,
        counted=counts_of(model, batches) if (raw := monitor.counted(order)) is None else raw,
        notices=notices,
        provenance=made,
        ordered=grouping.ordered,
        feature_means=monitor.feature_means(order),
    )


def _places(order: Sequence[int], folded: Folded | None) -> dict[int, int]:
    """The place of each batch in the result, by its number; folded batches share one."""
    places = {code: place for place, code in enumerate(order)}
    if folded is not None:
        places |= dict.fromkeys(folded.codes, places[folded.codes[0]])
    return places


def scored(
    model: Model,
    tables: Sequence[Table],
    grouping: Grouping,
    times: BatchTimes,
    monitor: BatchMonitor,
    marked: LabelledItems | None,
    watch: Watch,
    examples: Examples | None = None,
) -> Iterator[Part]:
    """Score all items, chunk by chunk; on the way, note their batches, times and labels."""
    columns = model_columns(model, tables)
    wanted = [*columns, *grouping.columns, *times.columns]
    for table in tables:
        table.check_columns(wanted)
    # Labelled items are found again by their cells, batches are named by them.
    others = {*grouping.columns, *times.columns}
    numbers = set() if marked else {*model.preparation.score_columns()} - others
    counted = () if marked or examples or others else _counted_columns(model)
    if counted:
        for table, chunk in watch.over("scoring", tables, wanted, numbers):
            codes = grouping.add(table, chunk)
            if len(chunk):
                counts = _score_counts(chunk, counted)
                monitor.add_counts(counts, int(codes[0]))
                yield Part(counts, codes, times.of_rows(chunk))
        return
    noted: deque[tuple[Chunk, npt.NDArray[np.int32], Floats, list[tuple[int, int]]]] = deque()

    def prepared() -> Iterator[Items]:
        for table, chunk in watch.over("scoring", tables, wanted, numbers):
            codes = grouping.add(table, chunk)
            found = [] if marked is None else marked.find(table, chunk, columns)
            noted.append((chunk, codes, times.of_rows(chunk), found))
            items = chunk_items(chunk, model.preparation, columns)
            X = monitor.mend(prepared_chunk(model, items, chunk), codes)
            monitor.add(items, X, codes)
            yield X

    for X in model.guarded(prepared()):
        scores = model.quantifier.score(X)
        chunk, codes, own_times, found = noted.popleft()
        if marked is not None:
            marked.note(found, scores, codes)
        if examples is not None:
            examples.add(chunk, columns, scores, codes)
        yield Part(scores, codes, own_times)


def _counted_columns(model: Model) -> tuple[str, ...]:
    """The columns of scores, if these need only be counted; else none."""
    preparation = model.preparation
    if isinstance(preparation, ScorePreparation) and model.quantifier.sums_scores:
        return preparation.plain_columns()
    return ()


def _score_counts(chunk: Chunk, columns: Sequence[str]) -> ScoreCounts:
    """The scores of a chunk by label; errors name the place in the file."""
    found = []
    try:
        for name in columns:
            own = distinct_scores(chunk[name])
            found.append(own or DistinctScores(column_scores(chunk[name], name), None))
    except CellError as error:
        raise damaged(chunk.place(error.row), error.what) from None
    return ScoreCounts(tuple(found), len(chunk))


class _Read(NamedTuple):
    """Batches in the order they are shown in, their sizes and mean times, and what was folded."""

    batches: Batches
    sizes: Ints
    times: Floats
    folded: Folded | None


def _read(model: Model, parts: Iterable[Part], grouping: Grouping, min_items: int) -> _Read:
    """The sums over all items; for methods that need items, some items of every batch."""
    if model.quantifier.statistics is not None:
        summary, folded = _folded(summed(model, parts, grouping), grouping, min_items)
        return _Read(summary, summary.sizes, summary.times, folded)
    sample, sums = ItemSample(), defaultdict[int, Floats](lambda: np.zeros(2))
    for part in parts:
        if isinstance(part.scores, Scores) and part.scores.n_items:
            sample.add(part.scores, part.codes)
            known = ~np.isnan(part.times)
            counts = np.bincount(part.codes[known])
            totals = np.bincount(part.codes[known], weights=part.times[known])
            for code in np.flatnonzero(counts).tolist():
                sums[code] += (totals[code], counts[code])
    if not sample.sizes:
        raise InputError("There are no items to quantify.")
    folded = grouping.fold(min_items)
    first = [grouping.code(name) for name in grouping.order()]
    together = [
        folded.codes if folded is not None and code == folded.codes[0] else [code] for code in first
    ]
    sizes = np.array([sum(sample.sizes[code] for code in own) for own in together])
    total = np.array([np.sum([sums[code] for code in own], axis=0) for own in together])
    with np.errstate(invalid="ignore"):
        means = total[:, 0] / total[:, 1]
    return _Read(sample.batches(together), sizes, means, folded)


def summed(model: Model, parts: Iterable[Part], grouping: Grouping) -> Summary:
    """The sums over all items, by the names of the batches in the order they are shown in."""
    summaries = (_summary(model.quantifier, part) for part in parts if part.scores.n_items)
    first = next(summaries, None)
    if first is None:
        raise InputError("There are no items to quantify.")
    summary = add_up(chain([first], summaries))
    names = grouping.order()
    place = {code: row for row, code in enumerate(summary.names)}
    summary = summary[np.array([place[str(grouping.code(name))] for name in names])]
    summary.names = tuple(names)
    return summary


def _summary(quantifier: Quantifier, part: Part) -> Summary:
    if isinstance(part.scores, ScoreCounts):
        return quantifier.summarise_counts(part.scores, str(part.codes[0]))
    return quantifier.summarise_scores(part.scores, part.codes, part.times)


def _folded(summary: Summary, grouping: Grouping, min_items: int) -> tuple[Summary, Folded | None]:
    """The summary with small groups put together, and which these are."""
    folded = grouping.fold(min_items)
    if folded is None:
        return summary, None
    small = set(folded.groups)
    summary = summary.renamed([folded.name if name in small else name for name in summary.names])
    place = {name: row for row, name in enumerate(summary.names)}
    return summary[np.array([place[name] for name in grouping.order()])], folded


def estimated(
    model: Model, batches: Batches, given: Mapping[str, Any]
) -> tuple[PrevalenceEstimate, list[str]]:
    """The estimates, and the warnings that were given with them, the alarm aside."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if isinstance(batches, ScoredSamples):
            estimate = model.aggregate(batches.scores, batches.samples, **given)
        else:
            estimate = model.quantifier.read(batches, **given)
    others = [warning for warning in caught if not issubclass(warning.category, MisfitWarning)]
    return estimate, [str(warning.message) for warning in others]


def notices_of(estimate: PrevalenceEstimate, folded: Folded | None) -> Iterator[Notice]:
    """A warning on the batches that alarm, and a note on groups that were put together."""
    names = list(map(str, estimate.index or ()))
    p_value = np.ones(len(names)) if estimate.p_value is None else np.asarray(estimate.p_value)
    alarming = [names[i] for i in np.flatnonzero(p_value < MISFIT)]
    if alarming:
        sentence = misfit_sentence(float(p_value.min()), alarming)
        yield Notice.on(alarming, sentence, "warning")
    if folded is not None:
        yield Notice(folded.sentence, "note", folded.name)


def counts_of(model: Model, batches: Batches) -> Floats | None:
    """Mean scores before the correction; None if there are none, or if they are calibrated."""
    if batches.kind == "features" or model.summary.kind == "scores":
        return None
    return batches.mean(VALUES)


def provenance_of(
    model: Model, tables: Sequence[Table], n_items: int, interval: float | None, price: str
) -> dict[str, Any]:
    """How a result was made."""
    source = {
        "files": [{"name": table.name, "size": table.total} for table in tables],
        "rows": n_items,
        "interval": interval,
        "drift": f"{model.drift.sentences} {price}".strip(),
        "model": model.provenance,
    }
    if model.description.label_errors:
        source["label errors"] = model.description.label_errors
    return provenance(model.summary.method, source)


def model_columns(model: Model, tables: Sequence[Table]) -> tuple[str, ...]:
    """The columns of the tables that the model reads."""
    if model.columns is not None:
        return model.columns
    if model.summary.kind == "text" and all("text" in table.columns for table in tables):
        return ("text",)
    raise InputError(
        "The model was not trained on a table, so it does not know which columns to read; fit it "
        "with text=... or columns=..., or call the column of texts 'text'."
    )


def prepared_chunk(model: Model, items: Items, chunk: Chunk) -> Items:
    """The matrix of the items of a chunk; errors name the place in the file."""
    try:
        return model.preparation.transform(items)
    except CellError as error:
        raise damaged(chunk.place(error.row), error.what) from None
