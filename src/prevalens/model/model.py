"""Model: a preparation and a fitted quantifier, trained together and kept in one file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from prevalens.batches import Batches, ScoredSamples
from prevalens.catalogue import parse
from prevalens.classifiers import CrossFit, Given
from prevalens.collection import label_matrix
from prevalens.estimate import PrevalenceEstimate
from prevalens.model.draw import Draw, draw_items
from prevalens.model.drift import drift_summary
from prevalens.model.file import provenance, read_parts, write_model
from prevalens.model.items import (
    chunks_of,
    column_means,
    item_count,
    preparation_for,
    refitted,
    stacked,
    training_items,
)
from prevalens.model.labelled import Labellers
from prevalens.model.manifest import Description, TrainingSummary, read_manifest
from prevalens.model.trust import TrustReport
from prevalens.quantifier import Quantifier, set_seeds
from prevalens.response import offers, response
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.selection import GridSearch
from prevalens.selection.backtest import Prepare
from prevalens.summary import Summary, add_up
from prevalens.tables.column_guard import ColumnGuard, guard_of
from prevalens.tables.columns import ColumnPreparation
from prevalens.tables.formats import as_table
from prevalens.tables.kinds import ColumnUse
from prevalens.tables.preparation import ArrayPreparation, Preparation
from prevalens.tables.scores import ScorePreparation, unknown_labels_warned_once
from prevalens.tables.times import TimeColumn
from prevalens.types import Array, Floats, Groups, Items, LabelMatrix, Labels, Progress
from prevalens.uncertainty import label_scores, with_labels_of_batches
from prevalens.uncertainty.drift import check_drift, mean_times
from prevalens.uncertainty.label_noise import LabelNoise
from prevalens.validation import (
    FormatError,
    InputError,
    check_same_length,
    count_items,
)

#: How a method is named: "auto", an expression such as "lr+pacc", a quantifier or a search.
Method: TypeAlias = str | Quantifier | GridSearch

#: Share of the time budget that the choice of a method may take, calibrated intervals aside.
_FOR_CHOICE = 0.8
#: Share of it if a backtest follows; that may take as much again.
_WITH_BACKTEST = 0.4


class _Parts(NamedTuple):
    """The fitted objects of a model.

    Attributes
    ----------
    preparation : Preparation
    quantifier : fitted Quantifier
    feature_means : array of float, shape (n_features,)
        Means of the prepared matrix over the training items.
    """

    preparation: Preparation
    quantifier: Quantifier
    feature_means: Floats


class Model:
    """A preparation and a quantifier, fitted together.

    Parameters
    ----------
    make_parts : callable without arguments
        Gives the fitted objects; called when they are first needed.
    description : Description

    Attributes
    ----------
    labels : tuple of str
    summary : TrainingSummary
    provenance : dict
        Versions, time, and where the training data came from.
    columns : tuple of str or None
        The columns of a table that the model reads; None if it was not trained on a table.
    holdout : TrustReport or None
        The test on items that `fit_files` held out, if that was asked for; not saved.
    drift : DriftSummary
        What a backtest over time found, and how much drift intervals allow for.
    column_uses : tuple of ColumnUse
        What each column of the training items became; empty without columns.
    preparation : Preparation
        From texts, columns or arrays to a matrix.
    quantifier : Quantifier
        Works on that matrix.
    feature_means : array of float, shape (n_features,)
        Means of the matrix over the training items.

    Notes
    -----
    The preparation is fitted once, on all training items and without their labels.

    Examples
    --------
    >>> texts = ["printer on fire", "cannot log in", "printer smokes", "forgot my password"] * 5
    >>> model = Model.fit(texts, [{"hardware"}, {"account"}, {"hardware"}, {"account"}] * 5)
    >>> model.quantify(["the printer burns", "printer smokes", "log in fails"], interval=None).shape
    (2,)
    """

    def __init__(self, make_parts: Callable[[], _Parts], description: Description) -> None:
        self._make_parts = make_parts
        self.description = description
        self.labels = description.labels
        self.summary = description.summary
        self.provenance = dict(description.provenance)
        self.columns = description.columns
        self.drift = description.drift
        self.column_uses = description.column_uses
        self.holdout: TrustReport | None = None

    @cached_property
    def _parts(self) -> _Parts:
        return self._make_parts()

    @property
    def preparation(self) -> Preparation:
        """From items to a matrix."""
        return self._parts.preparation

    @property
    def quantifier(self) -> Quantifier:
        """From the matrix to prevalences."""
        return self._parts.quantifier

    @property
    def time_column(self) -> TimeColumn | None:
        """The column that the times of the training items came from, if any."""
        return None if self.drift.column is None else TimeColumn(**self.drift.column)

    @property
    def feature_means(self) -> Floats:
        """Means of the prepared matrix over the training items."""
        return self._parts.feature_means

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process may not have the file that the fitted objects are read from.
        return _of_parts, (self._parts, self.description)

    def __repr__(self) -> str:
        return (
            f"Model({self.summary.method!r}, {len(self.labels)} labels, "
            f"{self.summary.n_items} training items)"
        )

    @classmethod
    def fit(
        cls,
        items: Items,
        Y: Labels,
        *,
        labels: Iterable[object] | None = None,
        method: Method = "auto",
        text: str | None = None,
        columns: Sequence[str] | None = None,
        preparation: Any = None,
        scores: Sequence[str | Sequence[str]] | None = None,
        scores_tags: Sequence[str] | None = None,
        time_budget: float | None = None,
        random_state: int = 0,
        groups: Groups = None,
        time: Any = None,
        time_column: TimeColumn | None = None,
        drift: float | None = None,
        noise: LabelNoise | None = None,
        source: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
        on_columns: Callable[[tuple[ColumnUse, ...]], None] | None = None,
    ) -> Model:
        """Learn from labelled items.

        Parameters
        ----------
        items : texts, data frame, columns, records, Table, or matrix
        Y : 0/1 matrix, data frame or list of label sets, one row per item
        labels : sequence of str, optional
            Names of the labels; taken from Y if omitted.
        method : str, Quantifier or GridSearch
            ``"auto"``, an expression such as ``"stack(lr)+rq(pcc,svr)"``, or a quantifier.
        text : str, optional
            The column that holds the texts, where the items have columns.
        columns : sequence of str, optional
            The columns to use as features, where the items have columns; all if omitted.
        preparation : transformer, optional
            A transformer of scikit-learn; chosen by the items if omitted.
        scores, scores_tags : sequence, optional
            Columns of the items that hold answers of labellers, as `fit_files` takes them; of the
            other columns only those that `text` and `columns` name are then used.
        time_budget : float, optional
            Seconds that all of it may take on an ordinary core, with ``"auto"`` or
            `time`; ten minutes if omitted.
        random_state : int
            Seed of all parts whose own seed is the default one.
        groups : sequence, one entry per item, optional
            The group of each item, as `Quantifier.fit` takes it.
        time : array-like of dates, ISO strings or numbers, one entry per item, optional
            When each item arose, as `Quantifier.fit` takes it. In the backtest the preparation
            too is fitted on the items before an origin alone.
        time_column : TimeColumn, optional
            The column of a file that the times are from; batches in files with such a column have
            times then.
        drift : float, optional
            Standard deviation of the drift that intervals allow for, as `Quantifier` takes it.
        noise : LabelNoise, optional
            How often the labels are wrong, as `Quantifier.fit` takes it.
        source : mapping, optional
            Where the items came from, for the record.
        progress : callable, optional
            Called with a short message before each stage. What it raises ends the fit.
        on_columns : callable, optional
            Called with what each column became, before the quantifier is fitted.
        """
        on_stage = progress or (lambda _: None)
        start = perf_counter()
        names = (text,) if text is not None else None if columns is None else tuple(columns)
        Y, label_names = label_matrix(Y, labels)
        labellers = Labellers.of(scores, scores_tags)
        if labellers is not None:
            matched, kept = labellers.match(as_table(items), label_names)
            Y, label_names = Y[:, kept], tuple(label_names[j] for j in kept)
            preparation = ScorePreparation(*matched, _features(text, columns))
            text, names = None, preparation.table_columns()
        chosen = preparation_for(items, names, text=text is not None, given=preparation)
        # A method that is not understood is refused before the work begins.
        how: dict[str, Any] = {"drift": drift, "dated": time is not None}
        how["scores"] = chosen if isinstance(chosen, ScorePreparation) else None
        unfitted = quantifier_of(method, time_budget, random_state, **how)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            on_stage("preparing items")
            own = training_items(items, chosen, names)
            X = chosen.fit_transform(own, Y)
            check_same_length(X.shape[0], "The items", Y.shape[0], "Y")
            uses = chosen.column_uses(names)
            if on_columns is not None:
                on_columns(uses)
            given = {"labels": label_names, "groups": groups, "noise": noise}
            if time is not None:
                given |= {"time": time, "prepare": _prepare(own, chosen, unfitted)}
            quantifier = _fitted(unfitted, X, Y, given, on_stage)
        description = Description(
            label_names,
            _summary(chosen, quantifier, Y, perf_counter() - start, caught),
            provenance(_method_name(quantifier), source),
            # Batches need not have columns that are not used.
            None if names is None else tuple(u.column for u in uses if u.use != "dropped"),
            drift_summary(quantifier, time, time_column),
            uses,
            "" if noise is None else noise.sentence(label_names),
        )
        parts = _Parts(chosen, quantifier, column_means(X))
        return cls(lambda: parts, description)

    @property
    def prevalence(self) -> Floats:
        """Share of training items that have each label."""
        return self.summary.prevalence

    @unknown_labels_warned_once()
    def score(self, items: Items) -> Scores:
        """Scores of items, chunk by chunk, as the aggregator reads them."""
        chunks = chunks_of(items, self.preparation, self.columns)
        return self.score_prepared(self.preparation.transform(chunk) for chunk in chunks)

    def score_prepared(self, matrices: Iterable[Items]) -> Scores:
        """Scores of prepared chunks; nothing but the scores is kept, in single precision."""
        return joined(self.quantifier.score(X) for X in self.guarded(matrices))

    @property
    def guard(self) -> ColumnGuard | None:
        """The classifier's guard, which holds drifted columns at their training mean, if any."""
        return guard_of(self.quantifier.classifier_)

    def guarded(self, matrices: Iterable[Items]) -> Iterable[Items]:
        """Prepared chunks without columns that have drifted, if the classifier has a guard.

        The guard warns once of what it does here, and not again chunk by chunk.
        """
        if self.guard is None:
            return matrices
        return self.guard.transform_many(matrices, self.preparation.get_feature_names_out())

    def votes(self, X: Items) -> Floats | None:
        """The classifier's votes on prepared items; None if the method has no such classifier."""
        classifier = self.quantifier.classifier_
        if classifier is None or "votes" not in offers(classifier):
            return None
        return response(classifier, X, "votes", len(self.labels)).values

    def quantify(
        self,
        items: Items,
        *,
        interval: float | None = 0.9,
        groups: Samples | Groups = None,
        labelled: tuple[Any, ...] | None = None,
        time: Any = None,
    ) -> PrevalenceEstimate:
        """Estimate the prevalence of each label, in all items or in each group of them.

        Parameters
        ----------
        items : as in `fit`
        interval : float, optional
            Level of the intervals; None leaves them out.
        groups : Samples, or array of shape (n_items,), optional
            The batches: bags of row numbers, or for each item the name of its batch.
        time : date or number, or one for each item, optional
            When the items arose, if the model was fitted with times.
        labelled : pair of (rows, Y_rows), or triple of (rows, Y_rows, weights), optional
            Row numbers of items that were drawn at random, as by `sample`, and their labels: a 0/1
            matrix, a frame (its columns by name), or a list of label sets.
            Every batch uses its own; the estimates then combine both, as `Quantifier.quantify`
            does.
        """
        sums = labelled is None and not isinstance(groups, Samples)
        if sums and self.quantifier.statistics is not None:
            summary = self.summarise(items, groups, time=time)
            estimate = self.quantifier.estimate(summary, interval)
            return estimate.sample(0) if groups is None else estimate
        scores = self.score(items)
        samples, names = _batches(groups, scores.n_items)
        at = None
        if time is not None:
            at = mean_times(samples, np.broadcast_to(np.asarray(time), (scores.n_items,)))
        estimate = self.aggregate(
            scores, samples, interval=interval, index=names, time=at, labelled=labelled
        )
        return estimate.sample(0) if groups is None else estimate

    @unknown_labels_warned_once()
    def summarise(self, items: Items, groups: Groups = None, *, time: Any = None) -> Summary:
        """The sums over items that estimates need; see `Quantifier.summarise`.

        Parameters
        ----------
        items, groups, time : as in `quantify`
        """
        n_items = item_count(items)
        names = np.zeros(n_items, dtype="<U1") if groups is None else np.asarray(groups)
        check_same_length(n_items, "The items", len(names), "groups")
        order = np.unique(names)
        times = None
        if time is not None:
            times = self.quantifier.times_of(np.broadcast_to(np.asarray(time), (n_items,)))
        done = 0

        def parts() -> Iterator[Summary]:
            nonlocal done
            chunks = chunks_of(items, self.preparation, self.columns)
            for X in self.guarded(self.preparation.transform(chunk) for chunk in chunks):
                rows = slice(done, done + X.shape[0])
                done = rows.stop
                yield self.quantifier.summarise_scores(
                    self.quantifier.score(X), names[rows], None if times is None else times[rows]
                )

        summary = add_up(parts())
        place = {name: row for row, name in enumerate(summary.names)}
        return summary[np.array([place[str(name)] for name in order.tolist()])]

    def sample(
        self,
        items: Items,
        n: int = 50,
        *,
        groups: Samples | Groups = None,
        stratified: bool = False,
        random_state: int = 0,
    ) -> Draw:
        """Draw items to be labelled by hand, for `quantify(labelled=)`.

        Parameters
        ----------
        items, groups : as in `quantify`
        n : int
            Items per batch; of a smaller batch, all are drawn.
        stratified : bool
            Draw items with unsure scores more often; the weights are then needed. Default:
            uniformly, which is safe whatever the scores are worth.
        random_state : int
        """
        scores = self.score(items) if stratified else None
        n_items = item_count(items) if scores is None else scores.n_items
        samples, _ = _batches(groups, n_items)
        return draw_items(samples, n, scores=scores, random_state=random_state)

    def aggregate(
        self,
        scores: Scores,
        samples: Samples,
        *,
        interval: float | None = None,
        index: Sequence[Any] | None = None,
        time: Any = None,
        labelled: tuple[Any, ...] | None = None,
    ) -> PrevalenceEstimate:
        """Estimate the prevalences of samples of items that have been scored.

        `time` is the mean time of each sample, as `Quantifier.aggregate` takes it.
        """
        names = list(range(len(samples)) if index is None else index)
        fields = _estimate_fields(self.quantifier, scores, samples, interval, names, time)
        estimate = PrevalenceEstimate(labels=self.labels, index=names, level=interval, **fields)
        if labelled is None:
            return estimate
        values = label_scores(scores, len(self.labels))
        noise = self.quantifier.noise_
        if noise is None:
            return with_labels_of_batches(estimate, values, samples, labelled)
        seen = with_labels_of_batches(noise.as_seen(estimate), values, samples, labelled)
        return noise.as_true(seen)

    def save(self, path: str | Path, *, trusted: Sequence[str] = ()) -> None:
        """Write the model to one file.

        Parameters
        ----------
        path : str or Path
        trusted : sequence of str
            Full names of types beyond those of prevalens and scikit-learn that the file may hold.
        """
        write_model(path, self.description.to_dict(), self._parts._asdict(), trusted)

    @classmethod
    def load(cls, path: str | Path, *, trusted: Sequence[str] = ()) -> Model:
        """Read a model from a file, without running code from it.

        The fitted objects are read from the file when they are first needed.
        """
        manifest = read_manifest(path)
        description = Description.from_manifest(path, manifest)
        return cls(lambda: _rebuilt(path, manifest, description.labels, trusted), description)


