"""Compare methods in cross-validation on the user's data; the result is a Leaderboard."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from prevalens._version import __version__
from prevalens.aggregators.external import without_intervals
from prevalens.catalogue import parse
from prevalens.charts import Dots, draw, frame, table
from prevalens.cluster import computing_on_cluster
from prevalens.collection import label_matrix
from prevalens.errors import InputError, PrevalensError, PrevalensWarning
from prevalens.expression import expression_of, to_text
from prevalens.metrics import ae
from prevalens.model.evaluate import DEFAULT_PROTOCOLS, protocols_of, sample_size
from prevalens.model.items import (
    filled,
    labelled_preparation,
    preparation_for,
    training_items,
)
from prevalens.model.labelled import LabelledColumns, read_labelled
from prevalens.model.model import reading_features
from prevalens.model.progress import Cancelled, CancelledError, Progress, Watch
from prevalens.parallel import compute, is_elsewhere
from prevalens.protocols import Protocol
from prevalens.quantifier import Quantifier
from prevalens.scores import Kind
from prevalens.splits import stratified_folds
from prevalens.types import Floats, Groups, Ints, Items, LabelMatrix, Labels
from prevalens.validation import check_int, check_same_length, take_items


@dataclass(frozen=True)
class Place:
    """The place of a method in a leaderboard.

    Attributes
    ----------
    rank : int
    method : str
    error : float
        Mean absolute error over kinds of shift and folds.
    spread : float
        Standard deviation of that error over the folds.
    by_protocol : mapping of str to float
    behind : float
        Mean difference to the error of the best method.
    tied : bool
        Whether this difference is within two standard errors of zero.
    seconds : float
        Mean time of training and estimating in a fold.
    """

    rank: int
    method: str
    error: float
    spread: float
    by_protocol: Mapping[str, float]
    behind: float
    tied: bool
    seconds: float


@dataclass(frozen=True)
class Leaderboard:
    """Errors of several methods in cross-validation.

    Attributes
    ----------
    methods, protocols : tuple of str
    errors : array of float, shape (n_methods, n_folds, n_protocols)
        Mean absolute errors.
    seconds : array of float, shape (n_methods, n_folds)
    n_items, n_labels, size : int
        Labelled items, labels, and items per sample.
    failures : mapping of str to str
        Methods that could not be trained, and why.
    provenance : mapping of str to str
    title : str
    """

    methods: tuple[str, ...]
    protocols: tuple[str, ...]
    errors: Floats
    seconds: Floats
    n_items: int
    n_labels: int
    size: int
    failures: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    title: str = "Methods compared on this data"

    @property
    def by_fold(self) -> Floats:
        """Error of each method in each fold, over kinds of shift, shape (n_methods, n_folds)."""
        return self.errors.mean(axis=2)

    @property
    def best(self) -> str:
        """The method with the smallest error."""
        return self.places()[0].method

    def places(self) -> list[Place]:
        """The methods from best to worst."""
        by_fold = self.by_fold
        means = by_fold.mean(axis=1)
        order = np.argsort(means, kind="stable")
        best = by_fold[order[0]]
        return [
            Place(
                rank=rank,
                method=self.methods[i],
                error=float(means[i]),
                spread=_deviation(by_fold[i]),
                by_protocol=dict(
                    zip(self.protocols, self.errors[i].mean(axis=0).tolist(), strict=True)
                ),
                behind=float(means[i] - means[order[0]]),
                tied=_tied(by_fold[i] - best),
                seconds=float(self.seconds[i].mean()),
            )
            for rank, i in enumerate(order.tolist(), start=1)
        ]

    def to_dict(self) -> dict[str, Any]:
        """The figures for JSON."""
        return {
            "n_items": self.n_items,
            "n_labels": self.n_labels,
            "n_folds": self.errors.shape[1],
            "size": self.size,
            "places": [
                {**vars(place), "by_protocol": dict(place.by_protocol)} for place in self.places()
            ],
            "failures": dict(self.failures),
            "provenance": dict(self.provenance),
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One flat row per method."""
        return [
            {name: value for name, value in vars(place).items() if name != "by_protocol"}
            | {f"error_{name}": value for name, value in place.by_protocol.items()}
            for place in self.places()
        ]

    def to_frame(self, backend: str = "pandas") -> Any:
        """One row per method, as a pandas or polars frame."""
        rows = self.to_rows()
        return frame({name: [row[name] for row in rows] for name in rows[0]}, backend)

    def dots(self) -> Dots:
        """The errors with their spread over the folds, the best first."""
        places = self.places()
        error = np.array([place.error for place in places])
        spread = np.array([place.spread for place in places])
        names = [place.method for place in places]
        low = np.maximum(error - spread, 0.0)
        return Dots(names, error, low, error + spread, axis="mean absolute error", title=self.title)

    def plot(self, backend: str = "matplotlib", *, ax: Any = None) -> Any:
        """Draw the errors with their spread in matplotlib or altair."""
        return draw(self.dots(), backend, ax=ax)

    def _repr_html_(self) -> str:
        return table(self.dots())


