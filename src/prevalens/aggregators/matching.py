"""HDy and HDx: the mixture of positives and negatives whose histograms match the sample best."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.aggregators.base import Aggregator
from prevalens.batches import Columns, Histogram, fingerprint_of
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.types import Array, Floats, Ints, LabelMatrix
from prevalens.validation import InputError, check_int, check_matrix, is_texts

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

    Fails for small samples and rare labels: most bins are empty, and a few items decide.

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

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        check_int(self.grid, "grid", minimum=2)
        self._edges = [np.linspace(0.0, 1.0, b + 1)[1:-1] for b in _check_bins(self.bins)]
        self.positives_ = [_densities(scores.values, Y, edges) for edges in self._edges]
        self.negatives_ = [_densities(scores.values, 1 - Y, edges) for edges in self._edges]

    def _aggregate(self, scores: Scores, samples: Samples) -> Floats:
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
                counts = [
                    _counted(cells[flat], bags, len(edges) + 1)
                    for cells, edges in zip(located, self._edges, strict=True)
                ]
                estimates[rows, label] = self._median(counts, label)
        return estimates

    @property
    def statistic(self) -> Histogram:
        """Histograms whose bins are parts of the bins of every set."""
        name = f"bins {', '.join(str(len(edges) + 1) for edges in self._edges)}"
        return Histogram(name, np.unique(np.concatenate(self._edges)))

    def _from_means(self, means: Floats, sizes: Ints) -> Floats:  # noqa: ARG002
        histogram = self.statistic
        shares, posteriors = histogram.read(means, self.n_labels_)
        estimates = np.asarray((shares * posteriors).sum(axis=2))
        firsts = [
            np.concatenate([[0], 1 + np.searchsorted(histogram.edges, edges)])
            for edges in self._edges
        ]
        varies = (self.prevalence_ > 0) & (self.prevalence_ < 1)
        for label in np.flatnonzero(varies).tolist():
            counts = [np.add.reduceat(shares[:, label], first, axis=1) for first in firsts]
            estimates[:, label] = self._median(counts, label)
        return estimates

    def _median(self, counts: Sequence[Array], label: int) -> Floats:
        """Median over the sets of bins of the prevalences that match best, shape (n_samples,)."""
        best = [self._match(each, label, k) for k, each in enumerate(counts)]
        return np.asarray(np.median(best, axis=0))

    def _match(self, counts: Array, label: int, k: int) -> Floats:
        """The prevalences of greatest overlap, shape (n_samples,), in the k-th set of bins."""
        grid = np.linspace(0.0, 1.0, self.grid)
        share = grid[:, np.newaxis]
        mixtures = share * self.positives_[k][label] + (1.0 - share) * self.negatives_[k][label]
        overlap = np.sqrt(counts) @ np.sqrt(mixtures).T
        return grid[np.argmax(overlap, axis=1)]


def _counted(cells: Array, bags: Array, n_bins: int) -> Array:
    """Number of items of each bag in each bin, shape (n_bags, n_bins)."""
    n_bags = int(bags[-1]) + 1
    flat = np.bincount(bags * n_bins + cells, minlength=n_bags * n_bins)
    return flat.reshape(n_bags, n_bins)


def _check_bins(bins: int | Iterable[int] | None) -> tuple[int, ...]:
    if bins is None:
        return BINS
    several = tuple(bins) if isinstance(bins, Iterable) else (bins,)
    if not several:
        raise InputError("bins must name at least one number of bins; got none.")
    return tuple(check_int(b, "bins", minimum=2) for b in several)


def _densities(values: Array, members: LabelMatrix, edges: Floats) -> Floats:
    """Shares of each label's members in the bins between 0, `edges` and 1; NaN without members."""
    counts = np.empty((members.shape[1], len(edges) + 1))
    for label, row in enumerate(counts):
        cells = np.searchsorted(edges, values[:, label], "right")
        row[:] = np.bincount(cells, weights=members[:, label], minlength=len(row))
    with np.errstate(invalid="ignore"):
        return counts / counts.sum(axis=1, keepdims=True)


