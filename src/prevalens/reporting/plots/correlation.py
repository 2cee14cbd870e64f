"""The map of correlations between labels."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from prevalens.reporting.plots.svg import document, element, label
from prevalens.reporting.theme import colour
from prevalens.validation import InputError, check_int, check_label_names

__all__ = ["correlation_map"]

_CELL, _MARGIN, _TOP = 13.0, 156.0, 34.0
_LEGEND = 46.0
_LONGEST = 20
# Weaker correlations would not be seen.
_FAINT = 0.02


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
        As `prevalens.collection.label_correlation` gives it.
    labels : sequence of str, optional
    title : str
    most : int
        Draw at most so many labels: those that correlate most strongly with some other one. The
        title says so.

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
    phi = _checked(correlation)
    names = check_label_names(labels, len(phi))
    chosen = _strongest(phi, check_int(most, "most", minimum=1))
    if len(chosen) < len(phi):
        title = f"{title}: {len(chosen)} of {len(phi)} labels"
    chosen = chosen[_related(phi[np.ix_(chosen, chosen)])]
    side = _CELL * len(chosen)
    body = (
        label(title, 8, 20, font_size=14, font_weight=600)
        + _names([names[i] for i in chosen])
        + _cells(phi[np.ix_(chosen, chosen)], [names[i] for i in chosen])
        + element(
            "rect", x=_MARGIN, y=_TOP, width=side, height=side, fill="none", stroke=colour("line")
        )
        + _legend(_TOP + side + 14)
    )
    width = max(_MARGIN + side + 8, 16 + 7.6 * len(title), 330.0)
    return document(width, _TOP + side + _LEGEND, title, body)


def _checked(correlation: npt.ArrayLike) -> npt.NDArray[np.float64]:
    phi = np.asarray(correlation, dtype=np.float64)
    if phi.ndim != 2 or phi.shape[0] != phi.shape[1] or not phi.size:
        raise InputError(f"correlation must be a square matrix; got shape {phi.shape}.")
    if not np.all(np.abs(phi) <= 1):
        raise InputError("correlation must lie between -1 and 1.")
    return phi


def _strongest(phi: npt.NDArray[np.float64], most: int) -> npt.NDArray[np.int64]:
    strength = np.abs(phi - np.diag(np.diag(phi))).max(axis=0)
    return np.sort(np.argsort(-strength, kind="stable")[:most])


def _related(phi: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """An order that puts labels with strong correlations side by side."""
    if len(phi) < 3:
        return np.arange(len(phi))
    distance = 1 - np.abs((phi + phi.T) / 2)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    return np.asarray(leaves_list(tree), dtype=np.int64)


def _names(names: Sequence[str]) -> str:
    texts = "".join(
        label(_cut(name), _MARGIN - 6, _TOP + (row + 0.75) * _CELL)
        for row, name in enumerate(names)
    )
    return element("g", texts, text_anchor="end", font_size=11)


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _cells(phi: npt.NDArray[np.float64], names: Sequence[str]) -> str:
    drawn = []
    for row, column in np.argwhere(np.abs(phi) >= _FAINT).tolist():
        if row != column:
            value = phi[row, column]
            words = f"{names[row]}, {names[column]}: {value:+.2f}"
            drawn.append(_cell(row, column, value, words))
    return "".join(drawn)


def _cell(row: int, column: int, value: float, words: str = "") -> str:
    return element(
        "rect",
        element("title", escape(words)) if words else "",
        x=_MARGIN + column * _CELL,
        y=_TOP + row * _CELL,
        width=_CELL,
        height=_CELL,
        **_fill(value),
    )


def _fill(value: float) -> dict[str, object]:
    return {
        "fill": colour("plus" if value > 0 else "minus"),
        # The root makes weak correlations, which most are, visible at all.
        "fill_opacity": f"{abs(value) ** 0.5:.2f}",
    }


def _legend(y: float) -> str:
    steps = (-1.0, -0.5, -0.25, -0.1, 0.1, 0.25, 0.5, 1.0)
    boxes = "".join(
        element("rect", x=8 + 38.0 * i, y=y, width=38, height=10, **_fill(value))
        for i, value in enumerate(steps)
    )
    texts = "".join(label(f"{value:+g}", 27 + 38.0 * i, y + 24) for i, value in enumerate(steps))
    return boxes + element("g", texts, text_anchor="middle", font_size=11)
