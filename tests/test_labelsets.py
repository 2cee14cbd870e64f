"""Groups of labels: every label in at least one of them, or in exactly one."""

from __future__ import annotations

from math import ceil, comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prevalens.labelsets import (
    BalancedClusters,
    KMeansClusters,
    RandomClusters,
    RandomLabelsets,
    RandomPartition,
    _balanced,
    check_clusters,
    check_labelsets,
    powerset,
)
from prevalens.validation import InputError

SEEDS = st.integers(0, 1000)


def no_labels(n_labels):
    return np.zeros((1, n_labels), dtype=np.int8)


def test_a_powerset_is_every_combination_once_and_leads_back():
    Y = (np.random.default_rng(0).random((200, 4)) < 0.3).astype(np.int8)
    states, state_of = powerset(Y)
    np.testing.assert_array_equal(states[state_of], Y)
    assert len({tuple(state) for state in states}) == len(states) == state_of.max() + 1


@given(n_labels=st.integers(1, 40), size=st.integers(1, 12), seed=SEEDS)
def test_a_partition_holds_every_label_once(n_labels, size, seed):
    groups = RandomPartition(size).groups(no_labels(n_labels), np.random.default_rng(seed))
    np.testing.assert_array_equal(np.sort(np.concatenate(groups)), np.arange(n_labels))
    assert len(groups) == ceil(n_labels / size)
    assert all(len(group) == size for group in groups[:-1])


@given(n_labels=st.integers(1, 40), n_clusters=st.integers(1, 60), seed=SEEDS)
def test_a_wanted_number_of_groups_sets_their_size(n_labels, n_clusters, seed):
    groups = RandomPartition(n_clusters=n_clusters).groups(
        no_labels(n_labels), np.random.default_rng(seed)
    )
    size = ceil(n_labels / n_clusters)
    assert len(groups) == ceil(n_labels / size) <= n_clusters
    assert max(len(group) for group in groups) == size


@given(n_labels=st.integers(1, 25), size=st.integers(1, 6), seed=SEEDS)
def test_overlapping_groups_are_different_and_hold_every_label(n_labels, size, seed):
    groups = RandomLabelsets(size).groups(no_labels(n_labels), np.random.default_rng(seed))
    size = min(size, n_labels)
    assert len({tuple(group) for group in groups}) == len(groups)
    assert len(groups) == min(2 * n_labels, comb(n_labels, size))
    assert all(len(np.unique(group)) == size for group in groups)
    np.testing.assert_array_equal(np.unique(np.concatenate(groups)), np.arange(n_labels))


@given(seed=SEEDS)
def test_overlapping_groups_serve_all_labels_alike(seed):
    groups = RandomLabelsets(3, n_sets=40).groups(no_labels(30), np.random.default_rng(seed))
    times = np.bincount(np.concatenate(groups), minlength=30)
    assert times.sum() == 120
    # One more than with exact balance: a group that has been drawn before is left out.
    assert times.max() - times.min() <= 2


@pytest.mark.parametrize("labelsets", [RandomPartition(3), RandomLabelsets(3)])
def test_the_same_seed_gives_the_same_groups(labelsets):
    draws = [labelsets.groups(no_labels(10), np.random.default_rng(seed)) for seed in (0, 0, 1)]
    first, same, other = ([group.tolist() for group in draw] for draw in draws)
    assert first == same
    assert first != other


def test_too_few_groups_are_refused():
    with pytest.raises(InputError, match="2 groups of 3 cannot hold 7 labels"):
        RandomLabelsets(3, n_sets=2).groups(no_labels(7), np.random.default_rng(0))
    with pytest.raises(InputError, match="size must be at least 1"):
        RandomPartition(0).groups(no_labels(7), np.random.default_rng(0))


def test_given_groups_are_checked():
    groups = check_labelsets([[2, 0, 0], [1], []], 3)
    assert [group.tolist() for group in groups] == [[0, 2], [1]]
    with pytest.raises(InputError, match="Label 1 stands in no labelset"):
        check_labelsets([[0, 2]], 3)
    with pytest.raises(InputError, match="names label 3, but there are 3 labels"):
        check_labelsets([[0, 1, 2, 3]], 3)
    with pytest.raises(InputError, match="Label 0 stands in no labelset"):
        check_labelsets([], 3)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_labels=st.integers(1, 12),
    n_clusters=st.one_of(st.none(), st.integers(1, 20)),
    clusterer=st.sampled_from([RandomClusters, KMeansClusters, BalancedClusters]),
)
def test_every_label_stands_in_exactly_one_cluster(seed, n_labels, n_clusters, clusterer):
    rng = np.random.default_rng(seed)
    Y = (rng.random((20, n_labels)) < 0.3).astype(np.int8)
    clusters = clusterer(n_clusters).groups(Y, rng)
    assert sorted(np.concatenate(clusters).tolist()) == list(range(n_labels))
    assert all(len(cluster) for cluster in clusters)
    if n_clusters is not None:
        assert len(clusters) <= n_clusters


@pytest.mark.parametrize(
    ("n_labels", "n_clusters", "sizes"),
    [
        (10, 3, [4, 4, 2]),
        (6, 4, [2, 2, 2]),
        (4, 9, [1, 1, 1, 1]),
        (7, None, [3, 3, 1]),
        (5, 1, [5]),
    ],
)
def test_random_clusters_have_the_size_of_rakel(n_labels, n_clusters, sizes):
    """ceil(n / k) labels each, so that there may be fewer than k."""
    clusters = RandomClusters(n_clusters).groups(
        np.zeros((1, n_labels), dtype=np.int8), np.random.default_rng(0)
    )
    assert [len(cluster) for cluster in clusters] == sizes


