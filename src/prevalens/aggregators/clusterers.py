"""Groups of labels for LPQ: few labels each, so that their combinations stay countable."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans

from prevalens.types import LabelMatrix
from prevalens.validation import InputError, check_int

__all__ = ["Clusterer", "KMeansClusters", "RandomClusters", "check_clusters"]

#: Labels per cluster, where the number of clusters is left open.
_LABELS_PER_CLUSTER = 3


class Clusterer(BaseEstimator, ABC):  # type: ignore[misc]
    """A way to divide labels into disjoint groups."""

    @abstractmethod
    def cluster(self, Y: LabelMatrix, rng: np.random.Generator) -> list[npt.NDArray[np.intp]]:
        """Positions of the labels of each group; every label stands in exactly one.

        Parameters
        ----------
        Y : 0/1 array, shape (n_items, n_labels)
        rng : numpy Generator
        """


class RandomClusters(Clusterer):
    """Disjoint random groups of equal size, as the disjoint version of RAkEL has them.

    Parameters
    ----------
    n_clusters : int, optional
        Groups wanted: groups of ceil(n_labels / n_clusters) labels, which may make fewer; the
        last may be smaller. Default: groups of three labels.

    Notes
    -----
    O(n_labels). Blind to which labels occur together, so most of what LPQ could use is lost
    between groups.

    References
    ----------
    Tsoumakas, Katakis and Vlahavas, "Random k-labelsets for multilabel classification", IEEE
    TKDE 23(7), 2011.

    Examples
    --------
    >>> Y = np.zeros((1, 5), dtype=np.int8)
    >>> groups = RandomClusters(2).cluster(Y, np.random.default_rng(0))
    >>> [len(group) for group in groups]
    [3, 2]
    """

    code = "random"

    def __init__(self, n_clusters: int | None = None) -> None:
        self.n_clusters = n_clusters

    def cluster(self, Y: LabelMatrix, rng: np.random.Generator) -> list[npt.NDArray[np.intp]]:
        """See `Clusterer`."""
        n_labels = Y.shape[1]
        size = -(-n_labels // _wanted(self.n_clusters, n_labels))
        order = rng.permutation(n_labels)
        return [np.sort(order[start : start + size]) for start in range(0, n_labels, size)]


class KMeansClusters(Clusterer):
    """Labels of the same items together, by k-means over the label-by-item matrix.

    Parameters
    ----------
    n_clusters : int, optional
        Groups; fewer where fewer labels differ. Default: a third of the number of labels.

    Notes
    -----
    A label is the vector of its column of Y. O(n_items x n_labels x n_clusters) per round of
    k-means. Rare labels are all near zero and tend to end up in one large group, whose
    combinations are then many; ask for more groups if that happens.

    References
    ----------
    Szymański, Kajdanowicz and Kersting, "How is a data-driven approach better than random choice
    in label space division for multi-label classification?", Entropy 18(8), 2016.

    Examples
    --------
    >>> Y = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=np.int8)
    >>> groups = KMeansClusters(2).cluster(Y, np.random.default_rng(0))
    >>> sorted(group.tolist() for group in groups)
    [[0, 1], [2]]
    """

    code = "kmeans"

    def __init__(self, n_clusters: int | None = None) -> None:
        self.n_clusters = n_clusters

    def cluster(self, Y: LabelMatrix, rng: np.random.Generator) -> list[npt.NDArray[np.intp]]:
        """See `Clusterer`."""
        n_different = len(np.unique(Y, axis=1).T)
        n_clusters = min(_wanted(self.n_clusters, Y.shape[1]), n_different)
        k_means = KMeans(n_clusters, n_init=10, random_state=int(rng.integers(2**31)))
        cluster_of = k_means.fit_predict(Y.T.astype(np.float64))
        return [np.flatnonzero(cluster_of == cluster) for cluster in np.unique(cluster_of)]


def _wanted(n_clusters: int | None, n_labels: int) -> int:
    if n_clusters is None:
        return -(-n_labels // _LABELS_PER_CLUSTER)
    return min(check_int(n_clusters, "n_clusters", minimum=1), n_labels)


def check_clusters(groups: Any, n_labels: int) -> list[npt.NDArray[np.intp]]:
    """Groups that were handed in: positions of labels, every label in exactly one."""
    try:
        clusters = [np.asarray(group, dtype=np.intp).reshape(-1) for group in groups]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"Clusters must be KMeansClusters(), RandomClusters() or lists of label positions; got "
            f"{groups!r}."
        ) from error
    clusters = [group for group in clusters if len(group)]
    held = np.concatenate([*clusters, np.empty(0, dtype=np.intp)])
    if not np.array_equal(np.sort(held), np.arange(n_labels)):
        raise InputError(
            f"Clusters must hold each of the {n_labels} labels (0 to {n_labels - 1}) exactly once."
        )
    return clusters
