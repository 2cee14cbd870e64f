"""Kernels that draw many samples at once, without replacement and in numpy alone.

All of them take memory linear in the number of indices they return (plus one block), so
100,000 samples cost a few array passes and no Python loop over samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from prevalens.samples import index_type
from prevalens.types import Array, Floats, Ints

#: Numbers worked on at a time: small enough for the cache, large enough to hide numpy's overhead.
_BLOCK = 2**18


def block_rows(n_per_row: int) -> int:
    """Return the number of rows of `n_per_row` numbers in a block."""
    return max(1, _BLOCK // max(1, n_per_row))


def empty_indices(n_samples: int, size: int, *, n_items: int) -> Array:
    """Return an empty array for samples of equal size, of the dtype that `Samples` uses."""
    return np.empty((n_samples, size), dtype=index_type(n_items))


def runs(counts: Ints) -> Iterator[slice]:
    """Consecutive slices of the given lengths."""
    stops = np.cumsum(counts)
    return (slice(stop - count, stop) for count, stop in zip(counts, stops, strict=True))


def distinct(n: int, counts: Ints, rng: np.random.Generator) -> Ints:
    """Uniformly random subsets of ``range(n)``, one per row, of the sizes in `counts`.

    Parameters
    ----------
    n : int
    counts : array of int, shape (n_rows,)
        Between 0 and `n`.
    rng : numpy Generator

    Returns
    -------
    array of int64, shape (counts.sum(),)
        The subsets of all rows, concatenated; ascending within a row.

    Notes
    -----
    Numbers are drawn with replacement and repeats are drawn again until none is left, which is
    sequential drawing without replacement read in another order. Where more than half of
    the numbers are wanted, those to leave out are drawn instead: at least every second
    draw is then a new number, and the expected time is linear in ``counts.sum()`` up to the sort.
    """
    few = counts <= n // 2
    row_starts = np.repeat(np.arange(len(counts)) * n, counts)
    if few.all():
        return _distinct_keys(n, row_starts, rng) - row_starts
    drawn = np.where(few, counts, n - counts)
    keys = _distinct_keys(n, np.repeat(np.arange(len(counts)) * n, drawn), rng)
    return _complement(keys, n, ~few) - row_starts


def _distinct_keys(n: int, row_starts: Ints, rng: np.random.Generator) -> Ints:
    """Distinct numbers below `n` per row, added to `row_starts`: ascending keys of all rows."""
    keys = row_starts + rng.integers(0, max(n, 1), size=len(row_starts))
    keys.sort()
    while len(again := (keys[1:] == keys[:-1]).nonzero()[0]):
        keys[again] = keys[again] // n * n + rng.integers(0, n, size=len(again))
        keys.sort()
    return keys


def _complement(keys: Ints, n: int, rows: npt.NDArray[np.bool_]) -> Ints:
    """Replace the keys of the marked rows by all other keys of those rows."""
    marked = np.flatnonzero(rows)
    absent = np.ones((len(marked), n), dtype=bool)
    of_marked = rows[keys // n]
    row, number = np.divmod(keys[of_marked], n)
    absent[np.searchsorted(marked, row), number] = False
    row, number = np.nonzero(absent)
    kept = np.concatenate([keys[~of_marked], marked[row] * n + number])
    kept.sort()
    return kept


def draw_from_groups(
    drawn: Array,
    groups: Sequence[Array],
    counts: Ints,
    rng: np.random.Generator,
) -> None:
    """Fill rows with samples that take a given number of items from each of disjoint groups.

    Parameters
    ----------
    drawn : array of int, shape (n_samples, size)
        Filled in place, items of the first group first; uniform and without replacement
        within a group.
    groups : sequence of int arrays
        Row numbers of the items of each group.
    counts : array of int, shape (n_samples, n_groups)
        How many items of each group; every row sums to `size`.
    rng : numpy Generator
    """
    size = drawn.shape[1]
    step, places = block_rows(size), np.arange(size)
    for start in range(0, len(drawn), step):
        block, in_block = drawn[start : start + step], counts[start : start + step]
        ends = np.cumsum(in_block, axis=1)
        # The group of each place in the block; groups come in runs along a row.
        group_of = (places >= ends[:, :1]).astype(np.intp)
        for end in ends.T[1:-1]:
            group_of += places >= end[:, np.newaxis]
        for group, (members, of_rows) in enumerate(zip(groups, in_block.T, strict=True)):
            block[group_of == group] = members[distinct(len(members), of_rows, rng)]


def draw_weighted(log_weights: Floats, size: int, rng: np.random.Generator) -> Ints:
    """Draw one sample per row of weights, without replacement.

    Items are drawn one after the other with probability proportional to their weight among those
    left. This equals drawing an exponential time E_i / w_i for each item and taking the `size`
    items of least time. Times are compared as logarithms, so that small weights do not underflow.

    Parameters
    ----------
    log_weights : array of float, shape (n_samples, n_items)
    size : int
    rng : numpy Generator

    Returns
    -------
    array of int, shape (n_samples, size)
        Ascending within a sample. O(n_samples x n_items) time.

    References
    ----------
    Efraimidis and Spirakis, "Weighted random sampling with a reservoir", Information Processing
    Letters 97, 2006.
    """
    log_times = rng.standard_exponential(log_weights.shape)
    np.maximum(log_times, np.finfo(np.float64).tiny, out=log_times)
    np.log(log_times, out=log_times)
    log_times -= log_weights
    first = np.argpartition(log_times, size - 1, axis=1)[:, :size]
    return np.sort(first, axis=1)
