"""Labelled scores for the aggregator: scores of items that the classifier was not trained on.

Scores of the training items themselves are too good: an aggregator that learns from them
overestimates the classifier. `CrossFit` scores every item by a classifier
trained on the other folds, `HoldOut` holds some items out. All parts of the package that
need such scores call `out_of_fold`, which trains and scores.

Items that depend on each other (several rows of one person, copies of one text) leak through any
division that separates them. With ``groups``, the items of one group stay on one side.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator

from prevalens.parallel import compute
from prevalens.response import constant_labels, offers, response, train, weighted_prior
from prevalens.scores import Kind, Scores
from prevalens.splits import stratified_folds, stratified_holdout
from prevalens.types import Classifier, Groups, Ints, Items, LabelMatrix, Labels, Progress, Settings
from prevalens.validation import (
    InputError,
    PrevalensWarning,
    check_binary_matrix,
    check_choice,
    check_fraction,
    check_int,
    check_same_length,
    column_names,
    count_items,
    take_items,
)

#: Maximum number of labels that a warning names.
_NAMED = 10
#: A warning names copies if they are at least this share of the items, and at least this many.
_MANY_COPIES, _FEWEST_COPIES = 0.1, 20

#: Rows to train on, rows to score.
Division: TypeAlias = tuple[Ints, Ints]


@runtime_checkable
class TrainsTogether(Protocol):
    """A classifier that trains several settings of itself in less time than one after the other."""

    def fit_settings(
        self, settings: Sequence[Settings], X: Items, Y: LabelMatrix
    ) -> Iterator[Classifier]:
        """One fitted classifier per setting, in that order."""


def trains_together(classifier: object) -> TypeGuard[TrainsTogether]:
    """Tell whether a classifier trains several settings together.

    On Python 3.11 `isinstance` asks the class alone; the method may not be available in this object
    (``PerLabel`` around an estimator that was given).
    """
    return isinstance(classifier, TrainsTogether) and hasattr(classifier, "fit_settings")


def fit_settings(
    classifier: Classifier, settings: Sequence[Settings], X: Items, Y: LabelMatrix
) -> Iterator[Classifier]:
    """Train one classifier with each of several settings; yields them in that order.

    A classifier that `TrainsTogether` shares the work between them (the batched logistic
    regression solves all at once); any other is cloned and trained once per setting.
    """
    if trains_together(classifier):
        yield from classifier.fit_settings(settings, X, Y)
        return
    for setting in settings:
        yield train(clone(classifier).set_params(**setting), X, Y)


@dataclass(frozen=True)
class LabelledScores:
    """A trained classifier, and scores of labelled items that it was not trained on.

    Parameters
    ----------
    classifier : fitted classifier
        The classifier that scores new items.
    by_kind : mapping from kind to Scores
        Scores of the items in `rows`, for each requested kind.
    rows : array of int
        Row numbers of the labelled items that have scores.
    folds : array of int, optional
        Which classifier scored each item; None if there was a single one.
    """

    classifier: Classifier
    by_kind: Mapping[Kind, Scores]
    rows: Ints
    folds: Ints | None = None

    @property
    def scores(self) -> Scores:
        """The scores, if a single kind was requested."""
        if len(self.by_kind) != 1:
            raise InputError(f"There are scores of {' and '.join(self.by_kind)}; use by_kind.")
        return next(iter(self.by_kind.values()))


class Scheme(BaseEstimator, ABC):  # type: ignore[misc]
    """A way to get labelled scores of items the classifier has not trained on.

    A subclass declares `refits` and implements `divide`.

    Attributes
    ----------
    refits : bool
        True if the final classifier is trained on all items, after those that give the scores.
    random_state : int
    n_jobs : int, optional
        Divisions trained at the same time.
    """

    refits: bool
    random_state: int = 0
    n_jobs: int | None = None

    @abstractmethod
    def divide(self, Y: LabelMatrix, groups: Groups = None) -> list[Division]:
        """Rows to train on and rows to score, in one or more ways; no row is scored twice.

        With `groups`, the items of one group are all on the same side.
        """

    def fit(
        self,
        classifier: Classifier,
        X: Items,
        Y: Labels,
        kinds: Kind | Iterable[Kind] = "posteriors",
        *,
        groups: Groups = None,
    ) -> LabelledScores:
        """Train the classifier and score labelled items.

        Parameters
        ----------
        classifier : multi-label classifier
            It is cloned. A :class:`sklearn.frozen.FrozenEstimator` is trained already: it scores
            all items, on which it must not have been trained.
        X : matrix, data frame or list of texts
        Y : 0/1 array, shape (n_items, n_labels)
        kinds : {"votes", "posteriors"} or several of them
            The classifier is trained once for all kinds.
        groups : sequence, one entry per item, optional
            Items of one group are never both trained on and scored.
        """
        return self.fit_settings(classifier, [{}], X, Y, kinds, groups=groups)[0]

    def fit_settings(
        self,
        classifier: Classifier,
        settings: Sequence[Settings],
        X: Items,
        Y: Labels,
        kinds: Kind | Iterable[Kind] = "posteriors",
        *,
        groups: Groups = None,
    ) -> list[LabelledScores]:
        """The result of `fit` for each of several settings of a classifier.

        All settings see the same division, and share the work where the classifier
        `TrainsTogether`.
        """
        names = column_names(Y)
        Y = check_binary_matrix(Y)
        check_same_length(count_items(X), "X", Y.shape[0], "Y")
        requested = _check_kinds(classifier, kinds)
        if isinstance(classifier, FrozenEstimator):
            scores = _score(classifier, X, Y.shape[1], requested)
            return [LabelledScores(classifier, scores, np.arange(len(Y)))] * len(settings)
        divisions = self.divide(Y, groups)
        warn_of_constant_labels(Y, divisions, names)
        return out_of_fold(
            classifier,
            X,
            Y,
            divisions,
            requested,
            settings=settings,
            refit=self.refits,
            n_jobs=self.n_jobs,
        )


class CrossFit(Scheme):
    """Score each fold by a classifier trained on the others; train the final one on all items.

    Parameters
    ----------
    n_folds : int
    order : {1, 2}
        1 balances labels in the stratification, 2 balances pairs of labels too.
    random_state : int
    n_jobs : int, optional
        Classifiers trained at the same time; there are `n_folds` + 1.

    Notes
    -----
    Costs `n_folds` + 1 times one training. The scores come from classifiers trained on fewer items
    than the final one, so they are slightly too pessimistic; more folds lessen that.

    References
    ----------
    Forman, "Quantifying counts and costs via classification", Data Mining and Knowledge
    Discovery 17(2), 2008 (cross-validated rates); Sechidis et al., "On the stratification of
    multi-label data", ECML 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = np.arange(20.0)[:, np.newaxis]
    >>> Y = np.hstack([X >= 10, X % 2 == 0])
    >>> labelled = CrossFit(4).fit(DecisionTreeClassifier(), X, Y, "votes")
    >>> labelled.scores.values.shape
    (20, 2)
    """

    code = "crossfit"
    refits = True

    def __init__(
        self,
        n_folds: int = 5,
        *,
        order: int = 1,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_folds = n_folds
        self.order = order
        self.random_state = random_state
        self.n_jobs = n_jobs

    def divide(self, Y: LabelMatrix, groups: Groups = None) -> list[Division]:
        """Each fold against the others."""
        n_folds = check_int(self.n_folds, "n_folds", minimum=2)
        return divisions_of(
            stratified_folds(Y, n_folds, order=self.order, seed=self.random_state, groups=groups)
        )


class HoldOut(Scheme):
    """Score the items that were kept from the classifier.

    Parameters
    ----------
    fraction : float
        Share of the items to keep; the paper's value is 0.4.
    refit : bool
        Whether the final classifier is trained again, on all items. The scores then come
        from another classifier than the one that answers later.
    order : {1, 2}
        1 balances labels in the stratification, 2 balances pairs of labels too.
    random_state : int

    Notes
    -----
    Costs one training, two with `refit`. Rare labels may have few items among those kept.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = np.arange(20.0)[:, np.newaxis]
    >>> Y = np.hstack([X >= 10, X % 2 == 0])
    >>> labelled = HoldOut(0.4).fit(DecisionTreeClassifier(), X, Y)
    >>> labelled.scores.values.shape
    (8, 2)
    """

    code = "holdout"

    def __init__(
        self,
        fraction: float = 0.4,
        *,
        refit: bool = False,
        order: int = 1,
        random_state: int = 0,
    ) -> None:
        self.fraction = fraction
        self.refit = refit
        self.order = order
        self.random_state = random_state

    @property
    def refits(self) -> bool:  # type: ignore[override]
        """Whether the final classifier is trained on all items."""
        return self.refit

    def divide(self, Y: LabelMatrix, groups: Groups = None) -> list[Division]:
        """The rest against the items kept."""
        fraction = check_fraction(self.fraction, "fraction")
        return [
            stratified_holdout(Y, fraction, order=self.order, seed=self.random_state, groups=groups)
        ]


def divisions_of(fold_of: Ints) -> list[Division]:
    """Each fold against all others, from the fold of every item, shape (n_items,)."""
    return [
        (np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold))
        for fold in range(int(fold_of.max()) + 1)
    ]


def out_of_fold(
    classifier: Classifier,
    X: Items,
    Y: LabelMatrix,
    divisions: Sequence[Division],
    kinds: Sequence[Kind] = ("posteriors",),
    *,
    settings: Sequence[Settings] = ({},),
    refit: bool = True,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> list[LabelledScores]:
    """Train a classifier on each division and score the rows it has not seen.

    Parameters
    ----------
    classifier : multi-label classifier
    X : items
    Y : 0/1 array of int8, shape (n_items, n_labels)
    divisions : list of (rows to train on, rows to score)
        No row may be scored twice.
    kinds : list of {"votes", "posteriors"}
    settings : list of dict
        Parameters of the classifier; each setting gives one result.
    refit : bool
        Whether a final classifier is trained on all items; otherwise the classifier of the last
        division is returned.
    n_jobs : int, optional
        Divisions trained at the same time.
    progress : callable, optional
        Called with "fold 1 of 5" and so on, before a division is trained; if several are trained
        at the same time, when the one before is done.

    Returns
    -------
    list of LabelledScores
        One per setting.
    """
    everything, nothing = np.arange(len(Y)), np.zeros(0, dtype=np.int64)
    work = [*divisions, (everything, nothing)] if refit else list(divisions)

    def on_done(number: int) -> None:
        if progress is not None and number < len(divisions):
            progress(f"fold {number + 1} of {len(divisions)}")

    tasks = [
        # Only the last classifier is kept, so that others need not travel between processes.
        (classifier, settings, kinds, rest, held, number == len(work) - 1)
        for number, (rest, held) in enumerate(work)
    ]
    results = compute(_train_and_score, (X, Y), tasks, n_jobs=n_jobs, progress=on_done)
    rows = np.concatenate([held for _, held in divisions])
    order = np.argsort(rows, kind="stable")
    fold_of = np.repeat(np.arange(len(divisions)), [len(held) for _, held in divisions])
    folds = fold_of[order] if len(divisions) > 1 else None
    labelled = []
    for number in range(len(settings)):
        parts = [result[number][1] for result in results[: len(divisions)]]
        final = results[-1][number][0]
        prior = weighted_prior(final, Y)
        by_kind = {
            kind: replace(Scores.concat([part[kind] for part in parts]).take(order), prior=prior)
            for kind in kinds
        }
        labelled.append(LabelledScores(final, by_kind, rows[order], folds))
    return labelled


def _train_and_score(
    X: Items,
    Y: LabelMatrix,
    classifier: Classifier,
    settings: Sequence[Settings],
    kinds: Sequence[Kind],
    rest: Ints,
    held: Ints,
    keep: bool,
) -> list[tuple[Classifier | None, dict[Kind, Scores]]]:
    """For each setting: the trained classifier if it is to be kept, and the scores of `held`."""
    X_rest, X_held = take_items(X, rest), take_items(X, held)
    fitted = (
        [train(classifier, X_rest, Y[rest])]
        if list(settings) == [{}]
        else fit_settings(classifier, settings, X_rest, Y[rest])
    )
    return [
        (
            trained if keep else None,
            _score(trained, X_held, Y.shape[1], kinds) if len(held) else {},
        )
        for trained in fitted
    ]


def _score(
    classifier: Classifier, X: Items, n_labels: int, kinds: Sequence[Kind]
) -> dict[Kind, Scores]:
    return {kind: response(classifier, X, kind, n_labels) for kind in kinds}


def _check_kinds(classifier: Classifier, kinds: Kind | Iterable[Kind]) -> tuple[Kind, ...]:
    requested: tuple[Kind, ...] = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    offered = offers(classifier)
    for kind in requested:
        check_choice(kind, "kinds", ("votes", "posteriors"))
        if kind not in offered:
            raise InputError(
                f"{type(classifier).__name__} offers no {kind}, only "
                f"{' and '.join(sorted(offered)) or 'nothing'}."
            )
    return requested


def warn_of_constant_labels(
    Y: LabelMatrix, divisions: Sequence[Division], names: Iterable[object] | None = None
) -> None:
    """Warn of labels that are constant in a training part, and in how many divisions."""
    times = np.sum([constant_labels(Y[rest]) for rest, _ in divisions], axis=0)
    affected = np.flatnonzero(times)
    if len(affected) == 0:
        return
    labels = list(range(Y.shape[1]) if names is None else names)
    named = [f"{labels[j]} (in {times[j]} of {len(divisions)})" for j in affected[:_NAMED]]
    more = f" and {len(affected) - _NAMED} more" if len(affected) > _NAMED else ""
    warnings.warn(
        f"Labels without both a positive and a negative item in a training part: "
        f"{', '.join(named)}{more}. The classifier answers their constant value there; drop such "
        "labels or give more items of them.",
        PrevalensWarning,
        stacklevel=3,
    )


def warn_of_copies(X: Items, Y: LabelMatrix) -> None:
    """Warn if many items are exact copies of others, which any division may separate.

    A copy has the same features (or text) and the same labels as an earlier item. The warning
    is given if copies are at least 10 % of the items, and at least 20. Data frames are not checked.
    """
    if len(Y) < 2 * _FEWEST_COPIES:
        return
    rows: Iterator[object]
    if sp.issparse(X):
        ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        rows = ((X.indices[i:j].tobytes(), X.data[i:j].tobytes()) for i, j in ends)
    elif isinstance(X, np.ndarray):
        rows = (row if isinstance(row, str) else row.tobytes() for row in X)
    else:
        return
    distinct = {hash((row, labels.tobytes())) for row, labels in zip(rows, Y, strict=True)}
    n_copies = len(Y) - len(distinct)
    if n_copies >= max(_FEWEST_COPIES, _MANY_COPIES * len(Y)):
        warnings.warn(
            f"{n_copies} of {len(Y)} items are exact copies of others. Copies on both sides of a "
            "division make a classifier look better than it is; drop them, or name the items that "
            "belong together with `groups=`.",
            PrevalensWarning,
            stacklevel=4,
        )
