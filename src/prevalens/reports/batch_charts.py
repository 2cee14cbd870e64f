"""Charts of batches: estimates with intervals, trends over batches, and a map of all changes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from markupsafe import Markup

from prevalens.model.result import BatchResult
from prevalens.reports import svg
from prevalens.reports.theme import colour, series

BAR_WIDTH, _BAR_HEIGHT = 120.0, 20.0
_MARGIN = 6.0
# Narrow enough to be legible on a phone without scrolling.
_WIDTH = 440.0
# Width reserved for the names of labels, in pixels and in letters.
_NAMES, _LETTERS = 176.0, 26
#: Colours of moves that are supported upwards or downwards, and of those that are not.
_DIRECTIONS = {1: "plus", -1: "minus", 0: "muted"}
_DASHED = {"stroke": colour("muted"), "stroke_width": 1.5, "stroke_dasharray": "5 4"}


def share_text(share: float) -> str:
    """A prevalence in percent, with a second decimal if it is below one percent.

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


def range_text(low: float, high: float, between: str = "and") -> str:
    """Both ends of an interval with one sign of percent.

    Examples
    --------
    >>> range_text(0.0184, 0.4)
    '1.8 and 40.0 %'
    """
    return f"{share_text(low).removesuffix(' %')} {between} {share_text(high)}"


def points_range(low: float, high: float) -> str:
    """Both ends of an interval of a change, in percentage points; empty without an interval.

    Examples
    --------
    >>> points_range(0.012, 0.39), points_range(float("nan"), float("nan"))
    ('+1.2 to +39.0', '')
    """
    return "" if math.isnan(low) else f"{points_text(low)} to {points_text(high)}"


def interval_text(report: BatchResult, batch: int, label: int) -> str:
    """The interval of a label's estimate as text; empty without intervals."""
    if report.lower is None or report.upper is None:
        return ""
    ends = report.lower[batch, label], report.upper[batch, label]
    return " to ".join(map(share_text, ends))


def _estimate_text(report: BatchResult, batch: int, label: int) -> str:
    interval = interval_text(report, batch, label)
    return (
        f"{share_text(report.point[batch, label])}{interval and f' ({interval})'}, "
        f"training {share_text(report.training[label])}"
    )


def top_of(report: BatchResult) -> float:
    """A round value above all prevalences and intervals of a report."""
    parts = [report.point, report.training, report.upper, report.true, report.counted]
    high = max(float(np.max(part)) for part in parts if part is not None)
    # Ticks are multiples of 1, 2 or 5, so the one above the highest value is round.
    step = svg.nice_ticks(0.0, max(high, 0.01))[1]
    return min(1.0, math.ceil(high / step - 1e-9) * step) or step


def is_skewed(report: BatchResult) -> bool:
    """Whether half of the labels are so rare that a straight scale would hide them."""
    highest = np.maximum(report.point.max(axis=0), report.training)
    return float(np.median(highest)) < 0.1 * top_of(report)


def interval_bar(
    report: BatchResult, batch: int, label: int, top: float, *, root: bool = False
) -> Markup:
    """An estimate with its interval, and a mark at the training prevalence; for a table's cell."""
    x = svg.Scale(0.0, top, _MARGIN, BAR_WIDTH - _MARGIN, root)
    y = _BAR_HEIGHT / 2
    point, training = x(report.point[batch, label]), x(report.training[label])
    mark = {"stroke": colour("text"), "stroke_width": 2, "class_": "training"}
    return svg.element(
        "svg",
        svg.element("title", f"{report.labels[label]}: {_estimate_text(report, batch, label)}"),
        svg.line(x.start, y, x.end, y, stroke=colour("line")),
        *_interval(report, batch, label, x, y),
        svg.element("circle", cx=point, cy=y, r=4, fill=series(0), class_="point"),
        svg.line(training, y - 8, training, y + 8, **mark),
        class_="bar",
        viewBox=f"0 0 {BAR_WIDTH:g} {_BAR_HEIGHT:g}",
        width=BAR_WIDTH,
        height=_BAR_HEIGHT,
        aria_hidden="true",
    )


def _interval(report: BatchResult, batch: int, label: int, x: svg.Scale, y: float) -> Iterator[str]:
    if report.lower is not None and report.upper is not None:
        low, high = x(report.lower[batch, label]), x(report.upper[batch, label])
        size = {"width": max(high - low, 1.0), "height": 6, "rx": 3}
        # The outline has the contrast that the light filling lacks.
        style = {"fill": series(0), "fill_opacity": "0.3", "stroke": series(0)}
        yield svg.element("rect", x=low, y=y - 3, **size, **style, class_="interval")


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"


