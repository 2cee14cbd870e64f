"""The report on counts that were corrected by sensitivity and specificity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prevalens.model.adjust import AdjustedCounts
from prevalens.reports.batch_charts import range_text, share_text
from prevalens.reports.grid import Grid, count, number
from prevalens.reports.page import Figure, Section, page
from prevalens.reports.render import CAPTIONS, render
from prevalens.reports.svg import Scale, element, label, line, row_chart, shortened
from prevalens.reports.theme import colour, series
from prevalens.uncertainty.misclassification import Rate

_TEXTS: dict[str, str] = CAPTIONS["adjusted"]
_WIDTH = 560.0
#: Rows of the chart; the table has all.
_MOST_ROWS = 60


def adjust_page(found: AdjustedCounts) -> str:
    """Corrected counts as one self-contained HTML file."""
    notices = [{"level": "warning", "text": text} for text in found.notices]
    lead = render("notices.html", notices=notices, headline=_headline(found))
    figure = Figure(_chart(found), _TEXTS["chart"], name="adjusted")
    sections = [
        Section("Counted and corrected prevalence", (figure, _grid(found))),
        Section("How this was computed", (_TEXTS["computed"],)),
    ]
    return page("Corrected prevalence", sections, lead=lead, assets=["batch_report"])


def _headline(found: AdjustedCounts) -> str:
    """The largest correction in a sentence."""
    adjusted = found.adjusted
    most = int(np.argmax(np.abs(adjusted.point - adjusted.apparent)))
    return _TEXTS["headline"].format(
        name=found.counts[most].name,
        apparent=share_text(adjusted.apparent[most]),
        corrected=share_text(adjusted.point[most]),
        range=range_text(adjusted.lower[most], adjusted.upper[most]),
    )


def _rate(rate: Rate | None) -> str:
    assert rate is not None  # counts that were corrected have both
    size = "exact" if np.isinf(rate.n) else f"of about {rate.n:,.0f}"
    return f"{number(rate.value, 3)} ({size})"


def _grid(found: AdjustedCounts) -> Grid:
    adjusted = found.adjusted
    rows = [
        (
            each.name,
            count(each.positives),
            count(each.n),
            share_text(adjusted.apparent[i]),
            share_text(adjusted.point[i]),
            f"{share_text(adjusted.lower[i])} to {share_text(adjusted.upper[i])}",
            _rate(each.sensitivity),
            _rate(each.specificity),
        )
        for i, each in enumerate(found.counts)
    ]
    level = f"{100 * adjusted.level:g} % interval"
    heads = ("positives", "tests", "counted", "corrected", level, "sensitivity", "specificity")
    return Grid.from_rows("Prevalences", "label", heads, rows, [_TEXTS["rates"]])


def _chart(found: AdjustedCounts) -> str:
    adjusted = found.adjusted
    x = Scale(0.0, max(float(adjusted.upper.max()), 0.01) * 1.05, 190.0, _WIDTH - 14)
    rows = [_row(found, i, x) for i in range(min(len(found.counts), _MOST_ROWS))]
    title = "Prevalence: counted (open) and corrected (filled)"
    return row_chart(title, x, rows, lambda value: f"{100 * value:.3g} %", _WIDTH)


def _row(found: AdjustedCounts, i: int, x: Scale) -> str:
    adjusted, y = found.adjusted, 34.0 + 24 * i + 12
    ends: Sequence[float] = (float(adjusted.lower[i]), float(adjusted.upper[i]))
    ring = {"fill": colour("ground"), "stroke": colour("muted"), "stroke_width": 2}
    return (
        label(shortened(found.counts[i].name, 26), 182, y + 4, text_anchor="end")
        + line(x(ends[0]), y, x(ends[1]), y, stroke=series(0), stroke_width=2)
        + element("circle", cx=x(float(adjusted.apparent[i])), cy=y, r=4, **ring)
        + element("circle", cx=x(float(adjusted.point[i])), cy=y, r=5, fill=series(0))
    )
