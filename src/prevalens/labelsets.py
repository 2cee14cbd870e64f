"""Groups of labels, and the label combinations that occur in them.

Problems over combinations of labels stay small if the labels are first divided into groups.
`RandomPartition`, `RandomLabelsets`, `RandomClusters`, `KMeansClusters` and `BalancedClusters`
choose the groups; `powerset` numbers the combinations. Classifiers (`RAkEL`, `LabelSpaceClusters`,
`HOMER`, `Powerset`) and aggregators (`LPQ`) share them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import comb
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import euclidean_distances

from prevalens.types import Floats, LabelMatrix
from prevalens.validation import InputError, check_int

#: The positions of the labels of each group, in ascending order.
Groups: TypeAlias = list[npt.NDArray[np.intp]]

#: Labels per cluster if the number of clusters is not given.
_LABELS_PER_CLUSTER = 3


def powerset(Y: LabelMatrix) -> tuple[LabelMatrix, npt.NDArray[np.intp]]:
    """Number the label combinations that occur among items.

    Returns
    -------
    states : 0/1 array, shape (n_states, n_labels)
        The different rows of `Y`, in lexicographic order.
    state_of : array of int, shape (n_items,)
        The row of `states` that each item has.

    Examples
    --------
    >>> states, state_of = powerset(np.array([[1, 0], [0, 1], [1, 0]], dtype=np.int8))
    >>> states.tolist(), state_of.tolist()
    ([[0, 1], [1, 0]], [1, 0, 1])
    """
    states, state_of = np.unique(Y, axis=0, return_inverse=True)
    return states, state_of.reshape(-1)


class Labelsets(BaseEstimator, ABC):  # type: ignore[misc]
    """A way to choose groups of labels."""

    @abstractmethod
    def groups(self, Y: LabelMatrix, rng: np.random.Generator) -> Groups:
        """Choose groups that together hold every label.

        Parameters
        ----------
        Y : 0/1 array, shape (n_items, n_labels)
            Labels of the training items.
        rng : numpy Generator
        """


class RandomPartition(Labelsets):
    """Cut the labels, in random order, into groups of equal size; the last may be smaller.

    Parameters
    ----------
    size : int
        Labels per group.
    n_clusters : int, optional
        Wanted number of groups, in place of `size`: groups of ceil(n_labels / n_clusters) labels,
        which may make fewer groups.

    Examples
    --------
    >>> Y = np.zeros((1, 5), dtype=np.int8)
    >>> groups = RandomPartition(size=2).groups(Y, np.random.default_rng(0))
    >>> [len(group) for group in groups]
    [2, 2, 1]
    """

    code = "partition"

    def __init__(self, size: int = 3, n_clusters: int | None = None) -> None:
        self.size = size
        self.n_clusters = n_clusters

    def groups(self, Y: LabelMatrix, rng: np.random.Generator) -> Groups:
        """Choose disjoint groups."""
        n_labels = Y.shape[1]
        if self.n_clusters is None:
            size = check_int(self.size, "size", minimum=1)
        else:
            size = -(-n_labels // check_int(self.n_clusters, "n_clusters", minimum=1))
        order = rng.permutation(n_labels)
        return [np.sort(order[start : start + size]) for start in range(0, n_labels, size)]


class RandomLabelsets(Labelsets):
    """Different random groups that may overlap.

    Parameters
    ----------
    size : int
        Labels per group.
    n_sets : int, optional
        Number of groups; default twice the number of labels, and never more than there are.

    Notes
    -----
    The groups are cut from random orders of all labels, not drawn one by one, so that every
    label is in about as many groups as every other, and none is left out.

    Examples
    --------
    >>> Y = np.zeros((1, 5), dtype=np.int8)
    >>> groups = RandomLabelsets(size=2, n_sets=4).groups(Y, np.random.default_rng(0))
    >>> [len(group) for group in groups]
    [2, 2, 2, 2]
    """

    code = "labelsets"

    def __init__(self, size: int = 3, n_sets: int | None = None) -> None:
        self.size = size
        self.n_sets = n_sets

    def groups(self, Y: LabelMatrix, rng: np.random.Generator) -> Groups:
        """Choose overlapping groups."""
        n_labels = Y.shape[1]
        size = min(check_int(self.size, "size", minimum=1), n_labels)
        wanted = 2 * n_labels if self.n_sets is None else check_int(self.n_sets, "n_sets")
        if wanted * size < n_labels:
            raise InputError(
                f"{wanted} groups of {size} cannot hold {n_labels} labels; raise n_sets or size."
            )
        wanted = min(wanted, comb(n_labels, size))
        chosen: dict[tuple[int, ...], None] = {}
        while len(chosen) < wanted:
            chosen.update(dict.fromkeys(_cut(rng.permutation(n_labels), size, rng)))
        return [np.array(group) for group in list(chosen)[:wanted]]


def _cut(order: npt.NDArray[np.intp], size: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Groups of `size` from an order of the labels; the last is completed with other labels."""
    missing = -len(order) % size
    filler = rng.choice(order[: len(order) - len(order) % size], missing, replace=False)
    full = np.concatenate([order, filler]).reshape(-1, size)
    return [tuple(sorted(group)) for group in full.tolist()]