def movers_chart(report: BatchResult, batch: int, labels: Sequence[int], title: str) -> str:
    """Arrows from training to the estimate, with intervals; a row per label."""
    parts = [report.point[batch], report.training]
    parts += [] if report.upper is None else [report.upper[batch]]
    top = max(float(part[list(labels)].max()) for part in parts)
    x = svg.Scale(0.0, max(top * 1.04, 0.01), _NAMES + 10, _WIDTH - 14)
    rows = (
        _mover(report, batch, label, x, 34.0 + 24 * row + 12) for row, label in enumerate(labels)
    )
    return svg.row_chart(title, x, rows, _percent, _WIDTH)


def _mover(report: BatchResult, batch: int, label: int, x: svg.Scale, y: float) -> str:
    start, end = x(report.training[label]), x(report.point[batch, label])
    hue = colour(_DIRECTIONS[int(report.moved[batch, label])])
    name = report.labels[label]
    outline = {"fill": colour("ground"), "stroke": hue, "stroke_width": 2}
    return svg.element(
        "g",
        svg.element("title", f"{name}: {_estimate_text(report, batch, label)}"),
        svg.label(
            svg.shortened(name, _LETTERS), _NAMES, y + 4, text_anchor="end", fill=colour("text")
        ),
        *_interval(report, batch, label, x, y),
        svg.line(start, y, end, y, stroke=hue, stroke_width=2),
        svg.element("circle", cx=start, cy=y, r=4, **outline),
        svg.element("circle", cx=end, cy=y, r=5, fill=hue),
    )


def small_trend(report: BatchResult, label: int) -> str:
    """The estimates of one label over the batches, with intervals and the training prevalence."""
    width, height = 300.0, 150.0
    x = svg.Scale(0.0, max(len(report.batches) - 1.0, 1.0), 42.0, width - 12)
    y = svg.Scale(0.0, _highest(report, label), height - 24, 28.0)
    ticks = {value: _percent(value) for value in svg.nice_ticks(0.0, y.high, 3)}
    training = y(report.training[label])
    return svg.document(
        width,
        height,
        f"{report.labels[label]}: estimates over {len(report.batches)} batches",
        svg.heading(svg.shortened(report.labels[label], 42), 4, size=13),
        svg.tick_lines(x, y, ticks, 5, font_size=11),
        _ends(report, x.start, x.end, y.start + 16),
        svg.line(x.start, training, x.end, training, **_DASHED),
        *_trend_lines(report, label, x, y),
        *(
            _dot(report, batch, label, (x(batch), y(report.point[batch, label])))
            for batch in range(len(report.batches))
        ),
    )


def _highest(report: BatchResult, label: int) -> float:
    """The top of the scale of one label's chart."""
    parts = [report.point, report.upper, report.true]
    columns = [part[:, label] for part in parts if part is not None]
    high = max(float(np.max(column)) for column in (*columns, report.training[label])) * 1.06
    return min(high or 0.01, 1.0)


def small_bars(report: BatchResult, label: int, most: int) -> str:
    """The estimates of one label in the first groups, a row per group, with intervals."""
    n_rows = min(most, len(report.batches))
    width, top = 300.0, 30.0
    bottom = top + 16 * n_rows
    x = svg.Scale(0.0, _highest(report, label), 104.0, width - 12)
    ticks = svg.nice_ticks(0.0, x.high, 3)
    training = x(report.training[label])
    names = (
        svg.label(svg.shortened(name, 15), 98, top + 16 * row + 12)
        for row, name in enumerate(report.batches[:n_rows])
    )
    rows = (
        svg.element(
            "g",
            *_interval(report, row, label, x, top + 16 * row + 8),
            _dot(report, row, label, (x(report.point[row, label]), top + 16 * row + 8)),
            class_="alarming" if report.alarms[row] else None,
        )
        for row in range(n_rows)
    )
    grid = (svg.line(at, top, at, bottom) for at in x.all(ticks))
    texts = (svg.label(_percent(at), x(at), bottom + 14) for at in ticks)
    return svg.document(
        width,
        bottom + 20,
        f"{report.labels[label]}: estimates in {n_rows} groups",
        svg.heading(svg.shortened(report.labels[label], 42), 4, size=13),
        svg.element("g", *grid, stroke=colour("line")),
        svg.element("g", *texts, text_anchor="middle", font_size=11),
        svg.element("g", *names, text_anchor="end", font_size=11),
        svg.line(training, top, training, bottom, **_DASHED),
        *rows,
    )


def _ends(report: BatchResult, left: float, right: float, y: float) -> Markup:
    """The names of the first and, where there is room, the last batch below a chart."""
    first, last = (svg.shortened(report.batches[end], 18) for end in (0, -1))
    names = [svg.label(first, left, y)]
    if len(report.batches) > 1 and right - left > 100:
        names.append(svg.label(last, right, y, text_anchor="end"))
    return svg.element("g", *names, font_size=11)


