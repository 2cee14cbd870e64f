"""The report on how many labelled items are needed."""

from __future__ import annotations

import numpy as np

from prevalens.model.plan import SIZES, LabelPlan
from prevalens.reports import svg
from prevalens.reports.grid import MISSING, Grid, count
from prevalens.reports.page import Figure, Section, page
from prevalens.reports.render import CAPTIONS
from prevalens.reports.theme import colour, series

_TEXTS: dict[str, str] = CAPTIONS["plan"]
#: Lines that a reader can still distinguish.
_MOST_LINES = 6


def plan_page(plan: LabelPlan) -> str:
    """A plan as one self-contained HTML file."""
    sections = [
        Section("Width by number of labels", (Figure(_chart(plan), _TEXTS["chart"], "plan"),)),
        Section("Labels", (_grid(plan),)),
        Section("What the forecast rests on", (plan.basis, _TEXTS["curve"])),
    ]
    return page("How many labels are needed", sections, lead=plan.headline)


def _hardest(plan: LabelPlan) -> list[int]:
    """Labels with a forecast, the widest first."""
    width = plan.width(SIZES[-1])
    order = np.argsort(-np.nan_to_num(width, nan=-1.0), kind="stable").tolist()
    return [j for j in order if not np.isnan(width[j])][:_MOST_LINES]


def _chart(plan: LabelPlan) -> str:
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


def _grid(plan: LabelPlan) -> Grid:
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
    return Grid.from_rows(caption, "label", heads, rows, [_TEXTS["grid"]])


def _points(width: float | None) -> str:
    return MISSING if width is None else f"{100 * width:.1f}"
