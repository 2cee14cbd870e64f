"""Groups of labels, and one classifier for each group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator

from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.classifiers.constant import train
from prevalens.classifiers.response import response
from prevalens.scores import Kind
from prevalens.validation import InputError, check_int, count_items

__all__ = ["LabelsetEnsemble", "Labelsets", "RandomLabelsets", "RandomPartition", "check_labelsets"]


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
        Y: npt.NDArray[np.int8],
        labelsets: Sequence[npt.NDArray[np.intp]],
    ) -> None:
        self.labelsets_ = list(labelsets)
        self.classifiers_ = Parallel(n_jobs=self.n_jobs)(
            delayed(train)(classifier, X, Y[:, labels]) for labels in self.labelsets_
        )

    def _posteriors(self, X: Any) -> npt.NDArray[np.float64]:
        return self._average(X, "posteriors")

    def _votes(self, X: Any) -> npt.NDArray[Any]:
        return self._average(X, "votes") > 0.5

    def _average(self, X: Any, kind: Kind) -> npt.NDArray[np.float64]:
        total = np.zeros((count_items(X), self.n_labels_))
        times = np.zeros(self.n_labels_)
        for labels, classifier in zip(self.labelsets_, self.classifiers_, strict=True):
            total[:, labels] += response(classifier, X, kind, len(labels)).values
            times[labels] += 1
        return np.minimum(total / times, 1.0)
