"""HDx: the mixture of positives and negatives whose features look most like the sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.aggregators.base import Aggregator
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.validation import InputError, check_int, check_matrix, is_texts

__all__ = ["HDx"]

_Floats = npt.NDArray[np.float64]
#: Entries of a block of (features, samples, grid).
_BLOCK = 2**22
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
    A constant label is answered with its constant.

    O(n_labels x n_samples x grid x n_features x bins). Fails where no single feature tells
    positives from negatives, since how features occur together is not looked at.

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

    def _fit(self, scores: Scores, Y: npt.NDArray[np.int8]) -> None:
        check_int(self.grid, "grid", minimum=2)
        X = _check_items(scores.values)
        self.n_features_in_ = X.shape[1]
        several = [self.bins] if isinstance(self.bins, int) else list(self.bins)
        numbers = [check_int(number, "bins", minimum=2) for number in several]
        if not numbers:
            raise InputError("bins is empty; give at least one number of bins.")
        self._histograms: list[_Dense | _Sparse]
        if sp.issparse(X):
            self._histograms = [_Sparse()]
        else:
            self._histograms = [_Dense(X, number) for number in numbers]
        self.positives_, self.negatives_ = [], []
        for histogram in self._histograms:
            codes = histogram.encode(X)
            self.positives_.append(_conditional(histogram, codes, Y))
            self.negatives_.append(_conditional(histogram, codes, 1 - Y))

    def _aggregate(self, scores: Scores, samples: Samples) -> npt.NDArray[np.float64]:
        X = _check_items(scores.values)
        if X.shape[1] != self.n_features_in_:
            raise InputError(
                f"HDx was fitted on {self.n_features_in_} features; these items have {X.shape[1]}."
            )
        found = [
            self._match(*parts, X, samples)
            for parts in zip(self._histograms, self.positives_, self.negatives_, strict=True)
        ]
        return np.asarray(np.median(found, axis=0))

    def _match(
        self,
        histogram: _Dense | _Sparse,
        positives: _Floats,
        negatives: _Floats,
        X: Any,
        samples: Samples,
    ) -> _Floats:
        """The best prevalence of the grid for every sample and label."""
        estimates = np.tile(self.prevalence_, (len(samples), 1))
        varies = np.flatnonzero((self.prevalence_ > 0) & (self.prevalence_ < 1))
        shares = np.linspace(0.0, 1.0, self.grid)
        codes = histogram.encode(X)
        for rows, block in _portions(samples, self.n_features_in_ * self.grid):
            # (features, samples, bins), so that a feature's samples and mixtures multiply.
            roots = np.sqrt(histogram.decode(block.mean(codes)).transpose(1, 0, 2))
            for label in varies:
                mixtures = _mixtures(positives[label], negatives[label], shares)
                estimates[rows, label] = shares[_nearest(roots @ np.sqrt(mixtures))]
        return estimates


def _check_items(X: Any) -> Any:
    if is_texts(X):
        raise InputError("HDx reads numbers, not texts; turn them into a matrix first.")
    return check_matrix(X)


def _portions(samples: Samples, entries: int) -> Iterator[tuple[slice, Samples]]:
    """Runs of samples whose distances, `entries` each, fit a block."""
    step = max(1, _BLOCK // entries)
    for start in range(0, len(samples), step):
        yield slice(start, start + step), samples[start : start + step]


def _mixtures(positives: _Floats, negatives: _Floats, shares: _Floats) -> _Floats:
    """Histograms of all mixtures, shape (n_features, bins, grid)."""
    return positives[:, :, np.newaxis] * shares + negatives[:, :, np.newaxis] * (1.0 - shares)


def _nearest(overlap: _Floats) -> npt.NDArray[np.intp]:
    """Which mixture is nearest to each sample; among equals up to rounding, the first.

    Parameters
    ----------
    overlap : array, shape (n_features, n_samples, grid)
        Cosines between roots of histograms; the Hellinger distance is ``sqrt(1 - overlap)``.
    """
    apart = 1.0 - overlap
    # The root would blow rounding up to 1e-8.
    apart[apart < _ROUNDING] = 0.0
    distance = np.sqrt(apart, out=apart).mean(axis=0)
    least = distance.min(axis=1, keepdims=True)
    return np.argmax(distance <= least + 100 * _ROUNDING, axis=1)


class _Dense:
    """Histograms of numeric features between their least and greatest values."""

    def __init__(self, X: npt.NDArray[Any], bins: int) -> None:
        self.edges = [_edges(column, bins) for column in np.asarray(X, dtype=np.float64).T]
        self.bins = 1 + max(len(edges) for edges in self.edges)

    def encode(self, X: npt.NDArray[Any]) -> Any:
        """Which bin of which feature each item falls in, as a 0/1 matrix."""
        cells = [
            number * self.bins + np.searchsorted(edges, X[:, number], side="right")
            for number, edges in enumerate(self.edges)
        ]
        columns = np.column_stack(cells).reshape(-1)
        offsets = np.arange(0, len(columns) + 1, len(self.edges))
        shape = (len(X), len(self.edges) * self.bins)
        return sp.csr_matrix((np.ones(len(columns)), columns, offsets), shape=shape)

    def decode(self, means: _Floats) -> _Floats:
        """Mean codes as histograms, shape (n_means, n_features, bins)."""
        return means.reshape(len(means), len(self.edges), self.bins)


class _Sparse:
    """Histograms of presence: how often a feature is zero, how often not."""

    def encode(self, X: Any) -> Any:
        """Which features each item has, as a 0/1 matrix."""
        found = sp.csr_matrix(X, copy=True)
        found.eliminate_zeros()
        found.data = np.ones(len(found.data))
        return found

    def decode(self, means: _Floats) -> _Floats:
        """Mean codes as histograms, shape (n_means, n_features, 2)."""
        return np.stack([1.0 - means, means], axis=2)


def _edges(column: _Floats, bins: int) -> _Floats:
    """Inner edges of the bins of a feature: between values if they are few, else equal steps."""
    values = np.unique(column)
    if len(values) <= bins:
        return np.asarray((values[1:] + values[:-1]) / 2)
    return np.linspace(values[0], values[-1], bins + 1)[1:-1]


def _conditional(histogram: _Dense | _Sparse, codes: Any, members: npt.NDArray[np.int8]) -> _Floats:
    """Histograms among the members of each label; of no use where there are none."""
    counts = np.maximum(members.sum(axis=0, dtype=np.int64), 1)
    return histogram.decode(np.asarray((members.T / counts[:, np.newaxis]) @ codes))