def _trend_lines(report: BatchResult, label: int, x: svg.Scale, y: svg.Scale) -> Iterator[str]:
    places = x.all(range(len(report.batches)))
    if report.lower is not None and report.upper is not None:
        low, high = (y.all(side[:, label]) for side in (report.lower, report.upper))
        yield svg.band(places, low, high, fill=series(0), fill_opacity="0.18")
        for side in (low, high):
            yield svg.path(zip(places, side, strict=True), stroke=series(0), stroke_width=0.75)
    point = zip(places, y.all(report.point[:, label]), strict=True)
    yield svg.path(point, stroke=series(0), stroke_width=2)
    if report.true is not None:
        true = zip(places, y.all(report.true[:, label]), strict=True)
        yield svg.path(true, stroke=series(2), stroke_width=2, stroke_dasharray="2 3")


def _dot(report: BatchResult, batch: int, label: int, place: tuple[float, float]) -> str:
    """An estimate; hollow and grey in a batch that raises the alarm."""
    alarm = report.alarms[batch]
    caption = f"{report.batches[batch]}: {_estimate_text(report, batch, label)}"
    caption += ", alarm: do not rely on it" if alarm else ""
    style = {"fill": series(0)}
    if alarm:
        style = {"fill": colour("ground"), "stroke": colour("muted"), "stroke_width": "1.5"}
    at = {"cx": place[0], "cy": place[1], "r": 3}
    return svg.element("circle", svg.element("title", caption), **at, **style)


#: Height of a row of the map, of one with many rows, and where a row counts as one of many.
_ROW, _LOW_ROW, _MANY = 20.0, 15.0, 45
#: Height of a letter that is turned, and of the longest turned name.
_TURNED, _LONGEST = 6.2, 16


def change_map(report: BatchResult, labels: Sequence[int], n_batches: int) -> str:
    """All changes since training as one map: a row per label, a column per batch.

    The columns have the names of the batches; those of batches that raise the alarm are grey.
    """
    width = min(44.0, max((_WIDTH * 2.4 - _NAMES) / n_batches, 15.0))
    height = _ROW if len(labels) <= _MANY else _LOW_ROW
    names = [svg.shortened(name, _LONGEST) for name in report.batches[:n_batches]]
    left, top = _NAMES + 8, 34.0 + _TURNED * max(map(len, names))
    right, bottom = left + width * n_batches, top + height * len(labels)
    reach = float(np.abs(report.change[:n_batches, list(labels)]).max()) or 1.0
    cells = (
        _change_cell(
            report,
            (batch, label),
            reach,
            (left + width * batch, top + height * row, width, height),
        )
        for row, label in enumerate(labels)
        for batch in range(n_batches)
    )
    rows = (
        svg.label(svg.shortened(report.labels[label], _LETTERS), _NAMES, top + height * row + 13)
        for row, label in enumerate(labels)
    )
    columns = (_column_name(name, left + width * (k + 0.5), top) for k, name in enumerate(names))
    title = f"{'Change since' if report.ordered else 'Difference from'} training, all batches"
    return svg.document(
        max(right + 4, _WIDTH * 0.7),
        bottom + 4,
        title,
        svg.heading(title),
        svg.element("g", *columns, font_size=11),
        svg.element("g", *rows, text_anchor="end", font_size=12 if height > _LOW_ROW else 11),
        *cells,
    )


def _column_name(name: str, x: float, y: float) -> str:
    """The name of a column, turned to read upwards."""
    return svg.label(name, x + 4, y - 5, transform=f"rotate(-90 {x + 4:.1f} {y - 5:.1f})")


def _change_cell(
    report: BatchResult,
    cell: tuple[int, int],
    reach: float,
    place: tuple[float, float, float, float],
) -> str:
    (batch, label), (x, y, width, height) = cell, place
    change, moved = float(report.change[cell]), int(report.moved[cell])
    alarm = bool(report.alarms[batch])
    size = {"width": width - 1, "height": height - 1}
    grey = {"fill": colour("muted"), "fill_opacity": "0.25"}
    fill = grey if alarm else svg.heat(change / reach, 0.6)
    drawn = [svg.element("rect", x=x + 0.5, y=y + 0.5, **size, **fill)]
    sign = {1: "▲", -1: "▼", 0: ""}[moved]
    text = f"{100 * change:+.0f}".replace("+0", "0").replace("-0", "0") if width >= 36 else ""
    shown = f"{sign}{text}"
    if shown and not alarm:
        size_ = 9 if not text else 11
        style = {"text_anchor": "middle", "font_size": size_}
        drawn.append(svg.label(shown, x + width / 2, y + height / 2 + 4, **style))
    caption = (
        f"{report.labels[label]}, {report.batches[batch]}: {_estimate_text(report, batch, label)}, "
        f"change {points_text(change)} points{', alarm: do not rely on it' if alarm else ''}"
    )
    return svg.element("g", svg.element("title", caption), *drawn)
