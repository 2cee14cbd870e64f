"""BatchResult: estimated prevalences of batches, with intervals, notices and provenance."""

from __future__ import annotations

import csv
import importlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import false_discovery_control

from prevalens.charts import frame
from prevalens.estimate import PrevalenceEstimate
from prevalens.files import writing
from prevalens.types import Floats
from prevalens.uncertainty.difference import Difference, difference_ends, excluded
from prevalens.uncertainty.goodness_of_fit import MISFIT
from prevalens.validation import InputError, check_label_names

#: Columns of the long form.
COLUMNS = ("group", "label", "n_items", "prevalence", "lower", "upper", "training")
#: Columns that follow if labelled items were used.
LABELLED_COLUMNS = ("n_labelled", "more_labels")
#: Attributes with a value per batch and label that an estimate has, too.
_PER_LABEL = ("point", "lower", "upper", "band_lower", "band_upper", "more_labels")
#: A batch with fewer items gets no verdict: its own share says little, however well it is known.
FEWEST_FOR_VERDICT = 10
#: False discovery rate at which small p-values are more than chance.
_DISCOVERY = 0.1
#: Least p-value of a batch that gets a verdict, and where other batches are unusual.
_PLAUSIBLE, _DRIFTING = 0.1, 0.5
#: A spreadsheet takes a text that starts with one of these for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".parquet")