def _of_parts(parts: _Parts, description: Description) -> Model:
    return Model(lambda: parts, description)


def _batches(groups: Samples | Groups, n_items: int) -> tuple[Samples, list[Any] | None]:
    """The batches of items, and their names; without groups, all items are one batch."""
    if groups is None:
        return Samples.whole(n_items), None
    if isinstance(groups, Samples):
        return groups, None
    samples, names = Samples.by_group(np.asarray(groups))
    check_same_length(n_items, "The items", samples.n_items, "groups")
    return samples, names.tolist()


def _rebuilt(
    path: str | Path, manifest: Mapping[str, Any], labels: tuple[str, ...], trusted: Sequence[str]
) -> _Parts:
    objects = read_parts(path, manifest, trusted)
    try:
        parts = _Parts(**objects)
        fits = tuple(parts.quantifier.labels_) == labels
    except (TypeError, AttributeError):
        fits = False
    if not fits or not isinstance(parts.preparation, Preparation):
        raise FormatError(f"{path}: the model in it does not fit its description.")
    return parts


def quantifier_of(
    method: Method,
    time_budget: float | None = None,
    random_state: int = 0,
    *,
    drift: float | None = None,
    dated: bool = False,
    scores: ScorePreparation | None = None,
) -> Quantifier | GridSearch:
    """The quantifier of a method, checked.

    Parameters
    ----------
    method : str, Quantifier or GridSearch
    time_budget : float, optional
        Seconds for all of the fit; a method by name gets its share.
    random_state : int
        Seeds that have their default value become this one.
    drift : float, optional
        The drift that intervals of a method by name allow for.
    dated : bool
        Whether it is to be fitted with times.
    scores : ScorePreparation, optional
        Of the scores of labellers that it is to be fitted to, and of features besides these;
        ``"auto"`` then chooses among methods for these.
    """
    quantifier = _unseeded(method, drift, dated=dated)
    if scores is not None and method == "auto":
        quantifier.set_params(classifier=Given())
    quantifier = reading_features(quantifier, scores)
    if time_budget is not None and isinstance(method, str) and (method == "auto" or dated):
        # The rest of the budget is for the work before and after the choice of a method.
        share = _WITH_BACKTEST if dated else _FOR_CHOICE
        quantifier.set_params(time_budget=share * time_budget)
    if random_state == 0:
        return quantifier
    seeded: Quantifier | GridSearch = clone(quantifier)
    if isinstance(seeded, Quantifier) and seeded.scheme is None:
        seeded.set_params(scheme=CrossFit())
    set_seeds(seeded, random_state)
    return seeded


