"""What a chart shows, whoever draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Dots", "Line", "Lines"]

Array: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Dots:
    """A value per name, with its interval and something to compare it with.

    Attributes
    ----------
    names : sequence of str
    values : array of float, shape (n,)
    lower, upper : array of float, shape (n,), or None
        Ends of the intervals.
    reference : array of float, shape (n,), or None
        Drawn as a mark, such as the training prevalence.
    axis : str
        What the values are.
    reference_name : str
    title : str
    """

    names: Sequence[str]
    values: Array
    lower: Array | None = None
    upper: Array | None = None
    reference: Array | None = None
    axis: str = "prevalence"
    reference_name: str = "training"
    title: str = ""

    @property
    def top(self) -> float:
        """The largest value to be shown; never 0."""
        parts = [self.values, self.upper, self.reference]
        return max((float(np.max(part)) for part in parts if part is not None), default=0.0) or 1.0


@dataclass(frozen=True)
class Line:
    """Values over something, with a band around them where there is one."""

    name: str
    values: Array
    lower: Array | None = None
    upper: Array | None = None


@dataclass(frozen=True)
class Lines:
    """Several lines over the same places.

    Attributes
    ----------
    places : sequence
        Numbers, or names in their order.
    lines : sequence of Line
    x_axis, y_axis : str
    title : str
    """

    places: Sequence[Any]
    lines: Sequence[Line]
    x_axis: str = ""
    y_axis: str = ""
    title: str = ""

    @property
    def numeric(self) -> bool:
        """Whether the places are numbers."""
        return all(isinstance(one, (int, float, np.number)) for one in self.places)
