"""HOMER: a tree of groups of labels, with a multi-label classifier in every inner node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.classifiers.base import CompositeClassifier
from prevalens.classifiers.per_label import PerLabel
from prevalens.labelsets import BalancedClusters, Groups, Labelsets, check_clusters
from prevalens.response import response, train
from prevalens.scores import Kind
from prevalens.types import LabelMatrix
from prevalens.validation import InputError, check_rng, count_items, take_items


class HOMER(CompositeClassifier):
    """A tree of groups of labels; each node predicts which of its groups an item has labels of.

    The root has all labels. A node divides its labels into groups, which are its children, down to
    single labels. Its classifier is trained on the items that have any of the node's labels (the
    root's on all items); its targets, the meta-labels, say whether an item has any label of a
    group.

    Parameters
    ----------
    classifier : multi-label classifier, optional
        Trained in every node. Default: ``PerLabel()``, one logistic regression per meta-label.
    clusterer : Labelsets, optional
        Divides the labels of a node. Default ``BalancedClusters(3)``; ``RandomClusters(3)`` makes
        HOMER-R, ``KMeansClusters(3)`` HOMER-K.
    random_state : int or None
        Of the clusterer.

    Attributes
    ----------
    groups_ : list of lists of int arrays
        The labels of every child, for each inner node, the root first.
    classifiers_ : list of fitted classifiers
        One per inner node.

    Notes
    -----
    A label's posterior is the product of the posteriors on its path from the root, each being that
    of a group given that the item has a label of the node; it is voted for if every node on the
    path votes for its group. With k groups per node, about n_labels / (k - 1) trainings of k
    meta-labels, on fewer and fewer items. Fails where labels of one group have little in common:
    the upper nodes cannot predict the union, and a label that they miss is lost. Posteriors of
    labels deep in the tree multiply the errors of all nodes above.

    References
    ----------
    Tsoumakas, Katakis and Vlahavas, "Effective and efficient multilabel classification in domains
    with large number of labels", MMD workshop of ECML/PKDD, 2008.

    Examples
    --------
    >>> X = [[0.0], [0.1], [1.0], [1.1]]
    >>> Y = [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> model = HOMER(PerLabel(C=100), BalancedClusters(2)).fit(X, Y)
    >>> sorted(group.tolist() for group in model.groups_[0])
    [[0, 1], [2, 3]]
    >>> model.predict([[0.0], [1.0]]).tolist()
    [[1, 1, 0, 0], [0, 0, 1, 1]]
    """

    code = "homer"
    part = "classifier"
    takes_texts = True

    def __init__(
        self,
        classifier: Any = None,
        clusterer: Any = None,
        *,
        random_state: int | None = 0,
    ) -> None:
        self.classifier = classifier
        self.clusterer = clusterer
        self.random_state = random_state

    def _fit(self, X: Any, Y: LabelMatrix) -> None:
        classifier = PerLabel() if self.classifier is None else self.classifier
        clusterer = BalancedClusters(3) if self.clusterer is None else self.clusterer
        if not isinstance(clusterer, Labelsets):
            raise InputError(
                "HOMER divides labels by BalancedClusters(), RandomClusters() or KMeansClusters(); "
                f"got clusterer={clusterer!r}."
            )
        nodes = list(_nodes(Y, clusterer, check_rng(self.random_state)))
        self.groups_ = [groups for _, groups in nodes]
        self.classifiers_ = [
            train(classifier, take_items(X, rows), _any_of(Y[rows], groups))
            for rows, groups in nodes
        ]

    def respond(self, X: Any, kind: Kind) -> npt.NDArray[Any]:
        """Votes or posteriors of checked items, shape (n_items, n_labels)."""
        product = np.ones((count_items(X), self.n_labels_))
        for groups, classifier in zip(self.groups_, self.classifiers_, strict=True):
            values = response(classifier, X, kind, len(groups)).values
            for group, column in zip(groups, values.T, strict=True):
                product[:, group] *= column[:, np.newaxis]
        return product


def _nodes(
    Y: LabelMatrix, clusterer: Labelsets, rng: np.random.Generator
) -> Iterator[tuple[npt.NDArray[np.intp], Groups]]:
    """Rows of the training items and groups of labels of every inner node, parents first."""
    waiting = [(np.arange(len(Y)), np.arange(Y.shape[1]))]
    while waiting:
        rows, labels = waiting.pop(0)
        groups = _divided(Y[np.ix_(rows, labels)], labels, clusterer, rng)
        yield rows, groups
        for group in groups:
            below = rows[Y[np.ix_(rows, group)].any(axis=1)]
            # Labels that no item has share the answer of their group.
            if len(group) > 1 and len(below):
                waiting.append((below, group))


def _divided(
    Y: LabelMatrix, labels: npt.NDArray[np.intp], clusterer: Labelsets, rng: np.random.Generator
) -> Groups:
    """The groups of a node; single labels if the clusterer does not separate them."""
    groups = check_clusters(clusterer.groups(Y, rng), len(labels))
    if len(groups) == 1:
        groups = [np.array([place]) for place in range(len(labels))]
    return [labels[group] for group in groups]


def _any_of(Y: LabelMatrix, groups: Groups) -> LabelMatrix:
    """The meta-labels: whether items have any label of each group."""
    return np.column_stack([Y[:, group].any(axis=1) for group in groups]).astype(np.int8)
