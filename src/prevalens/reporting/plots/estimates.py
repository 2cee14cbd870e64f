"""Estimates against the truth: the diagonal plot, and the bias by shift."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from prevalens.reporting.plots.binning import Binned, binned, equal_edges, flat
from prevalens.reporting.plots.frame import Frame, Tick, tick_text
from prevalens.reporting.plots.lines import mean_lines
from prevalens.reporting.plots.svg import element
from prevalens.reporting.theme import colour, series
from prevalens.validation import InputError, check_prevalences

__all__ = ["bias", "diagonal"]

#: True and estimated prevalences of each method.
Estimates: TypeAlias = Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]]
Array: TypeAlias = npt.NDArray[np.float64]

# Whiskers, box and median.
_BOX = (0.05, 0.25, 0.5, 0.75, 0.95)


def _pairs(estimates: Estimates) -> dict[str, tuple[Array, Array]]:
    """True and estimated prevalences, checked, shape (n_samples, n_labels) each."""
    pairs = {}
    for name, (true, estimated) in estimates.items():
        p = check_prevalences(true, f"The truth of {name}")
        q = check_prevalences(estimated, f"The estimate of {name}")
        if p.shape != q.shape:
            raise InputError(f"The truth of {name} has shape {p.shape}, its estimate {q.shape}.")
        pairs[name] = (p, q)
    if not pairs:
        raise InputError("There are no estimates to draw.")
    return pairs


def diagonal(
    estimates: Estimates,
    *,
    title: str = "Estimated against true prevalence",
    n_bins: int = 20,
    band: tuple[float, float] = (0.1, 0.9),
) -> str:
    """Mean estimate by true prevalence, over all samples and labels; the diagonal is perfect.

    Parameters
    ----------
    estimates : mapping of str to (true, estimated), arrays of float, shape (n_samples, n_labels)
        By method.
    title : str
    n_bins : int
        Number of intervals of true prevalence.
    band : tuple of float
        Quantiles of the estimates that the band reaches from and to.

    Returns
    -------
    str
        SVG.

    Examples
    --------
    >>> true = np.linspace(0, 1, 50).reshape(-1, 1)
    >>> diagonal({"CC": (true, true * 0.8)})[:4]
    '<svg'
    """
    pairs = _pairs(estimates)
    edges = np.linspace(0, 1, n_bins + 1)
    frame = Frame(title, (0.0, 1.0), (0.0, 1.0), names=list(pairs))
    lines = [binned(p.ravel(), q.ravel(), edges, band) for p, q in pairs.values()]
    perfect = element(
        "line",
        x1=frame.x(0),
        y1=frame.y(0),
        x2=frame.x(1),
        y2=frame.y(1),
        stroke=colour("muted"),
        stroke_dasharray="3 3",
    )
    return frame.draw(
        perfect + mean_lines(frame, lines),
        x_name="true prevalence",
        y_name="estimated prevalence",
    )


def bias(
    estimates: Estimates,
    shift: npt.ArrayLike,
    *,
    title: str = "Bias by shift",
    n_bins: int = 5,
) -> str:
    """Boxes of estimated minus true prevalence, by shift and method.

    Parameters
    ----------
    estimates : mapping of str to (true, estimated), arrays of float, shape (n_samples, n_labels)
        By method, all on the same samples.
    shift : array of float, shape (n_samples,)
        How far each sample has moved from the training prevalences.
    title : str
    n_bins : int
        Number of intervals of equal width over the range of shifts.

    Returns
    -------
    str
        SVG. A box reaches from the lower to the upper quartile over samples and labels, with a
        line at the median; the whiskers leave out five percent at each end.

    Examples
    --------
    >>> true = np.full((4, 2), 0.5)
    >>> bias({"CC": (true, true - 0.1)}, [0.0, 0.1, 0.2, 0.3])[:4]
    '<svg'
    """
    pairs = _pairs(estimates)
    shifts = flat(shift, "shift")
    edges = equal_edges(shifts, n_bins)
    boxes = {name: _boxes(p, q, shifts, edges, name) for name, (p, q) in pairs.items()}
    reach = max(float(np.abs(found.quantiles).max()) for found in boxes.values()) or 1.0
    frame = Frame(title, (0.0, float(n_bins)), (-1.05 * reach, 1.05 * reach), names=list(pairs))
    zero = frame.y(0.0)
    line = element("line", x1=frame.left, x2=frame.right, y1=zero, y2=zero, stroke=colour("muted"))
    drawn = [
        _draw_boxes(frame, name, found, (number, len(boxes)))
        for number, (name, found) in enumerate(boxes.items())
    ]
    return frame.draw(
        line + "".join(drawn),
        x_name="shift (AE to training)",
        y_name="estimated minus true",
        x_ticks=[
            Tick(number, tick_text(round(edge, 3))) for number, edge in enumerate(edges.tolist())
        ],
    )


def _boxes(p: Array, q: Array, shifts: Array, edges: Array, name: str) -> Binned:
    if len(p) != len(shifts):
        raise InputError(f"There are {len(shifts)} shifts but {len(p)} samples of {name}.")
    return binned(np.repeat(shifts, p.shape[1]), (q - p).ravel(), edges, _BOX)


def _draw_boxes(frame: Frame, name: str, found: Binned, place: tuple[int, int]) -> str:
    """The boxes of one method, beside those of the others in each interval."""
    number, n_methods = place
    # A tenth of each interval stays free at both sides.
    width = 0.8 / n_methods
    drawn = []
    for interval, values in zip(found.numbers.tolist(), found.quantiles.T.tolist(), strict=True):
        left = frame.x(interval + 0.1 + number * width)
        right = frame.x(interval + 0.1 + (number + 1) * width)
        gap = min(2.0, (right - left) / 8)
        words = f"{name}: median {values[2]:+.3f}, quartiles {values[1]:+.3f} and {values[3]:+.3f}"
        drawn.append(_box([frame.y(value) for value in values], left + gap, right - gap, words))
    return element("g", "".join(drawn), stroke=series(number), fill=series(number))


def _box(y: list[float], left: float, right: float, words: str) -> str:
    middle = (left + right) / 2
    box = element(
        "rect",
        x=left,
        y=y[3],
        width=right - left,
        height=max(y[1] - y[3], 0.5),
        fill_opacity="0.25",
    )
    median = element("line", x1=left, x2=right, y1=y[2], y2=y[2], stroke_width=2)
    whiskers = [element("line", x1=middle, x2=middle, y1=a, y2=b) for a, b in (y[:2], y[3:])]
    return element("g", element("title", escape(words)) + box + median + "".join(whiskers))
