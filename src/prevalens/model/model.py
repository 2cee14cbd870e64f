"""Items in any of their forms, cut into chunks that a preparation takes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import has_fit_parameter

from prevalens.catalogue import parse
from prevalens.collection import label_matrix
from prevalens.estimate import PrevalenceEstimate
from prevalens.model.file import (
    TrainingSummary,
    provenance,
    read_manifest,
    read_parts,
    write_model,
)
from prevalens.model.scoring import estimate_fields, joined
from prevalens.quantifier import Quantifier
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.tables.column_guard import guard_of
from prevalens.tables.columns import ColumnPreparation
from prevalens.tables.formats import as_table
from prevalens.tables.preparation import ArrayPreparation, GivenPreparation, Preparation
from prevalens.tables.table import CHUNK_ROWS, Chunk, Table
from prevalens.tables.text import TextPreparation
from prevalens.types import Floats, Groups, LabelMatrix
from prevalens.uncertainty import Bootstrap
from prevalens.validation import (
    FormatError,
    InputError,
    check_label_names,
    check_same_length,
    count_items,
    is_texts,
)

__all__ = [
    "Model",
    "Parts",
    "chunk_items",
    "chunks_of",
    "is_table",
    "preparation_for",
    "preparation_or",
    "quantifier_of",
    "training_items",
]


def is_table(items: Any) -> bool:
    """Whether items have named columns: a Table, a frame, a mapping, a list of records."""
    if isinstance(items, (Table, Mapping, Chunk)):
        return True
    native = nw.from_native(items, eager_only=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        return True
    return isinstance(items, Sequence) and len(items) > 0 and isinstance(items[0], Mapping)


def preparation_for(items: Any, columns: Sequence[str] | None, text: bool) -> Preparation:
    """The preparation that suits the items."""
    if is_table(items):
        return TextPreparation() if text else ColumnPreparation(columns)
    return TextPreparation() if _looks_like_texts(items) else ArrayPreparation()


def preparation_or(
    given: Any, items: Any, columns: Sequence[str] | None, text: bool
) -> Preparation:
    """The preparation or transformer that was given, or the one that suits the items."""
    if given is None:
        return preparation_for(items, columns, text)
    return given if isinstance(given, Preparation) else GivenPreparation(given)


def _looks_like_texts(items: Any) -> bool:
    if sp.issparse(items):
        return False
    if isinstance(nw.from_native(items, allow_series=True, pass_through=True), nw.Series):
        return True
    return is_texts(items) or (isinstance(items, np.ndarray) and items.ndim == 1)


def training_items(items: Any, preparation: Preparation, columns: Sequence[str] | None) -> Any:
    """All items at once, in the form the preparation takes."""
    if not is_table(items) or isinstance(preparation, GivenPreparation):
        return items
    chunk = items if isinstance(items, Chunk) else as_table(items).read(columns)
    return chunk_items(chunk, preparation, columns)


def chunk_items(chunk: Chunk, preparation: Preparation, columns: Sequence[str] | None) -> Any:
    """The items of a chunk of rows, in the form the preparation takes."""
    names = tuple(chunk.columns) if columns is None else tuple(columns)
    if isinstance(preparation, ColumnPreparation):
        return {name: chunk[name] for name in names}
    if len(names) != 1:
        raise InputError(f"The model reads one column; got {len(names)}.")
    return chunk[names[0]]


def chunks_of(items: Any, preparation: Preparation, columns: Sequence[str] | None) -> Iterator[Any]:
    """Items in the form the preparation takes, some thousand at a time."""
    if is_table(items) and not isinstance(preparation, GivenPreparation):
        for chunk in as_table(items).chunks(columns):
            yield chunk_items(chunk, preparation, columns)
        return
    for start in range(0, count_items(items), CHUNK_ROWS):
        yield items[start : start + CHUNK_ROWS]


#: Share of the time budget that the choice of a method may take, calibrated intervals aside.
_FOR_CHOICE = 0.8


class Parts(NamedTuple):
    """The fitted objects of a model.

    Attributes
    ----------
    preparation : Preparation
    quantifier : fitted quantifier
    feature_means : array of float, shape (n_features,)
        Means of the prepared matrix over the training items.
    """

    preparation: Preparation
    quantifier: Any
    feature_means: Floats


class Model:
    """A preparation and a quantifier, fitted together.

    Parameters
    ----------
    make_parts : callable without arguments
        Gives the fitted objects; called when they are first needed.
    labels : sequence of str
    summary : TrainingSummary
    provenance : mapping
        Versions, time, and where the training data came from.
    columns : sequence of str, optional
        Which columns of a table the model reads; None if it was not trained on a table.

    Attributes
    ----------
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

    def __init__(
        self,
        make_parts: Callable[[], Parts],
        labels: Iterable[str],
        summary: TrainingSummary,
        *,
        provenance: Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        self._make_parts = make_parts
        self.labels = tuple(labels)
        self.summary = summary
        self.provenance = dict(provenance or {})
        self.columns = None if columns is None else tuple(columns)

    @cached_property
    def _parts(self) -> Parts:
        return self._make_parts()

    @property
    def preparation(self) -> Preparation:
        """From items to a matrix."""
        return self._parts.preparation

    @property
    def quantifier(self) -> Any:
        """From the matrix to prevalences."""
        return self._parts.quantifier

    @property
    def feature_means(self) -> Floats:
        """Means of the prepared matrix over the training items."""
        return self._parts.feature_means

    def __repr__(self) -> str:
        return (
            f"Model({self.summary.method!r}, {len(self.labels)} labels, "
            f"{self.summary.n_items} training items)"
        )

    @classmethod
    def fit(
        cls,
        items: Any,
        Y: Any,
        *,
        labels: Iterable[object] | None = None,
        method: Any = "auto",
        text: str | None = None,
        columns: Sequence[str] | None = None,
        preparation: Any = None,
        time_budget: float | None = None,
        groups: Groups = None,
        source: Mapping[str, Any] | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Model:
        """Learn from labelled items.

        Parameters
        ----------
        items : texts, data frame, columns, records, Table, or matrix
        Y : 0/1 matrix, data frame or list of label sets, one row per item
        labels : sequence of str, optional
            Names of the labels; taken from Y if left out.
        method : str or Quantifier
            ``"auto"``, an expression such as ``"stack(lr)+rq(pcc,svr)"``, or a quantifier.
        text : str, optional
            The column that holds the texts, where the items have columns.
        columns : sequence of str, optional
            The columns to use as features, where the items have columns; all if left out.
        preparation : transformer, optional
            Of scikit-learn; chosen by the items if left out.
        time_budget : float, optional
            Seconds that all of it may take, with ``"auto"``.
        groups : sequence, one entry per item, optional
            The group of each item, as `Quantifier.fit` takes it.
        source : mapping, optional
            Where the items came from, for the record.
        progress : callable, optional
            Called with a short message before each stage. What it raises ends the fit.
        """
        on_stage = progress or (lambda _: None)
        start = time.perf_counter()
        names = (text,) if text is not None else None if columns is None else tuple(columns)
        chosen = preparation_or(preparation, items, names, text is not None)
        Y, label_names = label_matrix(Y, labels)
        # What cannot be understood is refused before the work begins.
        quantifier_of(method)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            on_stage("preparing items")
            X = chosen.fit_transform(training_items(items, chosen, names))
            check_same_length(X.shape[0], "The items", Y.shape[0], "Y")
            spent = time.perf_counter() - start
            quantifier = quantifier_of(method, _left(time_budget, spent))
            options = _fit_options(quantifier, groups=groups, progress=on_stage)
            quantifier.fit(X, Y, labels=label_names, **options)
            # A search is kept as what it found.
            quantifier = getattr(quantifier, "best_quantifier_", quantifier)
        seconds = time.perf_counter() - start
        summary = _summary(chosen, quantifier, Y, seconds, [str(one.message) for one in caught])
        means = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        made = provenance(summary.method, source)
        parts = Parts(chosen, quantifier, means)
        return cls(lambda: parts, label_names, summary, provenance=made, columns=names)

    @property
    def prevalence(self) -> Floats:
        """Share of training items that have each label."""
        return self.summary.prevalence

    def score(self, items: Any) -> Scores:
        """Scores of items, chunk by chunk, as the aggregator reads them."""
        chunks = chunks_of(items, self.preparation, self.columns)
        return self.score_prepared(self.preparation.transform(chunk) for chunk in chunks)

    def score_prepared(self, matrices: Iterable[Any]) -> Scores:
        """Scores of prepared chunks; nothing but the scores is kept, in single precision."""
        return joined(self.quantifier.score(X) for X in self.guarded(matrices))

    def guarded(self, matrices: Iterable[Any]) -> Iterable[Any]:
        """Prepared chunks without columns that are adrift, if the classifier has a guard.

        Of what it sees to here, the guard warns once, and not again chunk by chunk.
        """
        guard = guard_of(getattr(self.quantifier, "classifier_", None))
        if guard is None:
            return matrices
        return guard.transform_many(matrices, self.preparation.get_feature_names_out())

    def quantify(
        self, items: Any, *, interval: float | None = 0.9, groups: Any = None
    ) -> PrevalenceEstimate:
        """Estimate the prevalence of each label, in all items or in each group of them.

        Parameters
        ----------
        items : as in `fit`
        interval : float, optional
            Level of the intervals; None leaves them out.
        groups : Samples, or array of shape (n_items,), optional
            The batches: bags of row numbers, or for each item the name of its batch.
        """
        scores = self.score(items)
        if groups is None:
            found = self.aggregate(scores, Samples.whole(scores.n_items), interval=interval)
            return found.sample(0)
        if isinstance(groups, Samples):
            return self.aggregate(scores, groups, interval=interval)
        samples, names = Samples.by_group(np.asarray(groups))
        check_same_length(scores.n_items, "The items", samples.n_items, "groups")
        return self.aggregate(scores, samples, interval=interval, index=names.tolist())

    def aggregate(
        self,
        scores: Scores,
        samples: Samples,
        *,
        interval: float | None = None,
        index: Sequence[Any] | None = None,
    ) -> PrevalenceEstimate:
        """Estimate the prevalences of samples of items that have been scored."""
        names = list(range(len(samples)) if index is None else index)
        fields = estimate_fields(self.quantifier, scores, samples, interval, names)
        return PrevalenceEstimate(labels=self.labels, index=names, level=interval, **fields)

    def save(self, path: str | Path, *, trusted: Sequence[str] = ()) -> None:
        """Write the model to one file.

        Parameters
        ----------
        path : str or Path
        trusted : sequence of str
            Full names of types beyond those of prevalens and scikit-learn that the file may hold.
        """
        manifest = {
            "labels": list(self.labels),
            "columns": None if self.columns is None else list(self.columns),
            "summary": self.summary.to_dict(),
            "provenance": self.provenance,
        }
        write_model(path, manifest, self._parts._asdict(), trusted)

    @classmethod
    def load(cls, path: str | Path, *, trusted: Sequence[str] = ()) -> Model:
        """Read a model from a file, without running code from it.

        The fitted objects are read from the file when they are first needed.
        """
        page = read_manifest(path)
        try:
            labels = check_label_names(page["labels"], len(page["labels"]))
            summary = TrainingSummary.from_dict(page["summary"])
            provenance, columns = dict(page["provenance"]), page["columns"]
        except (LookupError, TypeError, ValueError) as error:
            raise FormatError(f"{path}: its description is damaged ({error}).") from None
        return cls(
            lambda: _rebuilt(path, page, labels, trusted),
            labels,
            summary,
            provenance=provenance,
            columns=columns,
        )


def _rebuilt(
    path: str | Path, manifest: Mapping[str, Any], labels: tuple[str, ...], trusted: Sequence[str]
) -> Parts:
    found = read_parts(path, manifest, trusted)
    try:
        parts = Parts(**found)
        fits = tuple(parts.quantifier.labels_) == labels
    except (TypeError, AttributeError):
        fits = False
    if not fits or not isinstance(parts.preparation, Preparation):
        raise FormatError(f"{path}: the model in it does not fit its description.")
    return parts


def quantifier_of(method: Any, time_budget: float | None = None) -> Any:
    """The quantifier that a method stands for; one that is named gets calibrated intervals."""
    if isinstance(method, str):
        found = _automatic(time_budget) if method == "auto" else parse(method)
        if isinstance(found, Quantifier) and _reads_scores(found):
            found.set_params(uncertainty=Bootstrap())
        return found
    if not hasattr(method, "fit") or not hasattr(method, "quantify"):
        raise InputError(
            f"A method is 'auto', an expression such as 'lr+pacc', or a Quantifier; got {method!r}."
        )
    return method


def _left(budget: float | None, spent: float) -> float | None:
    """Seconds for the choice of a method; the rest is for what comes before and after."""
    return None if budget is None else max(1.0, _FOR_CHOICE * budget - spent)


def _fit_options(quantifier: Any, **options: Any) -> dict[str, Any]:
    """The options that the quantifier's `fit` takes; a search, for one, takes no callback."""
    taken = {name: value for name, value in options.items() if has_fit_parameter(quantifier, name)}
    if options["groups"] is not None and "groups" not in taken:
        raise InputError(f"{type(quantifier).__name__} cannot keep groups of items together.")
    return taken


def _reads_scores(quantifier: Quantifier) -> bool:
    """Whether intervals can be calibrated in reasonable time: not on the items themselves."""
    return quantifier.is_automatic or quantifier.resolved_parts()[1].consumes != "features"


def _automatic(time_budget: float | None) -> Quantifier:
    return Quantifier() if time_budget is None else Quantifier(time_budget=time_budget)


def _summary(
    preparation: Preparation,
    quantifier: Any,
    Y: LabelMatrix,
    seconds: float,
    warned: Sequence[str],
) -> TrainingSummary:
    return TrainingSummary(
        n_items=len(Y),
        n_features=preparation.n_features_,
        positives=tuple(Y.sum(axis=0, dtype=np.int64).tolist()),
        cardinality=float(Y.sum(dtype=np.int64)) / len(Y),
        method=_name(quantifier),
        group=quantifier.group,
        preparation=preparation.describe(),
        kind=preparation.kind,
        seconds=seconds,
        warnings=tuple(dict.fromkeys(warned)),
    )


def _name(quantifier: Any) -> str:
    """The method's name; of an automatic choice, that of what was chosen."""
    choice = getattr(quantifier, "choice_", None)
    return str(quantifier.name if choice is None else choice.name)