def test_random_clusters_follow_the_seed():
    Y = np.zeros((1, 30), dtype=np.int8)

    def draw(seed):
        clusters = RandomClusters(5).groups(Y, np.random.default_rng(seed))
        return [cluster.tolist() for cluster in clusters]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_k_means_puts_labels_of_the_same_items_together():
    rng = np.random.default_rng(0)
    groups = (rng.random((200, 3)) < 0.5).astype(np.int8)
    Y = np.repeat(groups, 3, axis=1)
    flipped = rng.random(Y.shape) < 0.05
    Y = np.where(flipped, 1 - Y, Y).astype(np.int8)
    clusters = KMeansClusters(3).groups(Y, rng)
    assert sorted(cluster.tolist() for cluster in clusters) == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_k_means_with_fewer_different_labels_than_clusters():
    Y = np.array([[1, 1, 1, 0], [0, 0, 0, 0]], dtype=np.int8)
    clusters = KMeansClusters(4).groups(Y, np.random.default_rng(0))
    assert sorted(cluster.tolist() for cluster in clusters) == [[0, 1, 2], [3]]


def test_clusters_handed_in_are_checked():
    clusters = check_clusters([[2, 0], (), [1]], 3)
    assert [cluster.tolist() for cluster in clusters] == [[2, 0], [1]]
    for wrong in ([[0, 1]], [[0, 1], [1, 2]], [[0, 1, 2, 3]], []):
        with pytest.raises(InputError, match=r"each of the 3 labels \(0 to 2\) exactly once"):
            check_clusters(wrong, 3)
    for wrong in (5, "kmeans", [["a"]]):
        with pytest.raises(InputError, match=r"Clusters must be KMeansClusters\(\)"):
            check_clusters(wrong, 3)


@pytest.mark.parametrize("clusterer", [RandomClusters, KMeansClusters])
def test_no_clusters_are_refused(clusterer):
    with pytest.raises(InputError, match="n_clusters must be at least 1; got 0"):
        clusterer(0).groups(np.zeros((1, 3), dtype=np.int8), np.random.default_rng(0))


def displaced(labels, centres):
    """The published assignment: a full group gives its farthest label to the next nearest."""
    capacity = ceil(len(labels) / len(centres))
    distance = ((labels[:, None] - centres[None]) ** 2).sum(axis=2)
    preferred = [list(np.argsort(row)) for row in distance]
    groups = [[] for _ in centres]
    waiting = list(range(len(labels)))
    while waiting:
        label = waiting.pop()
        cluster = preferred[label].pop(0)
        groups[cluster].append(label)
        if len(groups[cluster]) > capacity:
            farthest = max(groups[cluster], key=lambda member: distance[member, cluster])
            groups[cluster].remove(farthest)
            waiting.append(farthest)
    return [sorted(group) for group in groups]


@given(seed=SEEDS, n_labels=st.integers(1, 15), n_centres=st.integers(1, 6))
def test_taking_the_nearest_pairs_first_is_the_published_assignment(seed, n_labels, n_centres):
    rng = np.random.default_rng(seed)
    labels, centres = rng.normal(size=(n_labels, 3)), rng.normal(size=(n_centres, 3))
    cluster_of = _balanced(labels, centres)
    members = [np.flatnonzero(cluster_of == cluster).tolist() for cluster in range(n_centres)]
    assert members == displaced(labels, centres)


@given(seed=SEEDS, n_labels=st.integers(1, 20), n_clusters=st.integers(1, 8))
@settings(max_examples=30, deadline=None)
def test_balanced_groups_are_none_larger_than_their_share(seed, n_labels, n_clusters):
    rng = np.random.default_rng(seed)
    # Many labels agree, so that k-means alone finds fewer groups.
    Y = (rng.random((4, n_labels)) < 0.2).astype(np.int8)
    groups = BalancedClusters(n_clusters).groups(Y, rng)
    assert max(map(len, groups)) <= ceil(n_labels / min(n_clusters, n_labels))
    assert len(groups) <= n_clusters


def test_balanced_groups_are_around_their_own_centres():
    rng = np.random.default_rng(1)
    causes = rng.random((200, 3)) < 0.4
    order = rng.permutation(9)
    Y = np.repeat(causes, 3, axis=1)[:, order] ^ (rng.random((200, 9)) < 0.05)
    groups = BalancedClusters(3).groups(Y.astype(np.int8), rng)
    expected = [sorted(np.flatnonzero(order // 3 == cause).tolist()) for cause in range(3)]
    assert sorted(group.tolist() for group in groups) == sorted(expected)
    with pytest.raises(InputError, match="max_iter"):
        BalancedClusters(3, max_iter=0).groups(Y.astype(np.int8), rng)


def test_rounds_of_balanced_groups_bring_labels_nearer_to_their_centres():
    def scatter(Y, max_iter):
        groups = BalancedClusters(3, max_iter).groups(Y, np.random.default_rng(0))
        return sum(Y[:, group].var(axis=1).sum() * len(group) for group in groups)

    pools = [np.random.default_rng(seed).random((5, 20)) for seed in range(5)]
    pools = [(pool < [[0.1], [0.2], [0.3], [0.4], [0.5]]).astype(np.int8) for pool in pools]
    assert sum(scatter(Y, 20) for Y in pools) < sum(scatter(Y, 1) for Y in pools)
