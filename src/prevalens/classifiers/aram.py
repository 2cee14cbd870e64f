"""ML-ARAM and its relatives: networks of adaptive resonance whose prototypes are boxes.

With complement coding, an item x of d features in [0, 1] is (x, 1 - x), and a prototype that has
learnt some items is the smallest box around them. All quantities of the network are then widths
and distances: if `width` is the sum of a box's edges and `distance` the sum by which it must grow
to hold x, then |I and w| = d - width - distance and |w| = d - width. Nothing is complemented here,
so that sparse items stay sparse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.metrics.pairwise import manhattan_distances

from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.labelsets import powerset
from prevalens.types import Array, Floats, LabelMatrix
from prevalens.validation import Matrix, check_choice, check_number

#: Numbers in the matrix of activities that is made at a time.
_BLOCK = 4_000_000
#: Least activity, so that an item far away from everything is answered with the training mean.
_LEAST = 1e-12
#: Differences of activities up to this are rounding.
_TIE = 1e-9


@dataclass(frozen=True)
class Boxes:
    """Prototypes: the smallest boxes around the items that each has learnt.

    Attributes
    ----------
    lower, upper : array or CSR matrix, shape (n_boxes, n_features)
    state : array of int, shape (n_boxes,)
        The labelset that the items of the box have.
    count : array of float, shape (n_boxes,)
        How many items it has learnt.
    """

    lower: Matrix
    upper: Matrix
    state: npt.NDArray[np.intp]
    count: Floats

    def take(self, chosen: npt.NDArray[np.intp]) -> Boxes:
        """Some of the boxes."""
        return Boxes(self.lower[chosen], self.upper[chosen], self.state[chosen], self.count[chosen])


class MLARAM(MultiLabelClassifier):
    """Boxes of items with equal labelsets; the boxes nearest to an item share their labels.

    Parameters
    ----------
    vigilance : float
        Between 0 and 1: how small boxes stay. A box takes an item in if afterwards the sum of its
        edges is below (1 - vigilance) x n_features, features being scaled to [0, 1].
    threshold : float
        How far below the largest activity, relative to the range of all, a box may be to answer.
    search : {"aram", "fam"}
        ARAM looks for a box among those with the item's own labelset. Fuzzy ARTMAP (ML-FAM) looks
        among all: each box that would take the item in, but has other labels, raises the vigilance
        for this item to its own match (match tracking), which makes more and smaller boxes.
    hierarchy : float, optional
        Vigilance of a second layer that puts the boxes into larger boxes (HARAM). An item is then
        compared with the boxes inside the most active larger one. Default: none.
    cut : {"half", "gap"}
        Votes: posteriors above one half; or, as published, all labels above the largest gap between
        consecutive posteriors, which never answers that an item has no label.

    Attributes
    ----------
    boxes_ : Boxes
    states_ : 0/1 array, shape (n_states, n_labels)
    scale_ : array of float, shape (n_features,)
    cluster_of_ : array of int, shape (n_boxes,), or None
    clusters_ : Boxes or None
        The larger boxes of the second layer.

    Notes
    -----
    Activities are weighted by the number of items of a box, so that posteriors are shares; the
    publications leave them unnormalised, which changes neither ranks nor gaps. Items are learnt
    once, in their order, O(n_items x n_boxes x n_features), where n_boxes counts only those with
    the same labelset; fuzzy ARTMAP compares with all, and keeps them dense. Scoring takes as much
    with all boxes. Fails where many features are irrelevant, since distances are sums over all
    features, and with sparse items of many dimensions: every box then matches.

    References
    ----------
    Sapozhnikova, "ART-based neural networks for multi-label classification", IDA 2009. Benites and
    Sapozhnikova, "HARAM: a hierarchical ARAM neural network for large-scale text classification",
    ICDMW 2015. Carpenter et al., "Fuzzy ARTMAP", IEEE Transactions on Neural Networks 3(5), 1992.

    Examples
    --------
    >>> X, Y = [[0.0], [0.1], [0.9], [1.0]], [[0, 1], [0, 1], [1, 1], [1, 0]]
    >>> MLARAM().fit(X, Y).predict([[0.05], [1.0]]).tolist()
    [[0, 1], [1, 0]]
    """

    code = "mlaram"

    def __init__(
        self,
        vigilance: float = 0.9,
        threshold: float = 0.02,
        *,
        search: str = "aram",
        hierarchy: float | None = None,
        cut: str = "half",
    ) -> None:
        self.vigilance = vigilance
        self.threshold = threshold
        self.search = search
        self.hierarchy = hierarchy
        self.cut = cut

    def _fit(self, X: Any, Y: LabelMatrix) -> None:
        vigilance = check_number(self.vigilance, "vigilance", 0, 1)
        check_number(self.threshold, "threshold", 0, 1)
        check_choice(self.search, "search", ("aram", "fam"))
        check_choice(self.cut, "cut", ("half", "gap"))
        self.scale_ = _scale(X)
        self.states_, state_of = powerset(Y)
        X = _scaled(X, self.scale_)
        if self.search == "fam":
            self.boxes_ = _resonate(X, X, state_of, vigilance, tracking=True)
        else:
            # Labelsets in the order in which they occur, whatever the order of the labels.
            met = state_of[np.sort(np.unique(state_of, return_index=True)[1])]
            rows = [np.flatnonzero(state_of == state) for state in met]
            parts = [_resonate(X[r], X[r], state_of[r], vigilance) for r in rows]
            self.boxes_ = _joined(parts)
        self._cluster()

    def _cluster(self) -> None:
        """Put the boxes into larger ones, whatever their labels."""
        self.cluster_of_ = self.clusters_ = None
        if self.hierarchy is None:
            return
        vigilance = check_number(self.hierarchy, "hierarchy", 0, 1)
        lower, upper = self.boxes_.lower, self.boxes_.upper
        same = np.zeros(len(self.boxes_.count), dtype=np.intp)
        self.clusters_ = _resonate(lower, upper, same, vigilance)
        self.cluster_of_ = _most_active(lower, upper, self.clusters_)

    def _posteriors(self, X: Any) -> Floats:
        X = _scaled(X, self.scale_)
        if self.clusters_ is None or self.cluster_of_ is None:
            return self._share(X, np.arange(len(self.boxes_.count)))
        posteriors = np.empty((X.shape[0], self.n_labels_))
        filled = np.unique(self.cluster_of_)
        nearest = filled[_most_active(X, X, self.clusters_.take(filled))]
        for cluster in np.unique(nearest):
            rows = np.flatnonzero(nearest == cluster)
            posteriors[rows] = self._share(X[rows], np.flatnonzero(self.cluster_of_ == cluster))
        return posteriors

    def _share(self, X: Matrix, chosen: npt.NDArray[np.intp]) -> Floats:
        """Labels of the active ones among some boxes, weighted by activity and count."""
        boxes = self.boxes_.take(chosen)
        labels = self.states_[boxes.state].astype(np.float64)
        posteriors = np.empty((X.shape[0], self.n_labels_))
        step = max(1, _BLOCK // len(chosen))
        for start in range(0, X.shape[0], step):
            block = X[start : start + step]
            activity = np.maximum(_activity(block, block, boxes), _LEAST)
            best = activity.max(axis=1, keepdims=True)
            span = best - activity.min(axis=1, keepdims=True)
            active = best - activity <= self.threshold * span * best
            weight = activity * active * boxes.count
            posteriors[start : start + step] = weight @ labels / weight.sum(axis=1, keepdims=True)
        return np.minimum(posteriors, 1.0)

    def _votes(self, X: Any) -> npt.NDArray[Any]:
        posteriors = self._posteriors(X)
        if self.cut == "half" or self.n_labels_ == 1:
            return posteriors > 0.5
        falling = -np.sort(-posteriors, axis=1)
        last = np.argmax(falling[:, :-1] - falling[:, 1:], axis=1)
        return posteriors >= np.take_along_axis(falling, last[:, np.newaxis], axis=1)


def _scale(X: Matrix) -> Floats:
    """One over the range of each feature; 0 for a constant one."""
    if sp.issparse(X):
        # Zeros that are not stored count, but in columns that are full.
        stored = np.bincount(X.indices, minlength=X.shape[1])
        high = np.where(stored < X.shape[0], 0.0, -np.inf)
        low = -high
        np.maximum.at(high, X.indices, X.data)
        np.minimum.at(low, X.indices, X.data)
    else:
        low, high = X.min(axis=0), X.max(axis=0)
    width = np.asarray(high - low, dtype=np.float64)
    return np.divide(1.0, width, out=np.zeros_like(width), where=width > 0)


def _scaled(X: Matrix, scale: Floats) -> Matrix:
    return sp.csr_array(X @ sp.diags_array(scale)) if sp.issparse(X) else X * scale


def _joined(parts: list[Boxes]) -> Boxes:
    """The boxes of several labelsets in one."""
    sparse = sp.issparse(parts[0].lower)

    def column(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        wide = sparse and name in ("lower", "upper")
        return sp.vstack(values, format="csr") if wide else np.concatenate(values)

    return Boxes(column("lower"), column("upper"), column("state"), column("count"))


def _activity(lower: Matrix, upper: Matrix, boxes: Boxes) -> Floats:
    """Share of |w| that remains when each box grows to hold each item, (n_items, n_boxes).

    Items are boxes themselves; those of a single point have equal bounds.
    """
    remaining = boxes.lower.shape[1] - np.asarray((boxes.upper - boxes.lower).sum(axis=1))
    growth = _growth(lower, boxes.lower, -1)
    growth += _growth(upper, boxes.upper, 1)
    return np.asarray((remaining - growth) / np.maximum(remaining, _LEAST))


def _most_active(lower: Matrix, upper: Matrix, boxes: Boxes) -> npt.NDArray[np.intp]:
    """The most active box for each item; of several that hold it, the narrowest."""
    activity = _activity(lower, upper, boxes)
    width = np.asarray((boxes.upper - boxes.lower).sum(axis=1))
    # All boxes that hold an item have activity 1, but for rounding.
    tied = activity >= activity.max(axis=1, keepdims=True) - _TIE
    return np.asarray(np.where(tied, width, np.inf).argmin(axis=1))


def _growth(points: Matrix, bounds: Matrix, sign: int) -> Floats:
    """Sum over the features of how far points lie outside a bound: (|x - b| + s (x - b)) / 2."""
    difference = np.subtract.outer(np.asarray(points.sum(axis=1)), np.asarray(bounds.sum(axis=1)))
    return np.asarray((manhattan_distances(points, bounds) + sign * difference) / 2)


def _resonate(
    lower: Matrix,
    upper: Matrix,
    state_of: npt.NDArray[np.intp],
    vigilance: float,
    *,
    tracking: bool = False,
) -> Boxes:
    """Learn boxes from items, or from smaller boxes, in their order.

    Sparse items are laid out densely over the columns in which any of them is not zero, one item
    at a time, since the others have no width and no distance.
    """
    n_features, columns = lower.shape[1], None
    if sp.issparse(lower):
        columns = np.union1d(lower.indices, upper.indices)
        lower, upper = lower[:, columns], upper[:, columns]
    boxes = _GrowingBoxes(len(columns) if columns is not None else n_features, n_features)
    for row, state in enumerate(state_of):
        boxes.learn(_dense_row(lower, row), _dense_row(upper, row), state, vigilance, tracking)
    return boxes.finished(columns)


def _dense_row(X: Matrix, row: int) -> Array:
    if not sp.issparse(X):
        return np.asarray(X[row])
    dense = np.zeros(X.shape[1])
    inside = slice(X.indptr[row], X.indptr[row + 1])
    dense[X.indices[inside]] = X.data[inside]
    return dense


class _GrowingBoxes:
    """Boxes while they are learnt, in arrays that are doubled when they are full."""

    def __init__(self, n_columns: int, n_features: int) -> None:
        self.n_features = n_features
        self.lower = self.upper = np.zeros((0, n_columns))
        self.state = np.zeros(0, dtype=np.intp)
        self.count = np.zeros(0)
        self.size = 0

    def learn(self, low: Array, high: Array, state: int, vigilance: float, tracking: bool) -> None:
        """Let the most active box that matches grow, or make a new one."""
        winner = self._winner(low, high, state, vigilance, tracking)
        if winner < 0:
            self._add(low, high, state)
            return
        np.minimum(self.lower[winner], low, out=self.lower[winner])
        np.maximum(self.upper[winner], high, out=self.upper[winner])
        self.count[winner] += 1

    def _winner(self, low: Array, high: Array, state: int, vigilance: float, tracking: bool) -> int:
        lower, upper = self.lower[: self.size], self.upper[: self.size]
        # |I and w|, as a sum over the features of the box that holds both.
        common = self.n_features - (np.maximum(upper, high) - np.minimum(lower, low)).sum(axis=1)
        alone = self.n_features - (upper - lower).sum(axis=1)
        match = common / max(self.n_features - (high - low).sum(), _LEAST)
        order = np.argsort(-common / np.maximum(alone, _LEAST), kind="stable")
        same, match = (self.state[: self.size] == state)[order], match[order]
        needed = np.full(self.size, vigilance)
        if tracking:
            wrong = np.where(same, -np.inf, match)
            needed[1:] = np.maximum(vigilance, np.maximum.accumulate(wrong)[:-1])
        good = np.flatnonzero(same & (match > needed))
        return int(order[good[0]]) if len(good) else -1

    def _add(self, low: Array, high: Array, state: int) -> None:
        if self.size == len(self.count):
            more = max(4, self.size)
            wide, flat = ((0, more), (0, 0)), (0, more)
            self.lower, self.upper = np.pad(self.lower, wide), np.pad(self.upper, wide)
            self.state, self.count = np.pad(self.state, flat), np.pad(self.count, flat)
        self.lower[self.size], self.upper[self.size] = low, high
        self.state[self.size], self.count[self.size] = state, 1
        self.size += 1

    def finished(self, columns: npt.NDArray[Any] | None) -> Boxes:
        """The boxes, over all features; sparse if `columns` says where the others are."""
        lower, upper = (
            _spread(bound[: self.size], columns, self.n_features)
            for bound in (self.lower, self.upper)
        )
        return Boxes(lower, upper, self.state[: self.size].copy(), self.count[: self.size].copy())


def _spread(values: Floats, columns: npt.NDArray[Any] | None, n_features: int) -> Matrix:
    if columns is None:
        return values.copy()
    short = sp.csr_array(values)
    parts = (short.data, columns[short.indices], short.indptr)
    return sp.csr_array(parts, shape=(len(values), n_features))