class RandomClusters(Labelsets):
    """Disjoint random groups of equal size, as in the disjoint version of RAkEL.

    Parameters
    ----------
    n_clusters : int, optional
        Wanted number of groups: groups of ceil(n_labels / n_clusters) labels, which may make
        fewer; the last may be smaller. Default: a third of the number of labels.

    Notes
    -----
    O(n_labels). Ignores which labels occur together, so that most dependences between labels, which
    LPQ could use, are lost.

    References
    ----------
    Tsoumakas, Katakis and Vlahavas, "Random k-labelsets for multilabel classification", IEEE
    TKDE 23(7), 2011.

    Examples
    --------
    >>> Y = np.zeros((1, 5), dtype=np.int8)
    >>> groups = RandomClusters(2).groups(Y, np.random.default_rng(0))
    >>> [len(group) for group in groups]
    [3, 2]
    """

    code = "random"

    def __init__(self, n_clusters: int | None = None) -> None:
        self.n_clusters = n_clusters

    def groups(self, Y: LabelMatrix, rng: np.random.Generator) -> Groups:
        """Choose disjoint groups."""
        return RandomPartition(n_clusters=_wanted(self.n_clusters, Y.shape[1])).groups(Y, rng)


class KMeansClusters(Labelsets):
    """Groups of labels that occur on the same items, by k-means over the label-by-item matrix.

    Parameters
    ----------
    n_clusters : int, optional
        Number of groups; fewer if fewer labels differ. Default: a third of the number of labels.

    Notes
    -----
    A label is the vector of its column of Y. O(n_items x n_labels x n_clusters) per round of
    k-means. Rare labels are all near zero and tend to end up in one large group, whose
    combinations are then many; raise `n_clusters` if that happens.

    References
    ----------
    Szymański, Kajdanowicz and Kersting, "How is a data-driven approach better than random choice
    in label space division for multi-label classification?", Entropy 18(8), 2016.

    Examples
    --------
    >>> Y = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=np.int8)
    >>> groups = KMeansClusters(2).groups(Y, np.random.default_rng(0))
    >>> sorted(group.tolist() for group in groups)
    [[0, 1], [2]]
    """

    code = "kmeans"

    def __init__(self, n_clusters: int | None = None) -> None:
        self.n_clusters = n_clusters

    def groups(self, Y: LabelMatrix, rng: np.random.Generator) -> Groups:
        """Choose disjoint groups."""
        wanted = _wanted(self.n_clusters, Y.shape[1])
        return k_means_groups(Y, wanted, int(rng.integers(2**31)))


