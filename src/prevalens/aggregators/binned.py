"""Aggregators that read how the posteriors of a sample are distributed over bins."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from prevalens.aggregators.base import FEW, Aggregator
from prevalens.batches import Histogram, fingerprint_of
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.types import Array, Floats, Ints

#: Indices of a block of samples, whose histograms are held at a time.
_BLOCK = 2**18


class BinnedAggregator(Aggregator):
    """Estimate each label from the shares of a sample's items in the bins of its posteriors.

    A subclass sets `edges_` and `matched_` in `_fit` and writes `_match`.

    Attributes
    ----------
    edges_ : list of arrays of float, one per label
        Inner edges of the bins, ascending; a posterior on an edge belongs to the bin above.
    matched_ : array of bool, shape (n_labels,)
        Labels that `_match` estimates; the estimate of the others is the mean posterior.
    """

    consumes: Kind = "posteriors"
    joint = False
    least_positives = FEW
    edges_: list[Floats]
    matched_: Array

    @abstractmethod
    def _match(self, shares: Floats, sizes: Ints, label: int) -> Floats:
        """Estimates of one label, shape (n_samples,), from shares (n_samples, n_bins)."""

    def _aggregate(self, scores: Scores, samples: Samples) -> Floats:
        estimates = np.empty((len(samples), self.n_labels_))
        others = ~self.matched_
        estimates[:, others] = samples.mean(scores.values[:, others])
        for label in np.flatnonzero(self.matched_).tolist():
            bins = np.searchsorted(self.edges_[label], scores.values[:, label], "right")
            estimates[:, label] = self._match_items(bins, samples, label)
        return estimates

    def _match_items(self, bins: Ints, samples: Samples, label: int) -> Floats:
        """Estimates of one label, shape (n_samples,), from the bins of the pool's items."""
        estimates = np.empty(len(samples))
        n_bins = len(self.edges_[label]) + 1
        for rows, block in samples.blocks(_BLOCK):
            bags = np.repeat(np.arange(len(block)), block.sizes)
            shares = _counted(bins[block.flat], bags, n_bins) / block.sizes[:, np.newaxis]
            estimates[rows] = self._match(shares, block.sizes, label)
        return estimates

    @property
    def statistic(self) -> Histogram:
        """Histograms with the bins of each label."""
        return Histogram(f"bins {fingerprint_of(self.edges_)}", self.edges_)

    def _from_means(self, means: Floats, sizes: Ints) -> Floats:
        shares, posteriors = self.statistic.read(means, self.n_labels_)
        estimates = np.asarray((shares * posteriors).sum(axis=2))
        for label in np.flatnonzero(self.matched_).tolist():
            own = shares[:, label, : len(self.edges_[label]) + 1]
            estimates[:, label] = self._match(own, sizes, label)
        return estimates


def _counted(cells: Array, bags: Array, n_bins: int) -> Array:
    """Number of items of each bag in each bin, shape (n_bags, n_bins)."""
    n_bags = int(bags[-1]) + 1
    flat = np.bincount(bags * n_bins + cells, minlength=n_bags * n_bins)
    return flat.reshape(n_bags, n_bins)
