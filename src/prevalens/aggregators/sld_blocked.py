"""SLD in blocks of numpy, and what both engines share: poles, bounds and stopping rule.

With ``r`` an item's likelihood ratio, positive against negative, the log-likelihood of a
sample's prevalence q is ``sum log(1 + q (r - 1))``. It is concave, and its slope is
``sum 1 / (q + c)`` with one pole ``c = 1 / (r - 1)`` per item: at least 0 for evidence in
favour of the label, at most -1 for evidence against it, infinite for none. A pass over the
items costs one division each. One EM step leads to ``q + q (1 - q) slope / size``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from prevalens.samples import Samples
from prevalens.types import Array, Floats, Ints

#: Prevalences are kept inside these while they move, away from poles at exactly 0 and 1.
LOWEST = 1e-100
HIGHEST = float(np.nextafter(1.0, 0.0))
#: EM never stops before this many rounds, as in QuaPy.
EM_ROUNDS = 12
#: A relative difference of likelihoods below this is rounding and counts as none; otherwise the
#: rounding of many equal items would add up to evidence.
_ROUNDING = 1e-12


class Rule(NamedTuple):
    """How to move, and when to stop: by EM or by the exact solver, at a move below `tol`."""

    exact: bool
    tol: float
    max_iter: int


def poles(posteriors: Array, prior: Floats) -> Floats:
    """Turn posteriors under `prior` into poles.

    Parameters
    ----------
    posteriors : array, shape (n_labels, n_items)
    prior : array of float64, shape (n_labels,)
        Strictly between 0 and 1.

    Returns
    -------
    array of float64, shape (n_labels, n_items)
        ``b / (a - b)`` with ``a = posterior / prior`` and ``b`` the same of the negatives.
    """
    share = prior[:, np.newaxis]
    against = (1.0 - posteriors) / (1.0 - share)
    gap = posteriors / share
    gap -= against
    all_poles = np.full(gap.shape, np.inf)
    np.divide(against, gap, out=all_poles, where=np.abs(gap) > _ROUNDING * against)
    return all_poles


#: Poles in a block: 0.5 MB, with its temporaries about a level-2 cache.
_POLES_PER_BLOCK = 2**16


class _Moving:
    """The cells of a block that have not converged: their poles, estimates and brackets."""

    def __init__(
        self, poles: Floats, sizes: Ints, start: Floats, weights: Floats | None = None
    ) -> None:
        self.poles, self.sizes, self.start, self.weights = poles, sizes, start, weights
        self.q = start.copy()
        self.below, self.above = np.zeros_like(start), np.ones_like(start)

    def spread(self, values: Array) -> Array:
        """Repeat the value of each cell for each of its poles."""
        return np.repeat(values, self.sizes)

    def total(self, values: Floats) -> Floats:
        """Sum the values of the poles of each cell, weighted if the poles have weights."""
        if self.weights is not None:
            values = values * self.weights
        return np.add.reduceat(values, np.concatenate([[0], np.cumsum(self.sizes)[:-1]]))

    def keep(self, mask: npt.NDArray[np.bool_]) -> None:
        """Drop the cells outside `mask`, which have converged."""
        kept = self.spread(mask)
        self.poles = self.poles[kept]
        self.weights = None if self.weights is None else self.weights[kept]
        for name in ("sizes", "start", "q", "below", "above"):
            setattr(self, name, getattr(self, name)[mask])


def _em_round(cells: _Moving, tol: float) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Do one EM step; return the estimates of the cells and which have converged."""
    slope = cells.total(1.0 / (cells.poles + cells.spread(cells.q)))
    # Weights are shares of the items, which sum to 1.
    number = cells.sizes if cells.weights is None else 1.0
    step = cells.q * (1.0 - cells.q) * slope / number
    cells.q = np.clip(cells.q + step, LOWEST, HIGHEST)
    return cells.q, np.abs(step) < tol


