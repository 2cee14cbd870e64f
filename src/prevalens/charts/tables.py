"""table: values with their intervals as an HTML table with bars, for notebooks."""

from __future__ import annotations

from html import escape

from prevalens.charts.shapes import Dots

__all__ = ["table"]

_WIDTH, _HEIGHT, _MARGIN = 160, 18, 5
_HUE = "#2f83ab"


def table(chart: Dots, *, most: int = 200) -> str:
    """Names, values, intervals and a bar each.

    Parameters
    ----------
    chart : Dots
    most : int
        Rows to show; the others are counted below.

    Examples
    --------
    >>> import numpy as np
    >>> table(Dots(["<spam>"], np.array([0.5])))[:7]
    '<table>'
    """
    heads = ["", chart.axis, *_interval_head(chart), *_reference_head(chart), ""]
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(_row(chart, i) for i in range(min(most, len(chart.names))))
    hidden = len(chart.names) - most
    more = f"<p>and {hidden} more</p>" if hidden > 0 else ""
    caption = f"<caption>{escape(chart.title)}</caption>" if chart.title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _interval_head(chart: Dots) -> list[str]:
    return [] if chart.lower is None else ["lower", "upper"]


def _reference_head(chart: Dots) -> list[str]:
    return [] if chart.reference is None else [chart.reference_name]


def _row(chart: Dots, i: int) -> str:
    numbers = [chart.values, chart.lower, chart.upper, chart.reference]
    cells = "".join(f"<td>{part[i]:.4f}</td>" for part in numbers if part is not None)
    return f"<tr><th>{escape(str(chart.names[i]))}</th>{cells}<td>{_bar(chart, i)}</td></tr>"


def _bar(chart: Dots, i: int) -> str:
    def x(value: float) -> float:
        share = min(max(value / chart.top, 0.0), 1.0)
        return round(_MARGIN + share * (_WIDTH - 2 * _MARGIN), 1)

    middle = _HEIGHT / 2
    parts = [
        f'<line x1="{_MARGIN}" x2="{_WIDTH - _MARGIN}" y1="{middle}" y2="{middle}" '
        'stroke="currentColor" stroke-opacity="0.25"/>'
    ]
    if chart.lower is not None and chart.upper is not None:
        low, high = x(chart.lower[i]), x(chart.upper[i])
        parts.append(
            f'<rect x="{low}" y="{middle - 3}" width="{max(high - low, 1):.1f}" height="6" rx="3" '
            f'fill="{_HUE}" fill-opacity="0.4"/>'
        )
    parts.append(f'<circle cx="{x(chart.values[i])}" cy="{middle}" r="4" fill="{_HUE}"/>')
    if chart.reference is not None:
        at = x(chart.reference[i])
        parts.append(
            f'<line x1="{at}" x2="{at}" y1="2" y2="{_HEIGHT - 2}" stroke="currentColor" '
            'stroke-width="2"/>'
        )
    return f'<svg width="{_WIDTH}" height="{_HEIGHT}" aria-hidden="true">{"".join(parts)}</svg>'
