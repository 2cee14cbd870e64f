"""Charts of batches: intervals beside training prevalences, trends, and a map of all changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from prevalens.model.result import BatchReport
from prevalens.reports.svg import Scale, document, element, label, nice_ticks, path, polygon
from prevalens.reports.theme import colour, series

__all__ = [
    "BAR_WIDTH",
    "change_map",
    "interval_bar",
    "is_skewed",
    "movers_chart",
    "points_text",
    "share_text",
    "small_trend",
    "top_of",
]

BAR_WIDTH, _BAR_HEIGHT = 150.0, 20.0
_MARGIN = 6.0
# Narrow enough to be legible on a phone without scrolling.
_WIDTH = 440.0
_NAMES = 130.0
_LETTER = 7.0


def share_text(share: float) -> str:
    """A prevalence in percent, with three digits that count where it is small.

    Examples
    --------
    >>> share_text(0.1234), share_text(0.00456), share_text(0), share_text(1)
    ('12.3 %', '0.46 %', '0 %', '100 %')
    """
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    return f"{100 * share:.{1 if share >= 0.00995 else 2}f} %"


def points_text(change: float) -> str:
    """A change of prevalence in percentage points, with its sign.

    Examples
    --------
    >>> points_text(0.034), points_text(-0.0004), points_text(0)
    ('+3.4', '-0.04', '0.0')
    """
    if abs(change) < 5e-5:
        return "0.0"
    return f"{100 * change:+.{1 if abs(change) >= 0.00095 else 2}f}"


def top_of(report: BatchReport) -> float:
    """A round value above all prevalences and intervals of a report."""
    parts = [report.point, report.training, report.upper, report.true, report.counted]
    high = max(float(np.max(part)) for part in parts if part is not None)
    # Ticks are multiples of 1, 2 or 5, so the one above the highest value is round.
    step = nice_ticks(0.0, max(high, 0.01))[1]
    return min(1.0, math.ceil(high / step - 1e-9) * step) or step


def is_skewed(report: BatchReport) -> bool:
    """Whether half of the labels are so rare that a straight scale would hide them."""
    return float(np.median(np.maximum(report.point.max(axis=0), report.training))) < 0.1 * top_of(
        report
    )


@dataclass(frozen=True)
class RootScale(Scale):
    """A scale of square roots, on which rare labels can be seen beside frequent ones."""

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        share = math.sqrt(min(max(value / self.high, 0.0), 1.0))
        return self.start + share * (self.end - self.start)


def interval_bar(
    report: BatchReport, batch: int, number: int, top: float, *, root: bool = False
) -> str:
    """An estimate with its interval, and a mark where training was; for a cell of a table."""
    x = (RootScale if root else Scale)(0.0, top, _MARGIN, BAR_WIDTH - _MARGIN)
    middle = _BAR_HEIGHT / 2
    point, training = report.point[batch, number], report.training[number]
    ground = element("line", x1=x(0), x2=x(top), y1=middle, y2=middle, stroke=colour("line"))
    parts = [ground, _interval(report, batch, number, x, middle)]
    parts += [
        element("circle", cx=x(point), cy=middle, r=4, fill=series(0), class_="point"),
        _tick(x(training), middle),
    ]
    words = f"{report.labels[number]}: {_words(report, batch, number)}"
    return (
        f'<svg class="bar" viewBox="0 0 {BAR_WIDTH:g} {_BAR_HEIGHT:g}" width="{BAR_WIDTH:g}" '
        f'height="{_BAR_HEIGHT:g}" aria-hidden="true"><title>{escape(words)}</title>'
        f"{''.join(parts)}</svg>"
    )


def _interval(report: BatchReport, batch: int, number: int, x: Scale, y: float) -> str:
    if report.lower is None or report.upper is None:
        return ""
    low, high = report.lower[batch, number], report.upper[batch, number]
    return element(
        "rect",
        x=x(low),
        y=y - 3,
        width=max(x(high) - x(low), 1.0),
        height=6,
        rx=3,
        fill=series(0),
        fill_opacity="0.35",
        class_="interval",
    )


def _tick(x: float, middle: float) -> str:
    return element(
        "line",
        x1=x,
        x2=x,
        y1=middle - 8,
        y2=middle + 8,
        stroke=colour("text"),
        stroke_width=2,
        class_="training",
    )


def _words(report: BatchReport, batch: int, number: int) -> str:
    point, training = report.point[batch, number], report.training[number]
    words = f"{share_text(point)}"
    if report.lower is not None and report.upper is not None:
        low, high = report.lower[batch, number], report.upper[batch, number]
        words += f" ({share_text(low)} to {share_text(high)})"
    return f"{words}, training {share_text(training)}"


def movers_chart(report: BatchReport, batch: int, labels: Sequence[int], title: str) -> str:
    """Arrows from training to the estimate, with intervals; a row per label."""
    top = max(
        float(np.max(part[..., list(labels)]))
        for part in (report.point[batch], report.training, *_uppers(report, batch))
    )
    height = 34.0 + 24 * len(labels) + 30
    x = Scale(0.0, max(top * 1.04, 0.01), _NAMES + 10, _WIDTH - 14)
    rows = [
        _mover(report, batch, number, x, 34.0 + 24 * row + 12) for row, number in enumerate(labels)
    ]
    ticks = nice_ticks(0.0, x.high, 4)
    bottom = height - 30
    grid = "".join(element("line", x1=x(at), x2=x(at), y1=28, y2=bottom) for at in ticks)
    texts = "".join(label(_percent(at), x(at), bottom + 16) for at in ticks)
    body = [
        label(title, 0, 16, font_size=14, font_weight=600),
        element("g", grid, stroke=colour("line")),
        element("g", texts, text_anchor="middle"),
        *rows,
    ]
    return document(_WIDTH, height, title, "".join(body))


def _uppers(report: BatchReport, batch: int) -> list[np.ndarray]:
    return [] if report.upper is None else [report.upper[batch]]


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"


def _mover(report: BatchReport, batch: int, number: int, x: Scale, y: float) -> str:
    start, end = x(report.training[number]), x(report.point[batch, number])
    rises = end >= start
    hue = colour("plus" if rises else "minus")
    name = _short_name(report.labels[number])
    words = f"{report.labels[number]}: {_words(report, batch, number)}"
    drawn = [
        element("title", escape(words)),
        label(name, _NAMES, y + 4, text_anchor="end", fill=colour("text")),
        _interval(report, batch, number, x, y),
        element("line", x1=start, x2=end, y1=y, y2=y, stroke=hue, stroke_width=2),
        element("circle", cx=start, cy=y, r=4, fill=colour("ground"), stroke=hue, stroke_width=2),
        element("circle", cx=end, cy=y, r=5, fill=hue),
    ]
    return element("g", "".join(drawn))


def _short_name(name: str, room: float = _NAMES) -> str:
    most = int(room / _LETTER)
    return name if len(name) <= most else name[: most - 1] + "…"


_SMALL = (300.0, 150.0)
_SMALL_LEFT, _SMALL_RIGHT, _SMALL_TOP, _SMALL_BOTTOM = 42.0, 12.0, 28.0, 24.0


def small_trend(report: BatchReport, number: int) -> str:
    """The estimates of one label over the batches, with intervals and the training prevalence."""
    width, height = _SMALL
    high = max(float(part.max()) for part in _columns_of(report, number)) * 1.06 or 0.01
    x = Scale(0.0, max(len(report.batches) - 1.0, 1.0), _SMALL_LEFT, width - _SMALL_RIGHT)
    y = Scale(0.0, min(high, 1.0), height - _SMALL_BOTTOM, _SMALL_TOP)
    name = report.labels[number]
    title = f"{name}: estimates over {len(report.batches)} batches"
    body = [
        label(_short_name(name, width), 4, 16, font_size=13, font_weight=600),
        _axes(report, x, y),
        _training_line(x, y(report.training[number])),
        _band(report, number, x, y),
        _line(report.point[:, number], x, y, stroke=series(0), stroke_width=2),
        _truth(report, number, x, y),
        *(_dot(report, batch, number, x, y) for batch in range(len(report.batches))),
    ]
    return document(width, height, title, "".join(body))


def _columns_of(report: BatchReport, number: int) -> list[np.ndarray]:
    parts = [report.point, report.upper, report.true]
    found = [part[:, number] for part in parts if part is not None]
    return [*found, report.training[number : number + 1]]


def _axes(report: BatchReport, x: Scale, y: Scale) -> str:
    ticks = nice_ticks(0.0, y.high, 3)
    lines = "".join(element("line", x1=x.start, x2=x.end, y1=y(at), y2=y(at)) for at in ticks)
    texts = "".join(label(_percent(at), x.start - 5, y(at) + 4) for at in ticks)
    last = len(report.batches) - 1
    names = label(_short_name(report.batches[0], 130), x.start, y.start + 16)
    if last:
        end = _short_name(report.batches[last], 130)
        names += label(end, x.end, y.start + 16, text_anchor="end")
    return (
        element("g", lines, stroke=colour("line"))
        + element("g", texts, text_anchor="end", font_size=11)
        + element("g", names, font_size=11)
    )


def _training_line(x: Scale, y: float) -> str:
    return element(
        "line",
        x1=x.start,
        x2=x.end,
        y1=y,
        y2=y,
        stroke=colour("muted"),
        stroke_width=1.5,
        stroke_dasharray="5 4",
    )


def _band(report: BatchReport, number: int, x: Scale, y: Scale) -> str:
    if report.lower is None or report.upper is None:
        return ""
    low = [(x(i), y(value)) for i, value in enumerate(report.lower[:, number])]
    high = [(x(i), y(value)) for i, value in enumerate(report.upper[:, number])]
    return polygon([*low, *reversed(high)], fill=series(0), fill_opacity="0.18")


def _line(values: np.ndarray, x: Scale, y: Scale, **style: object) -> str:
    return path([(x(i), y(value)) for i, value in enumerate(values.tolist())], **style)


def _truth(report: BatchReport, number: int, x: Scale, y: Scale) -> str:
    if report.true is None:
        return ""
    style = {"stroke": series(2), "stroke_width": 2, "stroke_dasharray": "2 3"}
    return _line(report.true[:, number], x, y, **style)


def _dot(report: BatchReport, batch: int, number: int, x: Scale, y: Scale) -> str:
    words = f"{report.batches[batch]}: {_words(report, batch, number)}"
    return element(
        "circle",
        element("title", escape(words)),
        cx=x(batch),
        cy=y(report.point[batch, number]),
        r=3,
        fill=series(0),
    )


def change_map(report: BatchReport, labels: Sequence[int]) -> str:
    """All changes since training as one map: a row per label, a column per batch."""
    n_batches = len(report.batches)
    cell = min(44.0, (_WIDTH * 1.6 - _NAMES) / n_batches)
    width, top = _NAMES + 8 + cell * n_batches, 26.0
    height = top + 20 * len(labels) + 22
    reach = float(np.abs(report.change[:, list(labels)]).max()) or 1.0
    cells = [
        _change_cell(
            report, batch, number, (_NAMES + 8 + cell * batch, top + 20 * row), cell, reach
        )
        for row, number in enumerate(labels)
        for batch in range(n_batches)
    ]
    names = "".join(
        label(_short_name(report.labels[number]), _NAMES, top + 20 * row + 14)
        for row, number in enumerate(labels)
    )
    title = "Change since training, all batches"
    ends = _map_ends(report, _NAMES + 8, width, height - 6)
    body = [
        label(title, 0, 16, font_size=14, font_weight=600),
        element("g", names, text_anchor="end"),
        *cells,
        ends,
    ]
    return document(max(width, _WIDTH * 0.7), height, title, "".join(body))


def _map_ends(report: BatchReport, left: float, right: float, y: float) -> str:
    names = label(_short_name(report.batches[0], 120), left, y)
    if len(report.batches) > 2:
        names += label(_short_name(report.batches[-1], 120), right, y, text_anchor="end")
    return element("g", names, font_size=11)


def _change_cell(
    report: BatchReport,
    batch: int,
    number: int,
    corner: tuple[float, float],
    cell: float,
    reach: float,
) -> str:
    change = float(report.change[batch, number])
    words = (
        f"{report.labels[number]}, {report.batches[batch]}: {_words(report, batch, number)}, "
        f"change {points_text(change)} points"
    )
    drawn = [
        element("title", escape(words)),
        element(
            "rect",
            x=corner[0] + 0.5,
            y=corner[1] + 0.5,
            width=cell - 1,
            height=19,
            fill=colour("plus" if change > 0 else "minus"),
            # The square root lets small changes be seen beside large ones.
            fill_opacity=f"{0.85 * math.sqrt(abs(change) / reach):.2f}",
        ),
    ]
    if cell >= 30:
        text = f"{100 * change:+.0f}".replace("+0", "0").replace("-0", "0")
        drawn.append(
            label(text, corner[0] + cell / 2, corner[1] + 14, text_anchor="middle", font_size=11)
        )
    return element("g", "".join(drawn))
