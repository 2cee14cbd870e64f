"""The chart kit: SVG elements, scales, ticks, frames, bands and binned values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from markupsafe import Markup, escape

from prevalens.reports.theme import N_SERIES, colour, series
from prevalens.types import Floats
from prevalens.validation import InputError

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


def short(value: float) -> str:
    """A coordinate with at most one digit after the point.

    Examples
    --------
    >>> short(3.14159), short(2.0), short(-0.01)
    ('3.1', '2', '0')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def shortened(text: str, most: int) -> str:
    """A text of at most `most` letters, with an ellipsis where it was cut.

    Examples
    --------
    >>> shortened("prevalence", 5)
    'prev…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def element(name: str, /, *content: str, **attributes: object) -> Markup:
    """An element; underscores in names of attributes become dashes, None leaves one out.

    Content that is not markup already is escaped, and so are attributes.

    Examples
    --------
    >>> element("line", x1=0.0, x2=1.25, stroke_width=2)
    Markup('<line x1="0" x2="1.2" stroke-width="2"/>')
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="'
        f'{short(value) if isinstance(value, float) else escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(map(escape, content))
    return Markup(f"<{name}{given}>{inner}</{name}>" if inner else f"<{name}{given}/>")


def label(text: str, x: float, y: float, **attributes: object) -> Markup:
    """A text at a place."""
    return element("text", text, x=x, y=y, **attributes)


def heading(text: str, x: float = 0.0, y: float = 16.0, size: int = 14) -> Markup:
    """The title of a chart."""
    return label(text, x, y, font_size=size, font_weight=600)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: object) -> Markup:
    """A straight line."""
    return element("line", x1=x1, x2=x2, y1=y1, y2=y2, **attributes)


def _points(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{short(x)},{short(y)}" for x, y in points)


def path(points: Iterable[tuple[float, float]], **attributes: object) -> Markup:
    """A line through points."""
    return element("polyline", points=_points(points), fill="none", **attributes)


def polygon(points: Iterable[tuple[float, float]], **attributes: object) -> Markup:
    """A filled area around points."""
    return element("polygon", points=_points(points), **attributes)


def band(
    x: Sequence[float], low: Iterable[float], high: Iterable[float], **attributes: object
) -> Markup:
    """The area between two lines over the same places."""
    back = reversed([*zip(x, high, strict=True)])
    return polygon([*zip(x, low, strict=True), *back], **attributes)


def heat(value: float, most: float = 1.0) -> dict[str, object]:
    """Fill of a cell of a map, for a value from -1 to 1: orange above 0, blue below."""
    return {
        "fill": colour("plus" if value > 0 else "minus"),
        # The square root lets small values be seen beside large ones.
        "fill_opacity": f"{most * math.sqrt(abs(value)):.2f}",
    }


def document(width: float, height: float, title: str, *body: str) -> str:
    """A complete chart, which scales with its container and has a name for screen readers."""
    svg = element(
        "svg",
        element("title", title),
        *body,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {short(width)} {short(height)}",
        width=float(width),
        height=float(height),
        role="img",
        aria_label=title,
        fill="currentColor",
        font_family=_FONT,
        font_size=12,
    )
    return str(svg)


_WIDTH, _HEIGHT = 480.0, 320.0
_LEFT, _RIGHT, _BOTTOM = 60.0, 14.0, 48.0
_TITLE_HEIGHT, _LEGEND_HEIGHT = 30.0, 18.0
# Widths of letters at size 12, in a wide font: capitals and the others.
_CAPITAL, _LETTER = 9.0, 7.3
_DASHES = (None, "6 3", "2 3", "8 3 2 3")


@dataclass(frozen=True)
class Scale:
    """A map from values to pixels; values outside the range are clipped.

    Attributes
    ----------
    low, high : float
        Values.
    start, end : float
        Their pixels.
    root : bool
        Take square roots, so that small values are visible next to large ones.
    """

    low: float
    high: float
    start: float
    end: float
    root: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        share = min(max(share, 0.0), 1.0)
        return self.start + (math.sqrt(share) if self.root else share) * (self.end - self.start)

    def all(self, values: Iterable[float]) -> list[float]:
        """The pixels of several values."""
        return [self(value) for value in values]


def nice_ticks(low: float, high: float, n: int = 5) -> list[float]:
    """About `n` round values between `low` and `high`: multiples of 1, 2 or 5.

    Examples
    --------
    >>> nice_ticks(0, 0.23)
    [0.0, 0.05, 0.1, 0.15, 0.2]
    """
    if not high > low:
        return [low]
    rough = (high - low) / n
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step)))
    return [round(number * step, digits) + 0.0 for number in range(first, last + 1)]


