"""PrevalenceEstimate: the result of a quantifier, with the names of the labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from prevalens.charts import (
    MOST_ROWS,
    Dots,
    Drawing,
    Line,
    Lines,
    draw,
    frame,
    html_table,
    small_chart,
    table,
)
from prevalens.types import Array, Floats
from prevalens.validation import InputError, check_choice, check_fraction, check_label_names

_Ends: TypeAlias = tuple[Floats | None, Floats | None]
_SIDES = ("lower", "upper")
_BANDS = ("band_lower", "band_upper")
#: Lines of a chart that a reader can still distinguish.
_MOST_LINES = 8


@dataclass(frozen=True)
class Intervals:
    """Intervals of many samples, computed by an aggregator or a bootstrap.

    Attributes
    ----------
    lower, upper : array of float, shape (n_samples, n_labels)
        Per label: each interval covers the prevalence with the requested probability.
    band_lower, band_upper : array of float, shape (n_samples, n_labels)
        Simultaneous: all labels of a sample are covered together with that probability.
    p_value : array of float, shape (n_samples,), optional
        Of the alarm: small where no mix of training items explains the sample.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = np.array([[0.1]]), np.array([[0.3]])
    >>> Intervals(low, high, low, high).p_value is None
    True
    """

    lower: Floats
    upper: Floats
    band_lower: Floats
    band_upper: Floats
    p_value: Floats | None = None

    def holding(self, point: Floats) -> Intervals:
        """The same, with ends moved outwards where they do not hold the point."""
        return Intervals(
            np.minimum(self.lower, point),
            np.maximum(self.upper, point),
            np.minimum(self.band_lower, point),
            np.maximum(self.band_upper, point),
            self.p_value,
        )


class PrevalenceEstimate(NDArrayOperatorsMixin):
    """Estimated prevalences of one sample, or of several.

    It can be used like a numpy array (arithmetic, comparison, ``np.asarray``) and has the names of
    its labels.

    Parameters
    ----------
    point : array of float, shape (n_labels,) or (n_samples, n_labels)
    labels : sequence of str
    index : sequence, optional
        A name per sample; for several samples only.
    lower, upper : array of float, shaped as `point`, optional
        Ends of an interval for each prevalence.
    band_lower, band_upper : array of float, shaped as `point`, optional
        Ends of a wider band that holds all prevalences of a sample together.
    level : float, optional
        The probability with which intervals and bands are meant to cover.
    p_value : float, or array of shape (n_samples,), optional
        Of the alarm: below 0.01 the sample differs from the training data in more than the label
        mix, and errors may be larger than the intervals say.
    n_labelled : int, or array of shape (n_samples,), optional
        How many labelled items of the sample the estimate uses.
    more_labels : array of float, shaped as `point`, optional
        How many more would halve the interval of a label; NaN for a sample without labels.

    Examples
    --------
    >>> estimate = PrevalenceEstimate([0.25, 0.5], ["spam", "urgent"])
    >>> estimate["urgent"]
    0.5
    >>> (estimate * 100).tolist()
    [25.0, 50.0]
    >>> PrevalenceEstimate([0.25], ["spam"], lower=[0.2], upper=[0.4], level=0.9)
    PrevalenceEstimate(spam=0.2500 [0.2000, 0.4000], level=0.9)
    """

    def __init__(
        self,
        point: npt.ArrayLike,
        labels: Sequence[str],
        *,
        index: Sequence[object] | None = None,
        lower: npt.ArrayLike | None = None,
        upper: npt.ArrayLike | None = None,
        band_lower: npt.ArrayLike | None = None,
        band_upper: npt.ArrayLike | None = None,
        level: float | None = None,
        p_value: npt.ArrayLike | None = None,
        n_labelled: npt.ArrayLike | None = None,
        more_labels: npt.ArrayLike | None = None,
    ) -> None:
        self.point: Floats = np.asarray(point, dtype=np.float64)
        if self.point.ndim not in (1, 2):
            raise InputError(f"An estimate has one or two dimensions; got {self.point.ndim}.")
        self.labels = check_label_names(labels, self.point.shape[-1])
        self.index = self._index(index)
        self.level = None if level is None else check_fraction(level, "level")
        self.lower, self.upper = self._ends(_SIDES, lower, upper)
        self.band_lower, self.band_upper = self._ends(_BANDS, band_lower, band_upper)
        self.p_value = None if p_value is None else self._check_p_value(p_value)
        self.n_labelled = None if n_labelled is None else self._per_sample(n_labelled, "n_labelled")
        self.more_labels = (
            None if more_labels is None else self._per_label(more_labels, "more_labels")
        )

    def _per_label(self, values: npt.ArrayLike, name: str) -> Floats:
        """One value per label, of one or several samples."""
        array = np.asarray(values, dtype=np.float64)
        if array.shape != self.shape:
            raise InputError(
                f"{name} must be shaped as the estimate, {self.shape}; got {array.shape}."
            )
        return array

    def _per_sample(self, values: npt.ArrayLike, name: str) -> Any:
        """One value per sample: an array, or a number if there is one sample."""
        array = np.asarray(values)
        if array.shape != self.shape[:-1]:
            raise InputError(
                f"{name} must have one entry per sample, shape {self.shape[:-1]}; got shape "
                f"{array.shape}."
            )
        return array.item() if array.ndim == 0 else array

    def _ends(
        self, names: tuple[str, str], lower: npt.ArrayLike | None, upper: npt.ArrayLike | None
    ) -> _Ends:
        if lower is None and upper is None:
            return None, None
        if lower is None or upper is None or self.level is None:
            raise InputError(f"An interval needs {names[0]}, {names[1]} and the level they are of.")
        low, high = self._per_label(lower, names[0]), self._per_label(upper, names[1])
        if not np.all((low >= 0) & (low <= high) & (high <= 1)):
            raise InputError(f"{names[0]} and {names[1]} must be ordered and lie between 0 and 1.")
        return low, high

    def _check_p_value(self, p_value: npt.ArrayLike) -> float | Floats:
        array = np.asarray(p_value, dtype=np.float64)
        if not np.all((array >= 0) & (array <= 1)):
            raise InputError(f"p_value must lie between 0 and 1; got {p_value!r}.")
        return self._per_sample(array, "p_value")

    def _index(self, index: Sequence[object] | None) -> list[object] | None:
        if self.point.ndim == 1:
            return None
        names = list(range(len(self.point)) if index is None else index)
        if len(names) != len(self.point):
            raise InputError(f"There are {len(self.point)} samples but {len(names)} names.")
        return [name.item() if isinstance(name, np.generic) else name for name in names]

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self.point, dtype=dtype, copy=copy)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: object, **kwargs: object
    ) -> Any:
        arrays = [x.point if isinstance(x, PrevalenceEstimate) else x for x in inputs]
        return getattr(ufunc, method)(*arrays, **kwargs)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the estimate: (n_labels,) or (n_samples, n_labels)."""
        return self.point.shape

    @property
    def ends(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Lower and upper ends of the intervals, and of the bands; an error if there are none."""
        if self.lower is None or self.upper is None:
            raise InputError("This estimate has no intervals; ask for them with interval=0.9.")
        if self.band_lower is None or self.band_upper is None:
            raise InputError("This estimate has no bands over all labels.")
        return (self.lower, self.upper), (self.band_lower, self.band_upper)

    @property
    def ndim(self) -> int:
        """1 for one sample, 2 for several."""
        return self.point.ndim

    def __len__(self) -> int:
        return len(self.point)

    def __iter__(self) -> Iterator[Floats]:
        return iter(self.point)

    def __getitem__(self, key: object) -> Any:
        """The prevalence of a label, by its name; any other key is an index into the array."""
        if isinstance(key, str):
            if key not in self.labels:
                raise InputError(f"There is no label {key!r} in this estimate.")
            column = self.point[..., self.labels.index(key)]
            return float(column) if column.ndim == 0 else column
        return self.point[key]  # type: ignore[call-overload]

    def sample(self, position: int) -> PrevalenceEstimate:
        """The estimate of one of several samples, shape (n_labels,)."""
        names = (*_SIDES, *_BANDS, "p_value", "n_labelled", "more_labels")
        parts = {name: part for name in names if (part := vars(self)[name]) is not None}
        fields = {name: part[position] for name, part in parts.items()}
        return PrevalenceEstimate(self.point[position], self.labels, level=self.level, **fields)

    def to_dict(self) -> dict[object, Any]:
        """``{label: prevalence}``; for several samples ``{sample: {label: prevalence}}``."""
        if self.index is None:
            return dict(zip(self.labels, self.point.tolist(), strict=True))
        rows = (dict(zip(self.labels, row.tolist(), strict=True)) for row in self.point)
        return dict(zip(self.index, rows, strict=True))

    def to_frame(self, backend: str = "pandas", *, form: str | None = None) -> Any:
        """A pandas or polars frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}
        form : {"long", "wide"}, optional
            Long: a row per label, with columns ``label``, ``prevalence`` and, if there are
            intervals, ``lower`` and ``upper``; several samples have a column ``sample``
            before them and a row per sample and label. Wide: a row per sample and a column per
            label, prevalences alone. Default: long for one sample, wide for several.
        """
        if form is not None:
            check_choice(form, "form", ("long", "wide"))
        return frame(self._columns(form), backend)

    def _columns(self, form: str | None = None) -> dict[str, Sequence[object]]:
        default = "long" if self.index is None else "wide"
        return self._long() if (form or default) == "long" else self._wide()

    def _long(self) -> dict[str, Sequence[object]]:
        n_samples = 1 if self.index is None else len(self)
        columns: dict[str, Sequence[object]] = {}
        if self.index is not None:
            columns["sample"] = [name for name in self.index for _ in self.labels]
        columns["label"] = list(self.labels) * n_samples
        columns["prevalence"] = self.point.reshape(-1).tolist()
        if self.lower is not None and self.upper is not None:
            columns["lower"] = self.lower.reshape(-1).tolist()
            columns["upper"] = self.upper.reshape(-1).tolist()
        return columns

    def _wide(self) -> dict[str, Sequence[object]]:
        columns: dict[str, Sequence[object]] = (
            {} if self.index is None else {"sample": list(self.index)}
        )
        values = np.atleast_2d(self.point)
        columns.update({name: values[:, j].tolist() for j, name in enumerate(self.labels)})
        return columns

    def __repr__(self) -> str:
        level = "" if self.level is None else f", level={self.level:g}"
        if self.index is not None:
            return f"PrevalenceEstimate({len(self)} samples, {len(self.labels)} labels{level})"
        shown = ", ".join(map(self._shown, range(min(8, len(self.labels)))))
        more = f", ... {len(self.labels)} labels" if len(self.labels) > 8 else ""
        return f"PrevalenceEstimate({shown}{more}{level})"

    def _shown(self, label: int) -> str:
        text = f"{self.labels[label]}={self.point[label]:.4f}"
        if self.lower is None or self.upper is None:
            return text
        return f"{text} [{self.lower[label]:.4f}, {self.upper[label]:.4f}]"

    def plot(
        self,
        backend: str = "matplotlib",
        *,
        reference: npt.ArrayLike | None = None,
        labels: Sequence[str] | None = None,
        ax: Drawing | None = None,
    ) -> Drawing:
        """Draw the estimate.

        One sample: a dot per label with its interval. Several: a line per label over the
        samples, with its band.

        Parameters
        ----------
        backend : {"matplotlib", "altair"}
        reference : array of float, shape (n_labels,), optional
            Prevalences to compare one sample with, such as the quantifier's `prevalence_`.
        labels : sequence of str, optional
            Which to draw. Default: all of one sample; of several, the eight that vary most.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes, or altair Chart
        """
        if self.index is None:
            return draw(self.dots(reference, labels), backend, ax=ax)
        if reference is not None:
            raise InputError("A reference can be drawn beside one sample, not beside several.")
        return draw(self.lines(labels), backend, ax=ax)

    def _rows_of(self, labels: Sequence[str]) -> list[int]:
        for name in labels:
            if name not in self.labels:
                raise InputError(f"There is no label {name!r} in this estimate.")
        return [self.labels.index(name) for name in labels]

    def dots(
        self,
        reference: npt.ArrayLike | None = None,
        labels: Sequence[str] | None = None,
        *,
        title: str = "",
    ) -> Dots:
        """The chart of one sample: a dot per label with its interval; see `plot`."""
        rows = self._rows_of(labels or self.labels)
        other = None if reference is None else np.asarray(reference, dtype=np.float64)
        if other is not None and other.shape != self.shape:
            raise InputError(
                f"The reference must have a value for each of the {len(self.labels)} labels; got "
                f"shape {other.shape}."
            )
        parts = (self.lower, self.upper, other)
        low, high, other = (None if part is None else part[rows] for part in parts)
        return Dots([self.labels[j] for j in rows], self.point[rows], low, high, other, title=title)

    def lines(self, labels: Sequence[str] | None = None) -> Lines:
        """The chart of several samples: a line per label with its band; see `plot`."""
        varying = np.argsort(-np.ptp(self.point, axis=0), kind="stable")[:_MOST_LINES].tolist()
        chosen = self._rows_of(labels) if labels else varying
        lines = [
            Line(
                self.labels[j],
                self.point[:, j],
                None if self.lower is None else self.lower[:, j],
                None if self.upper is None else self.upper[:, j],
            )
            for j in chosen
        ]
        return Lines(self.index or (), lines, y_axis="prevalence")

    def _repr_html_(self) -> str:
        if self.index is None:
            return table(self.dots())
        columns = self._columns()
        rows = list(zip(*columns.values(), strict=True))[:MOST_ROWS]
        shown = self.point[: len(rows)]
        top = float(shown.max(initial=0.0))
        lines = (Line(name, shown[:, j]) for j, name in enumerate(self.labels))
        foot = ["", *(small_chart(line, top=top) for line in lines)] if len(rows) > 1 else []
        return html_table(list(columns), rows, foot=foot, hidden=len(self) - len(rows))
