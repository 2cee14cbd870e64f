"""Adjusted counting: the mean score, corrected by the rates at which scores err (ACC, PACC).

The mean score of a sample mixes the mean score of positives (tpr) and of negatives (fpr) in
the unknown proportion p, ``mean = p tpr + (1 - p) fpr``, so ``p = (mean - fpr) /
(tpr - fpr)``: one subtraction and one product for all labels and samples. `AdjustedTransform` does
the same with any function of the posterior in place of the score.
"""

from __future__ import annotations

import numbers
from abc import abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtrit

from prevalens.aggregators.base import Aggregator, label_chunks
from prevalens.batches import VALUES, Columns, Statistic, fingerprint_of
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.types import Array, Floats, Ints, LabelMatrix
from prevalens.validation import InputError

#: A difference of two rates below this is rounding, whatever the guard.
_RESOLUTION = 1e-12
_ENTRIES_PER_BLOCK = 2**20
#: Weight of the variance of all scores in that of positives or negatives, in items.
_SMOOTHING = 4.0


class _Rates(NamedTuple):
    """Mean scores of positives and of negatives, and the error of their difference.

    Attributes
    ----------
    tpr, fpr : array of float, shape (n_labels,)
    error : array of float, shape (n_labels,)
        Standard error of the difference.
    freedom : array of float, shape (n_labels,)
        Degrees of freedom of that error.
    """

    tpr: Floats
    fpr: Floats
    error: Floats
    freedom: Floats


class _Adjusted(Aggregator):
    """Adjusted counting; ACC and PACC differ only in the kind of scores they read."""

    joint = False

    def __init__(self, guard: float | None = 4.0) -> None:
        self.guard = guard

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        _check_guard(self.guard)
        self._adjust(_measure(scores.values, Y))

    def _adjust(self, rates: _Rates) -> None:
        self.tpr_, self.fpr_ = rates.tpr, rates.fpr
        self.adjusted_ = _distinct(rates, self.guard)
        difference = np.where(self.adjusted_, rates.tpr - rates.fpr, 1.0)
        self._gain = 1.0 / difference
        self._offset = np.where(self.adjusted_, rates.fpr, 0.0)

    @property
    def statistic(self) -> Statistic:
        """The scores."""
        return VALUES

    def _from_means(self, means: Floats, sizes: Ints) -> Floats:  # noqa: ARG002
        return np.asarray((means - self._offset) * self._gain)


class ACC(_Adjusted):
    """Adjusted classify and count: the share of votes, corrected by tpr and fpr.

    Parameters
    ----------
    guard : float or None
        A label is adjusted only where tpr exceeds fpr significantly: as rarely by chance as a
        normal variable exceeds its mean by `guard` standard deviations. Elsewhere its estimate
        is the unadjusted mean. Of 1,260,000 labels with uninformative scores, of nine shapes,
        the default of 4 adjusted none with 2, 3 or 5 positives, and 3 in 100,000 with 10 or 50
        (at worst 23 in 100,000: coins for votes, 10 positives and 30 negatives). 0 adjusts
        wherever tpr exceeds fpr, None wherever they differ (plain inversion).

    Attributes
    ----------
    tpr_, fpr_ : array of float, shape (n_labels,)
        Mean score of the label's positives and of its negatives; NaN where there are none.
    adjusted_ : array of bool, shape (n_labels,)
        Which labels are adjusted.

    Notes
    -----
    The test is Welch's t-test with ``sqrt(var_pos / n_pos + var_neg / n_neg)`` for a standard
    error. The variance of each class is drawn towards that of all the label's scores, which counts
    for four items: two positives that agree by chance do not give an error of zero. Each class
    needs two items (one if `guard` is 0 or None); with fewer than five positives no classifier
    passes the default. The test is one-sided: votes that are rarer among positives than among
    negatives come from having seen few positives, and inverting them turns noise into answers
    near 0 or 1. A label that is constant in the labelled scores is never adjusted.

    O(n_items x n_labels) to fit; the mean of the samples and one affine map to aggregate.
    Fails where tpr and fpr differ little but significantly: the noise of a sample's mean is
    divided by that difference. Fails, too, where the rates themselves move with the sample.

    References
    ----------
    Forman, "Quantifying counts and costs via classification", DMKD 17, 2008.
    Welch, "The generalization of Student's problem when several different population
    variances are involved", Biometrika 34, 1947.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> votes = Scores([[1], [1], [0], [0], [0], [1]], kind="votes")
    >>> acc = ACC(guard=None).fit(votes, [[1], [1], [1], [0], [0], [0]])
    >>> acc.aggregate(votes, Samples.whole(6)).round(3).tolist()
    [[0.5]]
    """

    code = "acc"
    consumes: Kind = "votes"


class PACC(_Adjusted):
    """Probabilistic adjusted classify and count: the mean posterior, corrected in the same way.

    Parameters
    ----------
    guard : float or None
        As in `ACC`, with mean posteriors in place of rates of votes.

    Attributes
    ----------
    tpr_, fpr_ : array of float, shape (n_labels,)
        Mean posterior of the label's positives and of its negatives; NaN where there are none.
    adjusted_ : array of bool, shape (n_labels,)
        Which labels are adjusted.

    Notes
    -----
    Complexity and guard are those of `ACC`. Posteriors need not be calibrated. Fails where
    they hardly separate the classes: the noise of a sample's mean is divided by
    the separation.

    References
    ----------
    Bella et al., "Quantification via probability estimators", ICDM 2010.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> posteriors = Scores([[0.8], [0.6], [0.3], [0.1]], kind="posteriors")
    >>> pacc = PACC(guard=None).fit(posteriors, [[1], [1], [0], [0]])
    >>> pacc.aggregate(posteriors, Samples.from_indices([[0, 1, 2]], n_items=4)).round(3).tolist()
    [[0.733]]
    """

    code = "pacc"
    consumes: Kind = "posteriors"