def _deviation(values: Floats) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _tied(differences: Floats) -> bool:
    """Whether a mean difference over folds is within two standard errors of zero.

    Folds share most of their training items, so their variance is enlarged as Nadeau and Bengio
    (2003) do it.
    """
    n = len(differences)
    if n < 2 or not differences.any():
        return True
    variance = differences.var(ddof=1) * (1 / n + 1 / (n - 1))
    return bool(abs(differences.mean()) <= 2 * np.sqrt(variance))


#: Seconds that the automatic choice may take in each fold.
AUTO_BUDGET = 60.0
#: The automatic choice, the training prevalence, counting, corrections label by label, and joint
#: corrections.
DEFAULT_METHODS = (
    "auto",
    "naive",
    "lr+cc",
    "lr+pcc",
    "lr+pacc",
    "lr+sld",
    "lr+rq(pcc,ridge)",
    "lr+mixture",
    "stack(lr)+rq(pcc,ridge)",
)
#: The same for scores of labellers; counting is then what the labellers say.
DEFAULT_SCORE_METHODS = (
    "auto(given)",
    "naive",
    *(f"given+{code}" for code in ("cc", "pcc", "acc", "pacc", "sld", "rq(pcc,ridge)", "mixture")),
)


def compare_files(
    paths: str | Path | Iterable[str | Path],
    methods: str | Sequence[str] | None = None,
    *,
    min_positives: int = 5,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
    **settings: Any,
) -> Leaderboard:
    """Compare methods on labelled items in files.

    Parameters
    ----------
    paths : path, pattern or folder, or several
    methods : str or sequence of str, optional
        Expressions; in a single str, separated by semicolons. Default: `DEFAULT_METHODS`, or
        `DEFAULT_SCORE_METHODS` if the items are scores.
    min_positives : int
        Labels with fewer positive items take no part.
    progress, cancelled : callable, optional
        As in `fit_files`.
    **settings
        Columns as in `fit_files` (`text`, `features`, `scores`, `scores_tags`, `labels`, `tags`,
        `sep`, `id`, `group`, `reading`), and settings as in `compare_methods`.
    """
    names = [name for name in LabelledColumns.__annotations__ if name in settings]
    columns = {name: settings.pop(name) for name in names}
    data = read_labelled(paths, watch=Watch(progress, cancelled), **columns)
    if methods is None:
        methods = DEFAULT_METHODS if data.scores is None else DEFAULT_SCORE_METHODS
    kept = np.flatnonzero(data.Y.sum(axis=0, dtype=np.int64) >= min_positives)
    if not kept.size:
        raise InputError(f"No label has {min_positives} positive items in {data.items.source}.")
    preparation = labelled_preparation(data, kept.tolist())
    return compare_methods(
        training_items(data.items, preparation, data.columns),
        data.Y[:, kept],
        methods,
        preparation=preparation,
        groups=data.groups,
        progress=progress,
        cancelled=cancelled,
        source={"labelled items": data.file_names},
        **settings,
    )


