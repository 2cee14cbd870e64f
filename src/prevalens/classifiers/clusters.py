"""Label space clustering: similar labels share a classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans

from prevalens.classifiers.knn import MLkNN
from prevalens.classifiers.labelsets import LabelsetEnsemble
from prevalens.classifiers.response import is_joint, offers
from prevalens.validation import check_int

__all__ = ["LabelSpaceClusters"]


class LabelSpaceClusters(LabelsetEnsemble):
    """Cluster the labels by k-means and train one multi-label classifier per cluster.

    A label is a point with one coordinate per training item, its column of Y.

    Parameters
    ----------
    n_clusters : int
        Number of clusters; fewer where there are fewer different labels.
    classifier : multi-label classifier, optional
        Trained on each cluster. Default: ``MLkNN()``.
    n_jobs : int, optional
    random_state : int, optional
        Of k-means.

    Attributes
    ----------
    clusters_ : list of int arrays
        The labels of each cluster.
    labelsets_, classifiers_ : lists
        The groups that were trained on, and the trained classifiers.

    Notes
    -----
    With a classifier that scores each label from its own column, such as `MLkNN` or `PerLabel`,
    the clusters cannot change anything: the result is that of the classifier on all labels, and it
    is trained once (`labelsets_` is then one group of all labels). The clusters matter for
    classifiers that weigh labels against each other, such as `Powerset`, `Chain`, `Tree` or
    `Forest`.

    References
    ----------
    Szymański, Kajdanowicz and Kersting, "How is a data-driven approach better than random choice in
    label space division for multi-label classification?", Entropy 18(8), 2016.

    Examples
    --------
    >>> X = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]
    >>> Y = [[0, 0, 1], [0, 0, 1], [0, 0, 1], [1, 1, 0], [1, 1, 0], [1, 1, 0]]
    >>> model = LabelSpaceClusters(2, MLkNN(k=2), random_state=0).fit(X, Y)
    >>> sorted(cluster.tolist() for cluster in model.clusters_)
    [[0, 1], [2]]
    """

    code = "lsc"

    def __init__(
        self,
        n_clusters: int = 3,
        classifier: Any = None,
        *,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.classifier = classifier
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Any, Y: npt.NDArray[np.int8]) -> None:
        self.clusters_ = self._cluster(Y)
        classifier = MLkNN() if self.classifier is None else self.classifier
        divided = is_joint(classifier) and not getattr(classifier, "label_wise", False)
        groups = self.clusters_ if divided else [np.arange(Y.shape[1])]
        self._fit_groups(classifier, X, Y, groups)

    def _cluster(self, Y: npt.NDArray[np.int8]) -> list[npt.NDArray[np.intp]]:
        wanted = check_int(self.n_clusters, "n_clusters", minimum=1)
        points = Y.T.astype(np.float64)
        n_clusters = min(wanted, len(np.unique(Y.T, axis=0)))
        k_means = KMeans(n_clusters, n_init=10, random_state=self.random_state)
        cluster_of = k_means.fit_predict(points)
        groups = (np.flatnonzero(cluster_of == cluster) for cluster in range(n_clusters))
        return [group for group in groups if len(group)]

    def _offers_posteriors(self) -> bool:
        return self.classifier is None or "posteriors" in offers(self.classifier)