class BalancedClusters(Labelsets):
    """Groups of labels that occur on the same items, of limited size, by balanced k-means.

    Parameters
    ----------
    n_clusters : int, optional
        Number of groups; none has more than ceil(n_labels / n_clusters) labels. Default: a third of
        the number of labels.
    max_iter : int
        Most rounds of assignments and centres.

    Notes
    -----
    Begins with the centres of k-means. In each round a full group keeps its nearest labels, and
    the others go to their next nearest centre; since labels and groups rank each other by the same
    distances, this is the assignment that takes the pairs in ascending order of distance.
    O(n_items x n_labels x n_clusters) per round. Fails where most labels occur together: the bound
    on the size of groups separates them.

    References
    ----------
    Tsoumakas, Katakis and Vlahavas, "Effective and efficient multilabel classification in domains
    with large number of labels", ECML/PKDD Workshop on Mining Multidimensional Data, 2008.

    Examples
    --------
    >>> Y = np.array([[1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 1, 1]], dtype=np.int8)
    >>> groups = BalancedClusters(2).groups(Y, np.random.default_rng(0))
    >>> sorted(group.tolist() for group in groups)
    [[0, 1], [2, 3]]
    """

    code = "balanced-kmeans"

    def __init__(self, n_clusters: int | None = None, max_iter: int = 20) -> None:
        self.n_clusters = n_clusters
        self.max_iter = max_iter

    def groups(self, Y: LabelMatrix, rng: np.random.Generator) -> Groups:
        """Choose disjoint groups."""
        wanted = _wanted(self.n_clusters, Y.shape[1])
        labels = Y.T.astype(np.float64)
        centres = _k_means(Y, wanted, int(rng.integers(2**31))).cluster_centers_
        # Labels that agree have a common centre; it is repeated, so that they are divided too.
        centres = np.resize(centres, (wanted, len(Y)))
        cluster_of = np.full(len(labels), -1)
        for _ in range(check_int(self.max_iter, "max_iter", minimum=1)):
            previous, cluster_of = cluster_of, _balanced(labels, centres)
            if np.array_equal(cluster_of, previous):
                break
            for cluster in np.unique(cluster_of):
                centres[cluster] = labels[cluster_of == cluster].mean(axis=0)
        return _members(cluster_of)


def _balanced(labels: Floats, centres: Floats) -> npt.NDArray[np.intp]:
    """Assign each label to a centre, nearest pairs first, none to more than its share of labels."""
    distances = euclidean_distances(labels, centres, squared=True)
    room = np.full(len(centres), -(-len(labels) // len(centres)))
    cluster_of = np.full(len(labels), -1, dtype=np.intp)
    order = np.argsort(distances, axis=None, kind="stable")
    for label, cluster in zip(*np.unravel_index(order, distances.shape), strict=True):
        if cluster_of[label] < 0 and room[cluster]:
            cluster_of[label] = cluster
            room[cluster] -= 1
    return cluster_of


def k_means_groups(Y: LabelMatrix, n_clusters: int, random_state: int | None) -> Groups:
    """Group labels by k-means, each label being its column of `Y`; fewer groups if labels agree."""
    return _members(_k_means(Y, n_clusters, random_state).labels_)


def _k_means(Y: LabelMatrix, n_clusters: int, random_state: int | None) -> KMeans:
    n_different = len(np.unique(Y, axis=1).T)
    k_means = KMeans(min(n_clusters, n_different), n_init=10, random_state=random_state)
    return k_means.fit(Y.T.astype(np.float64))


def _members(cluster_of: npt.NDArray[Any]) -> Groups:
    return [np.flatnonzero(cluster_of == cluster) for cluster in np.unique(cluster_of)]


def _wanted(n_clusters: int | None, n_labels: int) -> int:
    if n_clusters is None:
        return -(-n_labels // _LABELS_PER_CLUSTER)
    return min(check_int(n_clusters, "n_clusters", minimum=1), n_labels)


def check_labelsets(labelsets: Any, n_labels: int) -> Groups:
    """Check groups that the user gives as label positions: every label in at least one."""
    groups = [np.unique(np.asarray(group, dtype=np.intp)) for group in labelsets]
    held = np.concatenate(groups) if groups else np.zeros(0, dtype=np.intp)
    outside = held[(held < 0) | (held >= n_labels)]
    if len(outside):
        raise InputError(f"A labelset names label {outside[0]}, but there are {n_labels} labels.")
    missing = np.setdiff1d(np.arange(n_labels), held)
    if len(missing):
        raise InputError(f"Label {missing[0]} stands in no labelset; give each label at least one.")
    return [group for group in groups if len(group)]


def check_clusters(groups: Any, n_labels: int) -> Groups:
    """Check groups that the user gives as label positions: every label in exactly one."""
    try:
        clusters = [np.asarray(group, dtype=np.intp).reshape(-1) for group in groups]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"Clusters must be KMeansClusters(), RandomClusters(), BalancedClusters() or lists of "
            f"label positions; got {groups!r}."
        ) from error
    clusters = [group for group in clusters if len(group)]
    held = np.concatenate([*clusters, np.empty(0, dtype=np.intp)])
    if not np.array_equal(np.sort(held), np.arange(n_labels)):
        raise InputError(
            f"Clusters must hold each of the {n_labels} labels (0 to {n_labels - 1}) exactly once."
        )
    return clusters
