"""Iterative stratification: a partition of exact sizes, even labels, a positive in each part."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.multioutput import MultiOutputClassifier

from prevalens.splits import IterativeStratification, stratified_folds, stratified_holdout
from prevalens.validation import InputError

ORDERS = pytest.mark.parametrize("order", [1, 2])


def labels(seed: int, n_items: int = 60, n_labels: int = 6, *, density: float = 0.5) -> np.ndarray:
    """Labels of very different prevalences that depend on each other."""
    rng = np.random.default_rng(seed)
    propensity = rng.random((n_items, 1))
    return (propensity * rng.random((n_items, n_labels)) < density * rng.random(n_labels) ** 3) * 1


def powerlaw(seed: int, n_items: int, n_labels: int) -> np.ndarray:
    """Two clusters of labels, prevalences from one in three to one in two hundred."""
    rng = np.random.default_rng(seed)
    prevalence = 0.33 / np.arange(1, n_labels + 1)
    cluster = rng.integers(0, 2, (n_items, 1)) == np.arange(n_labels) % 2
    return (rng.random((n_items, n_labels)) < prevalence * np.where(cluster, 1.8, 0.2)) * 1


def totals(Y: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Positives of each label in each part, shape (n_parts, n_labels)."""
    return np.array([Y[parts == part].sum(axis=0) for part in range(parts.max() + 1)])


def pairs_of(Y: np.ndarray) -> np.ndarray:
    return np.column_stack([Y[:, a] & Y[:, b] for a, b in combinations(range(Y.shape[1]), 2)])


def unevenness(Y: np.ndarray, parts: np.ndarray) -> float:
    """Mean distance of a part's prevalences from those of all items."""
    means = np.array([Y[parts == part].mean(axis=0) for part in range(parts.max() + 1)])
    return float(np.abs(means - Y.mean(axis=0)).mean())


