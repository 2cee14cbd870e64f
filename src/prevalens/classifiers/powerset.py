"""Label powerset: every labelset of the training items is one class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.classifiers.knn import MLkNN
from prevalens.classifiers.logistic import MultinomialLogistic
from prevalens.response import is_joint, offers, response, train
from prevalens.scores import Kind
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import InputError, check_int, check_rng, count_items

__all__ = [
    "LabelSpaceClusters",
    "LabelsetEnsemble",
    "Labelsets",
    "Powerset",
    "RAkEL",
    "RandomLabelsets",
    "RandomPartition",
    "check_labelsets",
]


class Powerset(MultiLabelClassifier):
    """One multi-class problem over the labelsets that occur in training.

    Parameters
    ----------
    estimator : multi-class classifier, optional
        Default: multinomial logistic regression.

    Attributes
    ----------
    states_ : array of int8, shape (n_states, n_labels)
        The labelsets seen in training, in lexicographic order: which labels each class stands for.
    estimator_ : fitted classifier, or None if there was a single labelset
        Its classes are the row numbers of `states_`.

    Notes
    -----
    Votes are the most probable labelset, which need not consist of the labels with posteriors
    above one half. Cannot answer a labelset it has not seen; with many labels nearly every item is
    its own class, and `RAkEL` is the way out.

    References
    ----------
    Boutell et al., "Learning multi-label scene classification", Pattern Recognition 37(9), 2004.

    Examples
    --------
    >>> X, Y = [[0.0], [0.2], [1.0], [1.2]], [[0, 0], [0, 0], [1, 1], [1, 1]]
    >>> model = Powerset().fit(X, Y)
    >>> model.states_.tolist(), model.predict([[0.0], [1.0]]).tolist()
    ([[0, 0], [1, 1]], [[0, 0], [1, 1]])
    """

    code = "lp"
    takes_texts = True

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    @available_if(lambda self: self._offers_posteriors())  # type: ignore[untyped-decorator]
    def predict_state_proba(self, X: Any) -> Floats:
        """Posterior probability of each labelset in `states_`, shape (n_items, n_states)."""
        check_is_fitted(self)
        return self._state_posteriors(self._check_items(X, reset=False))

    def _fit(self, X: Any, Y: LabelMatrix) -> None:
        self.states_, state_of = np.unique(Y, axis=0, return_inverse=True)
        self.estimator_ = None
        if len(self.states_) > 1:
            self.estimator_ = self._template().fit(X, state_of.ravel())

    def _template(self) -> Any:
        return MultinomialLogistic() if self.estimator is None else clone(self.estimator)

    def _offers_posteriors(self) -> bool:
        return self.estimator is None or "posteriors" in offers(self.estimator)

    def _state_posteriors(self, X: Any) -> Floats:
        if self.estimator_ is None:
            return np.ones((count_items(X), 1))
        return np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)

    def _posteriors(self, X: Any) -> Floats:
        # Rounding may leave a certain label a hair above 1.
        return np.minimum(self._state_posteriors(X) @ self.states_, 1.0)

    def _votes(self, X: Any) -> npt.NDArray[Any]:
        if self.estimator_ is None:
            return np.tile(self.states_, (count_items(X), 1))
        return np.asarray(self.states_[self.estimator_.predict(X)])


class Labelsets(BaseEstimator, ABC):  # type: ignore[misc]
    """A way to choose groups of labels."""

    @abstractmethod
    def draw(self, n_labels: int, rng: np.random.Generator) -> list[npt.NDArray[np.intp]]:
        """Groups of positions of labels; together they hold every label."""


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
    >>> import numpy as np
    >>> groups = RandomPartition(size=2).draw(5, np.random.default_rng(0))
    >>> [len(group) for group in groups]
    [2, 2, 1]
    """

    code = "partition"

    def __init__(self, size: int = 3, n_clusters: int | None = None) -> None:
        self.size = size
        self.n_clusters = n_clusters

    def draw(self, n_labels: int, rng: np.random.Generator) -> list[npt.NDArray[np.intp]]:
        """Disjoint groups."""
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
    label stands in about as many groups as every other, and none is left out.

    Examples
    --------
    >>> import numpy as np
    >>> groups = RandomLabelsets(size=2, n_sets=4).draw(5, np.random.default_rng(0))
    >>> [len(group) for group in groups]
    [2, 2, 2, 2]
    """

    code = "labelsets"

    def __init__(self, size: int = 3, n_sets: int | None = None) -> None:
        self.size = size
        self.n_sets = n_sets

    def draw(self, n_labels: int, rng: np.random.Generator) -> list[npt.NDArray[np.intp]]:
        """Overlapping groups."""
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
    """Groups of `size` from one order of the labels; the last is filled up with others."""
    missing = -len(order) % size
    filler = rng.choice(order[: len(order) - len(order) % size], missing, replace=False)
    full = np.concatenate([order, filler]).reshape(-1, size)
    return [tuple(sorted(group)) for group in full.tolist()]


def check_labelsets(labelsets: Any, n_labels: int) -> list[npt.NDArray[np.intp]]:
    """Groups that were handed in: positions of labels, every label in at least one."""
    groups = [np.unique(np.asarray(group, dtype=np.intp)) for group in labelsets]
    held = np.concatenate(groups) if groups else np.zeros(0, dtype=np.intp)
    outside = held[(held < 0) | (held >= n_labels)]
    if len(outside):
        raise InputError(f"A labelset names label {outside[0]}, but there are {n_labels} labels.")
    missing = np.setdiff1d(np.arange(n_labels), held)
    if len(missing):
        raise InputError(f"Label {missing[0]} stands in no labelset; give each label at least one.")
    return [group for group in groups if len(group)]


class LabelsetEnsemble(MultiLabelClassifier):
    """One multi-label classifier per group of labels, averaged where groups overlap.

    A subclass chooses the groups and the classifier, and calls `_fit_groups`.

    Attributes
    ----------
    labelsets_ : list of int arrays
        The labels of each group.
    classifiers_ : list of fitted classifiers
        One per group, trained on its labels.
    """

    takes_texts = True
    n_jobs: int | None

    def _fit_groups(
        self,
        classifier: Any,
        X: Any,
        Y: LabelMatrix,
        labelsets: Sequence[npt.NDArray[np.intp]],
    ) -> None:
        self.labelsets_ = list(labelsets)
        self.classifiers_ = Parallel(n_jobs=self.n_jobs)(
            delayed(train)(classifier, X, Y[:, labels]) for labels in self.labelsets_
        )

    def _posteriors(self, X: Any) -> Floats:
        return self._average(X, "posteriors")

    def _votes(self, X: Any) -> npt.NDArray[Any]:
        return self._average(X, "votes") > 0.5

    def _average(self, X: Any, kind: Kind) -> Floats:
        total = np.zeros((count_items(X), self.n_labels_))
        times = np.zeros(self.n_labels_)
        for labels, classifier in zip(self.labelsets_, self.classifiers_, strict=True):
            total[:, labels] += response(classifier, X, kind, len(labels)).values
            times[labels] += 1
        return np.minimum(total / times, 1.0)


class RAkEL(LabelsetEnsemble):
    """Random k-labelsets: a `Powerset` for each of several small groups of labels.

    Parameters
    ----------
    estimator : multi-class classifier, optional
        Of each powerset. Default: multinomial logistic regression.
    labelsets : RandomPartition, RandomLabelsets or list of lists of positions, optional
        The groups. Default ``RandomPartition(size=3)``, the disjoint version;
        ``RandomLabelsets(size=3)`` is the overlapping one.
    n_jobs : int, optional
    random_state : int, optional
        Of the choice of groups.

    Attributes
    ----------
    labelsets_ : list of int arrays
    classifiers_ : list of fitted Powerset

    Notes
    -----
    A label's posterior is the mean over the groups that hold it, its vote the majority of theirs.
    One multi-class training per group with at most 2**size classes. Sees no relation between
    labels of different groups.

    References
    ----------
    Tsoumakas, Katakis and Vlahavas, "Random k-labelsets for multilabel classification", IEEE
    TKDE 23(7), 2011.

    Examples
    --------
    >>> X, Y = [[0.0], [0.2], [1.0], [1.2]], [[0, 0, 1], [0, 0, 1], [1, 1, 0], [1, 1, 0]]
    >>> RAkEL(labelsets=[[0, 1], [2]]).fit(X, Y).predict([[0.0], [1.0]]).tolist()
    [[0, 0, 1], [1, 1, 0]]
    """

    code = "rakel"

    def __init__(
        self,
        estimator: Any = None,
        labelsets: Any = None,
        *,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.labelsets = labelsets
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Any, Y: LabelMatrix) -> None:
        self._fit_groups(Powerset(self.estimator), X, Y, self._groups(Y.shape[1]))

    def _groups(self, n_labels: int) -> list[npt.NDArray[np.intp]]:
        labelsets = RandomPartition() if self.labelsets is None else self.labelsets
        if isinstance(labelsets, Labelsets):
            return labelsets.draw(n_labels, check_rng(self.random_state))
        return check_labelsets(labelsets, n_labels)

    def _offers_posteriors(self) -> bool:
        return self.estimator is None or "posteriors" in offers(self.estimator)


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

    def _fit(self, X: Any, Y: LabelMatrix) -> None:
        self.clusters_ = self._cluster(Y)
        classifier = MLkNN() if self.classifier is None else self.classifier
        divided = is_joint(classifier) and not getattr(classifier, "label_wise", False)
        groups = self.clusters_ if divided else [np.arange(Y.shape[1])]
        self._fit_groups(classifier, X, Y, groups)

    def _cluster(self, Y: LabelMatrix) -> list[npt.NDArray[np.intp]]:
        wanted = check_int(self.n_clusters, "n_clusters", minimum=1)
        points = Y.T.astype(np.float64)
        n_clusters = min(wanted, len(np.unique(Y.T, axis=0)))
        k_means = KMeans(n_clusters, n_init=10, random_state=self.random_state)
        cluster_of = k_means.fit_predict(points)
        groups = (np.flatnonzero(cluster_of == cluster) for cluster in range(n_clusters))
        return [group for group in groups if len(group)]

    def _offers_posteriors(self) -> bool:
        return self.classifier is None or "posteriors" in offers(self.classifier)
