"""Samples without shift, and tilts, which move many labels at once by weights on the items.

`Natural` draws uniformly. With a tilt, each sample has random weights and is drawn by them without
replacement, so no item occurs twice and no label has a fixed prevalence. A tilt moves the labels of
a sample but not the distribution of items given their label set (given their features, for
`CovariateTilt`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp

from prevalens.protocols.base import FixedNumber, Protocol
from prevalens.protocols.drawing import block_rows, draw_from_groups, draw_weighted, empty_indices
from prevalens.samples import Samples
from prevalens.types import Floats, Ints, LabelMatrix
from prevalens.validation import InputError, check_matrix, check_same_length

#: From (number of samples, generator) to log-weights, shape (n_samples, n_items).
_Weigh: TypeAlias = Callable[[int, np.random.Generator], Floats]


class Natural(FixedNumber):
    """Draw every sample uniformly and without replacement: no shift except by chance.

    Parameters
    ----------
    size : int
        Items per sample.
    n_samples : int
        Number of samples.
    groups : sequence, one entry per item of the pool, optional
        Items with the same entry, such as several rows of one person, come together: a sample is
        filled with whole groups in random order, of which the last may be cut.

    Notes
    -----
    O(n_samples x size) time and memory; with groups O(n_samples x n_items) time. Does not test
    shift: a quantifier that always estimates the training prevalence has small errors here.

    References
    ----------
    The natural prevalence protocol of Esuli, Fabris, Moreo and Sebastiani, "Learning to
    quantify", Springer 2023.

    Examples
    --------
    >>> import numpy as np
    >>> Natural(size=2, n_samples=3).draw(np.eye(4), 0)
    Samples(3 of 2 from 4 items)
    """

    name: ClassVar[str] = "natural"

    def __init__(self, size: int = 100, n_samples: int = 1000, groups: Any = None) -> None:
        super().__init__(size, n_samples)
        self.groups = groups

    def _draw(self, Y: LabelMatrix, rng: np.random.Generator) -> Samples:
        if self.groups is not None:
            return self._draw_groups(Y, rng)
        counts = np.full((self._count(Y), 1), self.size)
        drawn = empty_indices(len(counts), self.size, n_items=len(Y))
        draw_from_groups(drawn, [np.arange(len(Y))], counts, rng)
        return Samples.from_indices(drawn, n_items=len(Y))

    def _draw_groups(self, Y: LabelMatrix, rng: np.random.Generator) -> Samples:
        """Fill each sample with the items of groups in random order."""
        check_same_length(len(self.groups), "groups", len(Y), "Y")
        names, group_of = np.unique(np.asarray(self.groups), return_inverse=True)
        drawn = empty_indices(self._count(Y), self.size, n_items=len(Y))
        step = block_rows(len(Y))
        for start in range(0, len(drawn), step):
            rows = drawn[start : start + step]
            ranks = rng.permuted(np.tile(np.arange(len(names)), (len(rows), 1)), axis=1)
            # Whole numbers order the groups, the fractions the items within a group.
            place = ranks[:, group_of.reshape(-1)] + rng.random((len(rows), len(Y)))
            rows[:] = np.argpartition(place, self.size - 1, axis=1)[:, : self.size]
        return Samples.from_indices(drawn, n_items=len(Y))


class _Tilt(FixedNumber):
    """Draw by random weights, a block of samples at a time."""

    @abstractmethod
    def _weigher(self, Y: LabelMatrix) -> _Weigh:
        """Check the parameters and return the function that draws log-weights."""

    def _draw(self, Y: LabelMatrix, rng: np.random.Generator) -> Samples:
        n_samples, weigh = self._count(Y), self._weigher(Y)
        drawn = empty_indices(n_samples, self.size, n_items=len(Y))
        step = block_rows(len(Y))
        for start in range(0, n_samples, step):
            rows = min(step, n_samples - start)
            drawn[start : start + rows] = draw_weighted(weigh(rows, rng), self.size, rng)
        return Samples.from_indices(drawn, n_items=len(Y))


class LabelsetWeights(_Tilt):
    """Make whole label sets more or less frequent, each by a random factor of its own.

    Every distinct row of `Y` gets a factor drawn from a gamma distribution with mean 1; items
    are drawn with the factor of their label set as weight. Both the prevalences and the
    dependencies between labels change.

    Parameters
    ----------
    size : int
        Items per sample.
    n_samples : int
        Number of samples.
    concentration : float
        Shape of the gamma distribution. With small values few label sets dominate a sample;
        large values are close to `Natural`.

    Notes
    -----
    O(n_samples x n_items) time. Where nearly every item has a label set of its own (many labels, as
    in tag data), factors average out and the prevalences hardly move; use `LabelTilt` there.

    Examples
    --------
    >>> import numpy as np
    >>> LabelsetWeights(size=2, n_samples=3).draw(np.eye(4), 0)
    Samples(3 of 2 from 4 items)
    """

    name: ClassVar[str] = "labelset-weights"

    def __init__(
        self, size: int = 100, n_samples: int = 1000, *, concentration: float = 0.5
    ) -> None:
        super().__init__(size, n_samples)
        self.concentration = concentration

    def _weigher(self, Y: LabelMatrix) -> _Weigh:
        shape = _check_positive(self.concentration, "concentration")
        labelsets, code = _labelsets(Y)

        def weigh(rows: int, rng: np.random.Generator) -> Floats:
            # log G(a) = log G(a + 1) + log(U) / a: a small shape would underflow otherwise.
            # The mean of the factors is left out, as weights matter only up to a factor.
            drawn = (rows, len(labelsets))
            factors = np.log(rng.standard_gamma(shape + 1.0, drawn))
            return (factors - rng.standard_exponential(drawn) / shape)[:, code]

        return weigh


class LabelTilt(_Tilt):
    """Tilt every label up or down: weights exp(theta . y), with theta ~ N(0, scale^2) per label.

    The exponential tilt is prior shift in its smoothest form: given the other labels of an item,
    the odds of label j are multiplied by exp(theta_j), and the odds ratios between labels
    stay as they were.

    Parameters
    ----------
    size : int
        Items per sample.
    n_samples : int
        Number of samples.
    scale : float
        Standard deviation of theta. With 1, the odds of a label change by a factor of 0.37 to 2.7
        in two thirds of the samples.

    Notes
    -----
    O(n_samples x n_items) time. The tilts of an item's labels add up: where items have
    many labels (more than ten), a scale of 1 lets a few items dominate; take a smaller one.

    Examples
    --------
    >>> import numpy as np
    >>> LabelTilt(size=2, n_samples=3).draw(np.eye(4), 0)
    Samples(3 of 2 from 4 items)
    """

    name: ClassVar[str] = "label-tilt"

    def __init__(self, size: int = 100, n_samples: int = 1000, *, scale: float = 1.0) -> None:
        super().__init__(size, n_samples)
        self.scale = scale

    def _weigher(self, Y: LabelMatrix) -> _Weigh:
        scale = _check_positive(self.scale, "scale")
        labelsets, code = _labelsets(Y)
        columns = labelsets.T.astype(np.float64)

        def weigh(rows: int, rng: np.random.Generator) -> Floats:
            theta = rng.normal(0.0, scale, (rows, len(columns)))
            return np.asarray((theta @ columns)[:, code])

        return weigh


class CovariateTilt(_Tilt):
    """Tilt the features: weights exp(scale * z(x)), z a random direction in feature space.

    For each sample a direction is drawn over the features, each divided by its standard
    deviation; z is the position of an item along it, in standard deviations of the pool. This is
    covariate shift: the distribution of the labels given the features stays the same.

    Parameters
    ----------
    X : array or sparse matrix, shape (n_items, n_features), optional
        Features of the pool's items, or any other covariates of them. `with_items` sets
        them later, so that a protocol can be planned before the data are loaded.
    size : int
        Items per sample.
    n_samples : int
        Number of samples.
    scale : float
        Strength of the tilt.

    Notes
    -----
    O(n_samples x entries of X) time. With features that are unrelated to the labels the
    prevalences do not move. Outliers along a direction are drawn first, once each.

    Examples
    --------
    >>> import numpy as np
    >>> CovariateTilt(np.arange(4.0).reshape(4, 1), size=2, n_samples=3).draw(np.eye(4), 0)
    Samples(3 of 2 from 4 items)
    """

    name: ClassVar[str] = "covariate-tilt"

    def __init__(
        self, X: Any = None, size: int = 100, *, n_samples: int = 1000, scale: float = 1.0
    ) -> None:
        super().__init__(size, n_samples)
        self.X = X
        self.scale = scale

    def with_items(self, X: Any) -> Protocol:
        """Return a copy with the features `X`, unless covariates were given before."""
        if self.X is not None:
            return self
        return type(self)(X, self.size, n_samples=self.n_samples, scale=self.scale)

    def _weigher(self, Y: LabelMatrix) -> _Weigh:
        scale = _check_positive(self.scale, "scale")
        if self.X is None:
            raise InputError(
                "CovariateTilt needs the features of the pool; give CovariateTilt(X) or call "
                "with_items(X) before drawing."
            )
        X = check_matrix(self.X)
        check_same_length(X.shape[0], "X", len(Y), "Y")
        per_deviation = _inverse(_column_deviations(X))

        def weigh(rows: int, rng: np.random.Generator) -> Floats:
            # Centring the features would only add a constant to the log-weights of a sample.
            directions = rng.standard_normal((rows, X.shape[1])) * per_deviation
            z = np.asarray(X @ directions.T).T
            return z * (scale * _inverse(z.std(axis=1)))[:, np.newaxis]

        return weigh


def _check_positive(value: float, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not value > 0:
        raise InputError(f"{name} must be a number above 0; got {value!r}.")
    return float(value)


def _labelsets(Y: LabelMatrix) -> tuple[LabelMatrix, Ints]:
    """The distinct rows of `Y`, and the position of each item's row among them."""
    labelsets, code = np.unique(Y, axis=0, return_inverse=True)
    return labelsets, code.reshape(-1)


def _column_deviations(X: Any) -> Floats:
    """Standard deviation of each feature; exactly 0 where it is nothing but rounding."""
    squared = X.multiply(X) if sp.issparse(X) else np.square(X, dtype=np.float64)
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).reshape(-1)
    mean_square = np.asarray(squared.mean(axis=0, dtype=np.float64)).reshape(-1)
    variance = mean_square - mean**2
    return np.sqrt(np.where(variance > 1e-14 * mean_square, variance, 0.0))


def _inverse(deviations: Floats) -> Floats:
    """1 / deviation, and 0 where the deviation is 0: constant features have no effect."""
    return np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
