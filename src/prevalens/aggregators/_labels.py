"""One thing per label: numbers as parameters, and labels in portions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.validation import InputError

__all__ = ["label_chunks", "per_label"]

_BYTES_PER_CHUNK = 32 * 2**20


def per_label(value: Any, name: str, n_labels: int, *, open_ends: bool) -> npt.NDArray[np.float64]:
    """Return shares, shape (n_labels,), from one number for all labels or one for each."""
    shares = np.asarray(value, dtype=np.float64)
    if shares.shape not in ((), (n_labels,)):
        raise InputError(
            f"{name} must be one number or one per label ({n_labels}); got shape {shares.shape}."
        )
    inside = (shares > 0) & (shares < 1) if open_ends else (shares >= 0) & (shares <= 1)
    if not np.all(inside):
        ends = "strictly between 0 and 1" if open_ends else "between 0 and 1"
        raise InputError(f"{name} must lie {ends}; got {value!r}.")
    return np.broadcast_to(shares, (n_labels,)).copy()


def label_chunks(labels: npt.NDArray[Any], n_items: int) -> Iterator[npt.NDArray[np.int64]]:
    """Cut label numbers into portions for which (items, labels) in float64 takes some megabytes."""
    step = max(1, _BYTES_PER_CHUNK // (8 * n_items))
    for start in range(0, len(labels), step):
        yield labels[start : start + step]
