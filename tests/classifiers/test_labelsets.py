from math import ceil, comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.classifiers.powerset import RandomLabelsets, RandomPartition, check_labelsets
from prevalens.validation import InputError

SEEDS = st.integers(0, 1000)


@given(n_labels=st.integers(1, 40), size=st.integers(1, 12), seed=SEEDS)
def test_a_partition_holds_every_label_once(n_labels, size, seed):
    groups = RandomPartition(size).draw(n_labels, np.random.default_rng(seed))
    np.testing.assert_array_equal(np.sort(np.concatenate(groups)), np.arange(n_labels))
    assert len(groups) == ceil(n_labels / size)
    assert all(len(group) == size for group in groups[:-1])


@given(n_labels=st.integers(1, 40), n_clusters=st.integers(1, 60), seed=SEEDS)
def test_a_wanted_number_of_groups_sets_their_size(n_labels, n_clusters, seed):
    groups = RandomPartition(n_clusters=n_clusters).draw(n_labels, np.random.default_rng(seed))
    size = ceil(n_labels / n_clusters)
    assert len(groups) == ceil(n_labels / size) <= n_clusters
    assert max(len(group) for group in groups) == size


@given(n_labels=st.integers(1, 25), size=st.integers(1, 6), seed=SEEDS)
def test_overlapping_groups_are_different_and_hold_every_label(n_labels, size, seed):
    groups = RandomLabelsets(size).draw(n_labels, np.random.default_rng(seed))
    size = min(size, n_labels)
    assert len({tuple(group) for group in groups}) == len(groups)
    assert len(groups) == min(2 * n_labels, comb(n_labels, size))
    assert all(len(np.unique(group)) == size for group in groups)
    np.testing.assert_array_equal(np.unique(np.concatenate(groups)), np.arange(n_labels))


@given(seed=SEEDS)
def test_overlapping_groups_serve_all_labels_alike(seed):
    groups = RandomLabelsets(3, n_sets=40).draw(30, np.random.default_rng(seed))
    times = np.bincount(np.concatenate(groups), minlength=30)
    assert times.sum() == 120
    # One more than with exact balance: a group that has been drawn before is left out.
    assert times.max() - times.min() <= 2


@pytest.mark.parametrize("labelsets", [RandomPartition(3), RandomLabelsets(3)])
def test_the_same_seed_gives_the_same_groups(labelsets):
    draws = [labelsets.draw(10, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    first, same, other = ([group.tolist() for group in draw] for draw in draws)
    assert first == same
    assert first != other


def test_too_few_groups_are_refused():
    with pytest.raises(InputError, match="2 groups of 3 cannot hold 7 labels"):
        RandomLabelsets(3, n_sets=2).draw(7, np.random.default_rng(0))
    with pytest.raises(InputError, match="size must be at least 1"):
        RandomPartition(0).draw(7, np.random.default_rng(0))


def test_given_groups_are_checked():
    groups = check_labelsets([[2, 0, 0], [1], []], 3)
    assert [group.tolist() for group in groups] == [[0, 2], [1]]
    with pytest.raises(InputError, match="Label 1 stands in no labelset"):
        check_labelsets([[0, 2]], 3)
    with pytest.raises(InputError, match="names label 3, but there are 3 labels"):
        check_labelsets([[0, 1, 2, 3]], 3)
    with pytest.raises(InputError, match="Label 0 stands in no labelset"):
        check_labelsets([], 3)
