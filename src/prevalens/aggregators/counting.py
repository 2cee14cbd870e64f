"""Counting: classify and count (CC), and its probabilistic version (PCC).

Both are the mean of the scores over the sample. They are right if the sample has the label
distribution of the training data; under shift they are biased towards the training prevalence.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv
from scipy.stats import binom

from prevalens.aggregators.base import Aggregator, never_certain
from prevalens.batches import NOTHING, VALUES, Batches, Statistic
from prevalens.estimate import Intervals
from prevalens.scores import Kind, Scores
from prevalens.types import Floats, Ints, LabelMatrix
from prevalens.validation import check_choice, check_rng
from prevalens.validation_shifts import draw_shifts

#: Maximum number of items that the intervals of the training prevalence are calibrated on.
_VALIDATED = 2000
#: Samples per half of these items, family of shift and size.
_PER_FAMILY = 25


class _Counting(Aggregator):
    """The mean of the scores; O(indices x labels), one sparse product for all samples."""

    joint = False
    needs_labelled_scores = False

    @property
    def statistic(self) -> Statistic:
        """The scores."""
        return VALUES

    def _from_means(self, means: Floats, sizes: Ints) -> Floats:  # noqa: ARG002
        return means


class CC(_Counting):
    """Classify and count: the share of items that the classifier votes for.

    Notes
    -----
    Fails under prior shift: its error grows linearly with the shift and with the classifier's
    false positive and false negative rates.

    References
    ----------
    Forman, "Counting positives accurately despite inaccurate classification", ECML 2005.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> votes = Scores([[1, 0], [1, 1]], kind="votes")
    >>> CC().fit(votes, [[1, 0], [0, 1]]).aggregate(votes, Samples.whole(2)).tolist()
    [[1.0, 0.5]]
    """

    code = "cc"
    consumes: Kind = "votes"


class PCC(_Counting):
    """Probabilistic classify and count: the mean posterior of the sample.

    Parameters
    ----------
    point : {"mean", "median"}
        "median" estimates the median of a binomial count with the mean posterior as its
        probability, divided by the sample size: it has the lower absolute error for rare labels.

    Notes
    -----
    Unbiased without shift if the posteriors are calibrated; pulled towards the training prevalence
    under prior shift.

    References
    ----------
    Bella et al., "Quantification via probability estimators", ICDM 2010.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> posteriors = Scores([[0.5, 0.0], [1.0, 0.5]], kind="posteriors")
    >>> PCC().fit(posteriors, [[1, 0], [0, 1]]).aggregate(posteriors, Samples.whole(2)).tolist()
    [[0.75, 0.25]]
    """

    code = "pcc"
    consumes: Kind = "posteriors"

    def __init__(self, point: str = "mean") -> None:
        self.point = point

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:  # noqa: ARG002
        check_choice(self.point, "point", ("mean", "median"))

    def _from_means(self, means: Floats, sizes: Ints) -> Floats:
        return means if self.point == "mean" else medians(means, sizes)


def binomial_median(mean: Floats, size: int) -> Floats:
    """Median of a binomial count with probabilities `mean`, divided by the size.

    Examples
    --------
    >>> binomial_median(np.array([0.003, 0.0121, 0.5]), 100).tolist()
    [0.0, 0.01, 0.5]
    """
    if size > 10_000:
        # The median is within one item of the mean.
        return mean
    counts = np.arange(size)
    # The probability at which the median rises by one positive.
    thresholds = betaincinv(counts + 1, size - counts, 0.5)
    return np.searchsorted(thresholds, mean) / size


def medians(means: Floats, sizes: Ints) -> Floats:
    """`binomial_median` of each sample's row, for samples of several sizes."""
    out = np.empty_like(means)
    for size in np.unique(sizes):
        rows = sizes == size
        out[rows] = binomial_median(means[rows], int(size))
    return out