def reading_features(quantifier: Any, preparation: Any) -> Any:
    """The method; if features follow given scores, it is told how many labellers there are."""
    part = quantifier.get_params().get("classifier")
    if not isinstance(preparation, ScorePreparation) or not isinstance(part, Given):
        return quantifier
    n_labellers = None if preparation.features is None else preparation.n_labellers
    if part.n_labellers == n_labellers:
        return quantifier
    if part.n_labellers is not None:
        found = "no features" if n_labellers is None else f"{n_labellers} labellers and features"
        raise InputError(
            f"The method reads {part.n_labellers} labellers and features (n_labellers=), but there "
            f"are {found}; leave n_labellers out, and it is found by itself."
        )
    return clone(quantifier).set_params(classifier__n_labellers=n_labellers)


def _features(text: str | None, columns: Sequence[str] | None) -> ColumnPreparation | None:
    """The preparation of what is used besides scores; None if nothing is named."""
    texts = {} if text is None else {text: "text"}
    named = list(dict.fromkeys([*texts, *(columns or ())]))
    return ColumnPreparation(named, kinds=texts) if named else None


def _unseeded(method: Method, drift: float | None, *, dated: bool) -> Quantifier | GridSearch:
    if dated and drift is not None:
        raise InputError("Times measure the drift, so that drift cannot be given too; name one.")
    if isinstance(method, str):
        quantifier = parse(method)
        return quantifier if drift is None else quantifier.set_params(drift=check_drift(drift))
    if not isinstance(method, (Quantifier, GridSearch)):
        raise InputError(
            f"A method is 'auto', an expression such as 'lr+pacc', or a Quantifier; got {method!r}."
        )
    if drift is not None:
        raise InputError("drift goes with the name of a method; a Quantifier has its own.")
    if dated and isinstance(method, GridSearch):
        raise InputError(
            "A GridSearch takes no times; search without them, and fit its best_quantifier_ with "
            "time=..."
        )
    return method


