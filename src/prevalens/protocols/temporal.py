"""Protocols that divide the items by time: samples have the shift that occurred in the data."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from prevalens.protocols.base import Protocol, check_size
from prevalens.samples import Samples
from prevalens.types import Array, Ints, LabelMatrix
from prevalens.validation import InputError, check_int, check_same_length


class ChronologicalWindows(Protocol):
    """Cut the items, in order of time, into windows of equal size.

    Parameters
    ----------
    times : array-like of numbers, strings or dates, shape (n_items,), optional
        Time of each item; any values that can be sorted. Default: the order of the rows of `Y`.
        Items of the same time keep the order of their rows.
    size : int
        Items per window.
    step : int, optional
        Items from the start of a window to the start of the next. Default: `size`, so that
        windows do not overlap.

    Notes
    -----
    O(n_items log n_items + n_samples x size) time. Nothing is random: `rng` is not used.
    Items after the last full window are left out. Overlapping windows are not independent.

    Examples
    --------
    >>> import numpy as np
    >>> windows = ChronologicalWindows([2021, 2020, 2023, 2022, 2024], size=2)
    >>> windows.draw(np.ones((5, 1))).indices.tolist()
    [[1, 0], [3, 2]]
    """

    name: ClassVar[str] = "windows"

    def __init__(self, times: Any = None, size: int = 100, *, step: int | None = None) -> None:
        self.times = times
        self.size = size
        self.step = step

    def _starts(self, Y: LabelMatrix) -> Ints:
        size = check_size(self.size, len(Y))
        step = size if self.step is None else check_int(self.step, "step", minimum=1)
        return np.arange(0, len(Y) - size + 1, step)

    def _count(self, Y: LabelMatrix) -> int:
        return len(self._starts(Y))

    def _draw(self, Y: LabelMatrix, rng: np.random.Generator) -> Samples:  # noqa: ARG002
        starts = self._starts(Y)
        order = np.arange(len(Y))
        if self.times is not None:
            order = np.argsort(_ranks(_check_times(self.times, len(Y))), kind="stable")
        windows = order[starts[:, np.newaxis] + np.arange(self.size)]
        return Samples.from_indices(windows, n_items=len(Y))


class Periods(Protocol):
    """One sample per period: all items of a day, a month, a year, a batch.

    Parameters
    ----------
    times : array-like of numbers, strings or dates, shape (n_items,)
        Time of each item.
    unit : str, optional
        A numpy date unit that dates are cut to: ``"D"``, ``"W"``, ``"M"``, ``"Y"``. Default: each
        distinct value of `times` is a period.
    min_size : int
        Periods with fewer items are left out.

    Notes
    -----
    O(n_items log n_items) time. Samples come in order of time and differ in size; measures that
    smooth by the size of a sample need each one's own. `rng` is not used.

    Examples
    --------
    >>> import numpy as np
    >>> Periods(["2020-01-30", "2020-02-01", "2020-01-02"], unit="M").draw(np.ones((3, 1))).indices
    [array([0, 2], dtype=int32), array([1], dtype=int32)]
    """

    name: ClassVar[str] = "periods"

    def __init__(self, times: Any, unit: str | None = None, *, min_size: int = 1) -> None:
        self.times = times
        self.unit = unit
        self.min_size = min_size

    def _count(self, Y: LabelMatrix) -> int:
        return len(self._samples(Y))

    def _draw(self, Y: LabelMatrix, rng: np.random.Generator) -> Samples:  # noqa: ARG002
        return self._samples(Y)

    def _samples(self, Y: LabelMatrix) -> Samples:
        minimum = check_int(self.min_size, "min_size", minimum=1)
        times = _check_times(self.times, len(Y))
        if self.unit is not None:
            times = _cut(times, self.unit)
        samples, _ = Samples.by_group(_ranks(times))
        kept = samples.sizes >= minimum
        if not kept.any():
            raise InputError(
                f"No period has {minimum} items or more; the largest has {samples.sizes.max()}. "
                "Lower min_size or take a longer period."
            )
        return samples[kept]


def _check_times(times: Any, n_items: int) -> Array:
    array = np.asarray(times)
    if array.ndim != 1:
        raise InputError(f"times must have one entry per item; got shape {array.shape}.")
    check_same_length(len(array), "times", n_items, "Y")
    missing = array != array  # only NaN and NaT differ from themselves
    if array.dtype == object:
        missing = missing | np.array([time is None for time in array])
    if np.any(missing):
        raise InputError(f"times is missing for item {int(np.argmax(missing))}; drop such items.")
    return array


def _ranks(times: Array) -> Ints:
    """Return the rank of each time among the distinct times, from 0 for the earliest."""
    try:
        return np.unique(times, return_inverse=True)[1].reshape(-1)
    except TypeError as error:
        raise InputError(f"times cannot be put in order: {error}.") from error


def _cut(times: Array, unit: str) -> Array:
    try:
        return times.astype("datetime64[us]").astype(f"datetime64[{unit}]")
    except (TypeError, ValueError) as error:
        raise InputError(
            f"times cannot be cut to periods of {unit!r}: they are not dates, or the unit is not "
            'one of numpy\'s ("D", "W", "M", "Y").'
        ) from error
