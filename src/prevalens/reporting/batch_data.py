"""BatchReport: what the report on batches shows, as plain data, whoever computed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from prevalens.validation import InputError, check_label_names

__all__ = ["BatchReport", "Driver", "Drivers", "Notice"]

Array: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Notice:
    """Something the reader should know before trusting a number.

    Attributes
    ----------
    text : str
        One sentence.
    level : {"note", "warning"}
    batch : str
        The batch it is about; empty if it is about all.
    """

    text: str
    level: Literal["note", "warning"] = "warning"
    batch: str = ""


@dataclass(frozen=True)
class Driver:
    """One feature that moves one label's estimate.

    Attributes
    ----------
    name : str
        The term or column.
    push : float
        Its part in the movement of the label's mean score (log-odds): weight times
        (mean in the batch - mean in training).
    training, batch : float
        Its mean in the training items and in the batch.
    """

    name: str
    push: float
    training: float
    batch: float


@dataclass(frozen=True)
class Drivers:
    """The features that move one label in one batch, largest push first."""

    label: str
    batch: str
    drivers: tuple[Driver, ...]


@dataclass(frozen=True)
class BatchReport:
    """Estimated prevalences of batches, and what belongs to them.

    Attributes
    ----------
    labels, batches : tuple of str
        Batches stand in the order they are shown in: that of time, where there is one.
    sizes : array of int, shape (n_batches,)
    point : array of float, shape (n_batches, n_labels)
    training : array of float, shape (n_labels,)
        Prevalences in the training items.
    lower, upper : array of float, shape (n_batches, n_labels), or None
        Ends of the interval of each estimate.
    level : float or None
        Coverage the intervals aim at, such as 0.9.
    p_value : array of float, shape (n_batches,), or None
        How well each batch fits a mixture of what training has shown; small is bad.
    counted : array of float, shape (n_batches, n_labels), or None
        Mean scores before the correction: classify and count, or mean posteriors.
    true : array of float, shape (n_batches, n_labels), or None
        The truth, where somebody knows it.
    ordered : bool
        Whether the order of the batches means something, so that a trend can be drawn.
    drivers : tuple of Drivers
    notices : tuple of Notice
    provenance : mapping of str to str
        How the numbers were made, line by line.
    title : str

    Examples
    --------
    >>> report = BatchReport(["spam"], ["May", "June"], [90, 80], [[0.2], [0.3]], [0.25])
    >>> report.change.round(2).tolist()
    [[-0.05], [0.05]]
    """

    labels: Sequence[str]
    batches: Sequence[str]
    sizes: npt.NDArray[np.int64]
    point: Array
    training: Array
    lower: Array | None = None
    upper: Array | None = None
    level: float | None = None
    p_value: Array | None = None
    counted: Array | None = None
    true: Array | None = None
    ordered: bool = True
    drivers: tuple[Drivers, ...] = ()
    notices: tuple[Notice, ...] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)
    title: str = "Prevalence of labels"

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "batches", tuple(map(str, self.batches)))
        n_batches = len(self.batches)
        if not n_batches:
            raise InputError("A report needs at least one batch.")
        training = np.asarray(self.training, dtype=np.float64)
        set_(self, "training", training)
        set_(self, "labels", check_label_names(self.labels, training.shape[0]))
        both = (n_batches, len(self.labels))
        set_(self, "sizes", _shaped(self.sizes, (n_batches,), "sizes", np.int64))
        set_(self, "point", _shaped(self.point, both, "point"))
        for name in ("lower", "upper", "counted", "true"):
            if getattr(self, name) is not None:
                set_(self, name, _shaped(getattr(self, name), both, name))
        if self.p_value is not None:
            set_(self, "p_value", _shaped(np.atleast_1d(self.p_value), (n_batches,), "p_value"))
        if (self.lower is None) != (self.upper is None):
            raise InputError("A report needs both ends of the intervals, or none.")

    @property
    def change(self) -> Array:
        """Estimate minus training prevalence, shape (n_batches, n_labels)."""
        return self.point - self.training

    @property
    def beyond(self) -> npt.NDArray[np.bool_]:
        """Where the training prevalence lies outside the interval; False without intervals."""
        if self.lower is None or self.upper is None:
            return np.zeros(self.point.shape, dtype=bool)
        return (self.training < self.lower) | (self.training > self.upper)


def _shaped(values: Any, shape: tuple[int, ...], name: str, dtype: Any = np.float64) -> Any:
    array = np.asarray(values, dtype=dtype)
    if array.shape != shape:
        raise InputError(f"The report's {name} must have shape {shape}; got {array.shape}.")
    return array