#: Maximum number of entries that a block of samples of HDx needs.
_HDX_BLOCK = 2**22
_ROUNDING = 1e-12


class HDx(Aggregator):
    """Match the histograms of a sample's features, in Hellinger distance; needs no classifier.

    Parameters
    ----------
    bins : int or sequence of int
        Equal bins between the least and the greatest training value of each feature; several
        numbers of bins give one estimate each, of which the median is the answer. The
        original paper takes the median over 10, 20, ..., 110.
    grid : int
        Number of prevalences from 0 to 1 that are tried.

    Attributes
    ----------
    positives_, negatives_ : list of arrays of float, each of shape (n_labels, n_features, bins)
        How each feature is distributed among each label's positives and negatives.

    Notes
    -----
    The distance of a mixture is the mean over the features of the Hellinger distances of their
    histograms; ties go to the smallest prevalence. A feature with fewer different training
    values than bins has one bin per value. Values outside the training range count for the
    outermost bins. Sparse features have two bins, absent and present, and are never made dense.
    The estimate of a constant label is its constant.

    O(n_labels x n_samples x grid x n_features x bins); of sparse features only those present in a
    sample count. Fails where no single feature separates positives from negatives, since the
    dependence between features is not used.

    References
    ----------
    González-Castro, Alaiz-Rodríguez, Alegre, "Class distribution estimation based on the Hellinger
    distance", Information Sciences 218, 2013.

    Examples
    --------
    >>> X = np.array([[0.1], [0.2], [0.3], [0.7], [0.8], [0.9]])
    >>> items = Scores(X, kind="features")
    >>> hdx = HDx(bins=2).fit(items, X > 0.5)
    >>> hdx.aggregate(items, Samples.from_indices([[0, 1, 2, 3]], n_items=6)).tolist()
    [[0.25]]
    """

    code = "hdx"
    consumes: Kind = "features"
    joint = False

    def __init__(self, bins: int | Iterable[int] = 10, *, grid: int = 101) -> None:
        self.bins = bins
        self.grid = grid

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        check_int(self.grid, "grid", minimum=2)
        X = _check_items(scores.values)
        self.n_features_in_ = X.shape[1]
        numbers = _check_bins(self.bins)
        self._histograms: list[_Dense | _Sparse] = [_Sparse()]
        if not sp.issparse(X):
            self._histograms = [_Dense(X, number) for number in numbers]
        self.positives_ = [_conditional(histogram, X, Y) for histogram in self._histograms]
        self.negatives_ = [_conditional(histogram, X, 1 - Y) for histogram in self._histograms]

    def _aggregate(self, scores: Scores, samples: Samples) -> Floats:
        X = _check_items(scores.values)
        if X.shape[1] != self.n_features_in_:
            raise InputError(
                f"HDx was fitted on {self.n_features_in_} features; these items have {X.shape[1]}."
            )
        estimates = [
            self._match(len(samples), histogram.of_samples(X, samples, self.grid), k)
            for k, histogram in enumerate(self._histograms)
        ]
        return np.asarray(np.median(estimates, axis=0))

    @property
    def statistic(self) -> Columns:
        """In which bin of each feature the items are, for all sets of bins."""
        edges = [edges for each in self._histograms for edges in each.edges]
        name = f"features {fingerprint_of(edges)}"
        return Columns(name, lambda scores: self._encoded(_check_items(scores.values)))

    def _encoded(self, X: Any) -> Any:
        return sp.hstack([histogram.encode(X) for histogram in self._histograms], format="csr")

    def _from_means(self, means: Floats, sizes: Ints) -> Floats:
        widths = [self.n_features_in_ * each.bins for each in self._histograms]
        parts = np.split(means, np.cumsum(widths)[:-1], axis=1)
        estimates = [
            self._match(len(sizes), histogram.of_means(part, sizes, self.grid), k)
            for k, (histogram, part) in enumerate(zip(self._histograms, parts, strict=True))
        ]
        return np.asarray(np.median(estimates, axis=0))

    def _match(self, n_samples: int, histograms: Iterable[tuple[slice, Any]], k: int) -> Floats:
        """The best prevalence of the grid for every sample and label, in the k-th set of bins."""
        histogram = self._histograms[k]
        positives, negatives = self.positives_[k], self.negatives_[k]
        estimates = np.tile(self.prevalence_, (n_samples, 1))
        varies = np.flatnonzero((self.prevalence_ > 0) & (self.prevalence_ < 1))
        shares = np.linspace(0.0, 1.0, self.grid)
        for rows, seen in histograms:
            for label in varies:
                # Histograms of all mixtures, shape (n_features, bins, grid).
                mixtures = positives[label][:, :, np.newaxis] * shares
                mixtures += negatives[label][:, :, np.newaxis] * (1.0 - shares)
                estimates[rows, label] = shares[_nearest(histogram.distances(seen, mixtures))]
        return estimates


