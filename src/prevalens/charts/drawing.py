"""draw: hand a chart to matplotlib or altair."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from prevalens.charts.altair_charts import altair_chart
from prevalens.charts.matplotlib_charts import matplotlib_chart
from prevalens.charts.shapes import Dots, Lines
from prevalens.validation import InputError, check_choice

__all__ = ["draw"]

_MODULES = {"matplotlib": "matplotlib.pyplot", "altair": "altair"}


def draw(chart: Dots | Lines, backend: str = "matplotlib", *, ax: Any = None) -> Any:
    """Draw a chart.

    Parameters
    ----------
    chart : Dots or Lines
    backend : {"matplotlib", "altair"}
    ax : matplotlib Axes, optional
        Where to draw; a new figure if left out.

    Returns
    -------
    matplotlib Axes, or altair Chart
    """
    check_choice(backend, "backend", tuple(_MODULES))
    if ax is not None and backend != "matplotlib":
        raise InputError(f"An ax is for matplotlib; {backend} makes a chart of its own.")
    library = _library(backend)
    if backend == "altair":
        return altair_chart(library, chart)
    return matplotlib_chart(library, chart, ax)


def _library(backend: str) -> ModuleType:
    try:
        return importlib.import_module(_MODULES[backend])
    except ImportError as error:
        raise InputError(f'plot needs {backend}: pip install "prevalens[plot]".') from error