def tick_text(value: float) -> str:
    """A value beside an axis: two or three digits, no zero before the point.

    Examples
    --------
    >>> tick_text(0.05), tick_text(0), tick_text(-0.5), tick_text(1500)
    ('.05', '0', '-.5', '1,500')
    """
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def line_style(number: int) -> dict[str, object]:
    """How the line of a series is drawn: series of one colour differ in their dashes."""
    return {
        "stroke": series(number),
        "stroke_width": 2,
        "stroke_dasharray": _DASHES[(number + number // N_SERIES) % len(_DASHES)],
        "stroke_linejoin": "round",
    }


def tick_lines(
    x: Scale, y: Scale, ticks: Mapping[float, str], gap: float = 7, **style: object
) -> str:
    """Lines across a chart at the ticks of its vertical axis, with their texts at the left."""
    lines = (line(x.start, at, x.end, at) for at in y.all(ticks))
    texts = (label(text, x.start - gap, y(value) + 4) for value, text in ticks.items())
    return element("g", *lines, stroke=colour("line")) + element(
        "g", *texts, text_anchor="end", **style
    )


def row_chart(
    title: str, x: Scale, rows: Iterable[str], tick: Callable[[float], str], width: float
) -> str:
    """A chart with a row of 24 pixels per name, the first at 34, over a common horizontal scale."""
    drawn = list(rows)
    bottom = 34.0 + 24 * len(drawn)
    ticks = nice_ticks(0.0, x.high, 4)
    lines = (line(at, 28.0, at, bottom) for at in x.all(ticks))
    texts = (label(tick(at), x(at), bottom + 16) for at in ticks)
    return document(
        width,
        bottom + 30,
        title,
        heading(title),
        element("g", *lines, stroke=colour("line")),
        element("g", *texts, text_anchor="middle"),
        *drawn,
    )


class Frame:
    """The plane of a chart.

    Parameters
    ----------
    title : str
    x, y : tuple of float
        Lowest and highest value of each axis.
    names : sequence of str
        Names of the series, for the legend; none for no legend.
    """

    def __init__(
        self,
        title: str,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        names: Sequence[str] = (),
    ) -> None:
        self.title = title
        self._legend = _legend(names)
        lines = 1 + max((row for _, row, _ in self._legend), default=-1)
        self.top = _TITLE_HEIGHT + lines * _LEGEND_HEIGHT
        self.height = _HEIGHT + lines * _LEGEND_HEIGHT
        self.bottom = self.height - _BOTTOM
        self.left, self.right = _LEFT, _WIDTH - _RIGHT
        self.x = Scale(*x, self.left, self.right)
        self.y = Scale(*y, self.bottom, self.top)

    def draw(
        self, *body: str, x_name: str, y_name: str, x_ticks: Mapping[float, str] | None = None
    ) -> str:
        """The chart: grid lines below, then the body, then axes, title and legend."""
        texts = (
            label(text, self.x(value), self.bottom + 16)
            for value, text in (_ticks(self.x) if x_ticks is None else x_ticks).items()
        )
        middle = (self.top + self.bottom) / 2
        turned = {"text_anchor": "middle", "transform": f"rotate(-90 14 {middle:.0f})"}
        return document(
            _WIDTH,
            self.height,
            self.title,
            tick_lines(self.x, self.y, _ticks(self.y)),
            *body,
            line(self.left, self.bottom, self.right, self.bottom, stroke=colour("muted")),
            element("g", *texts, text_anchor="middle"),
            label(x_name, (self.left + self.right) / 2, self.height - 10, text_anchor="middle"),
            label(y_name, 14.0, middle, **turned),
            heading(self.title, self.left, 18),
            *(_legend_entry(number, *entry) for number, entry in enumerate(self._legend)),
        )


def _ticks(scale: Scale) -> dict[float, str]:
    return {value: tick_text(value) for value in nice_ticks(scale.low, scale.high)}


def _legend(names: Sequence[str]) -> list[tuple[str, int, float]]:
    """Each name with its row and place in the legend, wrapped to the width of the chart."""
    placed: list[tuple[str, int, float]] = []
    row, at = 0, _LEFT
    for name in names:
        width = 44 + sum(_CAPITAL if letter.isupper() else _LETTER for letter in name)
        if at > _LEFT and at + width > _WIDTH - _RIGHT:
            row, at = row + 1, _LEFT
        placed.append((name, row, at))
        at += width
    return placed


def _legend_entry(number: int, name: str, row: int, at: float) -> Markup:
    y = _TITLE_HEIGHT + 6 + row * _LEGEND_HEIGHT
    return line(at, y - 4, at + 20, y - 4, **line_style(number)) + label(name, at + 26, y)


@dataclass(frozen=True)
class Binned:
    """Means and quantiles of the values in each interval that is not empty.

    Attributes
    ----------
    centres, means : array of float, shape (n_bins,)
        Means of the values that intervals are made of, and of the values in them.
    quantiles : array of float, shape (n_quantiles, n_bins)
        Of the values in the intervals.
    counts : array of int, shape (n_bins,)
        How many values each interval has.
    numbers : array of int, shape (n_bins,)
        Which of all intervals these are.
    """

    centres: Floats
    means: Floats
    quantiles: Floats
    counts: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]


def flat(values: npt.ArrayLike, name: str) -> Floats:
    """Flatten values; raises an error if there are none or if one is not finite."""
    array = np.asarray(values, dtype=np.float64).ravel()
    if not array.size:
        raise InputError(f"{name} is empty; there is nothing to draw.")
    if not np.isfinite(array).all():
        raise InputError(f"{name} has values that are not finite; leave them out.")
    return array


def equal_edges(values: Floats, n_bins: int) -> Floats:
    """Edges of intervals of equal width from the smallest to the largest value."""
    low, high = float(values.min()), float(values.max())
    return np.linspace(low, high if high > low else low + 1.0, n_bins + 1)


def binned(by: Floats, values: Floats, edges: Floats, quantiles: Sequence[float] = ()) -> Binned:
    """Divide values into intervals of another value.

    Parameters
    ----------
    by, values : array of float, shape (n,)
    edges : array of float, shape (n_bins + 1,)
        Intervals are closed below; the outer ones also hold all values beyond them.
    quantiles : sequence of float

    Notes
    -----
    O(n log n).

    Examples
    --------
    >>> groups = binned(np.array([0.1, 0.2, 0.9]), np.array([1.0, 3.0, 5.0]), np.linspace(0, 1, 3))
    >>> groups.means.tolist(), groups.counts.tolist()
    ([2.0, 5.0], [2, 1])
    """
    if by.shape != values.shape:
        raise InputError(f"There are {by.size} values on one axis but {values.size} on the other.")
    bins = np.searchsorted(edges[1:-1], by, side="right")
    order = np.argsort(bins, kind="stable")
    numbers, starts, counts = np.unique(bins[order], return_index=True, return_counts=True)
    groups = np.split(values[order], starts[1:])
    return Binned(
        centres=np.add.reduceat(by[order], starts) / counts,
        means=np.array([group.mean() for group in groups]),
        quantiles=np.array([np.quantile(group, quantiles) for group in groups]).T,
        counts=counts,
        numbers=numbers,
    )


def mean_lines(frame: Frame, lines: Sequence[Binned]) -> Markup:
    """The means of each series as a line, on a band between its two quantiles if it has them."""
    bands, means = [], []
    for number, group in enumerate(lines):
        x = frame.x.all(group.centres.tolist())
        if group.quantiles.size:
            low, high = (frame.y.all(side) for side in group.quantiles.tolist())
            bands.append(band(x, low, high, fill=series(number), fill_opacity="0.12"))
        points = zip(x, frame.y.all(group.means.tolist()), strict=True)
        means.append(path(points, **line_style(number)))
    return Markup("").join(bands + means)
