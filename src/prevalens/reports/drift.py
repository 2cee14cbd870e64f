"""Drift: methods compared on later batches of timelines, by cut and horizon, from records alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from prevalens.metrics import HORIZON_EDGES, HORIZON_NAMES
from prevalens.records import Record
from prevalens.reports.grid import MISSING, dataset_title, number
from prevalens.reports.leaderboard import Means, Row
from prevalens.reports.render import render_text

#: Methods of which the name begins like this choose among others; all others are single methods.
_CHOOSING = "auto"


class _Column(NamedTuple):
    """A measure of a table: its title, its factor and its digits."""

    metric: str
    title: str
    factor: float
    digits: int

    def shown(self, value: float) -> str:
        return number(self.factor * value, self.digits)


_COLUMNS = (
    _Column("ae", "AE", 100, 2),
    _Column("coverage", "intervals hold", 1, 2),
    _Column("width", "width", 100, 1),
    _Column("needed_width", "width needed", 100, 1),
    _Column("band_coverage", "bands hold", 1, 2),
    _Column("band_width", "band width", 100, 1),
)


class _Cut(NamedTuple):
    """The batches of a timeline after one cut, under one protocol."""

    dataset: str
    protocol: str
    #: Number of batches of each class of horizons that has some; empty for a control.
    batches: dict[str, int]
    n_batches: int

    @property
    def timeline(self) -> str:
        return self.dataset.partition("@")[0]

    @property
    def title(self) -> str:
        return self.dataset.partition("@")[2] or "published parts"


class _CutMeans(Means):
    """Means, and the cuts that they are of."""

    def __init__(self, records: Sequence[Record]) -> None:
        super().__init__(records)
        counts = {(r.dataset, r.protocol, r.shift): r.n_samples for r in records}
        self.cuts = [
            _Cut(
                dataset,
                protocol,
                {h: n for h in HORIZON_NAMES if (n := counts.get((dataset, protocol, h), 0))},
                counts[dataset, protocol, "all"],
            )
            for dataset, protocol in dict.fromkeys((r.dataset, r.protocol) for r in records)
        ]

    def of(self, cut: _Cut, method: str, metric: str = "ae", shift: str = "all") -> float:
        return self.get(cut.dataset, method, cut.protocol, shift, metric)

    def ratio(self, cut: _Cut, method: str) -> float:
        """The AE divided by the least AE of a single method on the same batches."""
        singles = [self.of(cut, m) for m in self.methods if not m.startswith(_CHOOSING)]
        least = min((value for value in singles if not math.isnan(value)), default=math.nan)
        return self.of(cut, method) / least


def drift(
    records: Sequence[Record],
    *,
    level: float = 0.9,
    command: str = "prevalens bench",
    source: str = "records",
) -> str:
    """Tables that compare methods on later batches, as Markdown.

    Parameters
    ----------
    records : list of Record
        Of datasets named by timeline and cut, such as ``un@1985``; a dataset whose records have
        no horizons is a control.
    level : float
        Level of the intervals and bands.
    command, source : str
        How and from what the page is made, for its first line.
    """
    figures = _CutMeans(records)
    measured = {(r.dataset, r.method, r.protocol) for r in records}
    timelines = dict.fromkeys(cut.timeline for cut in figures.cuts)
    return render_text(
        "drift.md",
        command=command,
        source=source,
        level=number(level, 2),
        choosing=_CHOOSING,
        edges=[number(edge, 2) for edge in HORIZON_EDGES],
        horizons=HORIZON_NAMES,
        overall_head=["method", "cuts", "AE ratio, mean", "worst", *_titles(_COLUMNS[1:])],
        overall=_overall(figures),
        timelines=[_timeline(figures, name) for name in timelines],
        cut_head=["method", *_titles(_COLUMNS)],
        n_measured=len(measured),
        n_wanted=len(figures.cuts) * len(figures.methods),
        versions=sorted({r.version for r in records}),
    )


def _titles(columns: Iterable[_Column]) -> list[str]:
    return [column.title for column in columns]


def _overall(figures: _CutMeans) -> list[Row]:
    """A row per method: means over the cuts of timelines on which it was measured."""
    rows = []
    for method in figures.methods:
        measured = [cut for cut in figures.cuts if not math.isnan(figures.of(cut, method))]
        cuts = [cut for cut in measured if cut.batches]
        ratios = [figures.ratio(cut, method) for cut in cuts] or [math.nan]
        means = [
            column.shown(_mean(figures.of(cut, method, column.metric) for cut in cuts))
            for column in _COLUMNS[1:]
        ]
        shown = [number(_mean(ratios), 2), number(max(ratios), 2)]
        rows.append([f"`{method}`", str(len(cuts)), *shown, *means])
    return rows


def _mean(values: Iterable[float]) -> float:
    array = np.array(list(values))
    return float(array.mean()) if array.size else math.nan


def _timeline(figures: _CutMeans, name: str) -> dict[str, object]:
    """Values of the template for the cuts of one timeline."""
    cuts = [cut for cut in figures.cuts if cut.timeline == name]
    rows = [
        [f"`{method}`", *(_with_ratio(figures, cut, method) for cut in cuts)]
        for method in figures.methods
    ]
    return {
        "title": dataset_title(name),
        "head": ["method", *(cut.title for cut in cuts)],
        "rows": rows,
        "cuts": [(cut, _by_horizon(figures, cut)) for cut in cuts],
    }


def _with_ratio(figures: _CutMeans, cut: _Cut, method: str) -> str:
    error = figures.of(cut, method)
    if math.isnan(error):
        return MISSING
    return f"{number(100 * error, 2)} ({number(figures.ratio(cut, method), 2)})"


def _by_horizon(figures: _CutMeans, cut: _Cut) -> list[Row]:
    """A row per method, each figure over all batches and by the horizons that have some."""
    return [
        [f"`{method}`", *(_figure(figures, cut, method, column) for column in _COLUMNS)]
        for method in figures.methods
        if not math.isnan(figures.of(cut, method))
    ]


def _figure(figures: _CutMeans, cut: _Cut, method: str, column: _Column) -> str:
    texts = [
        column.shown(figures.of(cut, method, column.metric, shift))
        for shift in ("all", *cut.batches)
    ]
    # With one class alone its figure is that of all batches.
    return f"{texts[0]} ({' / '.join(texts[1:])})" if len(texts) > 2 else texts[0]
