"""BatchResult: estimated prevalences of batches, with intervals, notices and provenance."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import false_discovery_control

from prevalens.charts import Dots, Drawing, draw, frame, table
from prevalens.estimate import PrevalenceEstimate
from prevalens.files import write_whole
from prevalens.model.overview import Overview
from prevalens.model.rows import check_ending, columns_of, json_bytes, rows_bytes, workbook_bytes
from prevalens.types import Floats, Ints
from prevalens.uncertainty.difference import Difference, difference_ends, excluded
from prevalens.uncertainty.goodness_of_fit import MISFIT
from prevalens.validation import InputError, check_label_names

if TYPE_CHECKING:
    from prevalens.model.model import Model

#: Columns of the long form.
COLUMNS = (
    *("group", "label", "n_items", "prevalence", "lower", "upper", "band_lower", "band_upper"),
    *("level", "training", "alarm", "p_value", "n_labelled", "more_labels", "notes"),
)
#: Columns that the wide form has for each batch, as in ``prevalence May``.
WIDE_COLUMNS = ("prevalence", "lower", "upper", "n_items", "alarm")
#: Columns that are shares of the items.
_ENDS = ("lower", "upper", "band_lower", "band_upper")
_SHARES = ("prevalence", *_ENDS, "training")
#: Attributes with a value per batch and label that an estimate has, too.
_PER_LABEL = ("point", *_ENDS, "more_labels")
#: A batch with fewer items gets no verdict: its own share says little, however well it is known.
FEWEST_FOR_VERDICT = 10
#: False discovery rate at which small p-values are more than chance.
_DISCOVERY = 0.1
#: Least p-value of a batch that gets a verdict, and where other batches are unusual.
_PLAUSIBLE, _DRIFTING = 0.1, 0.5


@dataclass(frozen=True)
class Notice:
    """A warning or note on the estimates.

    Attributes
    ----------
    text : str
        One sentence.
    level : {"note", "warning"}
    batch : str
        The batch it is about; empty if it is about several.
    batches : tuple of str
        The batches it is about, if there are several; empty if it is about all.
    """

    text: str
    level: Literal["note", "warning"] = "warning"
    batch: str = ""
    batches: tuple[str, ...] = ()

    @classmethod
    def on(cls, batches: Sequence[str], text: str, level: Literal["note", "warning"]) -> Notice:
        """A notice on one or several batches."""
        if len(batches) == 1:
            return cls(text, level, batches[0])
        return cls(text, level, batches=tuple(batches))

    def concerns(self, batches: Collection[str]) -> bool:
        """Whether it is about one of these batches, or about all."""
        about = [name for name in (self.batch, *self.batches) if name]
        return not about or any(name in batches for name in about)


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


@dataclass(frozen=True, repr=False)
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
    # Of a selection: which batches are unusual and which get a verdict, among all batches.
    _verdicts: tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]] | None = None

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
        if self._verdicts is not None:
            return self._verdicts[0]
        return self.alarms | self._discovered()

    def _discovered(self) -> npt.NDArray[np.bool_]:
        """Batches whose p-values are too small for chance, all batches together."""
        if self.p_value is None:
            return np.zeros(len(self.batches), dtype=bool)
        # One p-value needs no correction, which is slow for what it does.
        single = len(self.batches) == 1
        adjusted = self.p_value if single else false_discovery_control(self.p_value)
        return np.asarray(adjusted < _DISCOVERY)

    @property
    def judged(self) -> npt.NDArray[np.bool_]:
        """Which batches get a verdict: at least ten items, and a p-value of at least 0.1.

        That is more than the alarm asks for, because a claim needs more than the absence of an
        alarm. If small p-values are more than chance, the data drift, and a verdict needs a
        p-value of at least one half.
        """
        if self._verdicts is not None:
            return self._verdicts[1]
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

    def select(self, places: Sequence[int] | Ints) -> BatchResult:
        """Some of the batches, in the order given; their verdicts stay those among all batches.

        Parameters
        ----------
        places : sequence of int
            Numbers of batches.

        Examples
        --------
        >>> result = BatchResult(["spam"], ["May", "June"], [90, 80], [[0.2], [0.3]], [0.25])
        >>> result.select([1]).batches
        ('June',)
        """
        order = np.asarray(places, dtype=np.int64)
        per_batch: dict[str, Any] = {
            name: value[order]
            for name, value in vars(self).items()
            if isinstance(value, np.ndarray) and name != "training"
        }
        names = [self.batches[i] for i in order.tolist()]
        shown = set(names)
        return replace(
            self,
            batches=names,
            notices=tuple(notice for notice in self.notices if notice.concerns(shown)),
            _verdicts=(self.unusual[order], self.judged[order]),
            **per_batch,
        )

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

    def notes_of(self, batch: str) -> str:
        """The sentences of the notices about a batch; empty if there are none."""
        return self._notes().get(batch, "")

    def _notes(self) -> dict[str, str]:
        """The notes of all batches that have any; a notice is looked at once, not per batch."""
        found: dict[str, list[str]] = {}
        known = set(self.batches)
        for notice in self.notices:
            about = [name for name in (notice.batch, *notice.batches) if name]
            for name in filter(known.__contains__, about) if about else self.batches:
                found.setdefault(name, []).append(notice.text)
        return {name: " ".join(texts) for name, texts in found.items()}

    def batch_rows(self) -> list[dict[str, Any]]:
        """One row per batch: its items, the alarm, its labelled items and its notes."""
        alarms, notes = self.alarms, self._notes()
        return [
            {
                "group": name,
                "n_items": int(self.sizes[i]),
                "alarm": None if self.p_value is None else bool(alarms[i]),
                "p_value": None if self.p_value is None else float(self.p_value[i]),
                "n_labelled": 0 if self.n_labelled is None else int(self.n_labelled[i]),
                "more_labels": self.more_labels_of(i),
                "notes": notes.get(name, ""),
            }
            for i, name in enumerate(self.batches)
        ]

    def to_rows(self, *, wide: bool = False, percent: bool = False) -> list[dict[str, Any]]:
        """The estimates as rows, in long or in wide form.

        Parameters
        ----------
        wide : bool
            False: one row per batch and label, with the columns `COLUMNS`. True: one row per
            label, with its training prevalence and the columns `WIDE_COLUMNS` of every batch.
        percent : bool
            Shares in percent, 12.3 instead of 0.123; the names of their columns then have
            ``_percent`` at the end of the first word.
        """
        rows = self._wide_rows() if wide else self._long_rows()
        return [_in_percent(row) for row in rows] if percent else rows

    def _long_rows(self) -> list[dict[str, Any]]:
        rows = []
        cells = self._cells()
        for i, batch in enumerate(self.batch_rows()):
            for j, label in enumerate(self.labels):
                own = {name: values[i][j] for name, values in cells.items()}
                row = {**batch, **own, "label": label, "level": self.level}
                rows.append({name: row[name] for name in COLUMNS})
        return rows

    def _wide_rows(self) -> list[dict[str, Any]]:
        if len(set(self.batches)) < len(self.batches):
            raise InputError("Two batches have the same name; the wide form needs different ones.")
        rows: list[dict[str, Any]] = [
            {"label": label, "training": float(self.training[j])}
            for j, label in enumerate(self.labels)
        ]
        cells = self._cells()
        for i, batch in enumerate(self.batch_rows()):
            for j, row in enumerate(rows):
                own = {**batch, **{name: values[i][j] for name, values in cells.items()}}
                row.update({f"{name} {batch['group']}": own[name] for name in WIDE_COLUMNS})
        return rows

    def _cells(self) -> dict[str, list[list[Any]]]:
        """What differs between labels, by column, batch and label; as lists, which are quick."""
        parts = {"prevalence": self.point, **{name: getattr(self, name) for name in _ENDS}}
        parts["training"] = np.broadcast_to(self.training, self.point.shape)
        none = [[None] * len(self.labels)] * len(self.batches)
        cells = {name: none if part is None else part.tolist() for name, part in parts.items()}
        more = none if self.more_labels is None else self.more_labels.tolist()
        cells["more_labels"] = [
            [None if n is None or np.isnan(n) else round(n) for n in own] for own in more
        ]
        return cells

    def to_frame(
        self, backend: str = "pandas", *, wide: bool = False, percent: bool = False
    ) -> Any:
        """The rows of `to_rows` as a pandas or polars frame."""
        return frame(columns_of(self.to_rows(wide=wide, percent=percent)), backend)

    def to_dict(self, *, wide: bool = False, percent: bool = False) -> dict[str, Any]:
        """Rows, batches, level, notices and provenance, for JSON."""
        return {
            "rows": self.to_rows(wide=wide, percent=percent),
            "batches": self.batch_rows(),
            "interval": self.level,
            "notices": [vars(notice) for notice in self.notices],
            "provenance": dict(self.provenance),
        }

    def write(self, path: str | Path, *, wide: bool = False, percent: bool = False) -> None:
        """Write the rows of `to_rows` to a file, in the format of its ending.

        ``.csv``, ``.tsv``, ``.jsonl`` and ``.parquet`` have the rows, ``.json`` has all of
        `to_dict`, and ``.xlsx`` has sheets for estimates, batches, and notes with provenance. The
        file appears when it is complete. No text is run as a formula by a spreadsheet: in CSV it
        gets an apostrophe.
        """
        path = Path(path)
        write_whole(path, self.to_bytes(path.suffix.lower(), wide=wide, percent=percent))

    def to_bytes(self, ending: str, *, wide: bool = False, percent: bool = False) -> bytes:
        """The content of a file with that ending."""
        if ending == ".json":
            return json_bytes(self.to_dict(wide=wide, percent=percent))
        rows = self.to_rows(wide=wide, percent=percent)
        if ending != ".xlsx":
            return rows_bytes(rows, ending)
        check_ending(ending)
        sheets = {"estimates": rows, "batches": self.batch_rows(), "notes": self._note_rows()}
        return workbook_bytes(sheets)

    def __repr__(self) -> str:
        return Overview.of(self).to_text()

    def _repr_html_(self) -> str:
        if len(self.batches) > 1:
            return Overview.of(self).to_html()
        return table(self._dots_of_batch(0))

    def plot(
        self,
        backend: str = "matplotlib",
        *,
        batch: str | None = None,
        labels: Sequence[str] | None = None,
        ax: Drawing | None = None,
    ) -> Drawing:
        """Draw the estimates with their intervals.

        One batch: a dot per label, and a mark at its training prevalence. Periods of time: a line
        per label. Other batches: a dot per batch, largest prevalence first, for one label.

        Parameters
        ----------
        backend : {"matplotlib", "altair"}
        batch : str, optional
            Draw this batch alone.
        labels : sequence of str, optional
            Which to draw. Default: all of one batch, the eight that vary most over time, or the one
            that varies most between other batches.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes, or altair Chart
        """
        if batch is not None and batch not in self.batches:
            raise InputError(f"There is no batch {batch!r} in this result.")
        if batch is not None or len(self.batches) == 1:
            place = 0 if batch is None else self.batches.index(batch)
            return draw(self._dots_of_batch(place, labels), backend, ax=ax)
        if self.ordered:
            return self.estimate.plot(backend, labels=labels, ax=ax)
        return draw(self._dots_of_label(labels), backend, ax=ax)

    def _dots_of_batch(self, batch: int, labels: Sequence[str] | None = None) -> Dots:
        own = self.estimate.sample(batch)
        return own.dots(self.training, labels, title=self._title_of(batch))

    def _title_of(self, batch: int) -> str:
        return f"{self.batches[batch]}{' (alarm)' if self.alarms[batch] else ''}"

    def _dots_of_label(self, labels: Sequence[str] | None) -> Dots:
        """The batches by the prevalence of a label."""
        if labels is not None and len(labels) != 1:
            raise InputError(
                f"Batches that are not periods of time are drawn for one label; got {len(labels)}. "
                "Name one label, or one batch."
            )
        varying = self.labels[int(np.ptp(self.point, axis=0).argmax())]
        label = labels[0] if labels else varying
        if label not in self.labels:
            raise InputError(f"There is no label {label!r} in this result.")
        column = self.labels.index(label)
        order = np.argsort(-self.point[:, column], kind="stable")
        low, high = (
            None if part is None else part[order, column] for part in (self.lower, self.upper)
        )
        return Dots(
            [self._title_of(i) for i in order.tolist()],
            self.point[order, column],
            low,
            high,
            np.full(len(order), self.training[column]),
            title=label,
        )

    def report(self, path: str | Path, model: Model | None = None) -> None:
        """Write the report on the batches to one HTML file, as ``prevalens quantify --html`` does.

        Parameters
        ----------
        path : str or Path
        model : Model, optional
            The model that made the estimates; the report then says what drives them.
        """
        # Pages are a layer above models, so they are loaded by name, when one is asked for.
        pages = import_module("prevalens.reports.batch_page")
        write_whole(Path(path), pages.report_html(self, model).encode())

    def _note_rows(self) -> list[dict[str, str]]:
        """Notices, then where the numbers come from: kind, what it is about, and the text."""
        notes = [
            (each.level, each.batch or ", ".join(each.batches), each.text) for each in self.notices
        ]
        labelled = [("note", "", text) for text in self.label_notes]
        made = [("level", "intervals and bands", "" if self.level is None else f"{self.level:g}")]
        made += [("provenance", name, _shown(value)) for name, value in self.provenance.items()]
        names = ("kind", "about", "text")
        return [dict(zip(names, row, strict=True)) for row in (*notes, *labelled, *made)]


def _shown(value: Any) -> str:
    """A value of the provenance as a text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _in_percent(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with shares in percent."""
    found = {}
    for name, value in row.items():
        first, space, batch = name.partition(" ")
        share = first in _SHARES
        # Rounded to undo the rounding of 100 x 0.123.
        known = round(100 * value, 10) if share and value is not None else value
        found[f"{first}_percent{space}{batch}" if share else name] = known
    return found


def _shaped(values: Any, shape: tuple[int, ...], name: str, dtype: Any = np.float64) -> Any:
    array = np.asarray(values, dtype=dtype)
    if array.shape != shape:
        raise InputError(f"The report's {name} must have shape {shape}; got {array.shape}.")
    return array
