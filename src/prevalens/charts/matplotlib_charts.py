"""Charts in matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from prevalens.charts.shapes import Dots, Lines

__all__ = ["matplotlib_chart"]

#: As many names as an axis has room for.
_MOST_TICKS = 12


def matplotlib_chart(pyplot: Any, chart: Dots | Lines, ax: Any = None) -> Any:
    """Draw on axes, or on those of a new figure; the axes are returned."""
    if isinstance(chart, Dots):
        ax = _axes(pyplot, ax, height=1.2 + 0.28 * len(chart.names))
        _dots(ax, chart)
    else:
        ax = _axes(pyplot, ax, height=4.0)
        _lines(ax, chart)
    if chart.title:
        ax.set_title(chart.title)
    return ax


def _axes(pyplot: Any, ax: Any, *, height: float) -> Any:
    return pyplot.subplots(figsize=(7, height), layout="constrained")[1] if ax is None else ax


def _dots(ax: Any, chart: Dots) -> None:
    rows = np.arange(len(chart.names))
    if chart.lower is not None and chart.upper is not None:
        ax.hlines(rows, chart.lower, chart.upper, color="C0", alpha=0.35, linewidth=6)
    ax.plot(chart.values, rows, "o", color="C0", label=chart.axis)
    if chart.reference is not None:
        ax.plot(chart.reference, rows, "|", color="black", markersize=12, markeredgewidth=2)
        ax.lines[-1].set_label(chart.reference_name)
        ax.legend(frameon=False)
    ax.set_yticks(rows, list(chart.names))
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel(chart.axis)
    ax.grid(axis="x", alpha=0.3)


def _lines(ax: Any, chart: Lines) -> None:
    places = list(chart.places) if chart.numeric else list(range(len(chart.places)))
    for number, line in enumerate(chart.lines):
        hue = f"C{number % 10}"
        if line.lower is not None and line.upper is not None:
            ax.fill_between(places, line.lower, line.upper, color=hue, alpha=0.15, linewidth=0)
        ax.plot(places, line.values, marker="o", markersize=3, color=hue, label=line.name)
    if not chart.numeric:
        every = -(-len(places) // _MOST_TICKS)
        names = [str(name) for name in chart.places[::every]]
        ax.set_xticks(places[::every], names, rotation=30, ha="right")
    ax.set_ylim(bottom=0)
    ax.set_xlabel(chart.x_axis)
    ax.set_ylabel(chart.y_axis)
    ax.legend(frameon=False)
    ax.grid(axis="y", alpha=0.3)
