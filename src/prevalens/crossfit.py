"""How labelled scores for the second stage arise: scores of items the classifier did not train on.

Scores of the training items themselves are too good: an aggregator that learns from them
believes the classifier better than it is. `CrossFit` scores every item by a classifier
trained on the other folds, `HoldOut` keeps some items aside.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from prevalens.response import constant_labels, offers, response, train
from prevalens.scores import Kind, Scores
from prevalens.splits import stratified_folds, stratified_holdout
from prevalens.types import LabelMatrix
from prevalens.validation import (
    InputError,
    PrevalensWarning,
    check_binary_matrix,
    check_choice,
    check_fraction,
    check_int,
    check_same_length,
    count_items,
    take_items,
)

__all__ = [
    "CrossFit",
    "Division",
    "HoldOut",
    "LabelledScores",
    "Scheme",
    "train_and_score",
    "warn_of_constant_labels",
]

#: How many labels a warning names before it says "and so on".
_NAMED = 10

#: Rows to train on, rows to score.
Division: TypeAlias = tuple[npt.NDArray[Any], npt.NDArray[Any]]


@dataclass(frozen=True)
class LabelledScores:
    """A trained classifier, and honest scores of labelled items.

    Parameters
    ----------
    classifier : fitted classifier
        The one to be asked about new items.
    by_kind : mapping from kind to Scores
        Of the items in `rows`, one entry per kind asked for.
    rows : array of int
        Which of the labelled items they are.
    folds : array of int, optional
        Which of several classifiers scored each of them; None if there was one.
    """

    classifier: Any
    by_kind: Mapping[Kind, Scores]
    rows: npt.NDArray[np.intp]
    folds: npt.NDArray[np.intp] | None = None

    @property
    def scores(self) -> Scores:
        """The scores, where one kind was asked for."""
        if len(self.by_kind) != 1:
            raise InputError(f"There are scores of {' and '.join(self.by_kind)}; use by_kind.")
        return next(iter(self.by_kind.values()))


class Scheme(BaseEstimator, ABC):  # type: ignore[misc]
    """A way to get labelled scores of items the classifier has not trained on.

    Attributes
    ----------
    refits : bool
        Whether the final classifier is trained on all items, after those that give the scores.
    """

    refits: bool
    n_jobs: int | None = None

    @abstractmethod
    def divide(self, Y: LabelMatrix) -> list[Division]:
        """Rows to train on and rows to score, in one or more ways; no row is scored twice."""

    def fit(
        self, classifier: Any, X: Any, Y: Any, kinds: Kind | Iterable[Kind] = "posteriors"
    ) -> LabelledScores:
        """Train the classifier and score labelled items.

        Parameters
        ----------
        classifier : multi-label classifier
            It is cloned. A :class:`sklearn.frozen.FrozenEstimator` is trained already: it is
            asked about all items, which it must not have been trained on.
        X : matrix, data frame or list of texts
        Y : 0/1 array, shape (n_items, n_labels)
        kinds : {"votes", "posteriors"} or several of them
            However many are asked for, nothing is trained twice.
        """
        names = getattr(Y, "columns", None)
        Y = check_binary_matrix(Y)
        check_same_length(count_items(X), "X", Y.shape[0], "Y")
        asked = _check_kinds(classifier, kinds)
        if isinstance(classifier, FrozenEstimator):
            scores = _score(classifier, X, Y.shape[1], asked)
            return LabelledScores(classifier, scores, np.arange(len(Y)))
        divisions = self.divide(Y)
        warn_of_constant_labels(Y, divisions, names)
        return train_and_score(
            classifier, X, Y, divisions, asked, refit=self.refits, n_jobs=self.n_jobs
        )


class CrossFit(Scheme):
    """Score each fold by a classifier trained on the others; train the final one on all items.

    Parameters
    ----------
    n_folds : int
    order : int
        Of the iterative stratification: 1 keeps each label's share in every fold, 2 each
        pair's.
    seed : int
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
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_folds = n_folds
        self.order = order
        self.seed = seed
        self.n_jobs = n_jobs

    def divide(self, Y: LabelMatrix) -> list[Division]:
        """Each fold against the others."""
        n_folds = check_int(self.n_folds, "n_folds", minimum=2)
        fold_of = stratified_folds(Y, n_folds, order=self.order, seed=self.seed)
        return [
            (np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold))
            for fold in range(n_folds)
        ]


