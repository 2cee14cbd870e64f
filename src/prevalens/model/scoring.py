"""Scores of many chunks put together without holding them twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from prevalens.errors import InputError
from prevalens.scores import Scores
from prevalens.validation import count_items

__all__ = ["joined"]


def joined(parts: Iterable[Scores]) -> Scores:
    """One set of scores from those of consecutive items, in single precision."""
    kind, states, blocks = None, None, []
    for part in parts:
        kind, states = part.kind, part.states
        blocks.append(part.values if kind == "features" else part.values.astype(np.float32))
    if kind is None or not sum(map(count_items, blocks)):
        raise InputError("There are no items to quantify.")
    return Scores(_stacked(blocks), kind, states)


def _stacked(blocks: list[Any]) -> Any:
    if len(blocks) == 1:
        return blocks[0]
    if sp.issparse(blocks[0]):
        return sp.vstack(blocks, format="csr")
    rows = sum(map(count_items, blocks))
    values = np.empty((rows, blocks[0].shape[1]), dtype=blocks[0].dtype)
    # Each block is let go as soon as it is copied; a new array takes memory only where it is
    # written, so there is never more than one copy and a block.
    blocks.reverse()
    done = 0
    while blocks:
        block = blocks.pop()
        values[done : done + len(block)] = block
        done += len(block)
    return values
