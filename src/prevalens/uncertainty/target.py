"""Estimates that use the labels of some items of the batch, labelled by hand.

The labelled items must be a uniform random subset of the batch; a subset chosen by hand biases the
estimates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.stats import chi2, norm

from prevalens.estimate import PrevalenceEstimate
from prevalens.types import Array, Floats, LabelMatrix
from prevalens.validation import InputError, check_binary_matrix, check_same_length

#: Weight of calibrated scores in power and variance, as a number of labelled items.
_PRIOR_ITEMS = 5.0
#: Largest factor on the variance that the intervals of a quantifier claim.
_MOST = 1e4


@dataclass(frozen=True)
class LabelledPart:
    """Items of a batch whose labels are known.

    Attributes
    ----------
    rows : array of int, shape (n_labelled,)
        Distinct row numbers of the batch, drawn uniformly at random.
    Y : 0/1 array, shape (n_labelled, n_labels)
    n_items : int
        Size of the batch.
    """

    rows: npt.NDArray[np.intp]
    Y: LabelMatrix
    n_items: int

    @property
    def least(self) -> Floats:
        """Prevalence of the batch if no other item had the label."""
        return np.asarray(self.Y.sum(axis=0) / self.n_items)

    @property
    def most(self) -> Floats:
        """Prevalence of the batch if all other items had it."""
        return np.asarray(self.least + 1.0 - len(self.rows) / self.n_items)


def check_labelled(labelled: Any, n_items: int, n_labels: int) -> LabelledPart:
    """Return ``(rows, Y_rows)`` as a `LabelledPart`; raise `InputError` if it is invalid."""
    if not isinstance(labelled, tuple) or len(labelled) != 2:
        raise InputError("labelled must be a pair: row numbers of the batch, and their labels.")
    rows, Y = np.asarray(labelled[0]), check_binary_matrix(labelled[1], "The labels of the rows")
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise InputError("The labelled rows must be a list of row numbers.")
    check_same_length(len(rows), "The labelled rows", len(Y), "their labels")
    if rows.min() < 0 or rows.max() >= n_items or len(np.unique(rows)) < len(rows):
        raise InputError(f"The labelled rows must be distinct numbers from 0 to {n_items - 1}.")
    if Y.shape[1] != n_labels:
        raise InputError(f"The labelled rows have {Y.shape[1]} labels; there must be {n_labels}.")
    return LabelledPart(rows.astype(np.intp), Y, n_items)


def ppi_mean(y: Floats, predicted: Floats, elsewhere: Floats) -> tuple[Floats, Floats]:
    """Power-tuned prediction-powered mean of a population, and its variance (PPI++).

    Parameters
    ----------
    y, predicted : array of float, shape (n_labelled, n_labels)
        Labels and predictions of labelled items.
    elsewhere : array of float, shape (n_unlabelled, n_labels)
        Predictions of unlabelled items of the same population.

    References
    ----------
    Angelopoulos, Duchi and Zrnic, "PPI++: Efficient prediction-powered inference",
    arXiv 2311.01453, 2023.
    """
    n, n_more = len(y), len(elsewhere)
    spread = np.concatenate([predicted, elsewhere]).var(axis=0, ddof=1)
    together = _covariance(y, predicted) / (n - 1)
    power = np.divide(
        together, (1.0 + n / n_more) * spread, out=np.zeros_like(spread), where=spread > 0
    )
    left = y - power * predicted
    mean = power * elsewhere.mean(axis=0) + left.mean(axis=0)
    variance = power**2 * elsewhere.var(axis=0, ddof=1) / n_more + left.var(axis=0, ddof=1) / n
    return mean, variance


def ppi_of_batch(part: LabelledPart, scores: Array, point: Floats) -> tuple[Floats, Floats]:
    """Prevalence of the batch itself from its labelled items and all scores, and its variance.

    Parameters
    ----------
    part : LabelledPart
    scores : array of float, shape (n_items, n_labels)
        Scores of all items; zeros if there are none, so that only the labels count.
    point : array of float, shape (n_labels,)
        First estimate of the prevalences, for the variances of labels with few positives.

    Notes
    -----
    The estimate is the mean score of the batch, times a power, plus the mean residual of the
    labelled items. As the batch is finite, the variance is that of the mean residual, times the
    share of items that are not labelled. A handful of labels says little about power and variance:
    both are shrunk towards the values of calibrated scores.
    """
    values = np.asarray(scores, dtype=np.float64)
    y, predicted = part.Y.astype(np.float64), values[part.rows]
    spread = values.var(axis=0)
    gram = _covariance(predicted, predicted) + _PRIOR_ITEMS * spread
    power = np.divide(
        _covariance(y, predicted) + _PRIOR_ITEMS * spread,
        gram,
        out=np.zeros_like(gram),
        where=gram > 0,
    )
    left = y - power * predicted
    mean = power * values.mean(axis=0) + left.mean(axis=0)
    n = len(y)
    # No positive among few items does not mean that there are none.
    share = (y.sum(axis=0) + _PRIOR_ITEMS * point + 0.5) / (n + _PRIOR_ITEMS + 1.0)
    least = np.maximum(share * (1.0 - share) - power**2 * spread, 0.25 * share * (1.0 - share))
    open_ = np.maximum(_covariance(left, left) / max(n - 1, 1), least)
    return np.clip(mean, part.least, part.most), open_ / n * (1.0 - n / part.n_items)


def with_labels(estimate: PrevalenceEstimate, scores: Array, labelled: Any) -> PrevalenceEstimate:
    """Combine the estimate of a batch with the labels of some of its items.

    Per label, the estimate and the prediction-powered one are weighted by their precisions. If
    the labelled items show, over all labels together, that the estimate is further off
    than its intervals say, its precision is lowered accordingly.

    Parameters
    ----------
    estimate : PrevalenceEstimate, shape (n_labels,)
        Estimate of the batch, with intervals.
    scores : array of float, shape (n_items, n_labels)
        Posteriors or votes of all items of the batch; zeros if there are none.
    labelled : pair of (rows, Y_rows)
        Distinct row numbers of the batch, drawn uniformly at random, and their labels.

    Returns
    -------
    PrevalenceEstimate
        With intervals and bands of the same level; they respect that labelled items are known.

    Examples
    --------
    >>> estimate = PrevalenceEstimate([0.5], ["a"], lower=[0.3], upper=[0.7], level=0.9)
    >>> rows, Y_rows = np.arange(20), np.zeros((20, 1))
    >>> with_labels(estimate, np.full((100, 1), 0.5), (rows, Y_rows)).point.round(2).tolist()
    [0.03]
    """
    if estimate.ndim != 1 or estimate.lower is None or estimate.upper is None:
        raise InputError(
            "Labels are combined with the estimate of one batch that has intervals; ask for them "
            "with interval=0.9."
        )
    part = check_labelled(labelled, len(scores), len(estimate.labels))
    mean, variance = ppi_of_batch(part, scores, estimate.point)
    claimed = _variance(estimate, part.n_items)
    claimed *= _inflation((mean - estimate.point) ** 2, variance, claimed)
    share = claimed / (claimed + variance)
    point = estimate.point + share * (mean - estimate.point)
    return _answer(estimate, part, point, np.sqrt(share * variance))


def _variance(estimate: PrevalenceEstimate, n_items: int) -> Floats:
    """Variance that the intervals claim; at least that of a tenth of an item."""
    half = (np.asarray(estimate.upper) - np.asarray(estimate.lower)) / 2.0
    deviation = half / norm.ppf(0.5 + np.asarray(estimate.level, dtype=np.float64) / 2.0)
    return np.asarray(np.maximum(deviation, 0.1 / n_items) ** 2)


def _inflation(squared: Floats, variance: Floats, claimed: Floats) -> float:
    """Factor on the claimed variances at which the differences are as large as expected.

    The estimator of Paule and Mandel, over labels instead of laboratories. It is 1 unless the
    differences exceed the 95 % quantile of chance. The degrees of freedom are half the number of
    labels, since the errors of labels are not independent.
    """
    known = variance > 0
    if not known.any():
        return 1.0
    freedom = max(1.0, np.count_nonzero(known) / 2.0)
    bearable = chi2.ppf(0.95, freedom) / freedom

    def excess(log_factor: float) -> float:
        expected = variance[known] + np.exp(log_factor) * claimed[known]
        return float(np.mean(squared[known] / expected) - bearable)

    most = float(np.log(_MOST))
    if excess(0.0) <= 0:
        return 1.0
    return float(np.exp(brentq(excess, 0.0, most))) if excess(most) < 0 else _MOST


def _answer(
    estimate: PrevalenceEstimate, part: LabelledPart, point: Floats, deviation: Floats
) -> PrevalenceEstimate:
    level = np.asarray(estimate.level, dtype=np.float64)
    each = norm.ppf(0.5 + level / 2.0) * deviation
    # Labels count as independent, which makes the band too wide rather than too narrow.
    all_ = norm.ppf(0.5 + level ** (1.0 / len(point)) / 2.0) * deviation
    point = np.clip(point, part.least, part.most)
    ends = [np.clip(point + move, part.least, part.most) for move in (-each, each, -all_, all_)]
    return PrevalenceEstimate(
        point,
        estimate.labels,
        lower=ends[0],
        upper=ends[1],
        band_lower=ends[2],
        band_upper=ends[3],
        level=estimate.level,
        p_value=estimate.p_value,
    )


def _covariance(left: Floats, right: Floats) -> Floats:
    """Sums of products of deviations, column by column."""
    return np.asarray(((left - left.mean(axis=0)) * (right - right.mean(axis=0))).sum(axis=0))
