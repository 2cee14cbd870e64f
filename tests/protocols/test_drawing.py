"""The drawing kernels: exact sizes, no repeats, and the distributions they promise."""

from __future__ import annotations

from itertools import combinations, permutations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.protocols.drawing import (
    block_rows,
    distinct,
    draw_from_groups,
    draw_weighted,
    empty_indices,
    runs,
)


def within_five_sigma(counts: np.ndarray, expected: np.ndarray) -> None:
    """Counts of outcomes of many independent draws against their expectation."""
    total = counts.sum()
    sigma = np.sqrt(expected * (1 - expected / total))
    assert np.all(np.abs(counts - expected) < 5 * sigma)


@given(
    st.integers(1, 40),
    st.lists(st.floats(0, 1), min_size=1, max_size=20),
    st.integers(0, 999),
)
def test_distinct_gives_ascending_subsets_of_the_sizes_asked_for(
    n: int, shares: list[float], seed: int
) -> None:
    counts = np.array([round(share * n) for share in shares])
    flat = distinct(n, counts, np.random.default_rng(seed))
    assert len(flat) == counts.sum()
    for rows in runs(counts):
        subset = flat[rows]
        assert np.all(np.diff(subset) > 0)
        assert np.all((subset >= 0) & (subset < n))


def test_distinct_of_nothing_is_empty() -> None:
    assert distinct(0, np.array([0, 0]), np.random.default_rng(0)).tolist() == []


@pytest.mark.parametrize(("n", "k"), [(6, 1), (6, 2), (6, 3), (6, 4), (6, 5), (30, 2)])
def test_distinct_makes_all_subsets_equally_likely(n: int, k: int) -> None:
    n_draws = 40_000
    flat = distinct(n, np.full(n_draws, k), np.random.default_rng(1))
    subsets, counts = np.unique(flat.reshape(n_draws, k), axis=0, return_counts=True)
    assert len(subsets) == comb(n, k)
    within_five_sigma(counts, np.full(len(counts), n_draws / comb(n, k)))


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 999))
def test_groups_give_what_is_asked_of_them(n_groups: int, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    items = rng.permutation(n_groups * size)
    groups = [np.sort(items[rows]) for rows in runs(np.full(n_groups, size))]
    counts = rng.multinomial(size, np.full(n_groups, 1 / n_groups), size=9)
    drawn = empty_indices(9, size, n_items=len(items))
    draw_from_groups(drawn, groups, counts, rng)
    for row, of_groups in zip(drawn, counts, strict=True):
        assert len(np.unique(row)) == size
        for group, part in zip(groups, runs(of_groups), strict=True):
            assert np.isin(row[part], group).all()


def test_groups_are_drawn_in_blocks_without_a_seam() -> None:
    groups = [np.arange(200), np.arange(200, 1000)]
    n_samples = 2 * block_rows(50) + 7
    counts = np.tile([20, 30], (n_samples, 1))
    drawn = empty_indices(n_samples, 50, n_items=1000)
    draw_from_groups(drawn, groups, counts, np.random.default_rng(0))
    assert np.all((drawn < 200).sum(axis=1) == 20)
    assert np.all(np.diff(np.sort(drawn, axis=1), axis=1) > 0)
    # Every item is used about equally often, in the first block as in the last.
    within_five_sigma(np.bincount(drawn[:, :20].ravel()), np.full(200, n_samples / 10))


def test_weighted_drawing_is_successive_drawing_by_weight() -> None:
    weights, size, n_draws = np.array([1.0, 2.0, 3.0, 6.0]), 2, 60_000
    drawn = draw_weighted(np.log(np.tile(weights, (n_draws, 1))), size, np.random.default_rng(2))
    subsets = list(combinations(range(4), size))
    counts = np.array([np.all(drawn == subset, axis=1).sum() for subset in subsets])
    within_five_sigma(counts, n_draws * np.array([in_any_order(weights, s) for s in subsets]))


def in_any_order(weights: np.ndarray, subset: tuple[int, ...]) -> float:
    """Probability of drawing exactly these items, summed over the orders they may come in."""
    total = 0.0
    for order in permutations(subset):
        left, probability = weights.sum(), 1.0
        for item in order:
            probability *= weights[item] / left
            left -= weights[item]
        total += probability
    return total


def test_weights_too_small_for_a_float_still_have_their_order() -> None:
    log_weights = np.tile([0.0, -2000.0, -1000.0, -3000.0], (50, 1))
    drawn = draw_weighted(log_weights, 3, np.random.default_rng(0))
    assert np.all(drawn == [0, 1, 2])


def test_all_items_can_be_drawn() -> None:
    drawn = draw_weighted(np.zeros((5, 7)), 7, np.random.default_rng(0))
    assert np.all(drawn == np.arange(7))
