"""HDy, DyS and HDx: the mixture of positives and negatives whose histograms match best."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.aggregators.base import Aggregator
from prevalens.aggregators.binned import BinnedAggregator
from prevalens.batches import Columns, fingerprint_of
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.types import Array, Floats, Ints, LabelMatrix
from prevalens.validation import InputError, check_choice, check_int, check_matrix, is_texts


class _HistogramMatching(BinnedAggregator):
    """The mixture of positives and negatives whose histogram is nearest to the sample's."""

    bins: int | Iterable[int]

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        self._check()
        sets = [np.linspace(0.0, 1.0, bins + 1)[1:-1] for bins in _check_bins(self.bins)]
        finest = np.unique(np.concatenate(sets))
        self.edges_ = [finest] * self.n_labels_
        # First of the finest bins in each bin of each set.
        self._firsts = [np.concatenate([[0], 1 + np.searchsorted(finest, own)]) for own in sets]
        self.positives_ = [_densities(scores.values, Y, edges) for edges in sets]
        self.negatives_ = [_densities(scores.values, 1 - Y, edges) for edges in sets]
        # A comparison with NaN, of a constant label, is false.
        self.matched_ = np.any(
            [
                np.abs(positives - negatives).max(axis=1) > _ROUNDING
                for positives, negatives in zip(self.positives_, self.negatives_, strict=True)
            ],
            axis=0,
        )

    def _check(self) -> None:
        """Check the parameters."""

    def _match(self, shares: Floats, sizes: Ints, label: int) -> Floats:  # noqa: ARG002
        sets = zip(self._firsts, self.positives_, self.negatives_, strict=True)
        best = [
            self._nearest(np.add.reduceat(shares, first, axis=1), positive[label], negative[label])
            for first, positive, negative in sets
        ]
        return np.asarray(np.median(best, axis=0))

    @abstractmethod
    def _nearest(self, shares: Floats, positives: Floats, negatives: Floats) -> Floats:
        """Prevalences of the nearest mixtures, shape (n_samples,), for one set of bins."""


class HDy(_HistogramMatching):
    """Match the histogram of a sample's posteriors, in Hellinger distance.

    Parameters
    ----------
    bins : int or sequence of int
        Numbers of equal bins of [0, 1]; one estimate for each, and the median of them in the
        end. The original paper takes 10, 20, ..., 110, which need samples of thousands of items.
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
    smallest prevalence. A label that is constant in the labelled scores has nothing to mix, and
    one whose histograms are equal in all sets cannot be told apart; their estimate is the mean
    posterior.

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

    def __init__(self, bins: int | Iterable[int] = 8, *, grid: int = 101) -> None:
        self.bins = bins
        self.grid = grid

    def _check(self) -> None:
        check_int(self.grid, "grid", minimum=2)

    def _nearest(self, shares: Floats, positives: Floats, negatives: Floats) -> Floats:
        grid = np.linspace(0.0, 1.0, self.grid)
        share = grid[:, np.newaxis]
        overlap = np.sqrt(shares) @ np.sqrt(share * positives + (1.0 - share) * negatives).T
        return grid[_first_greatest(overlap)]


class DyS(_HistogramMatching):
    """Match the histogram of a sample's posteriors, in one of several distances.

    Parameters
    ----------
    bins : int or sequence of int
        As in `HDy`.
    distance : {"topsoe", "hellinger", "probsymm"}
        The Topsoe distance (twice the Jensen-Shannon divergence), the Hellinger distance, or the
        probabilistic symmetric chi-square distance.

    Attributes
    ----------
    positives_, negatives_ : list of arrays of float, each of shape (n_labels, bins)
        As in `HDy`.

    Notes
    -----
    Each of the three distances is convex in the share of positives, so the nearest mixture is
    the zero of the derivative; it is found by Newton's method within a bracket, for all samples at
    once, to 1e-6. `HDy` tries a grid instead. O(n_labels x n_samples x sum of bins x steps), about
    8 steps. Constant labels and equal histograms as in `HDy`.

    Fails for small samples and rare labels: most bins are empty, and a few items decide.

    References
    ----------
    Maletzke, dos Reis, Cherman, Batista, "DyS: a framework for mixture models in quantification",
    AAAI 2019.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> posteriors = Scores([[0.9], [0.7], [0.3], [0.2]], kind="posteriors")
    >>> dys = DyS(bins=2).fit(posteriors, [[1], [1], [0], [0]])
    >>> samples = Samples.from_indices([[0, 1, 1, 2], [2, 3, 3, 3]], n_items=4)
    >>> dys.aggregate(posteriors, samples).round(4).tolist()
    [[0.75], [0.0]]
    """

    code = "dys"

    def __init__(self, bins: int | Iterable[int] = 8, distance: str = "topsoe") -> None:
        self.bins = bins
        self.distance = distance

    def _check(self) -> None:
        check_choice(self.distance, "distance", tuple(DISTANCES))

    def _nearest(self, shares: Floats, positives: Floats, negatives: Floats) -> Floats:
        return nearest_mixtures(shares, positives, negatives, self.distance)


def _first_greatest(overlap: Floats) -> npt.NDArray[np.intp]:
    """Position of the greatest overlap in each row; the first of those equal up to rounding."""
    return np.argmax(overlap >= overlap.max(axis=1, keepdims=True) - _ROUNDING, axis=1)


_Slopes: TypeAlias = tuple[Floats, Floats]


def _topsoe(mixture: Floats, sample: Floats) -> _Slopes:
    """First and second derivative, in the mixture, of each bin's part of the Topsoe distance."""
    both = mixture + sample
    return np.log(2.0 * mixture / both), sample / (mixture * both)


