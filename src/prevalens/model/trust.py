"""TrustReport: how far estimates are from the truth on labelled items, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.charts import Dots, Line, Lines, draw, frame, table
from prevalens.metrics import SHIFT_NAMES, ae, shift, shift_bins
from prevalens.types import Floats

#: Names of the three estimates that are compared.
ESTIMATE, COUNTED, TRAINING = "this model", "classify and count", "training prevalence"
#: Titles of the axes of charts.
SHIFT_AXIS = "shift since training, percentage points"
ERROR_AXIS = "mean absolute error, percentage points"
#: A label has moved in a sample if it is farther than this from its training prevalence.
_MOVED = 0.05
#: Moves of labels that separate the classes in which coverage is reported.
_MOVES = (0.01, 0.03, 0.1)


@dataclass(frozen=True)
class Trial:
    """Samples drawn by one protocol, their truth and their estimates.

    Attributes
    ----------
    protocol : str
        Such as ``ml-app``.
    true, estimated : array of float, shape (n_samples, n_labels)
    counted : array of float, shape (n_samples, n_labels), or None
        Classify and count with the same classifier; None if the method has none.
    rows : array of int, shape (n_checked,)
        Samples whose intervals were computed.
    lower, upper : array of float, shape (n_checked, n_labels), or None
    """

    protocol: str
    true: Floats
    estimated: Floats
    counted: Floats | None = None
    rows: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    lower: Floats | None = None
    upper: Floats | None = None

    def __len__(self) -> int:
        return len(self.true)

    @property
    def covered(self) -> npt.NDArray[np.bool_]:
        """Which truths lie within their intervals, shape (n_checked, n_labels)."""
        if self.lower is None or self.upper is None:
            return np.empty((0, self.true.shape[1]), dtype=bool)
        true = self.true[self.rows]
        # Shares are fractions of whole items: a bound may miss one by rounding alone.
        return (true >= self.lower - 1e-9) & (true <= self.upper + 1e-9)


@dataclass(frozen=True)
class Error:
    """Mean absolute error over some samples, its 90 % quantile, and the number of samples."""

    mean: float
    ninth: float
    n_samples: int


@dataclass(frozen=True)
class LabelTrust:
    """Figures on one label.

    Attributes
    ----------
    label : str
    positives : int
        Labelled items that have it.
    error : float
        Mean absolute error over all samples.
    moved : mapping of str to float
        Mean absolute error of each compared estimate in samples where the label is more than five
        points from its training prevalence; NaN if there are none.
    n_moved : int
        Number of these samples.
    coverage : float
        Share of intervals that hold the truth; NaN without intervals.
    """

    label: str
    positives: int
    error: float
    moved: Mapping[str, float]
    n_moved: int
    coverage: float


@dataclass(frozen=True)
class TrustReport:
    """An evaluation of a model on labelled items.

    Attributes
    ----------
    method : str
    labels : tuple of str
    training : array of float, shape (n_labels,)
    positives : array of int, shape (n_labels,)
        Labelled items that have each label.
    n_items, size : int
        Labelled items, and items per sample.
    trials : tuple of Trial
    level : float or None
        Coverage the intervals aim at.
    seen : float
        Share of the labelled items that were in the training data, as far as is known.
    notices : tuple of str
    provenance : mapping of str to str
    title : str
    """

    method: str
    labels: tuple[str, ...]
    training: Floats
    positives: npt.NDArray[np.int64]
    n_items: int
    size: int
    trials: tuple[Trial, ...]
    level: float | None = None
    seen: float = 0.0
    notices: Sequence[str] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)
    title: str = "Can these estimates be trusted?"

    @property
    def compared(self) -> tuple[str, ...]:
        """Names of the compared estimates; counting is among them if there is a classifier."""
        counts = all(trial.counted is not None for trial in self.trials)
        return (ESTIMATE, COUNTED, TRAINING) if counts else (ESTIMATE, TRAINING)

    def values(self, trial: Trial, name: str) -> Floats:
        """A compared estimate in a trial, shape (n_samples, n_labels)."""
        if name == TRAINING:
            return np.broadcast_to(self.training, trial.true.shape)
        return trial.estimated if name == ESTIMATE or trial.counted is None else trial.counted

    @cached_property
    def shifts(self) -> Floats:
        """Shift of each sample since training, for the samples of all trials in a row."""
        return np.concatenate([shift(self.training, trial.true) for trial in self.trials])

    @cached_property
    def regimes(self) -> npt.NDArray[np.int64]:
        """Low (0), mid (1) or high (2) shift, for the samples of all trials."""
        return shift_bins(self.shifts)

    def errors(self, name: str) -> Floats:
        """Absolute errors of a compared estimate, for the samples of all trials."""
        parts = [ae(trial.true, self.values(trial, name)) for trial in self.trials]
        return np.concatenate(parts)

    def _of_trial(self) -> npt.NDArray[np.int64]:
        return np.repeat(np.arange(len(self.trials)), [len(trial) for trial in self.trials])

    def error(self, name: str, chosen: npt.NDArray[np.bool_] | None = None) -> Error:
        """Error of a compared estimate, over all samples or the chosen ones."""
        errors = self.errors(name) if chosen is None else self.errors(name)[chosen]
        if not errors.size:
            return Error(float("nan"), float("nan"), 0)
        return Error(float(errors.mean()), float(np.quantile(errors, 0.9)), len(errors))

    def by_shift(self) -> dict[str, dict[str, Error]]:
        """Errors by regime and compared estimate."""
        return {
            regime: {name: self.error(name, self.regimes == number) for name in self.compared}
            for number, regime in enumerate(SHIFT_NAMES)
        }

    def shift_ranges(self) -> dict[str, tuple[float, float]]:
        """Smallest and largest shift of each regime that has samples."""
        shifts = [self.shifts[self.regimes == number] for number in range(len(SHIFT_NAMES))]
        return {
            regime: (float(own.min()), float(own.max()))
            for regime, own in zip(SHIFT_NAMES, shifts, strict=True)
            if own.size
        }

    def by_protocol(self) -> dict[str, dict[str, Error]]:
        """Errors by protocol and compared estimate."""
        of_trial = self._of_trial()
        return {
            trial.protocol: {name: self.error(name, of_trial == number) for name in self.compared}
            for number, trial in enumerate(self.trials)
        }

    def places(self) -> dict[str, dict[str, Error]]:
        """Errors in every family of shifts, and at every amount of shift that has samples."""
        by_shift = {f"{regime} shift": own for regime, own in self.by_shift().items()}
        places = self.by_protocol() | by_shift
        return {name: own for name, own in places.items() if own[ESTIMATE].n_samples}

    @property
    def moved(self) -> npt.NDArray[np.bool_]:
        """Samples of mid and high shift; all samples if those are fewer than thirty."""
        chosen = self.regimes > 0
        return chosen if chosen.sum() >= 30 else np.ones(len(chosen), dtype=bool)

    def coverage(self) -> dict[str, tuple[float, float, int]]:
        """Share of intervals that hold the truth, their mean width, and their number.

        By protocol, and over ``all``.
        """
        checked = [trial for trial in self.trials if trial.lower is not None]
        by_protocol = {trial.protocol: _coverage([trial]) for trial in checked}
        return by_protocol | ({"all": _coverage(checked)} if checked else {})

    def coverage_by_move(self) -> dict[str, tuple[float, float, int]]:
        """The figures of `coverage` by how far a label truly moved since training, in points."""
        checked = [trial for trial in self.trials if trial.lower is not None]
        if not checked:
            return {}
        moved = [np.abs(trial.true[trial.rows] - self.training) for trial in checked]
        kind = np.searchsorted(_MOVES, np.concatenate(moved), side="right")
        covered = np.concatenate([trial.covered for trial in checked])
        width = np.concatenate([_widths(trial) for trial in checked])
        edges = ["0", *(f"{100 * move:g}" for move in _MOVES), "100"]
        return {
            f"{low} to {high} points": (
                float(covered[kind == number].mean()),
                float(width[kind == number].mean()),
                int((kind == number).sum()),
            )
            for number, (low, high) in enumerate(pairwise(edges))
            if (kind == number).any()
        }

    def by_label(self) -> list[LabelTrust]:
        """Figures on each label."""
        true = np.concatenate([trial.true for trial in self.trials])
        errors = {
            name: np.abs(true - np.concatenate([self.values(t, name) for t in self.trials]))
            for name in self.compared
        }
        moved = np.abs(true - self.training) > _MOVED
        covered = np.concatenate([trial.covered for trial in self.trials])
        return [
            LabelTrust(
                label=label,
                positives=int(self.positives[j]),
                error=float(errors[ESTIMATE][:, j].mean()),
                moved={name: _mean(own[moved[:, j], j]) for name, own in errors.items()},
                n_moved=int(moved[:, j].sum()),
                coverage=_mean(covered[:, j]),
            )
            for j, label in enumerate(self.labels)
        ]

    def to_frame(self, backend: str = "pandas") -> Any:
        """One row per label, as a pandas or polars frame."""
        rows = self.by_label()
        columns: dict[str, list[Any]] = {
            name: [getattr(row, name) for row in rows]
            for name in ("label", "positives", "error", "n_moved", "coverage")
        }
        for name in self.compared:
            columns[f"moved: {name}"] = [row.moved[name] for row in rows]
        return frame(columns, backend)

    def lines(self, n_bins: int = 12) -> Lines:
        """Mean error by shift, both in percentage points; a line for each compared estimate."""
        edges = np.linspace(self.shifts.min(), self.shifts.max(), n_bins + 1)
        bins = np.clip(np.searchsorted(edges, self.shifts, side="right") - 1, 0, n_bins - 1)
        there = np.unique(bins)
        places = [100 * float(self.shifts[bins == number].mean()) for number in there]
        lines = [
            Line(
                name,
                np.array([100 * self.errors(name)[bins == number].mean() for number in there]),
            )
            for name in self.compared
        ]
        return Lines(places, lines, x_axis=SHIFT_AXIS, y_axis=ERROR_AXIS)

    def plot(self, backend: str = "matplotlib", *, ax: Any = None) -> Any:
        """Draw mean errors by shift in matplotlib or altair."""
        return draw(self.lines(), backend, ax=ax)

    def _repr_html_(self) -> str:
        rows = self.by_label()
        errors = 100 * np.array([row.error for row in rows])
        return table(Dots(self.labels, errors, axis=ERROR_AXIS, title=self.method))

    def to_dict(self) -> dict[str, Any]:
        """The figures for JSON."""
        return {
            "method": self.method,
            "n_items": self.n_items,
            "size": self.size,
            "n_samples": {trial.protocol: len(trial) for trial in self.trials},
            "by_shift": _error_figures(self.by_shift()),
            "shift_ranges": self.shift_ranges(),
            "by_protocol": _error_figures(self.by_protocol()),
            "coverage": {
                name: {"level": self.level, "share": share, "width": width, "n_intervals": number}
                for name, (share, width, number) in self.coverage().items()
            },
            "coverage_by_move": {
                name: {"share": share, "width": width, "n_intervals": number}
                for name, (share, width, number) in self.coverage_by_move().items()
            },
            "by_label": [
                {**vars(row), "moved": {k: _finite(v) for k, v in row.moved.items()}}
                | {"coverage": _finite(row.coverage)}
                for row in self.by_label()
            ],
            "seen_in_training": self.seen,
            "notices": list(self.notices),
            "provenance": dict(self.provenance),
        }


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean()) if values.size else float("nan")


def _finite(value: float) -> float | None:
    """JSON has no NaN."""
    return value if np.isfinite(value) else None


def _error_figures(errors: Mapping[str, Mapping[str, Error]]) -> dict[str, Any]:
    return {
        row: {
            name: {"mean": _finite(error.mean), "ninth": _finite(error.ninth), "n": error.n_samples}
            for name, error in columns.items()
        }
        for row, columns in errors.items()
    }


def _coverage(trials: Sequence[Trial]) -> tuple[float, float, int]:
    covered = np.concatenate([trial.covered.ravel() for trial in trials])
    widths = np.concatenate([_widths(trial).ravel() for trial in trials])
    return float(covered.mean()), float(widths.mean()), len(covered)


def _widths(trial: Trial) -> Floats:
    """Widths of the intervals of a trial that has some, shape (n_checked, n_labels)."""
    assert trial.lower is not None
    assert trial.upper is not None
    return trial.upper - trial.lower
