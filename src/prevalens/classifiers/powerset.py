"""Label powerset: every labelset of the training items is one class."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prevalens.classifiers.base import CompositeClassifier
from prevalens.classifiers.knn import MLkNN
from prevalens.labelsets import (
    Groups,
    Labelsets,
    RandomPartition,
    check_labelsets,
    k_means_groups,
    powerset,
)
from prevalens.response import is_label_wise, response, train
from prevalens.scores import Kind
from prevalens.solvers.multinomial import MultinomialLogistic
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import check_int, check_rng, count_items


class Powerset(CompositeClassifier):
    """One multi-class problem over the labelsets that occur in training.

    Parameters
    ----------
    estimator : multi-class classifier, optional
        Default: multinomial logistic regression.

    Attributes
    ----------
    states_ : array of int8, shape (n_states, n_labels)
        The labelsets seen in training, in lexicographic order; a row for each class.
    estimator_ : fitted classifier, or None if there was a single labelset
        Its classes are the row numbers of `states_`.

    Notes
    -----
    Votes are the most probable labelset, which need not consist of the labels with posteriors
    above one half. It cannot predict a labelset that is not in the training data. With many labels
    nearly every item is its own class; use `RAkEL` then.

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
        self.states_, state_of = powerset(Y)
        self.estimator_ = None
        if len(self.states_) > 1:
            estimator = MultinomialLogistic() if self.estimator is None else self.estimator
            self.estimator_ = clone(estimator).fit(X, state_of)

    def _state_posteriors(self, X: Any) -> Floats:
        if self.estimator_ is None:
            return np.ones((count_items(X), 1))
        return np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)

    def respond(self, X: Any, kind: Kind) -> npt.NDArray[Any]:
        """Votes or posteriors of checked items, shape (n_items, n_labels)."""
        if kind == "posteriors":
            # Rounding may leave a certain label slightly above 1.
            return np.minimum(self._state_posteriors(X) @ self.states_, 1.0)
        if self.estimator_ is None:
            return np.tile(self.states_, (count_items(X), 1))
        return np.asarray(self.states_[self.estimator_.predict(X)])


class LabelsetEnsemble(CompositeClassifier):
    """One multi-label classifier per group of labels; overlapping groups are averaged.

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

    def _fit_groups(self, classifier: Any, X: Any, Y: LabelMatrix, labelsets: Groups) -> None:
        self.labelsets_ = labelsets
        self.classifiers_ = Parallel(n_jobs=self.n_jobs)(
            delayed(train)(classifier, X, Y[:, labels]) for labels in self.labelsets_
        )

    def respond(self, X: Any, kind: Kind) -> npt.NDArray[Any]:
        """Votes or posteriors of checked items, shape (n_items, n_labels)."""
        total = np.zeros((count_items(X), self.n_labels_))
        times = np.zeros(self.n_labels_)
        for labels, classifier in zip(self.labelsets_, self.classifiers_, strict=True):
            total[:, labels] += response(classifier, X, kind, len(labels)).values
            times[labels] += 1
        mean = np.minimum(total / times, 1.0)
        return mean > 0.5 if kind == "votes" else mean


class RAkEL(LabelsetEnsemble):
    """Random k-labelsets: a `Powerset` for each of several small groups of labels.

    Parameters
    ----------
    estimator : multi-class classifier, optional
        Of each powerset. Default: multinomial logistic regression.
    labelsets : Labelsets or list of lists of label positions, optional
        The groups. Default ``RandomPartition(size=3)``, the disjoint version;
        ``RandomLabelsets(size=3)`` is the overlapping one.
    n_jobs : int, optional
    random_state : int or None
        Of the choice of groups.

    Attributes
    ----------
    labelsets_ : list of int arrays
    classifiers_ : list of fitted Powerset

    Notes
    -----
    A label's posterior is the mean over the groups that hold it, its vote the majority of theirs.
    One multi-class training per group with at most 2**size classes. Relations between labels of
    different groups are not used.

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
        random_state: int | None = 0,
    ) -> None:
        self.estimator = estimator
        self.labelsets = labelsets
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Any, Y: LabelMatrix) -> None:
        labelsets = RandomPartition() if self.labelsets is None else self.labelsets
        if isinstance(labelsets, Labelsets):
            groups = labelsets.groups(Y, check_rng(self.random_state))
        else:
            groups = check_labelsets(labelsets, Y.shape[1])
        self._fit_groups(Powerset(self.estimator), X, Y, groups)


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
    random_state : int or None
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
    part = "classifier"

    def __init__(
        self,
        n_clusters: int = 3,
        classifier: Any = None,
        *,
        n_jobs: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.classifier = classifier
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Any, Y: LabelMatrix) -> None:
        wanted = check_int(self.n_clusters, "n_clusters", minimum=1)
        self.clusters_ = k_means_groups(Y, wanted, self.random_state)
        classifier = MLkNN() if self.classifier is None else self.classifier
        groups = [np.arange(Y.shape[1])] if is_label_wise(classifier) else self.clusters_
        self._fit_groups(classifier, X, Y, groups)