def _prepare(items: Items, preparation: Preparation, quantifier: Any) -> Prepare | None:
    """How the backtest prepares items; None if their rows need no preparation of their own."""
    # A classifier that was fitted elsewhere needs the columns of the preparation as it is.
    fixed = isinstance(quantifier.classifier, FrozenEstimator)
    if fixed or isinstance(preparation, ArrayPreparation):
        return None
    if isinstance(preparation, ScorePreparation) and preparation.features is None:
        return None
    return refitted(items, preparation)


def _fitted(
    quantifier: Quantifier | GridSearch,
    X: Items,
    Y: LabelMatrix,
    given: Mapping[str, Any],
    on_stage: Progress,
) -> Quantifier:
    """The trained quantifier; of a search, the best quantifier."""
    if isinstance(quantifier, Quantifier):
        return quantifier.fit(X, Y, **given, progress=on_stage)
    noise, searched = given["noise"], {name: given[name] for name in ("labels", "groups")}
    if noise is not None:
        raise InputError("A GridSearch does not correct labels; fit its best_quantifier_ instead.")
    best = quantifier.fit(X, Y, **searched).best_quantifier_
    if not isinstance(best, Quantifier):
        raise InputError(f"A model holds a Quantifier; the search found {best!r}.")
    return best


def _method_name(quantifier: Quantifier) -> str:
    return quantifier.name if quantifier.choice_ is None else quantifier.choice_.name