class HoldOut(Scheme):
    """Score the items that were kept from the classifier.

    Parameters
    ----------
    fraction : float
        Share of the items to keep; the paper's value is 0.4.
    refit : bool
        Whether the final classifier is trained again, on all items. The scores then come
        from another classifier than the one that answers later.
    order, seed : int
        Of the iterative stratification.

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
        seed: int = 0,
    ) -> None:
        self.fraction = fraction
        self.refit = refit
        self.order = order
        self.seed = seed

    @property
    def refits(self) -> bool:  # type: ignore[override]
        """Whether the final classifier is trained on all items."""
        return self.refit

    def divide(self, Y: LabelMatrix) -> list[Division]:
        """The rest against the items kept."""
        fraction = check_fraction(self.fraction, "fraction")
        return [stratified_holdout(Y, fraction, order=self.order, seed=self.seed)]


def train_and_score(
    classifier: Any,
    X: Any,
    Y: LabelMatrix,
    divisions: Sequence[Division],
    kinds: Sequence[Kind],
    *,
    refit: bool = True,
    n_jobs: int | None = None,
) -> LabelledScores:
    """Train a classifier on each division and score the rows it has not seen.

    Parameters
    ----------
    classifier : multi-label classifier
    X : items
    Y : 0/1 array of int8, shape (n_items, n_labels)
    divisions : list of (rows to train on, rows to score)
        No row may be scored twice.
    kinds : list of {"votes", "posteriors"}
    refit : bool
        Whether one more classifier is trained, on all items; otherwise the last one is handed
        back.
    n_jobs : int, optional
    """
    everything, nothing = np.arange(len(Y)), np.zeros(0, dtype=np.intp)
    work = [*divisions, (everything, nothing)] if refit else list(divisions)
    results = Parallel(n_jobs=n_jobs)(
        delayed(_one_division)(classifier, X, Y, rest, held, kinds, keep=number == len(work) - 1)
        for number, (rest, held) in enumerate(work)
    )
    rows = np.concatenate([held for _, held in divisions])
    order = np.argsort(rows, kind="stable")
    parts = [scores for _, scores in results[: len(divisions)]]
    joined = {kind: Scores.concat([part[kind] for part in parts]).take(order) for kind in kinds}
    fold_of = np.repeat(np.arange(len(divisions)), [len(held) for _, held in divisions])
    folds = fold_of[order] if len(divisions) > 1 else None
    return LabelledScores(results[-1][0], joined, rows[order], folds)


def _one_division(
    classifier: Any,
    X: Any,
    Y: LabelMatrix,
    rest: npt.NDArray[Any],
    held: npt.NDArray[Any],
    kinds: Sequence[Kind],
    *,
    keep: bool,
) -> tuple[Any, dict[Kind, Scores]]:
    fitted = train(classifier, take_items(X, rest), Y[rest])
    scores = _score(fitted, take_items(X, held), Y.shape[1], kinds) if len(held) else {}
    # What nobody needs is not sent back from another process.
    return (fitted if keep else None), scores


def _score(classifier: Any, X: Any, n_labels: int, kinds: Sequence[Kind]) -> dict[Kind, Scores]:
    return {kind: response(classifier, X, kind, n_labels) for kind in kinds}


def _check_kinds(classifier: Any, kinds: Kind | Iterable[Kind]) -> tuple[Kind, ...]:
    asked: tuple[Kind, ...] = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    offered = offers(classifier)
    for kind in asked:
        check_choice(kind, "kinds", ("votes", "posteriors"))
        if kind not in offered:
            raise InputError(
                f"{type(classifier).__name__} offers no {kind}, only "
                f"{' and '.join(sorted(offered)) or 'nothing'}."
            )
    return asked


def warn_of_constant_labels(
    Y: LabelMatrix, divisions: Sequence[Division], names: Iterable[Any] | None = None
) -> None:
    """Name the labels that some classifier cannot learn, and in how many of the divisions."""
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
