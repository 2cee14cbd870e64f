"""CLEMS: learn where a labelset lies in a space whose distances are costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.utils import get_tags

from prevalens.classifiers.base import MultiLabelClassifier, beside
from prevalens.classifiers.constant import train
from prevalens.classifiers.embedding import cost_blocks, embed, starting_points
from prevalens.classifiers.knn import MLkNN
from prevalens.classifiers.response import offers, response
from prevalens.classifiers.settings import Settings, fit_settings
from prevalens.classifiers.stacked import by_own_settings
from prevalens.scores import Kind
from prevalens.validation import check_int

__all__ = ["CLEMS"]


class CLEMS(MultiLabelClassifier):
    """Cost-sensitive label embedding with multidimensional scaling.

    The labelsets of the training items are embedded so that distances are square roots of costs.
    A regressor learns where an item's labelset lies as a truth; a neighbour-based classifier,
    trained on where labelsets lie as answers, reads labels from the predicted place.

    Parameters
    ----------
    classifier : multi-label classifier, optional
        Reads labels from places. Default: ``MLkNN()``. scikit-learn's
        ``KNeighborsClassifier(1)`` without `passthrough` is the decoding of the original.
    regressor : multi-output regressor, optional
        From items to places; sparse items are made dense for one that takes no sparse matrix.
        Default: a random forest of 20 trees.
    cost : {"hamming", "f1", "jaccard", "rank"} or callable
        What a wrong labelset costs; a function of a true and an answered row is called for each
        pair of labelsets.
    n_components : int, optional
        Dimension of the space; default the number of labels.
    passthrough : bool
        Whether the classifier sees the items' features beside the place, as in the label network
        embeddings of Szymański et al., and not the place alone, as in the original. Features of a
        larger scale than the places decide alone; scale them first.
    max_iter, tol :
        Of the scaling; see :func:`prevalens.classifiers.embedding.embed`.
    n_jobs, random_state : int, optional
        Of the default regressor.

    Attributes
    ----------
    states_ : array of int8, shape (n_states, n_labels)
        The labelsets seen in training.
    truths_, answers_ : arrays of float, shape (n_states, n_components)
        Where each labelset lies in its two roles.
    stress_ : float
        What is left of the squared error between distances and roots of costs.
    n_iter_ : int
        How often the costs were run through.

    Notes
    -----
    O(n_states**2 x n_components) per step of the scaling. For the Hamming cost the labelsets
    themselves are the solution and no step is made. Posteriors are sharp: the classifier is
    trained on exact places and asked about predicted ones, so that wrong predictions look certain.

    References
    ----------
    Huang and Lin, "Cost-sensitive label embedding for multi-label classification", Machine
    Learning 106(9), 2017. Szymański, Kajdanowicz and Chawla, "LNEMLC: label network embeddings for
    multi-label classification", arXiv:1812.02956, 2018.

    Examples
    --------
    >>> X = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]
    >>> Y = [[0, 1], [0, 1], [0, 1], [1, 0], [1, 0], [1, 0]]
    >>> CLEMS(MLkNN(k=2), random_state=0).fit(X, Y).predict([[0.1], [1.1]]).tolist()
    [[0, 1], [1, 0]]
    """

    code = "clems"

    def __init__(
        self,
        classifier: Any = None,
        regressor: Any = None,
        *,
        cost: Any = "hamming",
        n_components: int | None = None,
        passthrough: bool = True,
        max_iter: int = 300,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.classifier = classifier
        self.regressor = regressor
        self.cost = cost
        self.n_components = n_components
        self.passthrough = passthrough
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit_settings(self, settings: Sequence[Settings], X: Any, Y: Any) -> Iterator[CLEMS]:
        """Train with each of several settings.

        Settings that differ only in the classifier (``classifier__...``) share the embedding and
        the regressor, and are trained together where the classifier can.
        """
        fitted: dict[int, CLEMS] = {}
        for own, members in by_own_settings(settings, "classifier__"):
            model = clone(self).set_params(**own)
            items, labels = model._check_training(X, Y)
            inputs = model._learn_places(items, labels)
            classifier = model._classifier()
            readers = fit_settings(classifier, [change for _, change in members], inputs, labels)
            for (number, change), reader in zip(members, readers, strict=True):
                fitted[number] = one = copy(model)
                one.classifier = clone(classifier).set_params(**change)
                one.classifier_ = reader
        for number in range(len(settings)):
            yield fitted[number]

    def _fit(self, X: Any, Y: npt.NDArray[np.int8]) -> None:
        self.classifier_ = train(self._classifier(), self._learn_places(X, Y), Y)

    def _classifier(self) -> Any:
        return MLkNN() if self.classifier is None else self.classifier

    def _learn_places(self, X: Any, Y: npt.NDArray[np.int8]) -> Any:
        """Learn where the items' labelsets lie; what the classifier is to learn from."""
        self.states_, state_of, counts = np.unique(
            Y, axis=0, return_inverse=True, return_counts=True
        )
        state_of = state_of.ravel()
        self._embed(counts)
        places = self.truths_[state_of]
        # A space of one dimension as a flat array: forests warn of a column.
        self.regressor_ = self._regressor()
        self.regressor_.fit(self._seen(X), places if places.shape[1] > 1 else places[:, 0])
        return self._inputs(X, self.answers_[state_of])

    def _embed(self, counts: npt.NDArray[np.intp]) -> None:
        n_components = self.states_.shape[1]
        if self.n_components is not None:
            n_components = check_int(self.n_components, "n_components", minimum=1)
        max_iter = check_int(self.max_iter, "max_iter", minimum=0)
        start = starting_points(self.states_, counts, n_components)
        blocks = cost_blocks(self.states_, self.cost)
        self.truths_, self.answers_, stress = embed(
            blocks, counts, start, max_iter=max_iter, tol=self.tol
        )
        self.stress_, self.n_iter_ = stress[-1], len(stress)

    def _regressor(self) -> Any:
        if self.regressor is not None:
            return clone(self.regressor)
        return RandomForestRegressor(20, n_jobs=self.n_jobs, random_state=self.random_state)

    def _seen(self, X: Any) -> Any:
        """Items as the regressor takes them: dense if it takes no sparse matrix."""
        dense = sp.issparse(X) and not get_tags(self.regressor_).input_tags.sparse
        return X.toarray() if dense else X

    def _inputs(self, X: Any, places: npt.NDArray[np.float64]) -> Any:
        return beside(X, places) if self.passthrough else places

    def _ask(self, X: Any, kind: Kind) -> npt.NDArray[Any]:
        places = self.regressor_.predict(self._seen(X)).reshape(X.shape[0], -1)
        scores = response(self.classifier_, self._inputs(X, places), kind, self.n_labels_)
        return np.asarray(scores.values)

    def _posteriors(self, X: Any) -> npt.NDArray[np.float64]:
        return self._ask(X, "posteriors")

    def _votes(self, X: Any) -> npt.NDArray[Any]:
        return self._ask(X, "votes")

    def _offers_posteriors(self) -> bool:
        return self.classifier is None or "posteriors" in offers(self.classifier)
