"""ML-kNN: the labels of the nearest neighbours, weighed by Bayes' rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import InputError, check_choice, check_int

#: Megabytes of distances of sparse items made at a time. Less than half the time of
#: scikit-learn's 1024, much of which goes into fresh memory.
_WORKING_MEMORY = 64


class MLkNN(MultiLabelClassifier):
    """Multi-label k nearest neighbours.

    For each label, the number of neighbours that have it is counted. The likelihood of that count
    with and without the label, and the label's prior, are estimated from the training items with
    additive smoothing; Bayes' rule gives the posterior.

    Parameters
    ----------
    k : int
        Number of neighbours.
    s : float
        Smoothing: what is added to every count; above 0.
    metric : str
        Distance between items, as in :class:`sklearn.neighbors.NearestNeighbors`.
    output : {"posterior", "joint"}
        What `predict_proba` returns: P(label | count), or P(label, count), which is not divided by
        the probability of the count. The second is what scikit-multilearn 0.2 returned; its mean
        over a sample lies far below the prevalence. Votes are the same.
    exclude_self : bool
        Whether a training item is not its own neighbour, as in the original method. False is
        what scikit-multilearn does; its likelihoods are overconfident.
    n_jobs : int, optional
        Processes or threads of the neighbour search.

    Attributes
    ----------
    prior_ : array of float, shape (n_labels,)
    likelihood_ : array of float, shape (2, n_labels, k + 1)
        P(c neighbours carry the label | item does not carry it) and the same for items that do.

    Notes
    -----
    Each label is scored from its own column alone, although all share their neighbours. O(n_items
    x n_training) distances for sparse or high-dimensional items; nothing is densified. Fails where
    distance says little about labels, and under prior shift as every classifier with a built-in
    prior.

    References
    ----------
    Zhang and Zhou, "ML-KNN: a lazy learning approach to multi-label learning", Pattern
    Recognition 40(7), 2007.

    Examples
    --------
    >>> X, Y = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]], [[0], [0], [0], [1], [1], [1]]
    >>> MLkNN(k=2).fit(X, Y).predict_proba([[0.1], [1.1]]).round(2).tolist()
    [[0.2], [0.8]]
    """

    code = "mlknn"
    label_wise = True

    def __init__(
        self,
        k: int = 10,
        s: float = 1.0,
        *,
        metric: str = "euclidean",
        output: str = "posterior",
        exclude_self: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.k = k
        self.s = s
        self.metric = metric
        self.output = output
        self.exclude_self = exclude_self
        self.n_jobs = n_jobs

    def fit_settings(
        self, settings: Sequence[Mapping[str, Any]], X: Any, Y: Any
    ) -> Iterator[MLkNN]:
        """Train with each of several settings; those of one metric share their neighbour search."""
        models = [clone(self).set_params(**setting) for setting in settings]
        checked = [model._check_training(X, Y) for model in models]
        searches: dict[Any, tuple[Any, npt.NDArray[np.intp]]] = {}
        for model, (items, labels) in zip(models, checked, strict=True):
            model._check_parameters(items.shape[0])
            kind = (model.metric, model.exclude_self)
            if kind not in searches:
                alike = [other.k for other in models if (other.metric, other.exclude_self) == kind]
                searches[kind] = model._search(items, max(alike))
            model._learn(*searches[kind], labels)
            yield model

    def _fit(self, X: Any, Y: LabelMatrix) -> None:
        self._check_parameters(X.shape[0])
        self._learn(*self._search(X, self.k), Y)

    def _search(self, X: Any, k: int) -> tuple[Any, npt.NDArray[np.intp]]:
        """An index of the items, and the k nearest of each, nearest first."""
        index = NearestNeighbors(n_neighbors=k, metric=self.metric, n_jobs=self.n_jobs).fit(X)
        return index, _nearest(index, None if self.exclude_self else X, k)

    def _learn(self, index: Any, nearest: npt.NDArray[np.intp], Y: LabelMatrix) -> None:
        self.neighbours_ = index
        self._Y = Y
        self.prior_ = (self.s + Y.sum(axis=0)) / (2 * self.s + len(Y))
        self.likelihood_ = _likelihood(self._count(nearest), Y, self.k, self.s)
        joint = self.likelihood_ * np.stack([1 - self.prior_, self.prior_])[:, :, np.newaxis]
        self._joint = joint[1]
        self._posterior = joint[1] / joint.sum(axis=0)

    def _check_parameters(self, n_items: int) -> None:
        k = check_int(self.k, "k", minimum=1)
        if not self.s > 0:
            raise InputError(f"s must be above 0; got {self.s!r}.")
        check_choice(self.output, "output", ("posterior", "joint"))
        n_candidates = n_items - 1 if self.exclude_self else n_items
        if k > n_candidates:
            raise InputError(
                f"MLkNN looks for k = {k} neighbours, but there are only {n_candidates} to choose "
                f"from (n_samples = {n_items}); lower k or give more items."
            )

    def _count(self, nearest: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """How many of the k nearest carry each label."""
        nearest = nearest[:, : self.k]
        operator = sp.csr_array(
            (
                np.ones(nearest.size, dtype=np.int32),
                nearest.ravel(),
                np.arange(0, nearest.size + 1, self.k),
            ),
            shape=(len(nearest), len(self._Y)),
        )
        return np.asarray(operator @ self._Y.astype(np.int32), dtype=np.intp)

    def _posteriors(self, X: Any) -> Floats:
        return self._look_up(X, self._posterior if self.output == "posterior" else self._joint)

    def _votes(self, X: Any) -> npt.NDArray[Any]:
        return self._look_up(X, self._posterior >= 0.5)

    def _look_up(self, X: Any, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        nearest = _nearest(self.neighbours_, X, self.k)
        return table[np.arange(self.n_labels_), self._count(nearest)]


def _nearest(index: NearestNeighbors, X: Any, k: int) -> npt.NDArray[np.intp]:
    """The k nearest of each item, nearest first; `X` is None for the indexed items."""
    with config_context(working_memory=_WORKING_MEMORY):
        return np.asarray(index.kneighbors(X, n_neighbors=k, return_distance=False))


def _likelihood(counts: npt.NDArray[np.intp], Y: LabelMatrix, k: int, s: float) -> Floats:
    """Smoothed share of the items with c neighbours, by label and by its value."""
    n_labels = Y.shape[1]
    cells = (Y.astype(np.intp) * n_labels + np.arange(n_labels)) * (k + 1) + counts
    shape = (2, n_labels, k + 1)
    totals = np.bincount(cells.ravel(), minlength=int(np.prod(shape))).reshape(shape)
    return np.asarray((s + totals) / (s * (k + 1) + totals.sum(axis=2, keepdims=True)))
