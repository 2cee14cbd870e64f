"""Pages on labels that people give: corrected counts, and how many labelled items are needed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prevalens.model.adjust import AdjustedCounts
from prevalens.model.plan import SIZES, LabelPlan
from prevalens.reports import svg
from prevalens.reports.batch_charts import range_text, share_text
from prevalens.reports.grid import MISSING, Grid, count, number
from prevalens.reports.page import Figure, Section, page
from prevalens.reports.render import CAPTIONS, render
from prevalens.reports.theme import colour, series
from prevalens.uncertainty.misclassification import Rate

_ADJUSTED: dict[str, str] = CAPTIONS["adjusted"]
_PLAN: dict[str, str] = CAPTIONS["plan"]
_WIDTH = 560.0
#: Rows of the chart; the table has all.
_MOST_ROWS = 60
#: Lines that a reader can still distinguish.
_MOST_LINES = 6


def adjust_page(found: AdjustedCounts) -> str:
    """Corrected counts as one self-contained HTML file."""
    notices = [{"level": "warning", "text": text} for text in found.notices]
    lead = render("notices.html", notices=notices, headline=_adjusted_headline(found))
    figure = Figure(_adjusted_chart(found), _ADJUSTED["chart"], name="adjusted")
    sections = [
        Section("Counted and corrected prevalence", (figure, _adjusted_grid(found))),
        Section("How this was computed", (_ADJUSTED["computed"],)),
    ]
    return page("Corrected prevalence", sections, lead=lead, assets=["batch_report"])


def _adjusted_headline(found: AdjustedCounts) -> str:
    """The largest correction in a sentence."""
    adjusted = found.adjusted
    most = int(np.argmax(np.abs(adjusted.point - adjusted.apparent)))
    return _ADJUSTED["headline"].format(
        name=found.counts[most].name,
        apparent=share_text(adjusted.apparent[most]),
        corrected=share_text(adjusted.point[most]),
        range=range_text(adjusted.lower[most], adjusted.upper[most]),
    )


def _rate(rate: Rate | None) -> str:
    assert rate is not None  # counts that were corrected have both
    size = "exact" if np.isinf(rate.n) else f"of about {rate.n:,.0f}"
    return f"{number(rate.value, 3)} ({size})"


def _adjusted_grid(found: AdjustedCounts) -> Grid:
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
    return Grid.from_rows("Prevalences", "label", heads, rows, [_ADJUSTED["rates"]])


def _adjusted_chart(found: AdjustedCounts) -> str:
    adjusted = found.adjusted
    x = svg.Scale(0.0, max(float(adjusted.upper.max()), 0.01) * 1.05, 190.0, _WIDTH - 14)
    rows = [_adjusted_row(found, i, x) for i in range(min(len(found.counts), _MOST_ROWS))]
    title = "Prevalence: counted (open) and corrected (filled)"
    return svg.row_chart(title, x, rows, lambda value: f"{100 * value:.3g} %", _WIDTH)


def _adjusted_row(found: AdjustedCounts, i: int, x: svg.Scale) -> str:
    adjusted, y = found.adjusted, 34.0 + 24 * i + 12
    ends: Sequence[float] = (float(adjusted.lower[i]), float(adjusted.upper[i]))
    ring = {"fill": colour("ground"), "stroke": colour("muted"), "stroke_width": 2}
    return (
        svg.label(svg.shortened(found.counts[i].name, 26), 182, y + 4, text_anchor="end")
        + svg.line(x(ends[0]), y, x(ends[1]), y, stroke=series(0), stroke_width=2)
        + svg.element("circle", cx=x(float(adjusted.apparent[i])), cy=y, r=4, **ring)
        + svg.element("circle", cx=x(float(adjusted.point[i])), cy=y, r=5, fill=series(0))
    )


def plan_page(plan: LabelPlan) -> str:
    """A plan as one self-contained HTML file."""
    sections = [
        Section("Width by number of labels", (Figure(_plan_chart(plan), _PLAN["chart"], "plan"),)),
        Section("Labels", (_plan_grid(plan),)),
        Section("What the forecast rests on", (plan.basis, _PLAN["curve"])),
    ]
    return page("How many labels are needed", sections, lead=plan.headline)


def _hardest(plan: LabelPlan) -> list[int]:
    """Labels with a forecast, the widest first."""
    width = plan.width(SIZES[-1])
    order = np.argsort(-np.nan_to_num(width, nan=-1.0), kind="stable").tolist()
    return [j for j in order if not np.isnan(width[j])][:_MOST_LINES]


def _plan_chart(plan: LabelPlan) -> str:
    """Widths against the number of labelled items, on a logarithmic axis."""
    shown = _hardest(plan)
    sizes = np.geomspace(SIZES[0], SIZES[-1], 40)
    widths = 100 * np.array([plan.width(n) for n in sizes])
    highest = float(np.max(widths[:, shown])) if shown else 100 * plan.target
    frame = svg.Frame(
        "Expected width of intervals",
        (float(np.log10(sizes[0])), float(np.log10(sizes[-1]))),
        (0.0, max(highest, 100 * plan.target) * 1.05),
        names=[svg.shortened(plan.labels[j], 20) for j in shown],
    )
    x = [frame.x(float(np.log10(n))) for n in sizes]
    curves = [
        svg.path(zip(x, map(frame.y, widths[:, j].tolist()), strict=True), **svg.line_style(k))
        for k, j in enumerate(shown)
    ]
    dots = [
        svg.element(
            "circle", cx=frame.x(float(np.log10(n))), cy=frame.y(value), r=2, fill=series(k)
        )
        for n, measured in plan.measured
        for k, j in enumerate(shown)
        if n >= SIZES[0] and (value := float(100 * measured[j])) <= frame.y.high
    ]
    y = frame.y(100 * plan.target)
    target = svg.line(frame.left, y, frame.right, y, stroke=colour("muted"), stroke_dasharray="5 4")
    ticks = {float(np.log10(n)): f"{n:,}" for n in SIZES if n != 300}
    names = {"x_name": "labelled items", "y_name": "width, points"}
    return frame.draw(target, *curves, *dots, **names, x_ticks=ticks)


def _plan_grid(plan: LabelPlan) -> Grid:
    rows = [
        (
            row["label"],
            MISSING if row["positives"] is None else count(row["positives"]),
            MISSING if row["needed"] is None else count(row["needed"]),
            _points(row["least_width"]),
            *(_points(row[f"width_{n}"]) for n in SIZES),
        )
        for row in plan.to_rows()
    ]
    needed = f"needed for {100 * plan.target:g} points"
    heads = ("positives", needed, "least width", *(f"{n:,} labels" for n in SIZES))
    caption = f"Width of {100 * plan.level:g} % intervals, in points, by number of labelled items"
    return Grid.from_rows(caption, "label", heads, rows, [_PLAN["grid"]])


def _points(width: float | None) -> str:
    return MISSING if width is None else f"{100 * width:.1f}"
