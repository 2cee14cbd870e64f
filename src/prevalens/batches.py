"""Batches of scored items, as far as quantifiers read them: sizes, and sums over their items.

A `Statistic` says what is summed. `ScoredSamples` sums the scores of items at hand; a
`prevalens.summary.Summary` has the sums alone.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import expit

from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.types import Array, Floats, Ints

#: Numbers of a block of items whose statistic is held at a time.
_BLOCK = 2**22


class Statistic(ABC):
    """What is summed over the items of a batch.

    Parameters
    ----------
    name : str
        Two statistics of one name are the same.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def sums(self, scores: Scores, samples: Samples) -> Floats:
        """Sums over the items of each sample, shape (n_samples, n_sums)."""

    def from_sums(self, known: Mapping[str, Floats]) -> Floats | None:  # noqa: ARG002
        """The sums, if they follow from those of other statistics, by their names; else None."""
        return None


class Columns(Statistic):
    """The sums of some columns that are computed from the scores.

    Parameters
    ----------
    name : str
    of : function of Scores
        Returns an array or sparse matrix, shape (n_items, n_sums).

    Examples
    --------
    >>> scores = Scores([[0.5], [1.0]])
    >>> VALUES.sums(scores, Samples.whole(2)).tolist()
    [[1.5]]
    """

    def __init__(self, name: str, of: Callable[[Scores], Any]) -> None:
        super().__init__(name)
        self.of = of

    def sums(self, scores: Scores, samples: Samples) -> Floats:
        """See `Statistic`."""
        return samples.sums(self.of(scores))


#: The votes or posteriors; those of all members of an ensemble; and no column.
VALUES = Columns("values", lambda scores: scores.values)
EVIDENCE = Columns("evidence", lambda scores: scores.evidence)
NOTHING = Columns("nothing", lambda scores: np.empty((scores.n_items, 0)))


class Products(Statistic):
    """The sums of the products of every two columns of a statistic, for covariances.

    Parameters
    ----------
    columns : Columns

    Notes
    -----
    Of more than `most` columns only the squares are kept: n_columns instead of n_columns^2 sums.
    """

    #: Columns up to which all products are summed.
    most = 100

    def __init__(self, columns: Columns) -> None:
        super().__init__(f"products of {columns.name}")
        self._columns = columns

    def sums(self, scores: Scores, samples: Samples) -> Floats:
        """See `Statistic`."""
        values = self._columns.of(scores)
        if sp.issparse(values) or values.shape[1] > self.most:
            return samples.sums(values.multiply(values) if sp.issparse(values) else values**2)
        values = np.asarray(values, dtype=np.float64)
        width = values.shape[1]
        # One copy in the order of the samples, whose rows are then next to each other.
        ordered = values if samples.is_whole else values[samples.flat]
        parts = (ordered[start:stop] for start, stop in pairwise(samples.offsets.tolist()))
        totals = [part.T @ part for part in parts]
        return np.reshape(totals, (len(samples), width * width))

    @staticmethod
    def scaled(noise: Floats, products: Floats, means: Floats) -> Floats:
        """White noise as noise with the covariances of the columns over the items of a batch.

        Parameters
        ----------
        noise : array of float, shape (n_columns, times)
        products : array of float, shape (n_columns^2,) or (n_columns,)
            Means of the products, or of the squares alone: columns then count as independent.
        means : array of float, shape (n_columns,)
        """
        if len(products) == len(means):
            return np.asarray(np.sqrt(np.maximum(products - means**2, 0.0))[:, np.newaxis] * noise)
        covariance = products.reshape(len(means), -1) - np.outer(means, means)
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T) @ noise)


class _Openness(Columns):
    """The sums of p (1 - p), the uncertainty of posteriors."""

    def __init__(self) -> None:
        super().__init__("openness", self._values)

    @staticmethod
    def _values(scores: Scores) -> Array:
        values = np.asarray(scores.values, dtype=np.float64)
        return values * (1.0 - values)

    def from_sums(self, known: Mapping[str, Floats]) -> Floats | None:
        """See `Statistic`: from the sums of posteriors and of their squares."""
        values, products = known.get(VALUES.name), known.get(Products(VALUES).name)
        if values is None or products is None:
            return None
        width = values.shape[1]
        squares = products if products.shape[1] == width else products[:, :: width + 1]
        return np.maximum(values - squares, 0.0)


OPENNESS = _Openness()


