"""Labels in portions, so that what is computed per item and label never stands as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["label_chunks"]

_BYTES_PER_CHUNK = 32 * 2**20


def label_chunks(labels: npt.NDArray[Any], n_items: int) -> Iterator[npt.NDArray[np.int64]]:
    """Cut label numbers into portions for which (items, labels) in float64 takes some megabytes."""
    step = max(1, _BYTES_PER_CHUNK // (8 * n_items))
    for start in range(0, len(labels), step):
        yield labels[start : start + step]
