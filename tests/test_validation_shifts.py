from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from prevalens.validation_shifts import (
    FAMILIES,
    FEW,
    FEWEST,
    losses,
    rehearse,
    rehearse_halves,
    total_loss,
)


@pytest.fixture(scope="module")
def labels():
    return (np.random.default_rng(0).random((300, 4)) < [0.5, 0.3, 0.2, 0.1]).astype(np.int8)


@pytest.fixture(scope="module")
def acts(labels):
    return rehearse(labels, seed=0)


def test_every_family_is_rehearsed_in_every_fold(acts):
    found = {(act.fold, act.family) for act in acts}
    folds = {fold for fold, _ in found}
    assert found == {(fold, family) for fold in folds for family in FAMILIES}
    assert len(folds) == 10


def test_samples_come_from_items_that_are_not_learnt_from(labels, acts):
    for act in acts:
        assert not set(act.rest) & set(act.held)
        assert len(act.rest) + len(act.held) == len(labels)
        assert act.samples.n_items == len(act.held)
        assert np.all(act.samples.sizes == act.size)
        np.testing.assert_allclose(act.true, act.samples.mean(labels[act.held]))


def test_acts_of_a_fold_stand_together_and_share_their_items(acts):
    # The mixture keeps what it learnt of a fold until the next one begins.
    folds = [act.fold for act in acts]
    assert folds == sorted(folds)
    for before, after in pairwise(acts):
        if before.fold == after.fold:
            assert before.rest is after.rest


@pytest.mark.parametrize(("n_items", "n_folds"), [(301, 8), (2 * FEW, 2)])
def test_halves_are_divided_by_chance(n_items, n_folds):
    labels = (np.random.default_rng(1).random((n_items, 2)) < [0.5, 0.2]).astype(np.int8)
    found = rehearse_halves(labels)
    assert {(act.fold, act.family) for act in found} == {
        (fold, family) for fold in range(n_folds) for family in FAMILIES
    }
    for act in found:
        assert abs(len(act.held) - len(act.rest)) <= 1
        assert not set(act.rest) & set(act.held)
    # By chance: the halves of a division do not have as many positives each.
    halves = {tuple(labels[act.held].sum(axis=0)) for act in found}
    assert len(halves) == n_folds
    assert rehearse_halves(labels[: FEWEST - 1]) == []


def test_the_seed_decides(labels, acts):
    again = rehearse(labels, seed=0)
    assert all(np.array_equal(a.true, b.true) for a, b in zip(acts, again, strict=True))
    other = rehearse(labels, seed=1)
    assert not all(np.array_equal(a.true, b.true) for a, b in zip(acts, other, strict=True))


def test_the_training_prevalence_has_a_loss_of_one_and_the_truth_of_none(acts):
    naive = losses(acts, lambda act: np.tile(act.naive, (len(act.true), 1)))
    assert naive == pytest.approx(dict.fromkeys(FAMILIES, 1.0))
    assert total_loss(naive) == pytest.approx(1.0)
    assert total_loss(losses(acts, lambda act: act.true)) == 0.0


def test_half_the_error_is_half_the_loss(acts):
    halfway = losses(acts, lambda act: (act.true + act.naive) / 2)
    assert halfway == pytest.approx(dict.fromkeys(FAMILIES, 0.5))


def test_too_few_items_are_not_rehearsed(labels):
    assert rehearse(labels[: FEWEST - 1]) == []


def test_labels_that_never_move_say_nothing_of_a_method():
    constant = np.ones((90, 2), dtype=np.int8)
    found = losses(rehearse(constant), lambda act: act.true)
    assert found
    assert set(found.values()) == {1.0}
