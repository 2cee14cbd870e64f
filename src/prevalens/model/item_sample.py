"""Some items of every batch, drawn at random while all are read: for methods that need items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.batches import ScoredSamples
from prevalens.model.model import joined
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.types import Floats

#: Items of a batch that are kept. The share of a label among them differs from that among all items
#: of the batch by a standard error of at most 0.5 / sqrt(20,000), 0.35 points.
MOST = 20_000


class ItemSample:
    """At most `MOST` items of every batch; the same whatever chunks the items come in.

    Every item of a batch draws a number, from a generator of the batch's own, and those with the
    smallest numbers are kept. Memory is that of twice `MOST` items per batch.

    Attributes
    ----------
    sizes : Counter of int
        Items of each batch in all, by the number of the batch.
    """

    def __init__(self) -> None:
        self.sizes: Counter[int] = Counter()
        self._limit: dict[int, float] = {}
        self._draws: dict[int, np.random.Generator] = {}
        self._kept: Counter[int] = Counter()
        self._parts: list[tuple[Scores, npt.NDArray[np.int32], Floats]] = []

    def add(self, scores: Scores, codes: npt.NDArray[np.int32]) -> None:
        """Draw from a chunk of items, given the number of the batch of each."""
        keys, kept = np.empty(len(codes)), np.zeros(len(codes), dtype=bool)
        for code in np.unique(codes).tolist():
            rows = np.flatnonzero(codes == code)
            draws = self._draws.setdefault(code, np.random.default_rng([0, code]))
            keys[rows] = draws.random(len(rows))
            kept[rows] = keys[rows] < self._limit.get(code, 1.0)
            self.sizes[code] += len(rows)
            self._kept[code] += int(kept[rows].sum())
        chosen = np.flatnonzero(kept)
        self._parts.append((scores.take(chosen), codes[chosen], keys[chosen]))
        if max(self._kept.values()) > 2 * MOST:
            self._shrink()

    def _shrink(self) -> None:
        """Keep the `MOST` smallest numbers of every batch."""
        scores = joined(part for part, _, _ in self._parts)
        codes, keys = (np.concatenate([part[i] for part in self._parts]) for i in (1, 2))
        kept = np.ones(len(codes), dtype=bool)
        for code in [code for code, count in self._kept.items() if count > MOST]:
            rows = np.flatnonzero(codes == code)
            limit = np.partition(keys[rows], MOST)[MOST]
            kept[rows] = keys[rows] < limit
            self._limit[code], self._kept[code] = float(limit), MOST
        chosen = np.flatnonzero(kept)
        self._parts = [(scores.take(chosen), codes[chosen], keys[chosen])]

    def batches(self, together: Sequence[Sequence[int]]) -> ScoredSamples:
        """The items kept; `together` are the numbers that make up each batch."""
        self._shrink()
        ((scores, codes, _),) = self._parts
        bags: list[Any] = [np.flatnonzero(np.isin(codes, own)) for own in together]
        return ScoredSamples(scores, Samples.from_indices(bags, n_items=len(codes)))
