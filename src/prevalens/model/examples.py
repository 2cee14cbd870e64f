"""Examples: the items of each batch that have the highest and the lowest scores of a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.scores import Scores
from prevalens.tables.kinds import is_vector
from prevalens.tables.table import Chunk
from prevalens.types import Floats, Ints

#: Batches times labels that examples are kept of.
_MOST_CELLS = 20_000
#: Characters of an item that are kept.
_LONGEST = 300


def _smallest(values: Floats, items: Ints, most: int) -> tuple[Floats, Ints]:
    """The smallest values of each column in order, and the items they belong to."""
    if len(values) > most:
        near = np.argpartition(values, most - 1, axis=0)[:most]
        values, items = np.take_along_axis(values, near, 0), np.take_along_axis(items, near, 0)
    order = np.lexsort((items, values), axis=0)
    return np.take_along_axis(values, order, 0), np.take_along_axis(items, order, 0)


@dataclass
class _Extremes:
    """Both ends of the scores of one batch.

    Attributes
    ----------
    low, high : pair of arrays, shape (most, n_labels)
        Scores (those of `high` negated) and the numbers of their items.
    shown : dict
        What is told of these items, by number.
    """

    low: tuple[Floats, Ints]
    high: tuple[Floats, Ints]
    shown: dict[int, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Floats, items: Ints, most: int) -> _Extremes:
        return cls(_smallest(values, items, most), _smallest(-values, items, most))

    def with_(self, other: _Extremes, most: int) -> _Extremes:
        low, high = (
            _smallest(np.vstack([own[0], more[0]]), np.vstack([own[1], more[1]]), most)
            for own, more in ((self.low, other.low), (self.high, other.high))
        )
        return _Extremes(low, high, {**self.shown, **other.shown})

    def items(self) -> set[int]:
        return {*self.low[1].ravel().tolist(), *self.high[1].ravel().tolist()}


class Examples:
    """Keeps the items with the highest and lowest scores, batch by batch, while items are scored.

    Memory is bounded: of many batches, those are left out that got no items for longest.

    Parameters
    ----------
    labels : sequence of str
    most : int
        Items at either end.
    """

    def __init__(self, labels: Sequence[str], most: int = 3) -> None:
        self.labels = tuple(labels)
        self.most = most
        self._most_batches = max(1, _MOST_CELLS // len(self.labels))
        self._kept: dict[int, _Extremes] = {}
        self._left_out: set[int] = set()
        self._codes: dict[str, int] = {}
        self._n_items = 0

    def add(
        self, chunk: Chunk, columns: Sequence[str], scores: Scores, codes: npt.NDArray[np.int32]
    ) -> None:
        """Note a chunk of items.

        Parameters
        ----------
        chunk : Chunk
        columns : sequence of str
            The columns that are told of an item.
        scores : Scores
            Of its items; features are no scores and are passed over.
        codes : array of int, shape (n_items,)
            The numbers of their batches.
        """
        first, self._n_items = self._n_items, self._n_items + len(chunk)
        if scores.kind == "features":
            return
        batches, counts = np.unique(codes, return_counts=True)
        # The largest last: it is the first to be shown, and the last to be left out.
        for code in batches[np.lexsort((batches, counts))].tolist():
            if code not in self._left_out:
                rows = np.flatnonzero(codes == code) if len(batches) > 1 else np.arange(len(codes))
                self._keep(code, scores.values[rows], first + rows)
        for kept in [self._kept[code] for code in batches.tolist() if code in self._kept]:
            wanted = kept.items()
            new = [item for item in wanted if item >= first]
            kept.shown = {item: kept.shown[item] for item in wanted if item < first}
            kept.shown |= {item: _shown(chunk, columns, item - first) for item in new}

    def _keep(self, code: int, values: Floats, items: Ints) -> None:
        columns = np.broadcast_to(items[:, np.newaxis], values.shape)
        own = _Extremes.of(values, columns, self.most)
        before = self._kept.pop(code, None)
        self._kept[code] = own if before is None else before.with_(own, self.most)
        if len(self._kept) > self._most_batches:
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            self._left_out.add(oldest)

    def name(self, names: Sequence[str], codes: Sequence[int], folded: Sequence[int] = ()) -> None:
        """Say what the batches are called; those in `folded` count as the first of them."""
        self._fold(folded)
        self._codes = dict(zip(names, codes, strict=True))

    def _fold(self, codes: Sequence[int]) -> None:
        joined, *others = [self._kept.pop(code, None) for code in codes] or [None]
        for other in others:
            joined = None if joined is None or other is None else joined.with_(other, self.most)
        if joined is not None:
            self._kept[codes[0]] = joined

    def of(self, batch: str) -> list[dict[str, Any]] | None:
        """The examples of a batch, label by label; None if none were kept.

        Returns
        -------
        list of dict
            ``label``, ``highest`` and ``lowest``: lists of items with ``score``, ``text`` and
            ``place``. No item is in both.
        """
        kept = self._kept.get(self._codes[batch])
        if kept is None:
            return None
        return [self._of_label(kept, column) for column in range(len(self.labels))]

    def _of_label(self, kept: _Extremes, column: int) -> dict[str, Any]:
        (low, low_items), (high, high_items) = (
            (values[:, column].tolist(), items[:, column].tolist())
            for values, items in (kept.low, kept.high)
        )
        pairs = {
            "highest": [(item, -score) for item, score in zip(high_items, high, strict=True)],
            "lowest": [
                (item, score)
                for item, score in zip(low_items, low, strict=True)
                if item not in high_items
            ],
        }
        return {"label": self.labels[column]} | {
            name: [{"score": round(score, 4), **kept.shown[item]} for item, score in own]
            for name, own in pairs.items()
        }


def _shown(chunk: Chunk, columns: Sequence[str], row: int) -> dict[str, str]:
    """The text of an item, or its cells, shortened; and where it is."""
    cells = {name: chunk[name][row] for name in columns}
    told = {name: str(cell) for name, cell in cells.items() if not is_vector(cell)}
    text = next(iter(told.values()), "")
    if len(columns) > 1:
        text = "; ".join(f"{name}: {cell}" for name, cell in list(told.items())[:20])
    cut = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return {"text": cut, "place": chunk.place(row)}
