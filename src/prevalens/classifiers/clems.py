"""Labelsets as points whose distances are costs: weighted multidimensional scaling with mirrors.

Every labelset is embedded twice, once as a truth and once as an answer, so that a cost that
differs when the two are exchanged has a distance of its own. Only pairs of a truth and an answer
count, each weighted by the frequency of the truth. In this bipartite case the step of SMACOF has a
closed form: no matrix is inverted, and nothing of the size labelsets x labelsets is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.utils import get_tags

from prevalens.classifiers.base import CompositeClassifier, append_columns
from prevalens.classifiers.knn import MLkNN
from prevalens.classifiers.stacked import fit_part_settings
from prevalens.response import response, train
from prevalens.scores import Kind
from prevalens.types import Floats, LabelMatrix, Settings
from prevalens.validation import InputError, check_int

#: Entries of the labelsets x labelsets matrices that are worked on at a time.
_BLOCK = 2**22

Blocks = Callable[[], Iterator[tuple[slice, Floats]]]


def _overlap(truths: Any, answers: Any) -> tuple[Any, Any, Any]:
    """Labels in both, labels in the truth, labels in the answer."""
    return truths @ answers.T, truths.sum(axis=1)[:, np.newaxis], answers.sum(axis=1)


def _hamming(truths: Any, answers: Any) -> Any:
    both, true, answered = _overlap(truths, answers)
    return (true + answered - 2 * both) / truths.shape[1]


def _f1(truths: Any, answers: Any) -> Any:
    both, true, answered = _overlap(truths, answers)
    total = true + answered
    return 1 - np.divide(2 * both, total, out=np.ones_like(both), where=total > 0)


def _jaccard(truths: Any, answers: Any) -> Any:
    both, true, answered = _overlap(truths, answers)
    union = true + answered - both
    return 1 - np.divide(both, union, out=np.ones_like(both), where=union > 0)


def _rank(truths: Any, answers: Any) -> Any:
    """Pairs of a true and a false label that the answer puts in the wrong order; ties are half."""
    both, true, answered = _overlap(truths, answers)
    missed, invented = true - both, answered - both
    neither = truths.shape[1] - true - invented
    return missed * invented + 0.5 * (both * invented + missed * neither)


COSTS: dict[str, Callable[[Any, Any], Any]] = {
    "hamming": _hamming,
    "f1": _f1,
    "jaccard": _jaccard,
    "rank": _rank,
}


def cost_blocks(states: npt.NDArray[Any], cost: str | Callable[[Any, Any], float]) -> Blocks:
    """Square roots of the costs, some rows of truths at a time, made anew in each run.

    Parameters
    ----------
    states : 0/1 array, shape (n_states, n_labels)
    cost : name in `COSTS`, or function of a true and an answered row of 0/1
    """
    step = max(1, _BLOCK // len(states))
    slices = [slice(start, start + step) for start in range(0, len(states), step)]
    if callable(cost):
        matrix = np.array([[cost(truth, answer) for answer in states] for truth in states])
        if not np.all(matrix >= 0):
            raise InputError("The cost of an answer must be a number that is not below 0.")
        roots = np.sqrt(matrix)
        return lambda: ((rows, roots[rows]) for rows in slices)
    if cost not in COSTS:
        raise InputError(
            f"cost must be a function or one of {', '.join(map(repr, COSTS))}; got {cost!r}."
        )
    named, points = COSTS[cost], states.astype(np.float64)
    # Rounding must not make a cost of nothing negative.
    return lambda: (
        (rows, np.sqrt(np.maximum(named(points[rows], points), 0.0))) for rows in slices
    )


def starting_points(
    states: npt.NDArray[Any], weights: npt.NDArray[Any], n_components: int
) -> Floats:
    """The labelsets themselves, or their weighted principal components if fewer are wanted.

    The square root of the Hamming cost is the distance of labelsets over sqrt(n_labels): in full
    dimension these points are the solution for that cost, and a good start for others.
    """
    n_labels = states.shape[1]
    points = states / np.sqrt(n_labels)
    points = points - np.average(points, axis=0, weights=weights)
    if n_components >= n_labels:
        return np.pad(points, ((0, 0), (0, n_components - n_labels)))
    _, _, axes = np.linalg.svd(points.T * weights @ points)
    return np.asarray(points @ axes[:n_components].T)


def embed(
    blocks: Blocks,
    weights: npt.NDArray[Any],
    start: Floats,
    *,
    max_iter: int = 300,
    tol: float = 1e-6,
) -> tuple[Floats, Floats, list[float]]:
    """Move truths and answers until their distances approximate the square roots of the costs.

    Parameters
    ----------
    blocks : function that yields (rows, target distances of these truths to all answers)
    weights : array, shape (n_states,)
        Frequency of each labelset as truth.
    start : array, shape (n_states, n_components)
    max_iter : int
    tol : float
        Stop when the stress sinks by less than this share, or lies below this share of its greatest
        possible value.

    Returns
    -------
    truths, answers, stress
        Two arrays of shape (n_states, n_components), and the weighted squared error before
        each step and after the last. It never rises.

    Notes
    -----
    O(n_states**2 x n_components) time per step and O(n_states x n_components) memory.
    """
    truths = answers = start
    scale = sum(float(weights[rows] @ (goal**2).sum(axis=1)) for rows, goal in blocks())
    history: list[float] = []
    for _ in range(max_iter + 1):
        stress, pulled_truths, pulled_answers = _pull(blocks, weights, truths, answers)
        history.append(stress)
        slow = len(history) > 1 and history[-2] - stress <= tol * history[-2]
        if slow or stress <= tol * scale or len(history) > max_iter:
            break
        answers = pulled_answers / weights.sum()
        truths = pulled_truths / len(weights) + answers.mean(axis=0)
    return truths, answers, history


def _pull(
    blocks: Blocks,
    weights: npt.NDArray[Any],
    truths: Floats,
    answers: Floats,
) -> tuple[float, Floats, Floats]:
    """Stress, and the right-hand side of the Guttman transform for both roles.

    With weight w_i for truth x_i against each of n answers y_j, the transform asks for::

        n x_i - sum_j y_j     = sum_j     r_ij (x_i - y_j)
        s y_j - sum_i w_i x_i = sum_i w_i r_ij (y_j - x_i)

    where r = goal / distance and s = sum_i w_i. Putting the weighted mean of x at 0 solves both.
    """
    stress = 0.0
    pulled_truths = np.empty_like(truths)
    pulled_answers = np.zeros_like(answers)
    for rows, goal in blocks():
        distance = _distances(truths[rows], answers)
        stress += float(weights[rows] @ ((distance - goal) ** 2).sum(axis=1))
        ratio = np.divide(goal, distance, out=np.zeros_like(goal), where=distance > 0)
        pulled_truths[rows] = truths[rows] * ratio.sum(axis=1, keepdims=True) - ratio @ answers
        ratio *= weights[rows, np.newaxis]
        pulled_answers += answers * ratio.sum(axis=0)[:, np.newaxis] - ratio.T @ truths[rows]
    return stress, pulled_truths, pulled_answers


def _distances(left: Floats, right: Floats) -> Floats:
    squares = -2.0 * (left @ right.T)
    squares += (left**2).sum(axis=1)[:, np.newaxis]
    squares += (right**2).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


class CLEMS(CompositeClassifier):
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
        Whether the classifier sees the items' features and the place, as in the label network
        embeddings of Szymański et al., or the place alone, as in the original. Features with a much
        larger scale than the places dominate the distances; scale them first.
    max_iter, tol :
        Of the scaling; see :func:`prevalens.classifiers.clems.embed`.
    n_jobs, random_state : int or None
        Of the default regressor.

    Attributes
    ----------
    states_ : array of int8, shape (n_states, n_labels)
        The labelsets seen in training.
    truths_, answers_ : arrays of float, shape (n_states, n_components)
        Where each labelset lies in its two roles.
    stress_ : float
        Remaining squared error between the distances and the square roots of the costs.
    n_iter_ : int
        Number of passes over the costs.

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
    part = "classifier"

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
        random_state: int | None = 0,
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

        def prepare(model: CLEMS, items: Any, labels: LabelMatrix, _: Settings) -> Any:
            model.classifier = model._classifier()
            return model._learn_places(items, labels)

        return fit_part_settings(self, settings, X, Y, prepare)

    def _fit(self, X: Any, Y: LabelMatrix) -> None:
        self.classifier_ = train(self._classifier(), self._learn_places(X, Y), Y)

    def _classifier(self) -> Any:
        return MLkNN() if self.classifier is None else self.classifier

    def _learn_places(self, X: Any, Y: LabelMatrix) -> Any:
        """Learn the places of the items' labelsets; returns the inputs of the classifier."""
        self.states_, state_of, counts = np.unique(
            Y, axis=0, return_inverse=True, return_counts=True
        )
        state_of = state_of.ravel()
        self._embed(counts)
        places = self.truths_[state_of]
        forest = RandomForestRegressor(20, n_jobs=self.n_jobs, random_state=self.random_state)
        self.regressor_ = forest if self.regressor is None else clone(self.regressor)
        # A space of one dimension as a flat array: forests warn of a column.
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

    def _seen(self, X: Any) -> Any:
        """Items as the regressor takes them: dense if it takes no sparse matrix."""
        dense = sp.issparse(X) and not get_tags(self.regressor_).input_tags.sparse
        return X.toarray() if dense else X

    def _inputs(self, X: Any, places: Floats) -> Any:
        return append_columns(X, places) if self.passthrough else places

    def respond(self, X: Any, kind: Kind) -> npt.NDArray[Any]:
        """Votes or posteriors of checked items, shape (n_items, n_labels)."""
        places = self.regressor_.predict(self._seen(X)).reshape(X.shape[0], -1)
        scores = response(self.classifier_, self._inputs(X, places), kind, self.n_labels_)
        return np.asarray(scores.values)
