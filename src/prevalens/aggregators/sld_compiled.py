"""Compiled engine of SLD: solves one (label, sample) cell after the other, in several threads.

The poles of one label are one contiguous row, so that all samples gather from the
same few kilobytes, and the gathered poles of a cell stay in the fastest cache for all passes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from prevalens.aggregators.sld_blocked import EM_ROUNDS, HIGHEST, LOWEST, Rule
from prevalens.samples import Samples
from prevalens.solvers.compiled import just_in_time
from prevalens.types import Floats

try:
    import numba
except ImportError:
    numba = None

#: Poles per pass below which threads cost more than they save.
_WORTH_THREADS = 2**17
#: Pieces per thread, so that a slow piece does not leave the other threads idle at the end.
_PIECES = 4


def available() -> bool:
    """Return whether numba is installed (the extra ``fast``)."""
    return numba is not None


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return just_in_time(numba, function)


@_compiled
def _slope(cell: Any, size: int, q: float) -> float:
    total = 0.0
    for i in range(size):
        total += 1.0 / (cell[i] + q)
    return total


@_compiled
def _slope_parts(cell: Any, size: int, q: float) -> tuple[float, float, float, float]:
    """Slope and curvature of the evidence for the label, and of that against it."""
    up, up2, down, down2 = 0.0, 0.0, 0.0, 0.0
    for i in range(size):
        x = 1.0 / (cell[i] + q)
        high, low = max(x, 0.0), min(x, 0.0)
        up += high
        up2 += high * high
        down += low
        down2 += low * low
    return up, up2, down, down2


@_compiled
def _exact_cell(
    cell: Any, size: int, start: float, tol: float, max_iter: int
) -> tuple[float, bool]:
    """Find where the slope is 0; see `SLD` for the method."""
    q, below, above = start, 0.0, 1.0
    for _ in range(max_iter):
        up, up2, down, down2 = _slope_parts(cell, size, q)
        if up == 0.0 or down == 0.0:
            return (1.0 if up > 0.0 else 0.0 if down < 0.0 else start), True
        if up + down > 0.0:
            if q >= HIGHEST:
                return 1.0, True
            below = q
        else:
            if q <= LOWEST:
                return 0.0, True
            above = q
        weight_up, weight_down = up * up / up2, down * down / down2
        step = -(weight_up * down / down2 + weight_down * up / up2) / (weight_up + weight_down)
        if abs(step) < tol:
            return min(max(q + step, 0.0), 1.0), True
        q = min(max(q + step, LOWEST), HIGHEST)
        if not below < q < above:
            q = 0.5 * (below + above)
    return q, False


@_compiled
def _em_cell(cell: Any, size: int, start: float, tol: float, max_iter: int) -> tuple[float, bool]:
    """Repeat the EM step until it is below `tol`."""
    q = start
    for done in range(1, max_iter + 1):
        step = q * (1.0 - q) * _slope(cell, size, q) / size
        q = min(max(q + step, LOWEST), HIGHEST)
        if abs(step) < tol and done >= EM_ROUNDS:
            return q, True
    return q, False


@_compiled
def _cells(
    poles: Any, start: Any, flat: Any, offsets: Any, box: Any, rule: Any, estimates: Any
) -> int:
    """Fill a box (labels from, to, samples from, to) of `estimates`; count unfinished cells."""
    exact, tol, max_iter = rule
    cell = np.empty(np.max(offsets[box[2] + 1 : box[3] + 1] - offsets[box[2] : box[3]]))
    unfinished = 0
    for j in range(box[0], box[1]):
        row = poles[j]
        for i in range(box[2], box[3]):
            first = offsets[i]
            size = offsets[i + 1] - first
            for k in range(size):
                cell[k] = row[flat[first + k]]
            if exact:
                q, ended = _exact_cell(cell, size, start[j], tol, max_iter)
            else:
                q, ended = _em_cell(cell, size, start[j], tol, max_iter)
            estimates[i, j] = q
            if not ended:
                unfinished += 1
    return unfinished


def _boxes(n_labels: int, n_samples: int, pieces: int) -> list[tuple[int, int, int, int]]:
    """Cut the longer side of the table of estimates into pieces."""
    longer = max(n_labels, n_samples)
    cuts = np.linspace(0, longer, min(pieces, longer) + 1).astype(int).tolist()
    if n_labels >= n_samples:
        return [(start, stop, 0, n_samples) for start, stop in pairwise(cuts)]
    return [(0, n_labels, start, stop) for start, stop in pairwise(cuts)]


def maximise(poles: Floats, start: Floats, samples: Samples, rule: Rule) -> tuple[Floats, int]:
    """Find the prevalences of greatest likelihood.

    Parameters
    ----------
    poles : array of float64, shape (n_labels, n_items)
    start : array of float64, shape (n_labels,)
    samples : Samples
    rule : Rule

    Returns
    -------
    estimates : array of float64, shape (n_samples, n_labels)
    unfinished : int
        Number of estimates that had not converged after `max_iter` rounds.
    """
    flat, offsets = samples.flat, samples.offsets
    estimates = np.empty((len(samples), len(poles)))
    if len(flat) == 0:
        return estimates, 0
    threads = numba.config.NUMBA_NUM_THREADS if len(flat) * len(poles) > _WORTH_THREADS else 1
    boxes = _boxes(len(poles), len(offsets) - 1, _PIECES * threads if threads > 1 else 1)

    def fill(box: tuple[int, int, int, int]) -> int:
        return int(_cells(poles, start, flat, offsets, box, tuple(rule), estimates))

    if threads == 1:
        return estimates, sum(map(fill, boxes))
    with ThreadPoolExecutor(threads) as pool:
        return estimates, sum(pool.map(fill, boxes))
