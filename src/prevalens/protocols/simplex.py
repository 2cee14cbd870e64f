"""Uniform points of the simplex over label sets: the multiclass APP, with label sets as classes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from prevalens.protocols.base import FixedNumber
from prevalens.protocols.drawing import draw_from_groups, empty_indices
from prevalens.samples import Samples
from prevalens.types import Floats, Ints, LabelMatrix
from prevalens.validation import check_int, check_number


class DirichletLabelsets(FixedNumber):
    """Draw the shares of label sets from a Dirichlet distribution, whatever their frequencies are.

    Parameters
    ----------
    size : int
        Items per sample.
    n_samples : int
        Number of samples.
    concentration : float
        Parameter of the Dirichlet distribution, 0.01 or more. 1 draws all points of the simplex
        with the same probability (UPP); below 1, few label sets dominate a sample; large values
        give all label sets equal shares.
    n_sets : int
        The most frequent label sets are classes of their own, all other items together are one
        more class.

    Notes
    -----
    Numbers of items per class are multinomial with the drawn shares. Items are drawn without
    replacement: if a class has too few items, the missing ones come from the others, by
    their shares. O(n_samples x (size + n_sets)) time. Where the most frequent label sets are
    few of the items (tag data), most labels hardly move; use `LabelTilt` there.

    References
    ----------
    Esuli, Moreo, Sebastiani, "LeQua@CLEF2022: learning to quantify", ECIR 2022, for uniform points
    of the simplex in place of a grid.

    Examples
    --------
    >>> Y = np.repeat([[0, 0], [0, 1], [1, 1]], 10, axis=0)
    >>> DirichletLabelsets(size=10, n_samples=1000).draw(Y, 0).mean(Y).mean(axis=0).round(1)
    array([0.3, 0.7])
    """

    name: ClassVar[str] = "dirichlet"

    def __init__(
        self,
        size: int = 100,
        n_samples: int = 1000,
        concentration: float = 1.0,
        n_sets: int = 10,
    ) -> None:
        super().__init__(size, n_samples)
        self.concentration = concentration
        self.n_sets = n_sets

    def _draw(self, Y: LabelMatrix, rng: np.random.Generator) -> Samples:
        n_samples = self._count(Y)
        concentration = check_number(self.concentration, "concentration", 0.01)
        classes = _classes(Y, check_int(self.n_sets, "n_sets", minimum=1))
        shares = rng.dirichlet(np.full(len(classes), concentration), n_samples)
        counts = _numbers(shares, np.array([len(each) for each in classes]), self.size, rng)
        drawn = empty_indices(n_samples, self.size, n_items=len(Y))
        draw_from_groups(drawn, classes, counts, rng)
        return Samples.from_indices(drawn, n_items=len(Y))


def _classes(Y: LabelMatrix, n_sets: int) -> list[Ints]:
    """Items of each of the most frequent label sets, and at last all others, if there are any."""
    _, set_of, number = np.unique(Y, axis=0, return_inverse=True, return_counts=True)
    rank = np.empty(len(number), dtype=np.intp)
    rank[np.argsort(-number, kind="stable")] = np.arange(len(number))
    class_of = np.minimum(rank[set_of.reshape(-1)], n_sets)
    return [np.flatnonzero(class_of == each) for each in range(class_of.max() + 1)]


def _numbers(shares: Floats, available: Ints, size: int, rng: np.random.Generator) -> Ints:
    """Items of each class in each sample, shape of `shares`; at most those available."""
    counts = np.zeros(shares.shape, dtype=np.int64)
    while len(rows := np.flatnonzero(counts.sum(axis=1) < size)):
        own = counts[rows]
        # A class may have room but a share of 0 in floating point.
        weights = np.where(own < available, shares[rows] + 1e-12, 0.0)
        weights /= weights.sum(axis=1, keepdims=True)
        more = rng.multinomial(size - own.sum(axis=1), weights)
        counts[rows] = np.minimum(own + more, available)
    return counts