class AdjustedTransform(_Adjusted):
    """Adjusted counting of a function of the posterior, which is learnt for each label.

    Labels that are not adjusted, by the guard of `ACC`, are estimated by their mean posterior.
    """

    consumes: Kind = "posteriors"

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        _check_guard(self.guard)
        values = scores.values
        self._learn(values, Y)
        labels = np.arange(self.n_labels_)
        parts = [
            _measure(self._transform(values[:, own].astype(np.float64), own), Y[:, own])
            for own in label_chunks(labels, len(Y))
        ]
        self._adjust(_Rates(*map(np.concatenate, zip(*parts, strict=True))))

    @abstractmethod
    def _learn(self, values: Array, Y: LabelMatrix) -> None:
        """Learn the function of each label from posteriors, shape (n_items, n_labels)."""

    @abstractmethod
    def _transform(self, values: Floats, labels: Ints) -> Floats:
        """The functions of some labels; input and output of shape (n_items, len(labels))."""

    def _read(self, scores: Scores, labels: Ints) -> Floats:
        """What is averaged: the function of the posterior, or the posterior itself."""
        values = scores.values[:, labels].astype(np.float64)
        return np.where(self.adjusted_[labels], self._transform(values, labels), values)

    def _aggregate(self, scores: Scores, samples: Samples) -> Floats:
        means = np.empty((len(samples), self.n_labels_))
        for labels in label_chunks(np.arange(self.n_labels_), scores.n_items):
            means[:, labels] = samples.mean(self._read(scores, labels))
        return self._from_means(means, samples.sizes)

    @property
    def statistic(self) -> Statistic:
        """The functions of the posteriors."""
        labels = np.arange(self.n_labels_)
        name = f"{self.code} {fingerprint_of(vars(self))}"
        return Columns(name, lambda scores: self._read(scores, labels))


def _check_guard(guard: object) -> None:
    number = isinstance(guard, numbers.Real) and not isinstance(guard, bool)
    if guard is not None and not (number and float(guard) >= 0):  # type: ignore[arg-type]
        raise InputError(
            f"guard must be a number of standard errors, 0 or more, or None; got {guard!r}."
        )


def _distinct(rates: _Rates, guard: float | None) -> npt.NDArray[np.bool_]:
    """Mask of the labels whose rates differ significantly; NaN rates do not."""
    difference = rates.tpr - rates.fpr
    if guard is None:
        return np.abs(difference) > _RESOLUTION
    if guard == 0:
        return difference > _RESOLUTION
    margin = -stdtrit(rates.freedom, ndtr(-guard)) * rates.error
    return difference > np.maximum(margin, _RESOLUTION)


def _measure(values: Array, Y: LabelMatrix) -> _Rates:
    """Mean scores per class and the error of their difference, in one pass over the scores."""
    # Deviations from the first row: a constant column gives exact zeros, and the variances do
    # not suffer from cancellation.
    centre = values[0].astype(np.float64)
    totals = np.zeros((4, Y.shape[1]))
    step = max(1, _ENTRIES_PER_BLOCK // Y.shape[1])
    for start in range(0, len(Y), step):
        block = values[start : start + step] - centre
        truth = Y[start : start + step].astype(np.float64)
        totals[0] += np.einsum("ij,ij->j", block, truth)
        totals[2] += block.sum(axis=0)
        np.square(block, out=block)
        totals[1] += np.einsum("ij,ij->j", block, truth)
        totals[3] += block.sum(axis=0)
    positives = Y.sum(axis=0, dtype=np.float64)
    negatives = len(Y) - positives
    spread = np.maximum(totals[3] - totals[2] ** 2 / len(Y), 0.0) / max(len(Y) - 1, 1)
    tpr, error_pos = _mean_and_error(totals[0], totals[1], positives, spread)
    fpr, error_neg = _mean_and_error(
        totals[2] - totals[0], totals[3] - totals[1], negatives, spread
    )
    error = error_pos + error_neg
    with np.errstate(divide="ignore", invalid="ignore"):
        # Welch and Satterthwaite.
        freedom = error**2 / (error_pos**2 / (positives - 1) + error_neg**2 / (negatives - 1))
    return _Rates(centre + tpr, centre + fpr, np.sqrt(error), freedom)


def _mean_and_error(
    total: Floats, squares: Floats, n: Floats, spread: Floats
) -> tuple[Floats, Floats]:
    """Mean and smoothed squared standard error; NaN without items, infinite error with one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # A sum over no items is 0 only up to rounding.
        mean = np.where(n > 0, total / n, np.nan)
        inside = np.maximum(squares - n * mean**2, 0.0) + _SMOOTHING * spread
        error = np.where(n > 1, inside / ((n - 1.0 + _SMOOTHING) * n), np.inf)
    return mean, error
