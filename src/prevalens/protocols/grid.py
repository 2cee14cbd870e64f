"""Grids of prevalences in exact arithmetic, and the division of samples over their cells."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from prevalens.types import Ints
from prevalens.validation import InputError, check_int

#: Number of evenly spaced prevalences from 0 to 1, or the prevalences themselves.
Grid: TypeAlias = int | Sequence[float | Fraction]

#: Prevalences given as floats stand for the nearest fraction with at most this denominator:
#: 0.07 and ``np.linspace(0, 1, 101)[7]`` both mean 7/100, which neither of them is.
_LARGEST_DENOMINATOR = 10**6

_GOLDEN_RATIO = (5**0.5 - 1) / 2


def grid_points(grid: Any) -> tuple[Fraction, ...]:
    """The prevalences of a `Grid` as exact fractions.

    Examples
    --------
    >>> [str(point) for point in grid_points(5)]
    ['0', '1/4', '1/2', '3/4', '1']
    >>> [str(point) for point in grid_points([0.07, 1 / 3])]
    ['7/100', '1/3']
    """
    if isinstance(grid, numbers.Integral):
        steps = check_int(grid, "grid", minimum=2) - 1
        return tuple(Fraction(i, steps) for i in range(steps + 1))
    if isinstance(grid, str) or not isinstance(grid, (Sequence, np.ndarray)):
        raise InputError(f"grid must be a number of points or a list of prevalences; got {grid!r}.")
    if len(grid) == 0:
        raise InputError("grid has no prevalences; give at least one.")
    return tuple(_point(value) for value in grid)


def _point(value: Any) -> Fraction:
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not 0.0 <= float(value) <= 1.0:
        raise InputError(f"A grid's prevalences must be numbers between 0 and 1; got {value!r}.")
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(float(value)).limit_denominator(_LARGEST_DENOMINATOR)


def positives_wanted(points: Sequence[Fraction], size: int) -> Ints:
    """Return the number of positives, ceil(size * g), of a sample at each grid point g."""
    return np.array([-(-size * point.numerator // point.denominator) for point in points])


def spread(n: int, n_chosen: int) -> Ints:
    """Choose `n_chosen` of `n` places as evenly as a fixed rule can, ascending.

    The places are ranked by the fractional parts of multiples of the golden ratio. Unlike every
    n-th place, these are not in phase with a grid that repeats for each label, and a smaller choice
    is part of a larger one.

    Examples
    --------
    >>> spread(10, 3).tolist()
    [0, 2, 5]
    """
    order = np.argsort(np.arange(n) * _GOLDEN_RATIO % 1.0, kind="stable")
    return np.sort(order[:n_chosen])


def share_out(served: npt.NDArray[np.bool_], repeats: int, max_samples: int | None) -> Ints:
    """Samples per cell: `repeats` where it is served, or evenly fewer, `max_samples` in total.

    Examples
    --------
    >>> served = np.array([[True, True, False], [True, True, False]])
    >>> share_out(served, 3, None).tolist()
    [[3, 3, 0], [3, 3, 0]]
    >>> share_out(served, 3, 9).tolist()
    [[3, 2, 0], [2, 2, 0]]
    """
    n_cells = int(np.count_nonzero(served))
    shares = served.astype(np.int64) * repeats
    if max_samples is None or check_int(max_samples, "max_samples", minimum=1) >= shares.sum():
        return shares
    each, extra = divmod(max_samples, n_cells)
    of_cells = np.full(n_cells, each, dtype=np.int64)
    of_cells[spread(n_cells, extra)] += 1
    shares[served] = of_cells
    return shares
