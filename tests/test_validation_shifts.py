from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from prevalens.samples import Samples
from prevalens.validation_shifts import (
    FAMILY_WEIGHTS,
    FEW,
    FEWEST,
    ShiftedSplit,
    draw_shifts,
    half_splits,
    losses,
    shifted_splits,
    total_loss,
)


@pytest.fixture(scope="module")
def labels():
    return (np.random.default_rng(0).random((300, 4)) < [0.5, 0.3, 0.2, 0.1]).astype(np.int8)


@pytest.fixture(scope="module")
def splits(labels):
    return shifted_splits(labels, random_state=0)


def test_every_family_is_drawn_in_every_fold(splits):
    pairs = {(split.fold, split.family) for split in splits}
    folds = {fold for fold, _ in pairs}
    assert pairs == {(fold, family) for fold in folds for family in FAMILY_WEIGHTS}
    assert len(folds) == 10


def test_samples_come_from_items_that_are_not_learnt_from(labels, splits):
    for split in splits:
        assert not set(split.rest) & set(split.held)
        assert len(split.rest) + len(split.held) == len(labels)
        assert split.samples.n_items == len(split.held)
        assert np.all(split.samples.sizes == split.size)
        np.testing.assert_allclose(split.true, split.samples.mean(labels[split.held]))


def test_splits_of_a_fold_stand_together_and_share_their_items(splits):
    # The mixture keeps what it learnt of a fold until the next one begins.
    folds = [split.fold for split in splits]
    assert folds == sorted(folds)
    for before, after in pairwise(splits):
        if before.fold == after.fold:
            assert before.rest is after.rest


@pytest.mark.parametrize(("n_items", "n_folds"), [(301, 8), (2 * FEW, 2)])
def test_halves_are_divided_by_chance(n_items, n_folds):
    labels = (np.random.default_rng(1).random((n_items, 2)) < [0.5, 0.2]).astype(np.int8)
    drawn = half_splits(labels)
    assert {(split.fold, split.family) for split in drawn} == {
        (fold, family) for fold in range(n_folds) for family in FAMILY_WEIGHTS
    }
    for split in drawn:
        assert abs(len(split.held) - len(split.rest)) <= 1
        assert not set(split.rest) & set(split.held)
    # By chance: the halves of a division do not have as many positives each.
    positives = {tuple(labels[split.held].sum(axis=0)) for split in drawn}
    assert len(positives) == n_folds
    assert half_splits(labels[: FEWEST - 1]) == []


def test_the_seed_decides(labels, splits):
    again = shifted_splits(labels, random_state=0)
    assert all(np.array_equal(a.true, b.true) for a, b in zip(splits, again, strict=True))
    other = shifted_splits(labels, random_state=1)
    assert not all(np.array_equal(a.true, b.true) for a, b in zip(splits, other, strict=True))


def test_the_training_prevalence_has_a_loss_of_one_and_the_truth_of_none(splits):
    naive = losses(splits, lambda split: np.tile(split.naive, (len(split.true), 1)))
    assert naive == pytest.approx(dict.fromkeys(FAMILY_WEIGHTS, 1.0))
    assert total_loss(naive) == pytest.approx(1.0)
    assert total_loss(losses(splits, lambda split: split.true)) == 0.0


def test_half_the_error_is_half_the_loss(splits):
    halfway = losses(splits, lambda split: (split.true + split.naive) / 2)
    assert halfway == pytest.approx(dict.fromkeys(FAMILY_WEIGHTS, 0.5))


def test_too_few_items_are_not_divided(labels):
    assert shifted_splits(labels[: FEWEST - 1]) == []


def test_labels_that_never_move_say_nothing_of_a_method():
    constant = np.ones((90, 2), dtype=np.int8)
    by_family = losses(shifted_splits(constant), lambda split: split.true)
    assert by_family
    assert set(by_family.values()) == {1.0}


def test_the_naive_prevalences_are_those_of_the_items_to_learn_from(labels, splits):
    for split in splits:
        np.testing.assert_array_equal(split.naive, labels[split.rest].mean(axis=0))
        assert not np.array_equal(split.naive, labels[split.held].mean(axis=0))


@pytest.mark.parametrize("draw", [shifted_splits, half_splits])
def test_groups_are_never_divided(labels, draw):
    groups = np.arange(len(labels)) // 3
    for split in draw(labels, groups=groups):
        assert not set(groups[split.rest]) & set(groups[split.held])
    assert draw(labels, groups=np.zeros(len(labels))) == []


@pytest.mark.parametrize("draw", [shifted_splits, half_splits])
def test_each_size_is_drawn_and_sizes_that_fit_no_fold_become_one(labels, draw):
    n_folds = len({split.fold for split in draw(labels)})
    by_size = Counter(split.planned for split in draw(labels, sizes=(7, 12, 500, 2500)))
    largest = max(by_size)
    assert 12 < largest < 100
    assert set(by_size) == {7, 12, largest}
    assert set(by_size.values()) == {len(draw(labels, sizes=(7,)))} == {4 * n_folds}
    for split in draw(labels, sizes=(7, 500)):
        assert set(split.samples.sizes) == {split.size}
        assert split.size <= min(split.planned, len(split.held) // 3)


def test_the_planned_size_is_the_size_unless_given() -> None:
    rows = np.arange(9)
    samples = Samples.from_indices([rows], n_items=9)
    split = ShiftedSplit(0, rows, rows, "natural", samples, 9, np.ones((1, 1)), np.ones(1))
    assert split.planned == 9
    assert replace(split, planned=7).planned == 7


def test_large_samples_are_drawn_from_large_pools_alone() -> None:
    rng = np.random.default_rng(0)
    Y = (rng.random((1200, 3)) < 0.3).astype(np.int8)
    samples, family = draw_shifts(Y, 20, rng)
    sizes, counts = np.unique(samples.sizes, return_counts=True)
    assert dict(zip(sizes.tolist(), counts.tolist(), strict=True)) == {20: 80, 100: 80, 500: 20}
    assert np.bincount(family).tolist() == [45] * 4


def test_four_kinds_of_shift_in_two_sizes() -> None:
    rng = np.random.default_rng(0)
    Y = (rng.random((400, 5)) < 0.3).astype(np.int8)
    samples, family = draw_shifts(Y, 20, rng)
    assert np.bincount(family).tolist() == [40] * 4
    assert sorted(set(samples.sizes)) == [20, 100]
    moved = np.abs(samples.mean(Y) - Y.mean(axis=0)).mean(axis=1)
    large = samples.sizes == 100
    assert np.all([moved[large & (family == kind)].mean() for kind in (1, 2, 3)] > 1.2 * moved[
        large & (family == 0)
    ].mean())  # fmt: skip


@pytest.mark.parametrize("n_items", [1, 2, 7])
def test_tiny_pools_give_tiny_samples(n_items: int) -> None:
    samples, family = draw_shifts(np.ones((n_items, 2), dtype=np.int8), 3, np.random.default_rng(0))
    assert len(samples) == len(family) >= 18
    assert samples.sizes.max() <= max(1, n_items // 2)