def compare_methods(
    items: Items,
    Y: Labels,
    methods: str | Sequence[Any] = DEFAULT_METHODS,
    *,
    preparation: Any = None,
    groups: Groups = None,
    folds: int = 5,
    protocols: str | Sequence[str] = DEFAULT_PROTOCOLS,
    size: int | None = None,
    n_samples: int = 300,
    time_budget: float = AUTO_BUDGET,
    seed: int = 0,
    scheduler: str | None = None,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
    source: Mapping[str, str] | None = None,
) -> Leaderboard:
    """Compare methods in cross-validation.

    Parameters
    ----------
    items : texts, columns, data frame or matrix, one row per item
    Y : 0/1 matrix, data frame or list of label sets, one row per item
    methods : str or sequence of str
        Expressions such as ``"lr+cc;lr+pacc"``; ``auto`` is what `Quantifier()` does.
    preparation : transformer, optional
        A transformer of scikit-learn; chosen by the items if omitted. It is fitted once, on all
        items and without labels.
    groups : sequence, one entry per item, optional
        The group of each item; no method is tested on items of a group that it was trained on.
    folds : int
    protocols : str or sequence of str
        Families of shifts; all have the same weight.
    size : int, optional
        Items per sample: 100, or a third of a fold if that is less.
    n_samples : int
        Samples per fold and protocol.
    time_budget : float
        Seconds that ``auto`` may take in each fold on an ordinary core; ``auto(time_budget=...)``
        has its own.
    seed : int
    scheduler : str, optional
        Address of a Dask scheduler whose workers compute, or ``local`` for processes on this
        machine: methods with different classifiers, and folds, at the same time. The errors are
        the same.
    progress, cancelled : callable, optional
        As in `fit_files`.
    source : mapping of str to str, optional
        Where the items came from, for the record.

    Notes
    -----
    Methods that read the same scores of the same classifier share its training, so that only
    the first of them pays for it in `seconds`. A method that cannot be trained is reported and
    left out; an error is raised only if none can.

    Examples
    --------
    >>> from prevalens.datasets.tickets import tickets
    >>> data = tickets(400, 10, months=1)
    >>> board = compare_methods(data.train.X, data.train.Y, "naive;lr+pcc", folds=2, n_samples=50)
    >>> board.best
    'lr+pcc'
    """
    names = _names(methods, preparation)
    Y, _ = label_matrix(Y, None)
    groups = None if groups is None else np.asarray(groups)
    of_item = stratified_folds(Y, check_int(folds, "folds", minimum=2), seed=seed, groups=groups)
    size = sample_size(int(np.bincount(of_item).min()), size)
    chosen = protocols_of(protocols, size=size, n_samples=n_samples)
    watch = Watch(progress, cancelled)
    watch.step("preparing", 0, len(names) * folds, len(Y))
    X = _prepared(items, preparation)
    check_same_length(X.shape[0], "The items", len(Y), "Y")
    rules = _Rules(groups, of_item, chosen, seed, time_budget)
    with computing_on_cluster(scheduler, waiting=watch.check):
        compare = _outcomes_elsewhere if is_elsewhere() else _outcomes
        errors = _ErrorTable(names, rules, compare(names, X, Y, rules, watch))
    return errors.result(
        n_items=len(Y),
        n_labels=Y.shape[1],
        size=size,
        provenance={
            **(source or {}),
            "folds": str(folds),
            "samples": f"{n_samples} per fold and kind of shift",
            **({"auto": f"at most {time_budget:g} s per fold"} if "auto" in names else {}),
            "seed": str(seed),
            "prevalens": __version__,
        },
    )


def _names(methods: str | Sequence[Any], preparation: Any) -> list[str]:
    """The methods, each once, as expressions that read what the preparation makes."""
    given = methods.split(";") if isinstance(methods, str) else methods
    names = list(dict.fromkeys(str(name).strip() for name in given if str(name).strip()))
    if not names:
        raise InputError("Name at least one method, such as lr+pacc; several with ; between them.")
    parsed = {name: parse(name) for name in names}
    read = {name: reading_features(method, preparation) for name, method in parsed.items()}
    return [name if read[name] is parsed[name] else read[name].name for name in names]


def _prepared(items: Items, given: Any) -> Items:
    chosen = preparation_for(items, None, text=False, given=given)
    # Items that come with a preparation are in the form it takes.
    return chosen.fit_transform(training_items(items, chosen, None) if given is None else items)


class _FoldResult(NamedTuple):
    """How a method did in a fold: its error by protocol, its time, or why it failed."""

    name: str
    fold: int
    errors: Sequence[float] = ()
    seconds: float = 0.0
    failure: str = ""


class _Rules(NamedTuple):
    """How methods are compared: the groups and folds of items, and the samples of a fold."""

    groups: Groups
    of_item: Ints
    protocols: Mapping[str, Protocol]
    seed: int
    time_budget: float

    @property
    def n_folds(self) -> int:
        return int(self.of_item.max()) + 1


