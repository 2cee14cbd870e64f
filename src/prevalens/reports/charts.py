"""Charts of errors, estimates, prevalences, shifts and correlations, as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from prevalens.records import Result
from prevalens.reports import svg
from prevalens.reports.summarise import (
    MethodOrder,
    column_of,
    groups_first,
    of_one_protocol,
    ordered_columns,
)
from prevalens.reports.theme import colour, series
from prevalens.types import Floats
from prevalens.validation import InputError, check_int, check_label_names, check_prevalences

#: Two arrays by method: shifts and errors, or true and estimated prevalences.
PairsByMethod: TypeAlias = Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]]

_SHIFT = "shift (AE to training)"
_CELL, _MARGIN, _TOP = 13.0, 156.0, 34.0
_LEGEND = 46.0
_LONGEST = 20
# Weaker correlations would not be visible.
_FAINT = 0.02
_DASHED = {"stroke": colour("muted"), "stroke_dasharray": "3 3"}


def correlation_map(
    correlation: npt.ArrayLike,
    labels: Sequence[str] | None = None,
    *,
    title: str = "Correlation between labels",
    most: int = 40,
) -> str:
    """Correlations between labels as a map, related labels side by side.

    Parameters
    ----------
    correlation : array of float, shape (n_labels, n_labels)
        The output of `prevalens.collection.label_correlation`.
    labels : sequence of str, optional
    title : str
    most : int
        Largest number of labels to draw. If there are more, those with the strongest correlation
        to another label are drawn, and the title says so.

    Returns
    -------
    str
        SVG. Labels are ordered by hierarchical clustering on ``1 - |correlation|``; the diagonal
        is left empty.

    Notes
    -----
    O(n_labels^2) to choose the labels, O(most^2 log most) to order them.

    Examples
    --------
    >>> correlation_map([[1.0, -0.5], [-0.5, 1.0]], ["sad", "happy"])[:4]
    '<svg'
    """
    phi = np.asarray(correlation, dtype=np.float64)
    if phi.ndim != 2 or phi.shape[0] != phi.shape[1] or not phi.size:
        raise InputError(f"correlation must be a square matrix; got shape {phi.shape}.")
    if not np.all(np.abs(phi) <= 1):
        raise InputError("correlation must lie between -1 and 1.")
    names = check_label_names(labels, len(phi))
    chosen = _strongest(phi, check_int(most, "most", minimum=1))
    if len(chosen) < len(phi):
        title = f"{title}: {len(chosen)} of {len(phi)} labels"
    chosen = chosen[_related(phi[np.ix_(chosen, chosen)])]
    shown = [names[i] for i in chosen]
    side = _CELL * len(chosen)
    texts = (
        svg.label(svg.shortened(name, _LONGEST), _MARGIN - 6, _TOP + (row + 0.75) * _CELL)
        for row, name in enumerate(shown)
    )
    border = {"width": side, "height": side, "fill": "none", "stroke": colour("line")}
    return svg.document(
        max(_MARGIN + side + 8, 16 + 7.6 * len(title), 330.0),
        _TOP + side + _LEGEND,
        title,
        svg.heading(title, 8, 20),
        svg.element("g", *texts, text_anchor="end", font_size=11),
        *_cells(phi[np.ix_(chosen, chosen)], shown),
        svg.element("rect", x=_MARGIN, y=_TOP, **border),
        *_heat_legend(_TOP + side + 14),
    )


def _strongest(phi: Floats, most: int) -> npt.NDArray[np.int64]:
    strength = np.abs(phi - np.diag(np.diag(phi))).max(axis=0)
    return np.sort(np.argsort(-strength, kind="stable")[:most])


def _related(phi: Floats) -> npt.NDArray[np.int64]:
    """An order that puts labels with strong correlations side by side."""
    if len(phi) < 3:
        return np.arange(len(phi))
    distance = 1 - np.abs((phi + phi.T) / 2)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    return np.asarray(leaves_list(tree), dtype=np.int64)


def _cells(phi: Floats, names: Sequence[str]) -> Iterator[str]:
    for row, column in np.argwhere(np.abs(phi) >= _FAINT).tolist():
        if row != column:
            value = float(phi[row, column])
            caption = svg.element("title", f"{names[row]}, {names[column]}: {value:+.2f}")
            place = {"x": _MARGIN + column * _CELL, "y": _TOP + row * _CELL}
            size = {"width": _CELL, "height": _CELL}
            yield svg.element("rect", caption, **place, **size, **svg.heat(value))


def _heat_legend(y: float) -> Iterator[str]:
    steps = {27 + 38.0 * i: v for i, v in enumerate((-1.0, -0.5, -0.25, -0.1, 0.1, 0.25, 0.5, 1.0))}
    for x, value in steps.items():
        yield svg.element("rect", x=x - 19, y=y, width=38, height=10, **svg.heat(value))
    texts = (svg.label(f"{value:+g}", x, y + 24) for x, value in steps.items())
    yield svg.element("g", *texts, text_anchor="middle", font_size=11)


def curves_of(
    results: Iterable[Result],
    *,
    metric: str = "ae",
    protocol: str | None = None,
    order: MethodOrder = groups_first,
) -> dict[str, tuple[Floats, Floats]]:
    """Shifts and errors of the methods in results of one dataset, all seeds together."""
    chosen = of_one_protocol(results, metric, protocol)
    curves = {}
    for column in ordered_columns(chosen, order):
        own = [result for result in chosen if column_of(result) == column]
        curves[column] = (
            np.concatenate([result.shift for result in own]),
            np.concatenate([result.errors[metric] for result in own]),
        )
    return curves


def error_against_shift(
    curves: PairsByMethod,
    *,
    title: str = "Error against shift",
    x_name: str = _SHIFT,
    y_name: str = "absolute error (AE)",
    n_bins: int = 20,
    band: tuple[float, float] | None = (0.1, 0.9),
) -> str:
    """Mean error by shift, one line per method, with a band of quantiles around it.

    Parameters
    ----------
    curves : mapping of str to (shift, error), arrays of float, shape (n_samples,)
        By method; `curves_of` makes them from results.
    title, x_name, y_name : str
    n_bins : int
        Number of intervals of equal width over all shifts.
    band : tuple of float or None
        Quantiles of the error that the band reaches from and to; None for no band.

    Returns
    -------
    str
        SVG.

    Examples
    --------
    >>> shift = np.linspace(0, 0.3, 50)
    >>> error_against_shift({"PCC": (shift, shift / 2)})[:4]
    '<svg'
    """
    if not curves:
        raise InputError("There are no curves to draw.")
    pairs = {
        name: (svg.flat(shift, f"The shift of {name}"), svg.flat(error, f"The error of {name}"))
        for name, (shift, error) in curves.items()
    }
    edges = svg.equal_edges(np.concatenate([shift for shift, _ in pairs.values()]), n_bins)
    lines = [svg.binned(shift, error, edges, band or ()) for shift, error in pairs.values()]
    top = max(float(max(line.means.max(), line.quantiles.max(initial=0))) for line in lines)
    frame = svg.Frame(title, (0.0, float(edges[-1])), (0.0, top * 1.05), names=list(pairs))
    return frame.draw(svg.mean_lines(frame, lines), x_name=x_name, y_name=y_name)


# Whiskers, box and median.
_BOX = (0.05, 0.25, 0.5, 0.75, 0.95)


def _pairs(estimates: PairsByMethod) -> dict[str, tuple[Floats, Floats]]:
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
    estimates: PairsByMethod,
    *,
    title: str = "Estimated against true prevalence",
    n_bins: int = 20,
    band: tuple[float, float] = (0.1, 0.9),
    percent: bool = False,
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
    percent : bool
        Whether the axes are in percent instead of shares.

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
    unit, name = (100.0, "prevalence, percent") if percent else (1.0, "prevalence")
    edges = np.linspace(0, unit, n_bins + 1)
    frame = svg.Frame(title, (0.0, unit), (0.0, unit), names=list(pairs))
    lines = [svg.binned(unit * p.ravel(), unit * q.ravel(), edges, band) for p, q in pairs.values()]
    perfect = svg.line(frame.left, frame.bottom, frame.right, frame.top, **_DASHED)
    body = perfect + svg.mean_lines(frame, lines)
    return frame.draw(body, x_name=f"true {name}", y_name=f"estimated {name}")


def bias(
    estimates: PairsByMethod, shift: npt.ArrayLike, *, title: str = "Bias by shift", n_bins: int = 5
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
    shifts = svg.flat(shift, "shift")
    edges = svg.equal_edges(shifts, n_bins)
    boxes = {name: _boxes(p, q, shifts, edges, name) for name, (p, q) in pairs.items()}
    reach = max(float(np.abs(box.quantiles).max()) for box in boxes.values()) or 1.0
    frame = svg.Frame(title, (0.0, float(n_bins)), (-1.05 * reach, 1.05 * reach), names=list(pairs))
    zero = frame.y(0.0)
    drawn = [
        _draw_boxes(frame, name, box, (number, len(boxes)))
        for number, (name, box) in enumerate(boxes.items())
    ]
    return frame.draw(
        svg.line(frame.left, zero, frame.right, zero, stroke=colour("muted")),
        *drawn,
        x_name=_SHIFT,
        y_name="estimated minus true",
        x_ticks={at: svg.tick_text(round(edge, 3)) for at, edge in enumerate(edges.tolist())},
    )


def _boxes(p: Floats, q: Floats, shifts: Floats, edges: Floats, name: str) -> svg.Binned:
    if len(p) != len(shifts):
        raise InputError(f"There are {len(shifts)} shifts but {len(p)} samples of {name}.")
    return svg.binned(np.repeat(shifts, p.shape[1]), (q - p).ravel(), edges, _BOX)


def _draw_boxes(frame: svg.Frame, name: str, boxes: svg.Binned, place: tuple[int, int]) -> str:
    """The boxes of one method, to the right of the methods before it in each interval."""
    number, n_methods = place
    # A tenth of each interval stays free at both sides.
    width = 0.8 / n_methods
    drawn = []
    for interval, values in zip(boxes.numbers.tolist(), boxes.quantiles.T.tolist(), strict=True):
        left, right = frame.x.all(interval + 0.1 + (number + end) * width for end in (0, 1))
        gap = min(2.0, (right - left) / 8)
        caption = (
            f"{name}: median {values[2]:+.3f}, quartiles {values[1]:+.3f} and {values[3]:+.3f}"
        )
        drawn.append(_box(frame.y.all(values), left + gap, right - gap, caption))
    return svg.element("g", *drawn, stroke=series(number), fill=series(number))


def _box(y: Sequence[float], left: float, right: float, caption: str) -> str:
    low, lower, median, upper, high = y
    middle = (left + right) / 2
    size = {"width": right - left, "height": max(lower - upper, 0.5)}
    return svg.element(
        "g",
        svg.element("title", caption),
        svg.element("rect", x=left, y=upper, **size, fill_opacity="0.25"),
        svg.line(left, median, right, median, stroke_width=2),
        svg.line(middle, low, middle, lower),
        svg.line(middle, upper, middle, high),
    )


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
    frame = svg.Frame(title, (0, len(shares)), (0, float(shares.max()) * 1.08))
    bars = [
        _bar(frame, number, share, f"{edges[number]:g} to {edges[number + 1]:g}: {share:.1%}")
        for number, share in enumerate(shares.tolist())
    ]
    return frame.draw(
        *bars,
        x_name="prevalence",
        y_name="share of labels",
        x_ticks={number: svg.tick_text(edge) for number, edge in enumerate(edges)},
    )


def _bar(frame: svg.Frame, number: int, share: float, caption: str) -> str:
    x, end = frame.x(number) + 2, frame.x(number + 1) - 2
    y = frame.y(share)
    place = {"x": x, "y": y, "width": end - x, "height": frame.bottom - y}
    return svg.element("rect", svg.element("title", caption), **place, fill=series(0))


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
    values = {name: svg.flat(given, f"The shift of {name}") for name, given in shifts.items()}
    edges = svg.equal_edges(np.concatenate([*values.values(), [0.0]]), n_bins)
    shares = [np.histogram(given, edges)[0] / given.size for given in values.values()]
    top = max(float(share.max()) for share in shares) * 1.08
    frame = svg.Frame(title, (0.0, float(edges[-1])), (0.0, top), names=list(values))
    steps = [_steps(frame, number, edges, share) for number, share in enumerate(shares)]
    first = next(iter(values.values()))
    return frame.draw(_regimes(frame, first), *steps, x_name=_SHIFT, y_name="share of samples")


def _steps(frame: svg.Frame, number: int, edges: Floats, shares: Floats) -> str:
    x = frame.x.all(np.repeat(edges, 2)[1:-1].tolist())
    corners = list(zip(x, frame.y.all(np.repeat(shares, 2).tolist()), strict=True))
    ground = [(x[0], frame.bottom), *corners, (x[-1], frame.bottom)]
    area = svg.polygon(ground, fill=series(number), fill_opacity="0.22")
    return area + svg.path(corners, **svg.line_style(number))


def _regimes(frame: svg.Frame, shifts: Floats) -> str:
    """Lines between low, mid and high shift, with their names."""
    edges = np.linspace(shifts.min(), shifts.max(), 4).tolist()
    lines = (svg.line(x, frame.top, x, frame.bottom) for x in frame.x.all(edges[1:-1]))
    names = (
        svg.label(name, frame.x((low + high) / 2), frame.top + 10)
        for name, (low, high) in zip(("low", "mid", "high"), pairwise(edges), strict=True)
    )
    return svg.element("g", *lines, **_DASHED) + svg.element(
        "g", *names, text_anchor="middle", fill=colour("muted")
    )