def _exact_round(cells: _Moving, tol: float) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Do one step of the exact solver; return estimates and which have converged."""
    x = 1.0 / (cells.poles + cells.spread(cells.q))
    high, low = np.maximum(x, 0.0), np.minimum(x, 0.0)
    up, up2 = cells.total(high), cells.total(high * high)
    down, down2 = cells.total(low), cells.total(low * low)
    # If all evidence points one way, the estimate is that end; without any evidence, the start.
    one_sided = (up == 0.0) | (down == 0.0)
    answer = np.where(up > 0.0, 1.0, np.where(down < 0.0, 0.0, cells.start))
    rising = up + down > 0.0
    at_end = np.where(rising, cells.q >= HIGHEST, cells.q <= LOWEST) & ~one_sided
    answer = np.where(at_end, rising, answer)
    cells.below = np.where(rising, cells.q, cells.below)
    cells.above = np.where(rising, cells.above, cells.q)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight_up, weight_down = up * up / up2, down * down / down2
        step = -(weight_up * down / down2 + weight_down * up / up2) / (weight_up + weight_down)
    near = (np.abs(step) < tol) & ~at_end & ~one_sided
    answer = np.where(near, np.clip(cells.q + step, 0.0, 1.0), answer)
    moved = np.clip(cells.q + step, LOWEST, HIGHEST)
    inside = (cells.below < moved) & (moved < cells.above)
    cells.q = np.where(inside, moved, 0.5 * (cells.below + cells.above))
    settled = one_sided | at_end | near
    return np.where(settled, answer, cells.q), settled


def _solve(cells: _Moving, rule: Rule) -> tuple[Floats, int]:
    """Iterate until all cells converge; return the estimates and how many did not."""
    advance = _exact_round if rule.exact else _em_round
    settled_at = cells.start.copy()
    active = np.arange(len(settled_at))
    for done in range(1, rule.max_iter + 1):
        settled_at[active], settled = advance(cells, rule.tol)
        if settled.any() and (rule.exact or done >= EM_ROUNDS):
            active = active[~settled]
            if len(active) == 0:
                break
            cells.keep(~settled)
    return settled_at, len(active)


def _blocks(n_labels: int, offsets: Ints) -> Iterator[tuple[slice, slice]]:
    """Boxes (labels, samples) of about `_POLES_PER_BLOCK` poles."""
    stop = 0
    while stop < len(offsets) - 1:
        start = stop
        limit = offsets[start] + _POLES_PER_BLOCK
        stop = max(start + 1, int(np.searchsorted(offsets, limit, side="right")) - 1)
        step = max(1, _POLES_PER_BLOCK // int(offsets[stop] - offsets[start]))
        for label in range(0, n_labels, step):
            yield slice(label, min(label + step, n_labels)), slice(start, stop)


def maximise(poles: Floats, start: Floats, samples: Samples, rule: Rule) -> tuple[Floats, int]:
    """Find the prevalences of greatest likelihood, as `sld_compiled.maximise` does."""
    offsets, unfinished = samples.offsets, 0
    estimates = np.empty((len(samples), len(poles)))
    for labels, bags in _blocks(len(poles), offsets):
        items = samples.flat[offsets[bags.start] : offsets[bags.stop]]
        sizes, n_labels = samples.sizes[bags], labels.stop - labels.start
        gathered = poles[labels][:, items].ravel()
        cells = _Moving(gathered, np.tile(sizes, n_labels), np.repeat(start[labels], len(sizes)))
        solved, left = _solve(cells, rule)
        estimates[bags, labels] = solved.reshape(n_labels, -1).T
        unfinished += left
    return estimates, unfinished


def maximise_weighted(
    poles: Floats, weights: Floats, start: Floats, n_batches: int, rule: Rule
) -> tuple[Floats, int]:
    """Find the prevalences of greatest likelihood of items that are known as shares in bins.

    Parameters
    ----------
    poles : array of float64, shape (n_labels, n_batches * n_bins)
    weights : array of float64, of the same shape
        Share of the items of a batch in each bin; they sum to 1 over the bins.
    start : array of float64, shape (n_labels,)
    n_batches : int
    rule : Rule

    Returns
    -------
    As `maximise`, shape (n_batches, n_labels).
    """
    estimates, unfinished = np.empty((n_batches, len(poles))), 0
    for label, (own, share) in enumerate(zip(poles, weights, strict=True)):
        held = share > 0
        sizes = held.reshape(n_batches, -1).sum(axis=1)
        begin = np.full(n_batches, start[label])
        solved, left = _solve(_Moving(own[held], sizes, begin, share[held]), rule)
        estimates[:, label] = solved
        unfinished += left
    return estimates, unfinished
