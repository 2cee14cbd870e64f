"""Two labels at once: both prevalences are hit, and every set that hits them is as likely."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.protocols import TwoLabels
from prevalens.validation import InputError


@given(st.integers(0, 50), st.integers(1, 7), st.integers(2, 5), st.integers(1, 2))
def test_hits_both_prevalences_wherever_that_is_possible(
    seed: int, size: int, grid: int, repeats: int
) -> None:
    """Against all subsets of a small pool: what is reachable is drawn, and nothing else."""
    Y = np.random.default_rng(seed).integers(0, 2, (8, 2))
    totals = {tuple(Y[list(bag)].sum(axis=0).tolist()) for bag in combinations(range(8), size)}
    wanted = [-(-size * i // (grid - 1)) for i in range(grid)]
    expected = [pair for pair in product(wanted, repeat=2) if pair in totals]
    protocol = TwoLabels(size=size, grid=grid, repeats=repeats)
    if not expected:
        with pytest.raises(InputError, match="None of the 1 pairs of labels can be steered"):
            protocol.draw(Y, seed)
        return
    samples = protocol.draw(Y, seed)
    positives = np.rint(samples.mean(Y) * size).astype(int)
    assert [tuple(row) for row in positives.tolist()] == [
        e for e in expected for _ in range(repeats)
    ]
    np.testing.assert_array_equal(positives, np.ceil(np.round(size * samples.prevalences, 9)))
    assert np.all(samples.targets == [0, 1])
    assert np.all(np.diff(np.sort(samples.indices, axis=1), axis=1) > 0)
    assert protocol.count(Y) == len(samples)


def test_all_sets_that_hit_the_prevalences_are_equally_likely() -> None:
    Y = np.array([[1, 1], [1, 1], [1, 0], [0, 1], [0, 1], [0, 0], [0, 0]])
    samples = TwoLabels(size=4, grid=[0.5], repeats=30_000).draw(Y, 0)
    hits = [bag for bag in combinations(range(7), 4) if Y[list(bag)].sum(axis=0).tolist() == [2, 2]]
    drawn = np.sort(samples.indices, axis=1)
    sets, counts = np.unique(drawn, axis=0, return_counts=True)
    assert [tuple(row) for row in sets.tolist()] == sorted(hits)
    share = 1 / len(hits)
    assert np.all(np.abs(counts - 30_000 * share) < 5 * np.sqrt(30_000 * share * (1 - share)))


def test_pairs_can_be_chosen_and_keep_their_order() -> None:
    Y = np.random.default_rng(0).integers(0, 2, (60, 5))
    samples = TwoLabels(size=10, grid=[0.2, 0.6], pairs=[(3, 1), (0, 4)]).draw(Y, 0)
    assert {tuple(pair) for pair in samples.targets.tolist()} == {(3, 1), (0, 4)}
    of_samples = np.arange(len(samples))[:, np.newaxis]
    np.testing.assert_allclose(samples.mean(Y)[of_samples, samples.targets], samples.prevalences)


def test_a_number_of_pairs_is_spread_over_the_labels() -> None:
    Y = np.random.default_rng(0).integers(0, 2, (60, 12))
    samples = TwoLabels(size=10, grid=[0.5], pairs=20).draw(Y, 0)
    assert len(np.unique(samples.targets, axis=0)) == 20
    assert len(np.unique(samples.targets)) == 12
    assert len(TwoLabels(size=10, grid=[0.5], pairs=999).draw(Y, 0)) == 66


def test_a_cap_is_kept() -> None:
    Y = np.random.default_rng(0).integers(0, 2, (60, 4))
    protocol = TwoLabels(size=10, grid=6, repeats=3, max_samples=50)
    assert len(protocol.draw(Y, 0)) == protocol.count(Y) == 50


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ([(0, 0)], r"two different labels below 3; got \(0, 0\)"),
        ([(0, 3)], r"two different labels below 3; got \(0, 3\)"),
        ([(-1, 1)], r"two different labels below 3; got \(-1, 1\)"),
        ([0, 1], "a number or a list of pairs"),
        ([(0.0, 1.0)], "a number or a list of pairs"),
        (0, "pairs must be at least 1"),
    ],
)
def test_pairs_that_are_none_are_refused(pairs: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        TwoLabels(size=1, pairs=pairs).draw(np.eye(3), 0)


def test_one_label_has_no_pairs() -> None:
    with pytest.raises(InputError, match="Y has only one"):
        TwoLabels(size=1).draw([[1], [0]], 0)
