"""Histograms: how frequent labels are, and how far samples have moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import numpy.typing as npt

from prevalens.reporting.plots.binning import equal_edges, flat
from prevalens.reporting.plots.frame import Frame, Tick, line_style, tick_text
from prevalens.reporting.plots.svg import element, label, path, polygon
from prevalens.reporting.theme import colour, series
from prevalens.validation import InputError, check_prevalences

__all__ = ["PREVALENCE_EDGES", "prevalence_histogram", "shift_distribution"]

#: Intervals of prevalence: narrow where most labels are.
PREVALENCE_EDGES = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def prevalence_histogram(
    prevalences: npt.ArrayLike,
    *,
    title: str = "How frequent labels are",
    edges: Sequence[float] = PREVALENCE_EDGES,
) -> str:
    """Share of a dataset's labels by intervals of their prevalence.

    Parameters
    ----------
    prevalences : array of float, shape (n_labels,)
    title : str
    edges : sequence of float
        The intervals, closed below; all are drawn with the same width.

    Returns
    -------
    str
        SVG.

    Examples
    --------
    >>> prevalence_histogram([0.01, 0.02, 0.3])[:4]
    '<svg'
    """
    values = check_prevalences(prevalences, "prevalences").ravel()
    bins = np.searchsorted(np.asarray(edges)[1:-1], values, side="right")
    shares = np.bincount(bins, minlength=len(edges) - 1) / values.size
    frame = Frame(title, (0, len(shares)), (0, float(shares.max()) * 1.08))
    bars = "".join(
        _bar(frame, number, share, f"{edges[number]:g} to {edges[number + 1]:g}: {share:.1%}")
        for number, share in enumerate(shares.tolist())
    )
    return frame.draw(
        bars,
        x_name="prevalence",
        y_name="share of labels",
        x_ticks=[Tick(number, tick_text(edge)) for number, edge in enumerate(edges)],
    )


def _bar(frame: Frame, number: int, share: float, words: str) -> str:
    x, end = frame.x(number) + 2, frame.x(number + 1) - 2
    y = frame.y(share)
    return element(
        "rect",
        element("title", escape(words)),
        x=x,
        y=y,
        width=end - x,
        height=frame.bottom - y,
        fill=series(0),
    )


def shift_distribution(
    shifts: Mapping[str, npt.ArrayLike],
    *,
    title: str = "How far samples have moved",
    n_bins: int = 40,
) -> str:
    """Distributions of shift under several protocols, one over the other.

    Parameters
    ----------
    shifts : mapping of str to array of float, shape (n_samples,)
        By protocol, for example ``{"ML-APP": ..., "uniform sampling": ...}``. The regimes low, mid
        and high are marked for the first.
    title : str
    n_bins : int
        Number of intervals over the range of all shifts.

    Returns
    -------
    str
        SVG.

    Examples
    --------
    >>> shift_distribution({"ML-APP": [0.0, 0.1, 0.3], "uniform": [0.0, 0.01]})[:4]
    '<svg'
    """
    if not shifts:
        raise InputError("There are no shifts to draw.")
    values = {name: flat(given, f"The shift of {name}") for name, given in shifts.items()}
    edges = equal_edges(np.concatenate([*values.values(), [0.0]]), n_bins)
    shares = [np.histogram(given, edges)[0] / given.size for given in values.values()]
    top = max(float(share.max()) for share in shares) * 1.08
    frame = Frame(title, (0.0, float(edges[-1])), (0.0, top), names=list(values))
    steps = "".join(_steps(frame, number, edges, share) for number, share in enumerate(shares))
    first = next(iter(values.values()))
    return frame.draw(
        _regimes(frame, first) + steps, x_name="shift (AE to training)", y_name="share of samples"
    )


def _steps(
    frame: Frame,
    number: int,
    edges: npt.NDArray[np.float64],
    shares: npt.NDArray[np.float64],
) -> str:
    x = [frame.x(edge) for edge in np.repeat(edges, 2)[1:-1].tolist()]
    y = [frame.y(share) for share in np.repeat(shares, 2).tolist()]
    corners = list(zip(x, y, strict=True))
    ground = [(x[0], frame.bottom), *corners, (x[-1], frame.bottom)]
    area = polygon(ground, fill=series(number), fill_opacity="0.22")
    return area + path(corners, **line_style(number))


def _regimes(frame: Frame, shifts: npt.NDArray[np.float64]) -> str:
    """Lines between low, mid and high shift, with their names."""
    edges = np.linspace(shifts.min(), shifts.max(), 4).tolist()
    lines = "".join(
        element("line", x1=frame.x(edge), x2=frame.x(edge), y1=frame.top, y2=frame.bottom)
        for edge in edges[1:-1]
    )
    names = "".join(
        label(name, frame.x((low + high) / 2), frame.top + 10)
        for name, low, high in zip(("low", "mid", "high"), edges, edges[1:], strict=False)
    )
    return element("g", lines, stroke=colour("muted"), stroke_dasharray="3 3") + element(
        "g", names, text_anchor="middle", fill=colour("muted")
    )