def _check_items(X: Any) -> Any:
    if is_texts(X):
        raise InputError("HDx reads numbers, not texts; turn them into a matrix first.")
    return check_matrix(X)


def _portions(samples: Samples, entries: int) -> Iterator[tuple[slice, Samples]]:
    """Yield blocks of samples that need `entries` numbers each."""
    step = max(1, _HDX_BLOCK // entries)
    for start in range(0, len(samples), step):
        yield slice(start, start + step), samples[start : start + step]


def _hellinger(overlap: Floats) -> Floats:
    """Distances from the cosines between roots of histograms."""
    apart = 1.0 - overlap
    # The root would magnify rounding to 1e-8.
    apart[apart < _ROUNDING] = 0.0
    return np.sqrt(apart, out=apart)


def _nearest(distance: Floats) -> npt.NDArray[np.intp]:
    """Position of the least distance in each row; the first of those equal up to rounding."""
    least = distance.min(axis=1, keepdims=True)
    return np.argmax(distance <= least + 100 * _ROUNDING, axis=1)


class _Dense:
    """Histograms of numeric features between their least and greatest values."""

    def __init__(self, X: Array, bins: int) -> None:
        self.edges = [_edges(column, bins) for column in np.asarray(X, dtype=np.float64).T]
        self.bins = 1 + max(len(edges) for edges in self.edges)

    def encode(self, X: Array) -> Any:
        """The bins of all features that each item falls into, as a 0/1 matrix."""
        cells = [
            number * self.bins + np.searchsorted(edges, X[:, number], side="right")
            for number, edges in enumerate(self.edges)
        ]
        columns = np.column_stack(cells).reshape(-1)
        offsets = np.arange(0, len(columns) + 1, len(self.edges))
        shape = (len(X), len(self.edges) * self.bins)
        return sp.csr_matrix((np.ones(len(columns)), columns, offsets), shape=shape)

    def of_groups(self, X: Array, weights: Floats) -> Floats:
        """Histograms of weighted items, shape (n_groups, n_features, bins)."""
        return np.asarray(weights @ self.encode(X)).reshape(len(weights), -1, self.bins)

    def of_samples(self, X: Array, samples: Samples, grid: int) -> Iterator[tuple[slice, Any]]:
        """Roots of the histograms of some samples at a time, (n_features, n_samples, bins)."""
        codes = self.encode(X)
        for rows, block in _portions(samples, len(self.edges) * max(grid, self.bins)):
            yield rows, self._roots(block.mean(codes))

    def of_means(
        self,
        means: Floats,
        sizes: Ints,  # noqa: ARG002 - for presence
        grid: int,
    ) -> Iterator[tuple[slice, Any]]:
        """As `of_samples`, from the means of `encode` over each batch."""
        step = max(1, _HDX_BLOCK // (len(self.edges) * max(grid, self.bins)))
        for start in range(0, len(means), step):
            rows = slice(start, start + step)
            yield rows, self._roots(means[rows])

    def _roots(self, means: Floats) -> Floats:
        histograms = means.reshape(len(means), -1, self.bins)
        return np.sqrt(histograms.transpose(1, 0, 2))

    def distances(self, seen: Any, mixtures: Floats) -> Floats:
        """Mean distance of each sample from each mixture, shape (n_samples, grid)."""
        return np.asarray(_hellinger(seen @ np.sqrt(mixtures)).mean(axis=0))


class _Presence(NamedTuple):
    """The features that occur in some samples, and in which share of their items.

    Many samples have the same share of a feature, so each distance is computed once: `cells` has
    a row per sample and a column for each share of each feature.
    """

    cells: Any
    features: npt.NDArray[np.intp]
    shares: Floats


class _Sparse:
    """Histograms of presence: how often a feature is zero, how often not."""

    edges: tuple[Floats, ...] = ()
    #: Columns of `encode` per feature.
    bins = 1

    def encode(self, X: Any) -> Any:
        """The features that each item has, as a 0/1 matrix."""
        present = sp.csr_matrix(X, copy=True)
        present.eliminate_zeros()
        present.data = np.ones(len(present.data))
        return present

    def of_groups(self, X: Any, weights: Floats) -> Floats:
        """Histograms of weighted items, shape (n_groups, n_features, 2)."""
        present = np.minimum(np.asarray(weights @ self.encode(X)), 1.0)
        return np.stack([1.0 - present, present], axis=2)

    def of_samples(
        self,
        X: Any,
        samples: Samples,
        grid: int,  # noqa: ARG002 - the table of distances does not grow with the samples
    ) -> Iterator[tuple[slice, Any]]:
        """Yield the features that occur in samples, as a `_Presence` for each block."""
        codes = self.encode(X)
        for rows, block in _portions(samples, X.shape[1]):
            shape = (len(block), samples.n_items)
            bags = sp.csr_matrix((np.ones(len(block.flat)), block.flat, block.offsets), shape=shape)
            yield rows, self._presence(sp.csr_matrix(bags @ codes), block.sizes)

    def of_means(
        self,
        means: Floats,
        sizes: Ints,
        grid: int,  # noqa: ARG002 - as in `of_samples`
    ) -> Iterator[tuple[slice, Any]]:
        """As `of_samples`, from the means of `encode` over each batch."""
        counts = sp.csr_matrix(means * sizes[:, np.newaxis])
        yield slice(None), self._presence(counts, sizes)

    @staticmethod
    def _presence(counts: Any, sizes: Ints) -> _Presence:
        held = np.diff(counts.indptr)
        shares = counts.data / np.repeat(sizes, held)
        # A share is above 0 and at most 1, so the sum identifies feature and share.
        _, first, cell = np.unique(counts.indices + shares, return_index=True, return_inverse=True)
        ones = np.ones(len(cell))
        shape = (len(sizes), len(first))
        cells = sp.csr_matrix((ones, cell.reshape(-1), counts.indptr), shape=shape)
        return _Presence(cells, counts.indices[first], shares[first])

    def distances(self, seen: Any, mixtures: Floats) -> Floats:
        """Mean distance of each sample from each mixture, shape (n_samples, grid)."""
        without, having = np.sqrt(mixtures[:, 0]), np.sqrt(mixtures[:, 1])
        nothing = _hellinger(without.copy())
        share = seen.shares[:, np.newaxis]
        overlap = having[seen.features] * np.sqrt(share)
        overlap += without[seen.features] * np.sqrt(1.0 - share)
        changes = _hellinger(overlap) - nothing[seen.features]
        return np.asarray(nothing.sum(axis=0) + seen.cells @ changes) / len(mixtures)


def _edges(column: Floats, bins: int) -> Floats:
    """Inner edges of the bins of a feature: between values if they are few, else equal steps."""
    values = np.unique(column)
    if len(values) <= bins:
        return np.asarray((values[1:] + values[:-1]) / 2)
    return np.linspace(values[0], values[-1], bins + 1)[1:-1]


def _conditional(histogram: _Dense | _Sparse, X: Any, members: LabelMatrix) -> Floats:
    """Histograms among the members of each label; meaningless for a label without members."""
    counts = np.maximum(members.sum(axis=0, dtype=np.int64), 1)
    return histogram.of_groups(X, members.T / counts[:, np.newaxis])