class TrainingPrevalence(Aggregator):
    """Estimate the training prevalence for every sample (known as MLPE).

    Its absolute error is the size of the shift.

    Attributes
    ----------
    errors_ : array of float32, shape (n_validation_samples, n_labels)
        Prevalences of samples drawn from one half of the items under several families of shift,
        minus the prevalences of the other half; empty with fewer than four items.
    families_ : array of int, shape (n_validation_samples,)
        The family of shift of each of these samples.

    Notes
    -----
    Right only without shift. For rare labels and small samples few methods have a lower error. The
    intervals are as wide as the shifts that were drawn: they cover in each family of shift, not
    only on average over the families.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> items = Scores([[0.3], [0.7]], kind="features")
    >>> naive = TrainingPrevalence().fit(items, [[1, 0], [1, 1]])
    >>> naive.aggregate(items, Samples.whole(2)).tolist()
    [[1.0, 0.5]]
    """

    code = "naive"
    consumes: Kind = "features"
    joint = False
    has_intervals = True

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:  # noqa: ARG002
        rng = check_rng(0)
        rows = rng.permutation(len(Y))[:_VALIDATED]
        errors, families = [np.empty((0, Y.shape[1]))], [np.empty(0, dtype=np.int64)]
        if len(rows) >= 4:
            first, second = Y[rows[::2]], Y[rows[1::2]]
            for pool, other in ((first, second), (second, first)):
                samples, family = draw_shifts(pool, _PER_FAMILY, rng)
                errors.append(samples.mean(pool) - other.mean(axis=0))
                families.append(family)
        self.n_items_ = len(Y)
        self.errors_ = np.concatenate(errors).astype(np.float32)
        self.families_ = np.concatenate(families)

    @property
    def statistic(self) -> Statistic:
        """Nothing but the number of items."""
        return NOTHING

    def _from_means(self, means: Floats, sizes: Ints) -> Floats:  # noqa: ARG002
        return np.tile(self.prevalence_, (len(sizes), 1))

    def _estimate(self, batches: Batches, level: float) -> tuple[Floats, Intervals | None]:
        """The training prevalences, and intervals as wide as the shifts drawn in `fit`."""
        point, sizes = self.read(batches), batches.sizes
        ends = [np.zeros_like(point), np.ones_like(point)] * 2
        if len(self.errors_):
            tail, tail_of_all = (1 - level) / 2, (1 - level ** (1 / self.n_labels_)) / 2
            ends = [*self._ends(sizes, tail), *self._ends(sizes, tail_of_all)]
            reach = self._simultaneous_reach(level)
            ends[2] = np.minimum(ends[2], np.clip(point - reach, 0, ends[0]))
            ends[3] = np.maximum(ends[3], np.clip(point + reach, ends[1], 1))
        return point, never_certain(Intervals(*ends), point, sizes)

    def _ends(self, sizes: Ints, tail: float) -> tuple[Floats, Floats]:
        """Ends of intervals that miss with probability `tail` on each side, in each family."""
        moves = [
            np.quantile(self.errors_[self.families_ == family], [tail, 1 - tail], axis=0)
            for family in np.unique(self.families_)
        ]
        below, above = np.min(moves, axis=0)[0], np.max(moves, axis=0)[1]
        # Few labelled items say little about rare labels, and small samples vary by chance alone.
        n_items, column = self.n_items_, sizes[:, np.newaxis]
        positives = self.prevalence_ * n_items
        low, high = (
            binom.ppf(q, column, betaincinv(positives + 0.5, n_items - positives + 0.5, q)) / column
            for q in (tail, 1 - tail)
        )
        return (
            np.clip(np.minimum(low, self.prevalence_ + below), 0, 1),
            np.clip(np.maximum(high, self.prevalence_ + above), 0, 1),
        )

    def _simultaneous_reach(self, level: float) -> Floats:
        """Half-widths that hold all labels of a sample together, in each family of shift."""
        deviation = np.maximum(self.errors_.std(axis=0), 1e-12)
        largest = np.max(np.abs(self.errors_) / deviation, axis=1)
        families = np.unique(self.families_)
        multiple = max(np.quantile(largest[self.families_ == f], level) for f in families)
        return np.asarray(multiple * deviation, dtype=np.float64)
