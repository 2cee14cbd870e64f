"""Scores of many chunks put together without holding them twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.errors import InputError
from prevalens.scores import Scores
from prevalens.validation import count_items

__all__ = ["joined"]


def joined(parts: Iterable[Scores]) -> Scores:
    """One set of scores from those of consecutive items, in single precision."""
    kind, states = None, None
    rows, views, features = _Rows(), _Rows(), []
    for part in parts:
        kind, states = part.kind, part.states
        if kind == "features":
            features.append(part.values)
        else:
            rows.add(part.values)
        if part.views is not None:
            views.add(part.views)
    if kind is None or not (len(rows) or sum(map(count_items, features))):
        raise InputError("There are no items to quantify.")
    values = _stacked(features) if features else rows.values()
    return Scores(values, kind, states, views.values() if len(views) else None)


class _Rows:
    """Rows that are added block by block; their room grows by a fifth, where it lies."""

    def __init__(self) -> None:
        self._values: npt.NDArray[np.float32] | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, block: npt.NDArray[Any]) -> None:
        """Put rows behind those that are there."""
        if self._values is None:
            self._values = np.empty((len(block), block.shape[1]), dtype=np.float32)
        end = self._count + len(block)
        if end > len(self._values):
            self._resize(max(end, len(self._values) + len(self._values) // 5))
        self._values[self._count : end] = block
        self._count = end

    def values(self) -> npt.NDArray[np.float32]:
        """All rows."""
        assert self._values is not None
        self._resize(self._count)
        return self._values

    def _resize(self, rows: int) -> None:
        assert self._values is not None
        # Nobody else has seen the array, so it may move.
        self._values.resize((rows, self._values.shape[1]), refcheck=False)


def _stacked(blocks: list[Any]) -> Any:
    if sp.issparse(blocks[0]):
        return sp.vstack(blocks, format="csr")
    return np.concatenate(blocks)
