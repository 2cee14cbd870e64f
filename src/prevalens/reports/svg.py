"""SVG: elements as text, with everything escaped and numbers short."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.reports.theme import N_SERIES, colour, series
from prevalens.types import Floats
from prevalens.validation import InputError

__all__ = [
    "Binned",
    "Frame",
    "Scale",
    "Tick",
    "binned",
    "dash",
    "document",
    "element",
    "equal_edges",
    "flat",
    "label",
    "line_style",
    "mean_lines",
    "nice_ticks",
    "path",
    "polygon",
    "short",
    "tick_text",
]

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


def _attribute(name: str, value: object) -> str:
    text = short(value) if isinstance(value, float) else str(value)
    return f' {name.rstrip("_").replace("_", "-")}="{escape(text)}"'


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """An element; underscores in names of attributes become dashes, None leaves one out.

    `content` is markup: other elements, or text that is already escaped.

    Examples
    --------
    >>> element("line", x1=0.0, x2=1.25, stroke_width=2)
    '<line x1="0" x2="1.2" stroke-width="2"/>'
    """
    given = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None
    )
    return f"<{name}{given}>{content}</{name}>" if content else f"<{name}{given}/>"


def label(words: str, x: float, y: float, **attributes: object) -> str:
    """A text at a place."""
    return element("text", escape(words), x=x, y=y, **attributes)


def _points(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{short(x)},{short(y)}" for x, y in points)


def path(points: Sequence[tuple[float, float]], **attributes: object) -> str:
    """A line through points."""
    return element("polyline", points=_points(points), fill="none", **attributes)


def polygon(points: Sequence[tuple[float, float]], **attributes: object) -> str:
    """A filled area around points."""
    return element("polygon", points=_points(points), **attributes)


def document(width: float, height: float, title: str, body: str) -> str:
    """A whole chart: scales with the place it is put in, and has a name for screen readers."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {short(width)} {short(height)}" '
        f'width="{short(width)}" height="{short(height)}" role="img" '
        f'aria-label="{escape(title)}" fill="currentColor" font-family="{escape(_FONT)}" '
        f'font-size="12"><title>{escape(title)}</title>{body}</svg>'
    )


_WIDTH, _HEIGHT = 480.0, 320.0
_LEFT, _RIGHT, _BOTTOM = 60.0, 14.0, 48.0
_TITLE_HEIGHT, _LEGEND_HEIGHT = 30.0, 18.0
# Widths of letters at size 12, in a wide font: capitals and the others.
_CAPITAL, _LETTER = 9.0, 7.3
_DASHES = (None, "6 3", "2 3", "8 3 2 3")


