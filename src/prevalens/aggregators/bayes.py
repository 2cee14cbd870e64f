"""BayesianCC and PQ: the posterior distribution of a sample's number of positives.

The items of a sample fall into bins of their score. Positives and negatives have unknown
distributions over the bins, with uniform priors, and both the labelled items and the sample inform
them. These distributions can be integrated out: if k of the n items of a bin are positive, the bin
contributes the factor ``C(n, k) G(a + k) G(b + n - k)``, with G the gamma function, a and b one
more than the labelled positives and negatives in that bin. The sum over all ways to have K
positives in the sample is then a convolution over the bins, times a factor that depends on
K alone. So the posterior is exact, without sampling.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, gammaln

from prevalens.aggregators.base import never_certain
from prevalens.aggregators.binned import BinnedAggregator
from prevalens.batches import Batches
from prevalens.estimate import Intervals
from prevalens.scores import Kind, Scores
from prevalens.types import Floats, Ints, LabelMatrix
from prevalens.validation import check_int, check_number

#: Larger samples count as this many items with the same shares.
_MOST = 1024
#: Numbers of a block of samples that are held at a time.
_BLOCK = 2**20
#: Powers of e, around the odds of the labelled items, that keep convolutions within floating point;
#: up to so many items a single one is enough.
_TILTS, _ONE_TILT = np.linspace(-12.0, 12.0, 9), 101


class _Bayesian(BinnedAggregator):
    """Posterior means, and posterior quantiles as intervals."""

    has_intervals = True
    prior: float

    def _count(self, scores: Scores, Y: LabelMatrix) -> None:
        """Count labelled positives and negatives in the bins of `edges_`."""
        check_number(self.prior, "prior", 0.01)
        self.counts_ = []
        for label, edges in enumerate(self.edges_):
            cells = np.searchsorted(edges, scores.values[:, label], "right")
            flat = np.bincount(cells + (len(edges) + 1) * Y[:, label], minlength=2 * len(edges) + 2)
            self.counts_.append(flat.reshape(2, -1)[::-1].astype(np.float64))
        self.matched_ = (self.prevalence_ > 0) & (self.prevalence_ < 1)

    def _match(self, shares: Floats, sizes: Ints, label: int) -> Floats:
        return self._summaries(shares, sizes, label, ())[:, 0]

    def _summaries(
        self, shares: Floats, sizes: Ints, label: int, levels: tuple[float, ...]
    ) -> Floats:
        """Posterior mean and quantiles of one label, shape (n_samples, 1 + n_levels)."""
        counts = _counts(shares, np.minimum(sizes, _MOST))
        distinct, place = np.unique(counts, axis=0, return_inverse=True)
        found = np.empty((len(distinct), 1 + len(levels)))
        totals = distinct.sum(axis=1)
        for size in np.unique(totals):
            same = np.flatnonzero(totals == size)
            step = max(1, _BLOCK // int(size + 1))
            for start in range(0, len(same), step):
                rows = same[start : start + step]
                prevalences, weights = posterior(
                    distinct[rows], self.counts_[label], float(self.prior)
                )
                found[rows, 0] = (prevalences * weights).sum(axis=1)
                for column, level in enumerate(levels, start=1):
                    found[rows, column] = _quantile(prevalences, weights, level)
        return found[place.reshape(-1)]

    def _estimate(self, batches: Batches, level: float) -> tuple[Floats, Intervals | None]:
        """Posterior means with the quantiles around them; all of [0, 1] for a constant label."""
        shares, _ = self.statistic.read(batches.mean(self.statistic), self.n_labels_)
        tail, tail_of_all = (1 - level) / 2, (1 - level ** (1 / self.n_labels_)) / 2
        levels = (tail, 1 - tail, tail_of_all, 1 - tail_of_all)
        ends = np.zeros((4, len(batches), self.n_labels_))
        ends[[1, 3]] = 1.0
        for label in np.flatnonzero(self.matched_).tolist():
            own = shares[:, label, : len(self.edges_[label]) + 1]
            ends[:, :, label] = self._summaries(own, batches.sizes, label, levels)[:, 1:].T
        point = self.read(batches)
        intervals = Intervals(*ends).holding(point)
        return point, never_certain(intervals, point, batches.sizes)


class BayesianCC(_Bayesian):
    """Bayesian classify and count: the posterior of the prevalence, given the votes.

    Parameters
    ----------
    prior : float
        Both parameters of the beta prior of the prevalence, 0.01 or more; 1 is the uniform prior.

    Attributes
    ----------
    counts_ : list of arrays of float, each of shape (2, 2)
        Labelled positives (first row) and negatives without and with a vote, for each label.

    Notes
    -----
    The model of `ACC` with uncertain rates: tpr and fpr have uniform priors, and the labelled items
    and the sample itself inform them. The estimate is the posterior mean of the share of positives
    among the sample's items (the published method returns the parameter they were drawn with, whose
    mean is ``(1 + K) / (2 + n)`` for K positives of n items, if the prior is uniform); intervals
    are posterior quantiles.
    O(size^2) for each different number of votes. A sample of more than 1,024 items counts as one of
    1,024 with the same share of votes, so its interval is wider than it could be. The bands assume
    that labels are independent.

    A label that is constant in the labelled scores is estimated by its mean vote, with the interval
    from 0 to 1. Fails where the votes say little of a rare label: the uniform prior draws the
    estimate towards 0.5.

    References
    ----------
    Ziegler, Czyż, "Bayesian quantification with black-box estimators", TMLR 2024.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> votes = Scores([[1], [1], [0], [0], [0], [0]], kind="votes")
    >>> bayes = BayesianCC().fit(votes, [[1], [1], [0], [0], [0], [0]])
    >>> point, intervals = bayes.estimate(votes, Samples.whole(6), 0.9)
    >>> point.round(2).tolist(), intervals.lower.round(2).tolist()
    ([[0.4]], [[0.0]])
    """

    code = "bayescc"
    consumes: Kind = "votes"

    def __init__(self, prior: float = 1.0) -> None:
        self.prior = prior

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        self.edges_ = [np.array([0.5])] * self.n_labels_
        self._count(scores, Y)


class PQ(_Bayesian):
    """Precise quantifier: the posterior of the prevalence, given a histogram of the posteriors.

    Parameters
    ----------
    bins : int
        Number of bins of each label; their edges are quantiles of the labelled posteriors.
    prior : float
        As in `BayesianCC`.

    Attributes
    ----------
    edges_ : list of arrays of float, one per label
        Inner edges of the bins; fewer than asked for if quantiles coincide.
    counts_ : list of arrays of float, each of shape (2, n_bins)
        Labelled positives (first row) and negatives in each bin.

    Notes
    -----
    The histograms of `HDy` as a Bayesian model: both histograms are uncertain, with uniform priors.
    Estimates, intervals, bands, large samples and constant labels as in `BayesianCC`, in
    O(bins x size^2) per different histogram.

    Fails where the posteriors say little of a rare label: the uniform prior draws the estimate
    towards 0.5.

    References
    ----------
    "Precise quantifier: Bayesian distribution matching", arXiv:2507.06061, 2025.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> posteriors = Scores([[0.9], [0.8], [0.4], [0.3], [0.2], [0.1]], kind="posteriors")
    >>> pq = PQ(bins=2).fit(posteriors, [[1], [1], [1], [0], [0], [0]])
    >>> point, intervals = pq.estimate(posteriors, Samples.whole(6), 0.9)
    >>> point.round(2).tolist(), intervals.upper.round(2).tolist()
    ([[0.5]], [[1.0]])
    """

    code = "pq"

    def __init__(self, bins: int = 4, prior: float = 1.0) -> None:
        self.bins = bins
        self.prior = prior

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        bins = check_int(self.bins, "bins", minimum=2)
        levels = np.linspace(0.0, 1.0, bins + 1)[1:-1]
        values = np.asarray(scores.values, dtype=np.float64)
        self.edges_ = [np.unique(np.quantile(column, levels)) for column in values.T]
        self._count(scores, Y)


def _counts(shares: Floats, sizes: Ints) -> Floats:
    """Whole numbers of items in bins that sum to the sizes and are nearest to the shares."""
    ends = np.rint(np.cumsum(shares, axis=1) * sizes[:, np.newaxis])
    ends[:, -1] = sizes
    return np.diff(ends, axis=1, prepend=0.0)


def posterior(counts: Floats, labelled: Floats, prior: float) -> tuple[Floats, Floats]:
    """Posterior of the share of positives in samples of one size.

    Parameters
    ----------
    counts : array of float, shape (n_samples, n_bins)
        Items of each sample in each bin; all rows have the same sum.
    labelled : array of float, shape (2, n_bins)
        Labelled positives and negatives in each bin.
    prior : float
        Both parameters of the beta prior.

    Returns
    -------
    prevalences : array of float, shape (size + 1,)
        0, 1 / size, ..., 1.
    weights : array of float, shape (n_samples, size + 1)
        Their probabilities.
    """
    size = int(counts[0].sum())
    positives = np.arange(size + 1)
    logs = [_bin_logs(*each) for each in zip(counts.T, labelled[0], labelled[1], strict=True)]
    total = _convolved(logs, labelled, size + 1) + _total_logs(positives, size, labelled, prior)
    weights, _ = _scaled(total)
    return positives / size, weights / weights.sum(axis=1, keepdims=True)


def _bin_logs(counts: Floats, positives: float, negatives: float) -> Floats:
    """Logarithms of the factors of one bin, shape (n_samples, most items + 1).

    Computed once for samples with equally many items in the bin.
    """
    number, place = np.unique(counts, return_inverse=True)
    n, possible = number[:, np.newaxis], np.arange(counts.max() + 1)
    k = np.minimum(possible, n)
    logs = gammaln(positives + 1.0 + k) - gammaln(k + 1.0)
    logs += gammaln(negatives + 1.0 + n - k) - gammaln(n - k + 1.0)
    logs[possible > n] = -np.inf
    return np.asarray(logs[place.reshape(-1)])


def _total_logs(positives: Ints, size: int, labelled: Floats, prior: float) -> Floats:
    """Logarithm of the factor that depends on the number of positives alone."""
    n_bins, (n_positives, n_negatives) = labelled.shape[1], labelled.sum(axis=1)
    return np.asarray(
        betaln(prior + positives, prior + size - positives)
        - gammaln(n_positives + n_bins + positives)
        - gammaln(n_negatives + n_bins + size - positives)
    )


def _convolved(logs: list[Floats], labelled: Floats, width: int) -> Floats:
    """Logarithm of the convolution of the bins, shape (n_samples, width).

    A factor e^tilt per positive, taken out again afterwards, moves the peak of the convolution.
    Where one tilt underflows another one does not; of several the greatest share of its own
    peak counts.
    """
    n_bins, (n_positives, n_negatives) = labelled.shape[1], labelled.sum(axis=1)
    centre = np.log((n_negatives + n_bins) / (n_positives + n_bins))
    tilts = centre + _TILTS if width > _ONE_TILT else [centre]
    best = np.full((len(logs[0]), width), -np.inf)
    found = best.copy()
    for tilt in tilts:
        values, scale = np.ones((len(best), 1)), np.zeros(len(best))
        for own in logs:
            weights, greatest = _scaled(own + tilt * np.arange(own.shape[1]))
            values = _convolve(values, weights)
            peak = values.max(axis=1)
            values /= peak[:, np.newaxis]
            scale += greatest + np.log(peak)
        with np.errstate(divide="ignore"):
            heights = np.log(values[:, :width])
        better = heights > best
        undone = heights + scale[:, np.newaxis] - tilt * np.arange(width)
        found, best = np.where(better, undone, found), np.where(better, heights, best)
    return found


def _scaled(logs: Floats) -> tuple[Floats, Floats]:
    """Exponentials of rows, scaled to a greatest of 1, and the logarithm of the scale."""
    greatest = logs.max(axis=1)
    return np.exp(logs - greatest[:, np.newaxis]), greatest


def _convolve(left: Floats, right: Floats) -> Floats:
    """Convolution of each row of `left` with that of `right`."""
    width = left.shape[1]
    total = np.zeros((len(left), width + right.shape[1] - 1))
    for shift in range(right.shape[1]):
        total[:, shift : shift + width] += right[:, shift, np.newaxis] * left
    return total


def _quantile(prevalences: Floats, weights: Floats, level: float) -> Floats:
    """The least prevalence with at least `level` of the weight up to it, for each row."""
    place = (np.cumsum(weights, axis=1) < level).sum(axis=1)
    return prevalences[np.minimum(place, len(prevalences) - 1)]
