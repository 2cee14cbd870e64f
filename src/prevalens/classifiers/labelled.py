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
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from prevalens.classifiers.constant import constant_labels, train
from prevalens.classifiers.response import offers, response
from prevalens.scores import Kind, Scores
from prevalens.splits import stratified_folds, stratified_holdout
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

__all__ = ["CrossFit", "HoldOut", "LabelledScores", "Scheme", "cross_fit"]

#: How many labels a warning names before it says "and so on".
_NAMED = 10


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
    """

    classifier: Any
    by_kind: Mapping[Kind, Scores]
    rows: npt.NDArray[np.intp]

    @property
    def scores(self) -> Scores:
        """The scores, where one kind was asked for."""
        if len(self.by_kind) != 1:
            raise InputError(f"There are scores of {' and '.join(self.by_kind)}; use by_kind.")
        return next(iter(self.by_kind.values()))


class Scheme(BaseEstimator, ABC):  # type: ignore[misc]
    """A way to get labelled scores of items the classifier has not trained on."""

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
        labels = [str(name) for name in (range(Y.shape[1]) if names is None else names)]
        return self._fit(classifier, X, Y, asked, labels)

    @abstractmethod
    def _fit(
        self,
        classifier: Any,
        X: Any,
        Y: npt.NDArray[np.int8],
        kinds: Sequence[Kind],
        labels: Sequence[str],
    ) -> LabelledScores:
        """Train and score; the input has been checked."""


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

    def _fit(
        self,
        classifier: Any,
        X: Any,
        Y: npt.NDArray[np.int8],
        kinds: Sequence[Kind],
        labels: Sequence[str],
    ) -> LabelledScores:
        n_folds = check_int(self.n_folds, "n_folds", minimum=2)
        fold_of = np.asarray(stratified_folds(Y, n_folds, order=self.order, seed=self.seed))
        held_out = [np.flatnonzero(fold_of == fold) for fold in range(n_folds)]
        fitted, scores = cross_fit(
            classifier, X, Y, held_out, kinds, labels=labels, n_jobs=self.n_jobs
        )
        return LabelledScores(fitted, scores, np.arange(len(Y)))


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

    def _fit(
        self,
        classifier: Any,
        X: Any,
        Y: npt.NDArray[np.int8],
        kinds: Sequence[Kind],
        labels: Sequence[str],
    ) -> LabelledScores:
        fraction = check_fraction(self.fraction, "fraction")
        rest, held = stratified_holdout(Y, fraction, order=self.order, seed=self.seed)
        _warn_of_constant_labels([Y[rest]], labels)
        fitted = train(classifier, take_items(X, rest), Y[rest])
        scores = _score(fitted, take_items(X, held), Y.shape[1], kinds)
        final = train(classifier, X, Y) if self.refit else fitted
        return LabelledScores(final, scores, np.asarray(held))


def cross_fit(
    classifier: Any,
    X: Any,
    Y: npt.NDArray[np.int8],
    held_out: Sequence[npt.NDArray[Any]],
    kinds: Sequence[Kind],
    *,
    labels: Sequence[str],
    n_jobs: int | None = None,
) -> tuple[Any, dict[Kind, Scores]]:
    """Train on all items, and score each part by a classifier trained on the rest.

    Parameters
    ----------
    classifier : multi-label classifier
    X : items
    Y : 0/1 array of int8, shape (n_items, n_labels)
    held_out : list of int arrays
        The rows of each part; together every row once.
    kinds : list of {"votes", "posteriors"}
    labels : list of str
        What to call the labels in a warning.
    n_jobs : int, optional

    Returns
    -------
    classifier, scores
        Trained on all items; for each kind the out-of-fold scores of all items.
    """
    everything = np.arange(len(Y))
    rests = [np.setdiff1d(everything, rows) for rows in held_out]
    _warn_of_constant_labels([Y[rest] for rest in rests], labels)
    jobs = [delayed(_train_and_score)(classifier, X, Y, everything, None, ())]
    jobs += [
        delayed(_train_and_score)(classifier, X, Y, rest, rows, kinds)
        for rest, rows in zip(rests, held_out, strict=True)
    ]
    (fitted, _), *parts = Parallel(n_jobs=n_jobs)(jobs)
    order = np.argsort(np.concatenate(held_out), kind="stable")
    joined = {
        kind: Scores(np.concatenate([scores[kind].values for _, scores in parts])[order], kind)
        for kind in kinds
    }
    return fitted, joined


def _train_and_score(
    classifier: Any,
    X: Any,
    Y: npt.NDArray[np.int8],
    training: npt.NDArray[Any],
    scored: npt.NDArray[Any] | None,
    kinds: Sequence[Kind],
) -> tuple[Any, dict[Kind, Scores]]:
    """One fold's work; only a classifier that scores nothing here is of use to the caller."""
    fitted = train(classifier, take_items(X, training), Y[training])
    if scored is None:
        return fitted, {}
    return None, _score(fitted, take_items(X, scored), Y.shape[1], kinds)


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


def _warn_of_constant_labels(
    training_parts: Sequence[npt.NDArray[np.int8]], labels: Sequence[str]
) -> None:
    """Name the labels that some classifier cannot learn, and in how many of the parts."""
    times = np.sum([constant_labels(part) for part in training_parts], axis=0)
    affected = np.flatnonzero(times)
    if len(affected) == 0:
        return
    named = [f"{labels[j]} (in {times[j]} of {len(training_parts)})" for j in affected[:_NAMED]]
    more = f" and {len(affected) - _NAMED} more" if len(affected) > _NAMED else ""
    warnings.warn(
        f"Labels without both a positive and a negative item in a training part: "
        f"{', '.join(named)}{more}. The classifier answers their constant value there; drop such "
        "labels or give more items of them.",
        PrevalensWarning,
        stacklevel=3,
    )