class TestFolds:
    @ORDERS
    @given(seed=st.integers(0, 99), n_items=st.integers(2, 60), n_folds=st.integers(2, 7))
    def test_are_a_partition_into_equal_sizes(
        self, order: int, seed: int, n_items: int, n_folds: int
    ) -> None:
        n_folds = min(n_folds, n_items)
        folds = stratified_folds(labels(seed, n_items), n_folds, order=order, seed=seed)
        assert folds.shape == (n_items,)
        sizes = np.bincount(folds, minlength=n_folds)
        assert sizes.tolist() == sorted(
            [n_items // n_folds + (fold < n_items % n_folds) for fold in range(n_folds)],
            reverse=True,
        )

    @ORDERS
    @given(seed=st.integers(0, 99), n_folds=st.integers(2, 6))
    def test_every_fold_has_every_label_that_has_enough_positives(
        self, order: int, seed: int, n_folds: int
    ) -> None:
        Y = labels(seed, n_items=80)
        counts = totals(Y, stratified_folds(Y, n_folds, order=order, seed=seed))
        enough = Y.sum(axis=0) >= n_folds
        assert counts[:, enough].all()

    @ORDERS
    @given(seed=st.integers(0, 99), n_folds=st.integers(2, 6))
    def test_labels_that_exclude_each_other_are_shared_out_almost_evenly(
        self, order: int, seed: int, n_folds: int
    ) -> None:
        Y = np.eye(4, dtype=int)[np.random.default_rng(seed).integers(0, 4, 50)]
        counts = totals(Y, stratified_folds(Y, n_folds, order=order, seed=seed))
        assert np.ptp(counts, axis=0).max() <= 2

    @ORDERS
    @settings(max_examples=60)
    @given(seed=st.integers(0, 10_000), n_items=st.integers(3, 8), n_folds=st.integers(2, 3))
    def test_no_gap_is_left_that_some_partition_could_close(
        self, order: int, seed: int, n_items: int, n_folds: int
    ) -> None:
        """Against all partitions of a few items in which labels contend for the same ones."""
        Y = (np.random.default_rng(seed).random((n_items, 4)) < 0.45) * 1
        folds = stratified_folds(Y, n_folds, order=order, seed=seed)
        owed = Y[:, Y.sum(axis=0) >= n_folds]
        if not totals(owed, folds).all():
            assert not _closable(owed, np.bincount(folds).tolist(), [])

    @ORDERS
    def test_are_far_more_even_than_chance(self, order: int) -> None:
        Y = powerlaw(0, 2000, 20)
        folds = stratified_folds(Y, 5, order=order)
        chance = np.random.default_rng(0).permutation(2000) % 5
        assert unevenness(Y, folds) < 0.25 * unevenness(Y, chance)

    def test_of_second_order_are_more_even_in_pairs(self) -> None:
        Y = powerlaw(1, 2000, 20)
        first, second = (stratified_folds(Y, 5, order=order) for order in (1, 2))
        assert unevenness(pairs_of(Y), second) < 0.6 * unevenness(pairs_of(Y), first)

    @ORDERS
    def test_the_seed_decides(self, order: int) -> None:
        Y = labels(0)
        first = stratified_folds(Y, order=order, seed=3)
        np.testing.assert_array_equal(first, stratified_folds(Y, order=order, seed=3))
        np.testing.assert_array_equal(
            first, stratified_folds(Y, order=order, seed=np.random.default_rng(3))
        )
        assert not np.array_equal(first, stratified_folds(Y, order=order, seed=4))

    @ORDERS
    @pytest.mark.parametrize("value", [0, 1])
    def test_labels_that_say_nothing_still_give_equal_folds(self, order: int, value: int) -> None:
        folds = stratified_folds(np.full((11, 3), value), 3, order=order)
        assert np.bincount(folds).tolist() == [4, 4, 3]

    @pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, np.ndarray.tolist])
    def test_all_forms_of_labels_give_the_same_folds(self, form: Any) -> None:
        Y = labels(5)
        np.testing.assert_array_equal(stratified_folds(form(Y)), stratified_folds(Y))

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"n_folds": 1}, "n_folds must be at least 2"),
            ({"n_folds": 4}, "3 items cannot be cut into 4 folds"),
            ({"n_folds": 2, "order": 3}, r"order must be 1 \(labels\) or 2"),
            ({"n_folds": 2, "seed": "x"}, "seed must be a whole number"),
        ],
    )
    def test_refusals_are_one_sentence(self, options: dict[str, Any], sentence: str) -> None:
        with pytest.raises(InputError, match=sentence):
            stratified_folds(np.eye(3), **options)


def _closable(Y: np.ndarray, room: list[int], parts: list[int]) -> bool:
    """Whether some partition into parts of these sizes has every label in every part."""
    if len(parts) == len(Y):
        return bool(totals(Y, np.array(parts)).all())
    for part, left in enumerate(room):
        if left:
            smaller = [*room[:part], left - 1, *room[part + 1 :]]
            if _closable(Y, smaller, [*parts, part]):
                return True
    return False


class TestHoldout:
    @ORDERS
    @given(seed=st.integers(0, 99), n_items=st.integers(2, 60), fraction=st.floats(0.01, 0.99))
    def test_is_a_partition_of_the_size_asked_for(
        self, order: int, seed: int, n_items: int, fraction: float
    ) -> None:
        Y = labels(seed, n_items)
        rest, held_out = stratified_holdout(Y, fraction, order=order, seed=seed)
        assert np.all(np.diff(rest) > 0)
        assert np.all(np.diff(held_out) > 0)
        assert sorted([*rest, *held_out]) == list(range(n_items))
        assert len(held_out) == min(max(round(fraction * n_items), 1), n_items - 1)

    @ORDERS
    @given(seed=st.integers(0, 99))
    def test_both_parts_have_every_label_with_two_positives(self, order: int, seed: int) -> None:
        Y = labels(seed, n_items=80)
        often = Y[:, Y.sum(axis=0) >= 2]
        for part in stratified_holdout(Y, 0.4, order=order, seed=seed):
            assert often[part].any(axis=0).all()

    @ORDERS
    def test_keeps_the_prevalences(self, order: int) -> None:
        Y = powerlaw(2, 2000, 20)
        rest, held_out = stratified_holdout(Y, 0.4, order=order)
        assert len(held_out) == 800
        assert np.abs(Y[rest].mean(axis=0) - Y[held_out].mean(axis=0)).max() < 0.005

    def test_refusals_are_one_sentence(self) -> None:
        with pytest.raises(InputError, match="fraction must lie strictly between 0 and 1"):
            stratified_holdout(np.eye(3), 1.0)
        with pytest.raises(InputError, match="A single item cannot be split"):
            stratified_holdout([[1]])


