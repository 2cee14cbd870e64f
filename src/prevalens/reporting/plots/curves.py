"""Curves: how errors grow with shift."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from prevalens.records import Result
from prevalens.reporting.checking import column_of, of_one_protocol, ordered_columns
from prevalens.reporting.plots.binning import binned, equal_edges, flat
from prevalens.reporting.plots.frame import Frame
from prevalens.reporting.plots.lines import mean_lines
from prevalens.validation import InputError

__all__ = ["curves_of", "error_against_shift"]

#: Shifts and errors of the samples of each method.
Curves: TypeAlias = Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]]


def curves_of(
    results: Iterable[Result], *, metric: str = "ae", protocol: str | None = None
) -> dict[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
    """Shifts and errors of the methods in results of one dataset, all seeds together."""
    chosen = of_one_protocol(results, metric, protocol)
    found = {}
    for column in ordered_columns(chosen):
        own = [result for result in chosen if column_of(result) == column]
        found[column] = (
            np.concatenate([result.shift for result in own]),
            np.concatenate([result.errors[metric] for result in own]),
        )
    return found


def error_against_shift(
    curves: Curves,
    *,
    title: str = "Error against shift",
    y_name: str = "absolute error (AE)",
    n_bins: int = 20,
    band: tuple[float, float] | None = (0.1, 0.9),
) -> str:
    """Mean error by shift, one line per method, with a band of quantiles around it.

    Parameters
    ----------
    curves : mapping of str to (shift, error), arrays of float, shape (n_samples,)
        By method; `curves_of` makes them from results.
    title, y_name : str
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
        name: (flat(shift, f"The shift of {name}"), flat(error, f"The error of {name}"))
        for name, (shift, error) in curves.items()
    }
    edges = equal_edges(np.concatenate([shift for shift, _ in pairs.values()]), n_bins)
    lines = [binned(shift, error, edges, band or ()) for shift, error in pairs.values()]
    top = max(float(max(line.means.max(), line.quantiles.max(initial=0))) for line in lines)
    frame = Frame(title, (0.0, float(edges[-1])), (0.0, top * 1.05), names=list(pairs))
    body = mean_lines(frame, lines)
    return frame.draw(body, x_name="shift (AE to training)", y_name=y_name)