def _summary(
    preparation: Preparation,
    quantifier: Quantifier,
    Y: LabelMatrix,
    seconds: float,
    caught: Sequence[warnings.WarningMessage],
) -> TrainingSummary:
    counts = preparation.counted_ if isinstance(preparation, ScorePreparation) else ()
    return TrainingSummary(
        n_items=len(Y),
        n_features=preparation.n_features_,
        # Those of the labels that the quantifier was fitted to, which may have been corrected.
        positives=tuple(np.rint(quantifier.prevalence_ * len(Y)).astype(np.int64).tolist()),
        cardinality=float(quantifier.prevalence_.sum()),
        method=_method_name(quantifier),
        group=quantifier.group,
        preparation=preparation.describe(),
        kind=preparation.kind,
        seconds=seconds,
        warnings=tuple(dict.fromkeys(str(warning.message) for warning in caught)),
        counted=tuple(counts),
    )


def joined(parts: Iterable[Scores]) -> Scores:
    """One set of scores from those of consecutive items, in single precision."""
    kind = None
    rows, members, features = _Rows(), _Rows(), []
    for part in parts:
        kind = part.kind
        if kind == "features":
            features.append(part.values)
        else:
            rows.add(part.values)
        if part.members is not None:
            members.add(part.members)
    if kind is None or not (len(rows) or sum(map(count_items, features))):
        raise InputError("There are no items to quantify.")
    values = stacked(features) if features else rows.values()
    return Scores(values, kind, members.values() if len(members) else None)


