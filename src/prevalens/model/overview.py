"""A short table of a BatchResult, for consoles and notebooks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from prevalens.charts import html_table, small_chart

if TYPE_CHECKING:
    from prevalens.model.result import BatchResult

#: Characters of a name.
_LONGEST = 30
#: Labels, batches and notices that are shown.
_MOST_LABELS, _MOST_BATCHES, _MOST_NOTICES = 10, 4, 5
#: Batches of a small chart.
_MOST_CHARTED = 200


@dataclass(frozen=True)
class Overview:
    """The labels that moved most in a few batches, in percent.

    Attributes
    ----------
    title : str
        How many batches and labels there are, and which batches raise the alarm.
    heads : list of str
    rows : list of list of str
        A label, its training prevalence, and its estimate in each batch with the interval.
    left_out : str
        What is not shown; empty if all is.
    notices : list of str
        Warnings and notes, the first ones.
    charts : list of Markup
        For each row, the estimates of all batches beside the training prevalence; empty if there
        are too many batches.
    """

    title: str
    heads: list[str]
    rows: list[list[str]]
    left_out: str
    notices: list[str]
    charts: list[Markup]

    @classmethod
    def of(cls, result: BatchResult) -> Overview:
        """The last periods of time, or the largest of other batches."""
        n_batches, n_labels = result.point.shape
        largest = np.argsort(-result.sizes, kind="stable")[:_MOST_BATCHES]
        last = range(max(n_batches - _MOST_BATCHES, 0), n_batches)
        batches = list(last) if result.ordered else np.sort(largest).tolist()
        # Moves that the bands support come first, then by size.
        supported = np.abs(result.moved[batches]).max(axis=0)
        moved = supported + np.abs(result.change[batches]).max(axis=0)
        labels = np.argsort(-moved, kind="stable")[:_MOST_LABELS].tolist()
        rows = [
            [_shortened(result.labels[j]), f"{100 * result.training[j]:.1f}"]
            + [_estimate(result, i, j) for i in batches]
            for j in labels
        ]
        heads = [_head(result, i) for i in batches]
        hidden = [(n_labels - len(labels), "label"), (n_batches - len(batches), "batch")]
        left_out = " and ".join(_count(n, word, more=True) for n, word in hidden if n)
        texts = [notice.text for notice in result.notices[:_MOST_NOTICES]]
        charts = _charts(result, labels)
        return cls(_title(result), ["label", "training", *heads], rows, left_out, texts, charts)

    def to_text(self) -> str:
        """The table in lines of text, with aligned columns."""
        columns = list(zip(self.heads, *self.rows, strict=True))
        widths = [max(map(len, column)) for column in columns]
        lines = [_aligned(row, widths) for row in (self.heads, *self.rows)]
        more = [f"... {self.left_out}"] if self.left_out else []
        return "\n".join([self.title, *lines, *more])

    def to_html(self) -> str:
        """The table in HTML, with a small chart per label and notices below."""
        drawn = any(self.charts)
        rows = [
            [*row, chart] if drawn else row
            for row, chart in zip(self.rows, self.charts, strict=True)
        ]
        heads = [*self.heads, "all batches"] if drawn else self.heads
        more = f"<p>... {self.left_out}</p>" if self.left_out else ""
        items = Markup().join(Markup("<li>{}</li>").format(text) for text in self.notices)
        notices = f"<ul>{items}</ul>" if items else ""
        return html_table(heads, rows, caption=self.title) + more + notices


def _charts(result: BatchResult, labels: list[int]) -> list[Markup]:
    """Small charts over the batches, on one scale; empty if there are too many batches to see."""
    if len(result.batches) > _MOST_CHARTED:
        return []
    parts = (result.point, result.training[None], result.upper)
    shown = [part[:, labels] for part in parts if part is not None]
    top = max(float(part.max(initial=0.0)) for part in shown)
    lines = result.estimate.lines([result.labels[j] for j in labels]).lines
    return [
        small_chart(line, top=top, reference=float(result.training[j]), connected=result.ordered)
        for line, j in zip(lines, labels, strict=True)
    ]


def _title(result: BatchResult) -> str:
    counts = ", ".join(
        _count(number, word)
        for number, word in ((len(result.batches), "batch"), (len(result.labels), "label"))
    )
    level = "" if result.level is None else f", {100 * result.level:g} % intervals"
    alarms = int(result.alarms.sum())
    said = f"; alarm in {_count(alarms, 'batch')}" if alarms else ""
    return f"BatchResult: {counts}{level}, in percent{said}"


def _count(number: int, word: str, *, more: bool = False) -> str:
    plural = {"batch": "batches", "label": "labels"}[word]
    return f"{number:,}{' more' if more else ''} {word if number == 1 else plural}"


def _head(result: BatchResult, batch: int) -> str:
    alarm = ", alarm" if result.alarms[batch] else ""
    return f"{_shortened(result.batches[batch])} (n={result.sizes[batch]:,}{alarm})"


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _estimate(result: BatchResult, batch: int, label: int) -> str:
    text = f"{100 * result.point[batch, label]:.1f}"
    if result.lower is None or result.upper is None:
        return text
    low, high = result.lower[batch, label], result.upper[batch, label]
    return f"{text} [{100 * low:.1f}, {100 * high:.1f}]"


def _aligned(row: list[str], widths: list[int]) -> str:
    """Names to the left, numbers to the right."""
    first, *others = zip(row, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)])
