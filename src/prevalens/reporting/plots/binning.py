"""Values by intervals of another value: means, quantiles and counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.validation import InputError

__all__ = ["Binned", "binned", "equal_edges", "flat"]


@dataclass(frozen=True)
class Binned:
    """What falls into the intervals that are not empty.

    Attributes
    ----------
    centres, means : array of float, shape (n_bins,)
        Mean of the value that is divided into intervals, and of the other one.
    quantiles : array of float, shape (n_quantiles, n_bins)
        Of the other one.
    counts : array of int, shape (n_bins,)
    numbers : array of int, shape (n_bins,)
        Which intervals these are.
    """

    centres: npt.NDArray[np.float64]
    means: npt.NDArray[np.float64]
    quantiles: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]


def flat(values: Any, name: str) -> npt.NDArray[np.float64]:
    """One finite value after the other, whatever the shape."""
    array = np.asarray(values, dtype=np.float64).ravel()
    if not array.size:
        raise InputError(f"{name} is empty; there is nothing to draw.")
    if not np.isfinite(array).all():
        raise InputError(f"{name} has values that are not finite; leave them out.")
    return array


def equal_edges(values: npt.NDArray[np.float64], n_bins: int) -> npt.NDArray[np.float64]:
    """Edges of intervals of equal width from the smallest to the largest value."""
    low, high = float(values.min()), float(values.max())
    return np.linspace(low, high if high > low else low + 1.0, n_bins + 1)


def binned(
    by: npt.NDArray[np.float64],
    values: npt.NDArray[np.float64],
    edges: npt.NDArray[np.float64],
    quantiles: Sequence[float] = (),
) -> Binned:
    """Divide values into intervals of another value.

    Parameters
    ----------
    by, values : array of float, shape (n,)
    edges : array of float, shape (n_bins + 1,)
        Intervals are closed below; the outer ones take everything beyond.
    quantiles : sequence of float

    Notes
    -----
    O(n log n).

    Examples
    --------
    >>> found = binned(np.array([0.1, 0.2, 0.9]), np.array([1.0, 3.0, 5.0]), np.linspace(0, 1, 3))
    >>> found.means.tolist(), found.counts.tolist()
    ([2.0, 5.0], [2, 1])
    """
    if by.shape != values.shape:
        raise InputError(f"There are {by.size} values on one axis but {values.size} on the other.")
    bins = np.searchsorted(edges[1:-1], by, side="right")
    order = np.argsort(bins, kind="stable")
    numbers, starts, counts = np.unique(bins[order], return_index=True, return_counts=True)
    groups = np.split(values[order], starts[1:])
    return Binned(
        centres=np.add.reduceat(by[order], starts) / counts,
        means=np.array([group.mean() for group in groups]),
        quantiles=np.array([np.quantile(group, quantiles) for group in groups]).T,
        counts=counts,
        numbers=numbers,
    )
