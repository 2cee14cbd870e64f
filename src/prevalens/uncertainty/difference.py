"""The difference of two estimates of the same model, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.types import Floats

#: Columns of the long form.
COLUMNS = ("label", "first", "second", "difference", "lower", "upper", "supported")


def difference_ends(
    first: tuple[Floats, Floats, Floats], second: tuple[Floats, Floats, Floats], training: Floats
) -> tuple[Floats, Floats]:
    """Ends of the interval of second minus first, from the intervals of both.

    Parameters
    ----------
    first, second : tuple of three arrays of float, shape (n_labels,)
        Point, lower end and upper end.
    training : array of float, shape (n_labels,)
        Training prevalences.

    Notes
    -----
    The distances of the ends from the points are squared and added (Newcombe 1998; Zou and Donner
    2008), as if the errors of the two estimates were independent. Batches on the same side of
    training share errors of the classifier, which cancel in the difference; the interval is then
    too wide. A method that follows shifts only in part errs in opposite directions where the
    batches lie on different sides of training: there the distances themselves are added.

    References
    ----------
    Newcombe, "Interval estimation for the difference between independent proportions", Statistics
    in Medicine 17, 1998.
    Zou and Donner, "Construction of confidence limits about effect measures: a general approach",
    Statistics in Medicine 27, 2008.

    Examples
    --------
    >>> before, after = (0.2, 0.17, 0.23), (0.4, 0.36, 0.44)
    >>> [round(float(end), 4) for end in difference_ends(before, after, 0.1)]
    [0.15, 0.25]
    >>> [round(float(end), 4) for end in difference_ends(before, after, 0.3)]
    [0.13, 0.27]
    """
    (before, before_low, before_high), (after, after_low, after_high) = first, second
    change, apart = after - before, (before - training) * (after - training) < 0
    below = _combined(after - after_low, before_high - before, apart)
    above = _combined(after_high - after, before - before_low, apart)
    return np.maximum(change - below, -1.0), np.minimum(change + above, 1.0)


def _combined(one: Floats, other: Floats, apart: npt.NDArray[np.bool_]) -> Floats:
    return np.where(apart, one + other, np.hypot(one, other))


@dataclass(frozen=True)
class Difference:
    """How far the prevalences of two batches are apart.

    Attributes
    ----------
    labels : sequence of str
    names : tuple of two str
        The batches; the difference is the second minus the first.
    first, second, point : array of float, shape (n_labels,)
        Estimates of both, and their difference.
    lower, upper : array of float, shape (n_labels,), or None
        Ends of the interval of each difference.
    band_lower, band_upper : array of float, shape (n_labels,), or None
        Ends of the bands that hold the differences of all labels at once.
    level : float or None
    reliable : bool
        False if one of the batches raises the alarm or has too few items for a verdict; no
        difference is then called supported.
    """

    labels: Sequence[str]
    names: tuple[str, str]
    first: Floats
    second: Floats
    lower: Floats | None = None
    upper: Floats | None = None
    band_lower: Floats | None = None
    band_upper: Floats | None = None
    level: float | None = None
    reliable: bool = True

    @property
    def point(self) -> Floats:
        """Second minus first."""
        return self.second - self.first

    @property
    def supported(self) -> npt.NDArray[np.int8]:
        """Differences that the bands support: 1 if the second is higher, -1 if lower, else 0."""
        return excluded(np.zeros(len(self.first)), self.band_lower, self.band_upper) * np.int8(
            self.reliable
        )

    def order(self) -> list[int]:
        """Labels by what matters: supported differences first, the largest first."""
        return np.lexsort((-np.abs(self.point), self.supported == 0)).tolist()

    def to_rows(self) -> list[dict[str, Any]]:
        """One row per label, with the columns `COLUMNS`, in the order of `order`."""
        low, high = self.lower, self.upper
        supported = self.supported
        return [
            dict(
                zip(
                    COLUMNS,
                    (
                        self.labels[j],
                        float(self.first[j]),
                        float(self.second[j]),
                        float(self.point[j]),
                        None if low is None else float(low[j]),
                        None if high is None else float(high[j]),
                        int(supported[j]),
                    ),
                    strict=True,
                )
            )
            for j in self.order()
        ]


def excluded(value: Floats, lower: Floats | None, upper: Floats | None) -> npt.NDArray[np.int8]:
    """1 where an interval lies above a value, -1 where it lies below, 0 where it holds it.

    Examples
    --------
    >>> excluded(np.array([0.1, 0.1]), np.array([0.2, 0.0]), np.array([0.3, 0.2])).tolist()
    [1, 0]
    """
    if lower is None or upper is None:
        return np.zeros(np.shape(value), dtype=np.int8)
    return np.asarray((lower > value).astype(np.int8) - (upper < value), dtype=np.int8)
