"""HDy: the mixture of positives' and negatives' posteriors that looks most like the sample."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.aggregators.base import Aggregator
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.validation import InputError, check_int

__all__ = ["HDy"]

_Floats = npt.NDArray[np.float64]
#: The numbers of bins of the original paper.
BINS = tuple(range(10, 111, 10))
#: Indices of a block of samples, whose histograms are held at a time.
_BLOCK = 2**18


class HDy(Aggregator):
    """Match the histogram of a sample's posteriors, in Hellinger distance.

    Parameters
    ----------
    bins : int, sequence of int, or None
        Numbers of equal bins of [0, 1]; one estimate for each, and the median of them in the
        end. None: 10, 20, ..., 110, as in the original paper.
    grid : int
        Number of prevalences from 0 to 1 that are tried.

    Attributes
    ----------
    positives_, negatives_ : list of arrays of float, each of shape (n_labels, bins)
        How the posteriors of each label's positives and negatives are distributed over each
        set of bins; NaN where there are none.

    Notes
    -----
    With p the share of positives, the distance is smallest where the overlap ``sum
    sqrt((p pos + (1 - p) neg) sample)`` over the bins is greatest: for all samples and all p of the
    grid one matrix product. O(n_labels x n_samples x sum of bins x grid). Ties go to the
    smallest prevalence. A label that is constant in the labelled scores has nothing to mix; its
    estimate is the mean posterior.

    Fails for small samples and rare labels: most bins are empty, and what little overlaps
    decides.

    References
    ----------
    González-Castro, Alaiz-Rodríguez, Alegre, "Class distribution estimation based on the Hellinger
    distance", Information Sciences 218, 2013.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> posteriors = Scores([[0.9], [0.7], [0.3], [0.2]], kind="posteriors")
    >>> hdy = HDy(bins=10).fit(posteriors, [[1], [1], [0], [0]])
    >>> samples = Samples.from_indices([[0, 1, 1, 2], [2, 3, 3, 3]], n_items=4)
    >>> hdy.aggregate(posteriors, samples).tolist()
    [[0.74], [0.0]]
    """

    code = "hdy"
    consumes: Kind = "posteriors"
    joint = False

    def __init__(self, bins: int | Iterable[int] | None = None, *, grid: int = 101) -> None:
        self.bins = bins
        self.grid = grid

    def _fit(self, scores: Scores, Y: npt.NDArray[np.int8]) -> None:
        check_int(self.grid, "grid", minimum=2)
        self._edges = [np.linspace(0.0, 1.0, b + 1)[1:-1] for b in _check_bins(self.bins)]
        self.positives_ = [_densities(scores.values, Y, edges) for edges in self._edges]
        self.negatives_ = [_densities(scores.values, 1 - Y, edges) for edges in self._edges]

    def _aggregate(self, scores: Scores, samples: Samples) -> npt.NDArray[np.float64]:
        estimates = np.empty((len(samples), self.n_labels_))
        constant = (self.prevalence_ == 0) | (self.prevalence_ == 1)
        estimates[:, constant] = samples.mean(scores.values[:, constant])
        blocks = [
            (rows, block.flat, np.repeat(np.arange(len(block)), block.sizes))
            for rows, block in samples.blocks(_BLOCK)
        ]
        for label in np.flatnonzero(~constant).tolist():
            located = [np.searchsorted(e, scores.values[:, label], "right") for e in self._edges]
            for rows, flat, bags in blocks:
                best = [self._match(cells[flat], bags, label, k) for k, cells in enumerate(located)]
                estimates[rows, label] = np.median(best, axis=0)
        return estimates

    def _match(
        self, cells: npt.NDArray[Any], bags: npt.NDArray[Any], label: int, k: int
    ) -> _Floats:
        """The prevalences of greatest overlap, shape (n_samples,), in the k-th set of bins."""
        n_bins = len(self._edges[k]) + 1
        n_samples = int(bags[-1]) + 1
        counts = np.bincount(bags * n_bins + cells, minlength=n_samples * n_bins)
        grid = np.linspace(0.0, 1.0, self.grid)
        share = grid[:, np.newaxis]
        mixtures = share * self.positives_[k][label] + (1.0 - share) * self.negatives_[k][label]
        overlap = np.sqrt(counts.reshape(n_samples, n_bins)) @ np.sqrt(mixtures).T
        return grid[np.argmax(overlap, axis=1)]


def _check_bins(bins: int | Iterable[int] | None) -> tuple[int, ...]:
    if bins is None:
        return BINS
    several = tuple(bins) if isinstance(bins, Iterable) else (bins,)
    if not several:
        raise InputError("bins must name at least one number of bins; got none.")
    return tuple(check_int(b, "bins", minimum=2) for b in several)


def _densities(values: npt.NDArray[Any], members: npt.NDArray[np.int8], edges: _Floats) -> _Floats:
    """Shares of each label's members in the bins between 0, `edges` and 1; NaN without members."""
    counts = np.empty((members.shape[1], len(edges) + 1))
    for label, row in enumerate(counts):
        cells = np.searchsorted(edges, values[:, label], "right")
        row[:] = np.bincount(cells, weights=members[:, label], minlength=len(row))
    with np.errstate(invalid="ignore"):
        return counts / counts.sum(axis=1, keepdims=True)