class _Rows:
    """Rows that are added block by block into one array, which grows by a fifth in place."""

    def __init__(self) -> None:
        self._values: npt.NDArray[np.float32] | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, block: Array) -> None:
        """Append rows."""
        if self._values is None:
            self._values = np.empty((len(block), block.shape[1]), dtype=np.float32)
        end = self._count + len(block)
        if end > len(self._values):
            self._resize(max(end, len(self._values) + len(self._values) // 5))
        self._values[self._count : end] = block
        self._count = end

    def values(self) -> npt.NDArray[np.float32]:
        """All rows."""
        assert self._values is not None
        self._resize(self._count)
        return self._values

    def _resize(self, rows: int) -> None:
        assert self._values is not None
        # There is no other reference to the array, so it may be moved.
        self._values.resize((rows, self._values.shape[1]), refcheck=False)


#: Items of a batch that intervals are computed from; of larger batches a random part is used.
_LARGEST = 10_000
#: Items whose intervals are computed at a time.
_AT_A_TIME = 100_000
_ENDS = ("lower", "upper", "band_lower", "band_upper")

#: Parts of an estimate by their names.
_Fields: TypeAlias = dict[str, Floats]


def _estimate_fields(
    quantifier: Quantifier,
    scores: Scores,
    samples: Samples,
    level: float | None,
    names: Sequence[Any],
    time: Any,
) -> _Fields:
    """Estimates and, with a level, intervals, bands and the p-value of the alarm, by their names.

    They are read from sums, as everywhere, if the method needs no more. Otherwise, of a batch
    larger than 10,000 items, as many are drawn at random and represent it. Its intervals have the
    width of theirs, around the estimate of all items: in batches of that size the width is that of
    training and drift more than that of the batch.
    """
    if level is None:
        return {"point": quantifier.aggregate(scores, samples, time=time).point}
    times = None if time is None else np.broadcast_to(np.asarray(time), (len(samples),))
    sums = quantifier.statistics is not None
    parts: list[_Fields] = []
    for where, block in samples.blocks(_AT_A_TIME):
        smaller = block if sums else _thinned(block)
        own, alone = _alone(scores, smaller)
        at = None if times is None else times[where]
        batches: Batches = ScoredSamples(own, alone)
        if sums:
            batches = quantifier.summarise_samples(own, alone)
        estimate = quantifier.read(batches, level, index=list(names[where]), time=at)
        known = {name: vars(estimate)[name] for name in ("point", *_ENDS, "p_value")}
        fields = {name: value for name, value in known.items() if value is not None}
        if smaller is not block:
            whole = quantifier.aggregate(scores, block, time=at).point
            part = quantifier.aggregate(own, alone, time=at).point
            fields = _moved(fields, whole - part)
        parts.append(fields)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _alone(scores: Scores, samples: Samples) -> tuple[Scores, Samples]:
    """The scores of the samples' items only, to keep the work proportional to the sample size."""
    rows, places = np.unique(samples.flat, return_inverse=True)
    return scores.take(rows), Samples(places, samples.offsets, n_items=len(rows))


def _thinned(block: Samples) -> Samples:
    """The block with large samples cut to a random part; the block itself if there are none."""
    if block.sizes.max() <= _LARGEST:
        return block
    rng = np.random.default_rng(0)
    bags: list[Any] = [
        bag if len(bag) <= _LARGEST else rng.choice(bag, _LARGEST, replace=False) for bag in block
    ]
    return Samples.from_indices(bags, n_items=block.n_items)


def _moved(fields: _Fields, move: Floats) -> _Fields:
    """Estimates and ends moved by what all items say beyond a part of them.

    With intervals the automatic quantifier may have shrunk its estimate, so that of all items
    cannot take its place.
    """
    moved = {name: np.clip(fields[name] + move, 0, 1) for name in ("point", *_ENDS)}
    return {**fields, **moved}