class Histogram(Statistic):
    """Number and mean score of the items of each label in bins of the scores.

    Parameters
    ----------
    name : str
    edges : array of float, shape (n_bins - 1,), or a list of such arrays, one per label
        Inner edges, ascending; a score on an edge belongs to the bin above it. Labels with fewer
        edges than others have empty bins at the end.
    """

    def __init__(self, name: str, edges: Floats | list[Floats]) -> None:
        super().__init__(name)
        self.edges = edges
        own = edges if isinstance(edges, list) else [edges]
        self.n_bins = 1 + max(map(len, own))

    def _cells(self, values: Floats) -> Ints:
        """Bins of scores, shape (n_items, n_labels)."""
        if not isinstance(self.edges, list):
            return np.searchsorted(self.edges, values, side="right")
        columns = zip(self.edges, values.T, strict=True)
        return np.stack([np.searchsorted(own, column, "right") for own, column in columns], axis=1)

    def sums(self, scores: Scores, samples: Samples) -> Floats:
        """See `Statistic`; all counts first, then all sums of scores."""
        values = np.asarray(scores.values)
        n_labels = values.shape[1]
        width = n_labels * self.n_bins
        totals = np.zeros((len(samples), 2, width))
        step = max(1, _BLOCK // n_labels)
        batch = np.repeat(np.arange(len(samples)), samples.sizes)
        first = np.arange(n_labels) * self.n_bins
        for start in range(0, len(batch), step):
            part = values[samples.flat[start : start + step]].astype(np.float64)
            own = batch[start : start + step, np.newaxis]
            cells = first + self._cells(part)
            low = int(own[0, 0])
            flat = ((own - low) * width + cells).ravel()
            span = int(own[-1, 0]) - low + 1
            for place, weights in enumerate((None, part.ravel())):
                found = np.bincount(flat, weights, minlength=span * width)
                totals[low : low + span, place] += found.reshape(span, width)
        return totals.reshape(len(samples), 2 * width)

    def read(self, means: Floats, n_labels: int) -> tuple[Floats, Floats]:
        """Share of the items in each bin, and their mean score; 0 in empty bins.

        Parameters
        ----------
        means : array of float, shape (n_batches, 2 * n_labels * n_bins)
        n_labels : int

        Returns
        -------
        shares, scores : arrays of float, shape (n_batches, n_labels, n_bins)
        """
        shape = (len(means), 2, n_labels, self.n_bins)
        shares, sums = np.moveaxis(means.reshape(shape), 1, 0)
        scores = np.divide(sums, shares, out=np.zeros_like(sums), where=shares > 0)
        return shares, np.clip(scores, 0.0, 1.0)


#: Log-odds between which posteriors are told apart, and the width of a bin. Within a bin odds
#: differ by 10 %; a bin is represented by its mean, so what is lost is of second order.
_LOG_ODDS, _WIDTH = 16.0, 0.1


def _fine_edges() -> Floats:
    """Bins of equal width in log-odds, and one each for posteriors of exactly 0 and 1."""
    inner = expit(np.linspace(-_LOG_ODDS, _LOG_ODDS, round(2 * _LOG_ODDS / _WIDTH) + 1))
    return np.concatenate([[np.nextafter(0.0, 1.0)], inner, [1.0]])


#: Fine enough for functions of posteriors; see docs/scale.md for what is lost.
FINE = Histogram("fine histogram", _fine_edges())


def fingerprint_of(state: Any) -> str:
    """Identifies fitted objects, or arrays, by the numbers and texts in them, at any depth.

    Examples
    --------
    >>> fingerprint_of({"a": [1, 2.0]}) == fingerprint_of({"a": [1, 2.0]})
    True
    """
    found = hashlib.sha256()
    for piece in _pieces(state, set()):
        found.update(piece)
    return found.hexdigest()[:16]


def _pieces(value: Any, seen: set[int]) -> Iterator[bytes]:
    if value is None or isinstance(value, (str, bytes, bool, int, float, np.generic)):
        yield f"{type(value).__name__} {value!s};".encode()
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    yield type(value).__qualname__.encode()
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes()
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            yield f"{key!s}=".encode()
            yield from _pieces(value[key], seen)
    elif isinstance(value, (list, tuple, np.ndarray)):
        for part in value:
            yield from _pieces(part, seen)
    elif hasattr(value, "__dict__"):
        yield from _pieces(vars(value), seen)


class Batches(ABC):
    """Batches as quantifiers read them.

    Attributes
    ----------
    sizes : array of int, shape (n_batches,)
    kind : {"votes", "posteriors", "features"}
        Of the scores.
    """

    sizes: Ints
    kind: str

    @abstractmethod
    def mean(self, statistic: Statistic) -> Floats:
        """Means over the items of each batch, shape (n_batches, n_sums)."""

    @abstractmethod
    def __getitem__(self, rows: npt.NDArray[np.intp]) -> Self:
        """Some of the batches."""

    def __len__(self) -> int:
        return len(self.sizes)


class ScoredSamples(Batches):
    """Samples of a pool of items whose scores are at hand.

    Parameters
    ----------
    scores : Scores
    samples : Samples
    """

    def __init__(self, scores: Scores, samples: Samples) -> None:
        self.scores, self.samples = scores, samples
        self.sizes, self.kind = samples.sizes, scores.kind

    def mean(self, statistic: Statistic) -> Floats:
        """See `Batches`."""
        return statistic.sums(self.scores, self.samples) / self.sizes[:, np.newaxis]

    def __getitem__(self, rows: npt.NDArray[np.intp]) -> ScoredSamples:
        return ScoredSamples(self.scores, self.samples[rows])