@dataclass(frozen=True)
class Scale:
    """A straight map from values to pixels; values outside are moved to the nearer end."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)


@dataclass(frozen=True)
class Tick:
    """A place on an axis and what is written there."""

    at: float
    text: str


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


def dash(number: int) -> str | None:
    """Dash pattern of a series, so that lines differ in more than colour."""
    return _DASHES[(number + number // N_SERIES) % len(_DASHES)]


def line_style(number: int) -> dict[str, object]:
    """How the line of a series is drawn."""
    return {
        "stroke": series(number),
        "stroke_width": 2,
        "stroke_dasharray": dash(number),
        "stroke_linejoin": "round",
    }


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
        lines = 1 + max((line for _, line, _ in self._legend), default=-1)
        self.top = _TITLE_HEIGHT + lines * _LEGEND_HEIGHT
        self.height = _HEIGHT + lines * _LEGEND_HEIGHT
        self.bottom = self.height - _BOTTOM
        self.left, self.right = _LEFT, _WIDTH - _RIGHT
        self.x = Scale(*x, self.left, self.right)
        self.y = Scale(*y, self.bottom, self.top)

    def draw(
        self,
        body: str,
        *,
        x_name: str,
        y_name: str,
        x_ticks: Sequence[Tick] | None = None,
        y_ticks: Sequence[Tick] | None = None,
    ) -> str:
        """The chart: grid lines below, then the body, then axes, title and legend."""
        parts = [
            self._rows(_given(y_ticks, self.y)),
            body,
            self._columns(_given(x_ticks, self.x)),
            self._names(x_name, y_name),
            label(self.title, self.left, 18, font_size=14, font_weight=600),
            *(_legend_entry(number, name, at, line) for number, (name, line, at) in self._items()),
        ]
        return document(_WIDTH, self.height, self.title, "".join(parts))

    def _items(self) -> list[tuple[int, tuple[str, int, float]]]:
        return list(enumerate(self._legend))

    def _rows(self, ticks: Sequence[Tick]) -> str:
        lines = "".join(
            element("line", x1=self.left, x2=self.right, y1=y, y2=y)
            for y in (self.y(tick.at) for tick in ticks)
        )
        texts = "".join(label(tick.text, self.left - 7, self.y(tick.at) + 4) for tick in ticks)
        return element("g", lines, stroke=colour("line")) + element("g", texts, text_anchor="end")

    def _columns(self, ticks: Sequence[Tick]) -> str:
        axis = element(
            "line",
            x1=self.left,
            x2=self.right,
            y1=self.bottom,
            y2=self.bottom,
            stroke=colour("muted"),
        )
        texts = "".join(label(tick.text, self.x(tick.at), self.bottom + 16) for tick in ticks)
        return axis + element("g", texts, text_anchor="middle")

    def _names(self, x_name: str, y_name: str) -> str:
        middle = (self.top + self.bottom) / 2
        return label(
            x_name, (self.left + self.right) / 2, self.height - 10, text_anchor="middle"
        ) + label(
            y_name,
            14.0,
            middle,
            text_anchor="middle",
            transform=f"rotate(-90 14 {middle:.0f})",
        )


def _given(ticks: Sequence[Tick] | None, scale: Scale) -> Sequence[Tick]:
    if ticks is not None:
        return ticks
    return [Tick(value, tick_text(value)) for value in nice_ticks(scale.low, scale.high)]


def _legend(names: Sequence[str]) -> list[tuple[str, int, float]]:
    """Each name with its line and place in the legend, wrapped to the width of the chart."""
    placed: list[tuple[str, int, float]] = []
    line, at = 0, _LEFT
    for name in names:
        width = 44 + sum(_CAPITAL if letter.isupper() else _LETTER for letter in name)
        if at > _LEFT and at + width > _WIDTH - _RIGHT:
            line, at = line + 1, _LEFT
        placed.append((name, line, at))
        at += width
    return placed


def _legend_entry(number: int, name: str, at: float, line: int) -> str:
    y = _TITLE_HEIGHT + 6 + line * _LEGEND_HEIGHT
    stroke = element("line", x1=at, x2=at + 20, y1=y - 4, y2=y - 4, **line_style(number))
    return stroke + label(name, at + 26, y)


@dataclass(frozen=True)
class Binned:
    """What falls into the intervals that are not empty.

    Attributes
    ----------
    centres, means : array of float, shape (n_bins,)
        Mean of the value that is divided into intervals, and of the other one.
    quantiles : array of float, shape (n_quantiles, n_bins)
        Of the other one.
    counts : array of int, shape (n_bins,)
    numbers : array of int, shape (n_bins,)
        Which intervals these are.
    """

    centres: Floats
    means: Floats
    quantiles: Floats
    counts: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]


def flat(values: Any, name: str) -> Floats:
    """One finite value after the other, whatever the shape."""
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


def binned(
    by: Floats,
    values: Floats,
    edges: Floats,
    quantiles: Sequence[float] = (),
) -> Binned:
    """Divide values into intervals of another value.

    Parameters
    ----------
    by, values : array of float, shape (n,)
    edges : array of float, shape (n_bins + 1,)
        Intervals are closed below; the outer ones take everything beyond.
    quantiles : sequence of float

    Notes
    -----
    O(n log n).

    Examples
    --------
    >>> found = binned(np.array([0.1, 0.2, 0.9]), np.array([1.0, 3.0, 5.0]), np.linspace(0, 1, 3))
    >>> found.means.tolist(), found.counts.tolist()
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


def mean_lines(frame: Frame, lines: Sequence[Binned]) -> str:
    """The means of each series as a line, on a band between its two quantiles if it has them."""
    bands = [_band(frame, number, line) for number, line in enumerate(lines) if line.quantiles.size]
    means = [_mean(frame, number, line) for number, line in enumerate(lines)]
    return "".join(bands + means)


def _band(frame: Frame, number: int, line: Binned) -> str:
    x = [frame.x(value) for value in line.centres.tolist()]
    low, high = ([frame.y(value) for value in side.tolist()] for side in line.quantiles)
    around = [*zip(x, low, strict=True), *zip(reversed(x), reversed(high), strict=True)]
    return polygon(around, fill=series(number), fill_opacity="0.12")


def _mean(frame: Frame, number: int, line: Binned) -> str:
    points = zip(line.centres.tolist(), line.means.tolist(), strict=True)
    return path([(frame.x(x), frame.y(y)) for x, y in points], **line_style(number))
