"""Counting: classify and count (CC), and its probabilistic version (PCC).

Both are the mean of the scores over the sample and nothing else. They are right when the
sample looks like the training data and drift towards the training prevalence when it does not.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from prevalens.aggregators.base import Aggregator
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import check_choice

__all__ = ["CC", "PCC", "TrainingPrevalence", "binomial_median", "medians"]


class _Counting(Aggregator):
    """The mean of the scores; O(indices x labels), one sparse product for all samples."""

    joint = False
    learns = False

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        """Counting has nothing to learn."""

    def _aggregate(self, scores: Scores, samples: Samples) -> Floats:
        return samples.mean(scores.values)


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
        "median" answers the median count that the mean posterior leads one to expect in a sample
        of that size, divided by the size: it has the lower absolute error for rare labels.

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

    def _aggregate(self, scores: Scores, samples: Samples) -> Floats:
        mean = samples.mean(scores.values)
        return mean if self.point == "mean" else medians(mean, samples.sizes)


def binomial_median(mean: Floats, size: int) -> Floats:
    """Median of a binomial count with these chances, divided by the size.

    Examples
    --------
    >>> binomial_median(np.array([0.003, 0.0121, 0.5]), 100).tolist()
    [0.0, 0.01, 0.5]
    """
    if size > 10_000:
        # The median is within one item of the mean.
        return mean
    counts = np.arange(size)
    # The chance at which one more positive becomes as likely as not.
    thresholds = betaincinv(counts + 1, size - counts, 0.5)
    return np.searchsorted(thresholds, mean) / size


def medians(means: Floats, sizes: npt.NDArray[np.int64]) -> Floats:
    """`binomial_median` of each sample's row, for samples of several sizes."""
    out = np.empty_like(means)
    for size in np.unique(sizes):
        rows = sizes == size
        out[rows] = binomial_median(means[rows], int(size))
    return out


class TrainingPrevalence(Aggregator):
    """Answer the training prevalence for every sample (known as MLPE).

    Its absolute error is the shift itself.

    Notes
    -----
    Right only if nothing moved. For rare labels and small samples it is harder to beat than it
    looks.

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

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        """The prevalence is kept by the base class."""

    def _aggregate(self, scores: Scores, samples: Samples) -> Floats:  # noqa: ARG002
        return np.tile(self.prevalence_, (len(samples), 1))