class _Fold:
    """Items to train on, and the items of a fold, from which samples are drawn."""

    def __init__(self, X: Items, Y: LabelMatrix, rules: _Rules, fold: int) -> None:
        inside = rules.of_item == fold
        self.X, self.pool_X = take_items(X, ~inside), take_items(X, inside)
        self.Y, self.pool_Y = Y[~inside], Y[inside]
        self.groups = None if rules.groups is None else rules.groups[~inside]
        self.time_budget, self.fold = rules.time_budget, fold
        self.samples = [
            protocol.with_items(filled(self.pool_X)).draw(
                self.pool_Y, np.random.default_rng([rules.seed, fold, number])
            )
            for number, protocol in enumerate(rules.protocols.values())
        ]
        self._labelled: dict[tuple[str, ...], Any] = {}

    def sharing(self, quantifier: Quantifier) -> Quantifier:
        """The quantifier with a scheme that shares classifiers trained on this fold."""
        if not quantifier.is_automatic:
            scheme = _SharedScheme(quantifier.scheme_or_default(), self._labelled)
            quantifier.set_params(scheme=scheme)
        return quantifier

    def outcome(self, name: str, progress: Callable[[str], None] | None = None) -> _FoldResult:
        """Train a method on the other folds, and compare its estimates in this one."""
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrevalensWarning)
                quantifier = self.sharing(without_intervals(parse(name)))
                if quantifier.is_automatic and "time_budget" not in name:
                    quantifier.set_params(time_budget=self.time_budget)
                quantifier.fit(self.X, self.Y, groups=self.groups, progress=progress)
                scores = quantifier.score(self.pool_X)
        except CancelledError:
            raise
        except PrevalensError as error:
            return _FoldResult(name, self.fold, failure=str(error))
        errors = []
        for drawn in self.samples:
            estimated = quantifier.aggregate(scores, drawn).point
            errors.append(float(ae(drawn.mean(self.pool_Y), estimated).mean()))
        return _FoldResult(name, self.fold, errors, time.perf_counter() - start)


def _outcomes(
    names: Sequence[str], X: Items, Y: LabelMatrix, rules: _Rules, watch: Watch
) -> Iterator[_FoldResult]:
    """All methods in all folds, one after the other; without those that failed before."""
    failed: set[str] = set()
    total = len(names) * rules.n_folds
    for fold in range(rules.n_folds):
        pool = _Fold(X, Y, rules, fold)
        for number, name in enumerate(names):
            on_stage = watch.within(name, fold * len(names) + number, total, len(Y))
            if name not in failed:
                outcome = pool.outcome(name, on_stage)
                failed |= {name} if outcome.failure else set()
                yield outcome


def _outcomes_elsewhere(
    names: Sequence[str], X: Items, Y: LabelMatrix, rules: _Rules, watch: Watch
) -> Iterator[_FoldResult]:
    """As `_outcomes`; in each fold, the methods that share a classifier are one task."""
    together: dict[str, list[str]] = {}
    for name in names:
        classifier = parse(name).expression.classifier
        together.setdefault(name if classifier is None else to_text(classifier), []).append(name)
    tasks = [
        (rules, fold, methods) for fold in range(rules.n_folds) for methods in together.values()
    ]
    found = compute(
        _outcomes_of_task,
        (X, Y),
        tasks,
        progress=lambda done: watch.step("comparing", done, len(tasks), len(Y)),
    )
    return chain.from_iterable(found)


def _outcomes_of_task(
    X: Items, Y: LabelMatrix, rules: _Rules, fold: int, names: Sequence[str]
) -> list[_FoldResult]:
    pool = _Fold(X, Y, rules, fold)
    return [pool.outcome(name) for name in names]


class _SharedScheme:
    """A scheme that trains each classifier once for all aggregators that read the same scores."""

    def __init__(self, scheme: Any, known: dict[tuple[str, ...], Any]) -> None:
        self.scheme, self.known = scheme, known

    def fit(
        self, classifier: Any, X: Items, Y: LabelMatrix, kind: Kind, *, groups: Any = None
    ) -> Any:
        """The labelled scores and the classifier of the scheme, computed once for each kind."""
        parts = (expression_of(classifier), expression_of(self.scheme))
        key = (*map(to_text, parts), kind)
        if key not in self.known:
            self.known[key] = self.scheme.fit(classifier, X, Y, kind, groups=groups)
        return self.known[key]


class _ErrorTable:
    """Errors and times of methods, by fold."""

    def __init__(self, names: list[str], rules: _Rules, outcomes: Iterable[_FoldResult]) -> None:
        self.names = names
        self.protocols = tuple(protocol.name for protocol in rules.protocols.values())
        self.errors = np.full((len(names), rules.n_folds, len(self.protocols)), np.nan)
        self.seconds = np.zeros((len(names), rules.n_folds))
        self.failures: dict[str, str] = {}
        for outcome in outcomes:
            if outcome.failure:
                self.failures.setdefault(outcome.name, outcome.failure)
                continue
            number = names.index(outcome.name)
            self.errors[number, outcome.fold] = outcome.errors
            self.seconds[number, outcome.fold] = outcome.seconds

    def result(self, **more: Any) -> Leaderboard:
        kept = [i for i, name in enumerate(self.names) if name not in self.failures]
        if not kept:
            name, why = next(iter(self.failures.items()))
            raise InputError(f"No method could be trained; {name}: {why}")
        return Leaderboard(
            methods=tuple(self.names[i] for i in kept),
            protocols=self.protocols,
            errors=self.errors[kept],
            seconds=self.seconds[kept],
            failures=self.failures,
            **more,
        )
