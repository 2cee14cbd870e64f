"""How the paper's code draws folds and training samples where its text says something else.

Parts of the variants of the paper's plan, used by nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold

from prevalens.protocols import Protocol
from prevalens.protocols.drawing import distinct
from prevalens.samples import Samples
from prevalens.validation import InputError

__all__ = ["CoarseAPP", "InOrder"]


class InOrder(BaseEstimator):  # type: ignore[misc]
    """Folds of neighbouring items, whatever order they are in.

    Parameters
    ----------
    n_folds : int

    Notes
    -----
    On data that is sorted by label a fold may hold all positives of a label, so that the
    classifier that scores it has seen none.
    """

    code = "in-order"

    def __init__(self, n_folds: int = 5) -> None:
        self.n_folds = n_folds

    def split(self, X: Any, Y: Any = None) -> Iterator[tuple[Any, Any]]:
        """Rows to train on and rows to score, fold by fold."""
        return KFold(self.n_folds).split(X, Y)


class CoarseAPP(Protocol):
    """ML-APP as the paper's code draws it to train RQ: 21 prevalences, few samples.

    Every label with at least five positives is steered to 0, .05, ..., as far as its positives
    reach; each point has 5,000 / (21 x labels) samples, at least one. Negatives that run short
    are repeated.

    Parameters
    ----------
    size : int
        Items per sample.
    """

    name: ClassVar[str] = "coarse-app"
    points: ClassVar[int] = 21
    n_samples: ClassVar[int] = 5_000
    min_positives: ClassVar[int] = 5

    def __init__(self, size: int = 100) -> None:
        self.size = size

    def _wanted(self, Y: npt.NDArray[np.int8]) -> list[npt.NDArray[np.int64]]:
        """How many positives each sample of a label has, label by label."""
        positives = Y.sum(axis=0, dtype=np.int64)
        repeats = max(self.n_samples // (self.points * Y.shape[1]), 1)
        counts = np.arange(self.points) * self.size // (self.points - 1)
        reached = [
            counts[counts <= n] if n >= self.min_positives else counts[:0] for n in positives
        ]
        return [np.repeat(one, repeats) for one in reached]

    def _count(self, Y: npt.NDArray[np.int8]) -> int:
        return sum(map(len, self._wanted(Y)))

    def _draw(self, Y: npt.NDArray[np.int8], rng: np.random.Generator) -> Samples:
        wanted = self._wanted(Y)
        drawn = [
            self._draw_label(y, counts, rng)
            for y, counts in zip(Y.T, wanted, strict=True)
            if len(counts)
        ]
        if not drawn:
            raise InputError(
                f"No label of the pool has {self.min_positives} positives, so none can be steered."
            )
        sizes = np.array([len(counts) for counts in wanted])
        return Samples.from_indices(
            np.concatenate(drawn),
            n_items=len(Y),
            target=np.repeat(np.arange(len(sizes)), sizes),
            prevalence=np.concatenate(wanted) / self.size,
        )

    def _draw_label(
        self, y: npt.NDArray[np.int8], counts: npt.NDArray[np.int64], rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        positives, negatives = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
        drawn = np.empty((len(counts), self.size), dtype=np.int64)
        for row, n_positives in zip(drawn, counts, strict=True):
            row[:n_positives] = _take(positives, n_positives, rng)
            row[n_positives:] = _take(negatives, self.size - n_positives, rng)
        return drawn


def _take(
    items: npt.NDArray[np.int64], number: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Some of the items, once each if there are enough."""
    if number > len(items):
        return rng.choice(items, number)
    return items[distinct(len(items), np.array([number]), rng)]