def _hellinger_squared(mixture: Floats, sample: Floats) -> _Slopes:
    root = np.sqrt(sample / mixture)
    return 1.0 - root, 0.5 * root / mixture


def _probsymm(mixture: Floats, sample: Floats) -> _Slopes:
    both = mixture + sample
    return (mixture - sample) * (mixture + 3.0 * sample) / both**2, 8.0 * sample**2 / both**3


#: Derivatives of the distances of `DyS`.
DISTANCES = {"topsoe": _topsoe, "hellinger": _hellinger_squared, "probsymm": _probsymm}
#: Precision of the nearest mixture, and the most steps: bisection alone would need 20.
_PRECISION, _STEPS = 1e-6, 40
#: Shares of a mixture below this count as this, so that all derivatives are finite.
_LEAST = 1e-15


def nearest_mixtures(shares: Floats, positives: Floats, negatives: Floats, distance: str) -> Floats:
    """The share of positives in the mixture that is nearest to each sample.

    Parameters
    ----------
    shares : array of float, shape (n_samples, n_bins)
    positives, negatives : arrays of float, shape (n_bins,)
    distance : {"topsoe", "hellinger", "probsymm"}

    Returns
    -------
    array of float, shape (n_samples,)
    """
    derivatives, difference = DISTANCES[distance], positives - negatives
    answer = np.full(len(shares), 0.5)
    active, point = np.arange(len(shares)), answer.copy()
    low, high = np.zeros(len(shares)), np.ones(len(shares))
    for _ in range(_STEPS):
        mixture = np.maximum(negatives + point[:, np.newaxis] * difference, _LEAST)
        first, second = derivatives(mixture, shares[active])
        slope, curvature = first @ difference, second @ difference**2
        low, high = np.where(slope < 0, point, low), np.where(slope > 0, point, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = point - slope / curvature
        inside = (newton > low) & (newton < high)
        moved = np.where(inside, newton, np.where(slope == 0, point, 0.5 * (low + high)))
        answer[active] = moved
        going = (np.abs(moved - point) > _PRECISION) & (high - low > _PRECISION)
        active, point, low, high = active[going], moved[going], low[going], high[going]
        if len(active) == 0:
            break
    return answer


def _check_bins(bins: int | Iterable[int]) -> tuple[int, ...]:
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
