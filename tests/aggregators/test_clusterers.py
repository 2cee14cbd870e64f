from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prevalens.aggregators.clusterers import KMeansClusters, RandomClusters, check_clusters
from prevalens.validation import InputError


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_labels=st.integers(1, 12),
    n_clusters=st.one_of(st.none(), st.integers(1, 20)),
    clusterer=st.sampled_from([RandomClusters, KMeansClusters]),
)
def test_every_label_stands_in_exactly_one_cluster(seed, n_labels, n_clusters, clusterer):
    rng = np.random.default_rng(seed)
    Y = (rng.random((20, n_labels)) < 0.3).astype(np.int8)
    clusters = clusterer(n_clusters).cluster(Y, rng)
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
    clusters = RandomClusters(n_clusters).cluster(
        np.zeros((1, n_labels), dtype=np.int8), np.random.default_rng(0)
    )
    assert [len(cluster) for cluster in clusters] == sizes


def test_random_clusters_follow_the_seed():
    Y = np.zeros((1, 30), dtype=np.int8)

    def draw(seed):
        clusters = RandomClusters(5).cluster(Y, np.random.default_rng(seed))
        return [cluster.tolist() for cluster in clusters]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_k_means_puts_labels_of_the_same_items_together():
    rng = np.random.default_rng(0)
    groups = (rng.random((200, 3)) < 0.5).astype(np.int8)
    Y = np.repeat(groups, 3, axis=1)
    flipped = rng.random(Y.shape) < 0.05
    Y = np.where(flipped, 1 - Y, Y).astype(np.int8)
    clusters = KMeansClusters(3).cluster(Y, rng)
    assert sorted(cluster.tolist() for cluster in clusters) == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_k_means_with_fewer_different_labels_than_clusters():
    Y = np.array([[1, 1, 1, 0], [0, 0, 0, 0]], dtype=np.int8)
    clusters = KMeansClusters(4).cluster(Y, np.random.default_rng(0))
    assert sorted(cluster.tolist() for cluster in clusters) == [[0, 1, 2], [3]]


def test_clusters_handed_in_are_checked():
    found = check_clusters([[2, 0], (), [1]], 3)
    assert [cluster.tolist() for cluster in found] == [[2, 0], [1]]
    for wrong in ([[0, 1]], [[0, 1], [1, 2]], [[0, 1, 2, 3]], []):
        with pytest.raises(InputError, match=r"each of the 3 labels \(0 to 2\) exactly once"):
            check_clusters(wrong, 3)
    for wrong in (5, "kmeans", [["a"]]):
        with pytest.raises(InputError, match=r"Clusters must be KMeansClusters\(\)"):
            check_clusters(wrong, 3)


@pytest.mark.parametrize("clusterer", [RandomClusters, KMeansClusters])
def test_no_clusters_are_refused(clusterer):
    with pytest.raises(InputError, match="n_clusters must be at least 1; got 0"):
        clusterer(0).cluster(np.zeros((1, 3), dtype=np.int8), np.random.default_rng(0))
