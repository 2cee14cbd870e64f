"""Protocol that steers two labels at once."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
from scipy.special import gammaln

from prevalens.protocols.base import Protocol, check_size
from prevalens.protocols.drawing import block_rows, draw_from_groups, empty_indices, runs
from prevalens.protocols.grid import Grid, grid_points, positives_wanted, share_out, spread
from prevalens.samples import Samples
from prevalens.types import Array, Ints, LabelMatrix
from prevalens.validation import InputError, check_int

#: Numbers of items. For a pair of labels there are four kinds of items, everywhere in the
#: order: both labels, only the first, only the second, neither.
_Counts: TypeAlias = Ints


class TwoLabels(Protocol):
    """Steer pairs of labels through a grid of prevalences; the other labels follow.

    For labels a and b and grid points g and h, samples of `size` items hold exactly
    ceil(size * g) positives of a and ceil(size * h) of b. Among all sets of items that do, each is
    equally likely; no item occurs twice. Points that the pool cannot serve are left out.

    Parameters
    ----------
    size : int
        Items per sample.
    grid : int or sequence of float
        Prevalences of either label: a number of evenly spaced ones, or the values.
    repeats : int
        Samples per pair of labels and pair of grid points.
    pairs : int or sequence of (int, int)
        The pairs of labels; a number chooses that many, evenly over all pairs.
    max_samples : int, optional
        Draw at most this many, shared out evenly over pairs and grid points.

    Notes
    -----
    O(n_samples x size + pairs x points^2) time. Samples carry both labels and both prevalences
    in ``targets`` and ``prevalences``. Labels that exclude or imply each other reach few points.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1, 1], [1, 0], [0, 1], [0, 0]])
    >>> samples = TwoLabels(size=2, grid=[0.5]).draw(Y, 0)
    >>> samples.targets.tolist(), samples.prevalences.tolist(), samples.mean(Y).tolist()
    ([[0, 1]], [[0.5, 0.5]], [[0.5, 0.5]])
    """

    name: ClassVar[str] = "two-labels"

    def __init__(
        self,
        size: int = 100,
        grid: Grid = 11,
        repeats: int = 1,
        *,
        pairs: int | Sequence[tuple[int, int]] = 100,
        max_samples: int | None = None,
    ) -> None:
        self.size = size
        self.grid = grid
        self.repeats = repeats
        self.pairs = pairs
        self.max_samples = max_samples

    def _count(self, Y: LabelMatrix) -> int:
        return int(self._plan(Y)[1].sum())

    def _plan(self, Y: LabelMatrix) -> tuple[_Counts, _Counts]:
        """The pairs, and how many samples each gets at each (g, h), shape (pairs, points^2)."""
        size = check_size(self.size, len(Y))
        wanted = _both(positives_wanted(grid_points(self.grid), size))
        pairs = _check_pairs(self.pairs, Y.shape[1])
        low, high = _bounds(_kind_counts(Y, pairs)[:, np.newaxis, :], wanted, size)
        reachable = low <= high
        if not reachable.any():
            raise InputError(
                f"None of the {len(pairs)} pairs of labels can be steered to any pair of grid "
                f"points with samples of {size} items; choose a finer grid or a smaller size."
            )
        repeats = check_int(self.repeats, "repeats", minimum=1)
        return pairs, share_out(reachable, repeats, self.max_samples)

    def _draw(self, Y: LabelMatrix, rng: np.random.Generator) -> Samples:
        pairs, shares = self._plan(Y)
        points = grid_points(self.grid)
        wanted = _both(positives_wanted(points, self.size))
        drawn = empty_indices(int(shares.sum()), self.size, n_items=len(Y))
        for pair, of_points, rows in zip(pairs, shares, runs(shares.sum(axis=1)), strict=True):
            _draw_pair(drawn[rows], Y[:, pair], np.repeat(wanted, of_points, axis=0), rng)
        pair, cell = np.nonzero(shares)
        times = shares[pair, cell]
        return Samples.from_indices(
            drawn,
            n_items=len(Y),
            target=np.repeat(pairs[pair], times, axis=0),
            prevalence=np.repeat(_both(np.array(points, dtype=np.float64))[cell], times, axis=0),
        )


def _both(values: Array) -> Array:
    """All ordered pairs of values, shape (n_values^2, 2)."""
    return np.array(list(itertools.product(values, repeat=2)))


def _check_pairs(pairs: Any, n_labels: int) -> _Counts:
    if n_labels < 2:
        raise InputError("TwoLabels steers pairs of labels, but Y has only one.")
    if isinstance(pairs, int):
        every = np.column_stack(np.triu_indices(n_labels, k=1))
        return every[spread(len(every), check_int(pairs, "pairs", minimum=1))]
    chosen = np.asarray(pairs)
    if chosen.ndim != 2 or chosen.shape[1] != 2 or chosen.dtype.kind not in "iu":
        raise InputError(f"pairs must be a number or a list of pairs of labels; got {pairs!r}.")
    bad = (chosen < 0).any(axis=1) | (chosen >= n_labels).any(axis=1)
    bad |= chosen[:, 0] == chosen[:, 1]
    if bad.any():
        raise InputError(
            f"A pair must name two different labels below {n_labels}; got "
            f"{tuple(chosen[bad][0].tolist())}."
        )
    return chosen.astype(np.int64)


def _kind_counts(Y: LabelMatrix, pairs: _Counts) -> _Counts:
    """How many items of each of the four kinds the pool has, shape (n_pairs, 4)."""
    positives = Y.sum(axis=0, dtype=np.int64)[pairs]
    both = np.array([np.count_nonzero(Y[:, a] & Y[:, b]) for a, b in pairs])
    only = positives - both[:, np.newaxis]
    return np.column_stack([both, only, len(Y) - both - only.sum(axis=1)])


def _bounds(have: _Counts, wanted: _Counts, size: int) -> tuple[_Counts, _Counts]:
    """Least and largest number of items with both labels; least > largest: unreachable.

    `have` has the four kinds, `wanted` the two numbers of positives on its last axis.
    """
    first, second = wanted[..., 0], wanted[..., 1]
    neither_without_both = size - first - second
    both, only_first, only_second, neither = np.moveaxis(have, -1, 0)
    low = np.maximum(first - only_first, second - only_second)
    low = np.maximum(np.maximum(low, -neither_without_both), 0)
    high = np.minimum(both, neither - neither_without_both)
    return low, np.minimum(np.minimum(high, first), second)


def _draw_pair(drawn: Array, Y: LabelMatrix, wanted: _Counts, rng: np.random.Generator) -> None:
    """Fill rows with samples that hold the given numbers of positives of two labels."""
    first, second = Y[:, 0] == 1, Y[:, 1] == 1
    kinds = (first & second, first & ~second, ~first & second, ~(first | second))
    groups = [np.flatnonzero(kind) for kind in kinds]
    have = np.array([len(group) for group in groups])
    size = drawn.shape[1]
    step = block_rows(4 * (size + 1))
    for start in range(0, len(drawn), step):
        rows = slice(start, start + step)
        draw_from_groups(drawn[rows], groups, _draw_counts(have, wanted[rows], size, rng), rng)


def _draw_counts(have: _Counts, wanted: _Counts, size: int, rng: np.random.Generator) -> _Counts:
    """Draw how many items of each kind the samples have, shape (n_samples, 4).

    Among all sets of items each is equally likely. The number of sets with c items of both labels
    is a product of four binomial coefficients; c is drawn in proportion to it, by the Gumbel
    trick on the log scale.
    """
    low, high = _bounds(have, wanted, size)
    both = np.arange(size + 1)[np.newaxis, :]
    counts = _complete(both, wanted[:, np.newaxis, :], size)
    possible = (both >= low[:, np.newaxis]) & (both <= high[:, np.newaxis])
    counts = np.where(possible[..., np.newaxis], counts, 0)
    log_binomials = gammaln(have + 1.0) - gammaln(counts + 1.0) - gammaln(have - counts + 1.0)
    log_sets = log_binomials.sum(axis=-1)
    noisy = np.where(possible, log_sets + rng.gumbel(size=log_sets.shape), -np.inf)
    return _complete(noisy.argmax(axis=1), wanted, size)


def _complete(both: Array, wanted: _Counts, size: int) -> _Counts:
    """The counts of all four kinds from that of the items with both labels."""
    first, second = wanted[..., 0] - both, wanted[..., 1] - both
    neither = size - both - first - second
    return np.stack(np.broadcast_arrays(both, first, second, neither), axis=-1)