@dataclass(frozen=True)
class Notice:
    """A warning or note on the estimates.

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
    """A feature that moves the estimate of a label.

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
class BatchResult:
    """Estimated prevalences of batches, with their intervals, notices and provenance.

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
    band_lower, band_upper : array of float, shape (n_batches, n_labels), or None
        Ends of the bands that hold all labels of a batch at once.
    level : float or None
        Coverage that intervals and bands aim at, such as 0.9.
    p_value : array of float, shape (n_batches,), or None
        Of the alarm: below .01 the batch differs from the training data in more than its labels.
    n_labelled : array of int, shape (n_batches,), or None
        How many labelled items of each batch its estimates use; None if no labels were given.
    more_labels : array of float, shape (n_batches, n_labels), or None
        How many more would halve each interval; NaN in batches without labelled items.
    counted : array of float, shape (n_batches, n_labels), or None
        Mean scores before the correction: classify and count, or mean posteriors.
    true : array of float, shape (n_batches, n_labels), or None
        The truth, where it is known.
    ordered : bool
        Whether the batches follow each other in time, so that a trend can be drawn.
    feature_means : array of float, shape (n_batches, n_features), or None
        Means of the prepared items of each batch, as the classifier sees them.
    drivers : tuple of Drivers
    notices : tuple of Notice
        Warnings and notes on the estimates.
    provenance : mapping
        How the numbers were made.
    title : str

    Examples
    --------
    >>> result = BatchResult(["spam"], ["May", "June"], [90, 80], [[0.2], [0.3]], [0.25])
    >>> result.change.round(2).tolist()
    [[-0.05], [0.05]]
    """

    labels: Sequence[str]
    batches: Sequence[str]
    sizes: npt.NDArray[np.int64]
    point: Floats
    training: Floats
    lower: Floats | None = None
    upper: Floats | None = None
    band_lower: Floats | None = None
    band_upper: Floats | None = None
    level: float | None = None
    p_value: Floats | None = None
    n_labelled: npt.NDArray[np.int64] | None = None
    more_labels: Floats | None = None
    counted: Floats | None = None
    true: Floats | None = None
    ordered: bool = True
    feature_means: npt.NDArray[np.float32] | None = None
    drivers: tuple[Drivers, ...] = ()
    notices: tuple[Notice, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
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
        shape = (n_batches, len(self.labels))
        set_(self, "sizes", _shaped(self.sizes, (n_batches,), "sizes", np.int64))
        for name in (*_PER_LABEL, "counted", "true"):
            if getattr(self, name) is not None:
                set_(self, name, _shaped(getattr(self, name), shape, name))
        if self.p_value is not None:
            set_(self, "p_value", _shaped(np.atleast_1d(self.p_value), (n_batches,), "p_value"))
        if self.n_labelled is not None:
            labelled = _shaped(self.n_labelled, (n_batches,), "n_labelled", np.int64)
            set_(self, "n_labelled", labelled)
        if (self.lower is None) != (self.upper is None):
            raise InputError("A report needs both ends of the intervals, or none.")

    @classmethod
    def from_estimate(cls, estimate: PrevalenceEstimate, **more: Any) -> BatchResult:
        """The result that holds an estimate of several named batches, and more."""
        known = {name: value for name, value in vars(estimate).items() if name != "index"}
        return cls(batches=estimate.index, **known, **more)  # type: ignore[arg-type]

    @property
    def estimate(self) -> PrevalenceEstimate:
        """The estimates with their intervals, shape (n_batches, n_labels)."""
        return PrevalenceEstimate(
            labels=self.labels,
            index=self.batches,
            level=self.level,
            p_value=self.p_value,
            n_labelled=self.n_labelled,
            **{name: getattr(self, name) for name in _PER_LABEL},
        )

    @property
    def change(self) -> Floats:
        """Estimate minus training prevalence, shape (n_batches, n_labels)."""
        return self.point - self.training

    @property
    def unusual(self) -> npt.NDArray[np.bool_]:
        """Batches that raise the alarm, or that all batches together show to differ.

        Many p-values that are each a little too large for an alarm are no chance together
        (Benjamini and Hochberg, false discovery rate of 10 %).
        """
        return self.alarms | self._discovered()

    def _discovered(self) -> npt.NDArray[np.bool_]:
        """Batches whose p-values are too small for chance, all batches together."""
        if self.p_value is None:
            return np.zeros(len(self.batches), dtype=bool)
        return np.asarray(false_discovery_control(self.p_value) < _DISCOVERY)

    @property
    def judged(self) -> npt.NDArray[np.bool_]:
        """Which batches get a verdict: at least ten items, and a p-value of at least 0.1.

        That is more than the alarm asks for, because a claim needs more than the absence of an
        alarm. If small p-values are more than chance, the data drift, and a verdict needs a
        p-value of at least one half.
        """
        judged = self.sizes >= FEWEST_FOR_VERDICT
        if self.p_value is None:
            return np.asarray(judged)
        return judged & (self.p_value >= (_DRIFTING if self._discovered().any() else _PLAUSIBLE))

    @property
    def moved(self) -> npt.NDArray[np.int8]:
        """Moves since training that the bands support, shape (n_batches, n_labels).

        1 where all of the band lies above the training prevalence, -1 where it lies below, else 0;
        0 in batches that get no verdict. The bands hold all labels of a batch at once, so that
        looking at all of them does not make chance findings.
        """
        lower, upper = self.bands
        training = np.broadcast_to(self.training, self.point.shape)
        return excluded(training, lower, upper) * self.judged[:, np.newaxis].astype(np.int8)

    @property
    def bands(self) -> tuple[Floats | None, Floats | None]:
        """The bands; the intervals where there are no bands."""
        if self.band_lower is None or self.band_upper is None:
            return self.lower, self.upper
        return self.band_lower, self.band_upper

    def difference(self, first: str, second: str) -> Difference:
        """How far the prevalences of two batches are apart: second minus first.

        Parameters
        ----------
        first, second : str
            Names of batches.

        Examples
        --------
        >>> result = BatchResult(["spam"], ["May", "June"], [90, 80], [[0.2], [0.3]], [0.25])
        >>> result.difference("May", "June").point.round(2).tolist()
        [0.1]
        """
        i, j = map(self.place, (first, second))
        lower, upper = self._difference_ends(i, j, self.lower, self.upper)
        band_lower, band_upper = self._difference_ends(i, j, *self.bands)
        return Difference(
            self.labels,
            (self.batches[i], self.batches[j]),
            self.point[i],
            self.point[j],
            lower=lower,
            upper=upper,
            band_lower=band_lower,
            band_upper=band_upper,
            level=self.level,
            reliable=bool(self.judged[[i, j]].all()),
        )

    def _difference_ends(
        self, i: int, j: int, lower: Floats | None, upper: Floats | None
    ) -> tuple[Floats | None, Floats | None]:
        if lower is None or upper is None:
            return None, None
        first, second = ((self.point[k], lower[k], upper[k]) for k in (i, j))
        return difference_ends(first, second, self.training)

    def place(self, batch: str) -> int:
        """The number of a batch; refuses names that no batch has."""
        if str(batch) not in self.batches:
            raise InputError(
                f"There is no batch {str(batch)!r}; the batches are "
                f"{', '.join(map(repr, self.batches[:10]))}"
                f"{f' and {len(self.batches) - 10} more' if len(self.batches) > 10 else ''}."
            )
        return self.batches.index(str(batch))

    @property
    def alarms(self) -> npt.NDArray[np.bool_]:
        """Which batches differ from the training data in more than the label mix."""
        if self.p_value is None:
            return np.zeros(len(self.batches), dtype=bool)
        return np.asarray(self.p_value < MISFIT)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The sentences of the notices."""
        return tuple(notice.text for notice in self.notices)

    def more_labels_of(self, batch: int) -> int | None:
        """How many more labels would halve the intervals of a batch: the median over labels."""
        if self.n_labelled is None or self.more_labels is None or not self.n_labelled[batch]:
            return None
        return round(float(np.median(self.more_labels[batch])))

    @property
    def label_notes(self) -> tuple[str, ...]:
        """A sentence for every batch with labelled items: how many, and how many more to label."""
        notes = []
        for i, name in enumerate(self.batches):
            more = self.more_labels_of(i)
            if self.n_labelled is not None and more is not None:
                used = f"{self.n_labelled[i]:,} of the {self.sizes[i]:,} items"
                advice = f"; about {more:,} more would halve the intervals (median over labels)"
                notes.append(f"{name} uses the labels of {used}{advice if more else ''}.")
        return tuple(notes)

    def to_rows(self) -> list[dict[str, Any]]:
        """The long form: one row per batch and label, with the columns `COLUMNS`.

        If labelled items were used, the columns `LABELLED_COLUMNS` follow.
        """
        low, high = self.lower, self.upper
        return [
            {
                "group": batch,
                "label": label,
                "n_items": int(self.sizes[i]),
                "prevalence": float(self.point[i, j]),
                "lower": None if low is None else float(low[i, j]),
                "upper": None if high is None else float(high[i, j]),
                "training": float(self.training[j]),
                **self._labelled_cells(i, j),
            }
            for i, batch in enumerate(self.batches)
            for j, label in enumerate(self.labels)
        ]

    def _labelled_cells(self, batch: int, label: int) -> dict[str, int | None]:
        if self.n_labelled is None or self.more_labels is None:
            return {}
        n_labelled = int(self.n_labelled[batch])
        more = int(self.more_labels[batch, label]) if n_labelled else None
        return dict(zip(LABELLED_COLUMNS, (n_labelled, more), strict=True))

    def to_frame(self, backend: str = "pandas") -> Any:
        """The long form as a pandas or polars frame."""
        return frame(_columns(self.to_rows()), backend)

    def to_dict(self) -> dict[str, Any]:
        """Rows, level, notices and provenance, for JSON."""
        return {
            "rows": self.to_rows(),
            "interval": self.level,
            "notices": [vars(notice) for notice in self.notices],
            "provenance": dict(self.provenance),
        }

    def write(self, path: str | Path) -> None:
        """Write the long form: ``.csv``, ``.tsv``, ``.jsonl``, ``.parquet``, or all as ``.json``.

        The file appears when it is complete. In CSV, a name that a spreadsheet would take for a
        formula gets an apostrophe.
        """
        path = Path(path)
        content = self.to_bytes(path.suffix.lower())
        with writing(path) as file:
            file.write(content)

    def to_bytes(self, ending: str) -> bytes:
        """The content of a file with that ending."""
        if ending == ".json":
            return _json(self.to_dict())
        return rows_bytes(self.to_rows(), ending)


def rows_bytes(rows: Sequence[Mapping[str, Any]], ending: str) -> bytes:
    """Rows with the same keys as the content of a file with that ending."""
    check_ending(ending)
    if ending == ".json":
        return _json(rows)
    if ending == ".jsonl":
        lines = (json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
        return "".join(lines).encode()
    if ending == ".parquet":
        return _parquet(rows)
    return csv_bytes(rows, "\t" if ending == ".tsv" else ",")


def _json(content: Any) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False, default=str) + "\n").encode()


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def csv_bytes(rows: Sequence[Mapping[str, Any]], delimiter: str = ",") -> bytes:
    """Rows with the same keys as the content of a CSV file; see `safe_cell`."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: safe_cell(cell) for name, cell in row.items()} for row in rows)
    return text.getvalue().encode()


def _shaped(values: Any, shape: tuple[int, ...], name: str, dtype: Any = np.float64) -> Any:
    array = np.asarray(values, dtype=dtype)
    if array.shape != shape:
        raise InputError(f"The report's {name} must have shape {shape}; got {array.shape}.")
    return array


def check_ending(name: str | Path) -> None:
    """Refuse a file name whose ending says no format that results are written in."""
    ending = Path(f"x{name}" if str(name).startswith(".") else name).suffix.lower()
    if ending not in _ENDINGS:
        raise InputError(
            f"Results are written as {', '.join(_ENDINGS)}; {str(name)!r} ends in none of them."
        )


def safe_cell(value: Any) -> Any:
    """A cell of a CSV file: no text that a spreadsheet would run as a formula.

    Examples
    --------
    >>> safe_cell("=1+1"), safe_cell(-0.5), safe_cell(None)
    ("'=1+1", -0.5, '')
    """
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value


def _parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(
            'A Parquet file needs pyarrow to be written: pip install "prevalens[frames]".'
        ) from None
    buffer = io.BytesIO()
    types = {"lower": arrow.float64(), "upper": arrow.float64()}
    try:
        arrays = {
            name: arrow.array(cells, type=types.get(name)) for name, cells in _columns(rows).items()
        }
    except arrow.ArrowException as error:
        raise InputError(
            f"A Parquet file has one type per column ({error}); write .csv or .jsonl."
        ) from None
    parquet.write_table(arrow.table(arrays), buffer)
    return buffer.getvalue()