class TestSplitter:
    def test_gives_the_folds_of_the_function(self) -> None:
        Y = labels(8)
        splitter = IterativeStratification(4, order=2, random_state=6)
        folds = stratified_folds(Y, 4, order=2, seed=6)
        splits = list(splitter.split(np.zeros((60, 1)), Y))
        assert splitter.get_n_splits() == len(splits) == 4
        for fold, (train, test) in enumerate(splits):
            np.testing.assert_array_equal(test, np.flatnonzero(folds == fold))
            np.testing.assert_array_equal(np.sort([*train, *test]), np.arange(60))

    def test_serves_cross_validation(self) -> None:
        Y = labels(9, n_items=120)[:, :3]
        X = Y + np.random.default_rng(0).normal(size=Y.shape)
        results = cross_validate(
            MultiOutputClassifier(LogisticRegression()), X, Y, cv=IterativeStratification(3)
        )
        assert results["test_score"].shape == (3,)
        assert results["test_score"].min() > 0.2

    def test_shows_its_parameters(self) -> None:
        splitter = IterativeStratification(3, order=2)
        assert repr(splitter) == "IterativeStratification(n_splits=3, order=2, random_state=0)"
        assert vars(clone(splitter, safe=False)) == vars(splitter)

    def test_refuses_to_split_without_labels_or_with_others(self) -> None:
        with pytest.raises(InputError, match=r"call split\(X, Y\)"):
            list(IterativeStratification().split(np.zeros((5, 1))))
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            list(IterativeStratification().split(np.zeros((5, 1)), np.eye(6)))


class TestGroups:
    @ORDERS
    @given(seed=st.integers(0, 99), n_groups=st.integers(3, 40))
    def test_share_a_fold_and_are_cut_evenly(self, order: int, seed: int, n_groups: int) -> None:
        rng = np.random.default_rng(seed)
        groups = np.concatenate([np.arange(n_groups), rng.integers(0, n_groups, 30)])
        folds = stratified_folds(labels(seed, len(groups)), 3, order=order, groups=groups)
        fold_of_group = np.array([np.unique(folds[groups == group]) for group in range(n_groups)])
        assert fold_of_group.shape == (n_groups, 1)
        assert np.ptp(np.bincount(fold_of_group[:, 0], minlength=3)) <= 1

    def test_of_one_item_each_change_nothing(self) -> None:
        Y = labels(0)
        alone = stratified_folds(Y, 4, groups=np.arange(len(Y)))
        np.testing.assert_array_equal(alone, stratified_folds(Y, 4))

    def test_are_held_out_whole(self) -> None:
        groups = np.repeat(list("abcdefghij"), 6)
        rest, held_out = stratified_holdout(labels(0), 0.3, groups=groups)
        assert len(set(groups[held_out])) == 3
        assert not set(groups[rest]) & set(groups[held_out])

    def test_reach_the_splitter_of_scikit_learn(self) -> None:
        Y, groups = labels(0), np.arange(60) // 4
        for rest, held_out in IterativeStratification(3).split(Y, Y, groups):
            assert not set(groups[rest]) & set(groups[held_out])

    def test_that_are_too_few_or_too_short_are_named(self) -> None:
        with pytest.raises(InputError, match="2 groups cannot be cut into 5 folds"):
            stratified_folds(labels(0), 5, groups=np.arange(60) % 2)
        with pytest.raises(InputError, match="A single group cannot be split"):
            stratified_holdout(labels(0), 0.4, groups=np.zeros(60))
        with pytest.raises(InputError, match="groups has 59 rows but Y has 60"):
            stratified_folds(labels(0), 5, groups=np.zeros(59))
