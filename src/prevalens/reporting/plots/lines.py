"""Lines of means with bands of quantiles around them."""

from __future__ import annotations

from collections.abc import Sequence

from prevalens.reporting.plots.binning import Binned
from prevalens.reporting.plots.frame import Frame, line_style
from prevalens.reporting.plots.svg import path, polygon
from prevalens.reporting.theme import series

__all__ = ["mean_lines"]


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
