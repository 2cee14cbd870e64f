"""Classifiers that give margins instead of posteriors: their base class, and RankSVM.

The margin of a label says on which side of its boundary an item is and how far from it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import expit
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.crossfit import divisions_of
from prevalens.response import constant_labels
from prevalens.solvers.pairs import fit_pairs
from prevalens.solvers.scaling import apply_scaling, fit_scaling
from prevalens.splits import stratified_folds
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import Matrix, check_int, check_number

#: Directions of the items this much weaker than the strongest are left out.
_RANK_TOLERANCE = 1e-9


class MarginClassifier(MultiLabelClassifier):
    """Votes by the sign of linear margins; posteriors by Platt scaling of out-of-fold margins.

    A subclass implements `_learn`, and `_margins` if its margins are not the linear scores.

    Attributes
    ----------
    normalize : bool
        Whether features are standardised.
    cv : int
        Folds that give the margins on which posteriors are calibrated.
    random_state : int or None
        Of the folds.
    coef_ : array of float, shape (n_labels, n_features)
        Zero for labels that are constant in training; these are answered by their value.
    intercept_ : array of float, shape (n_labels,)
    """

    normalize: bool
    cv: int
    random_state: int | None

    @abstractmethod
    def _learn(self, items: Floats, Y: LabelMatrix) -> tuple[Floats, Floats]:
        """Weights, shape (n_labels, n_columns), and intercepts; every label varies.

        The result must not depend on a rotation of the columns of `items`.
        """

    def _margins(self, scores: Floats) -> Floats:
        """Margins from ``X @ coef_.T + intercept_``, shape (n_items, n_labels)."""
        return scores

    def decision_function(self, X: Any) -> Floats:
        """Margin of each label, shape (n_items, n_labels); infinite for constant labels."""
        check_is_fitted(self)
        return self._decisions(self._check_items(X, reset=False))

    def _fit(self, X: Matrix, Y: LabelMatrix) -> None:
        n_folds = check_int(self.cv, "cv", minimum=2)
        margins = np.empty(Y.shape)
        if len(Y) > 1:
            folds = stratified_folds(Y, min(n_folds, len(Y)), seed=self.random_state)
            for rest, held in divisions_of(folds):
                self._train(X[rest], Y[rest])
                margins[held] = self._decisions(X[held])
        self._train(X, Y)
        self.slope_, self.offset_ = np.zeros((1, Y.shape[1])), np.zeros(Y.shape[1])
        if self.varying_.any():
            slope, offset = fit_scaling(expit(margins[:, self.varying_]), Y[:, self.varying_])
            self.slope_[:, self.varying_], self.offset_[self.varying_] = slope, offset

    def _train(self, X: Matrix, Y: LabelMatrix) -> None:
        self.constants_, self.varying_ = Y[0].copy(), ~constant_labels(Y)
        self.coef_, self.intercept_ = np.zeros((Y.shape[1], X.shape[1])), np.zeros(Y.shape[1])
        if self.varying_.any():
            items, to_features = rotated(X, normalize=self.normalize)
            found = to_features(*self._learn(items, Y[:, self.varying_]))
            self.coef_[self.varying_], self.intercept_[self.varying_] = found

    def _decisions(self, X: Matrix) -> Floats:
        margins = self._margins(np.asarray(X @ self.coef_.T) + self.intercept_)
        return np.where(self.varying_, margins, np.where(self.constants_ > 0, np.inf, -np.inf))

    def _votes(self, X: Matrix) -> npt.NDArray[Any]:
        return self._decisions(X) > 0

    def _posteriors(self, X: Matrix) -> Floats:
        margins = expit(self._decisions(X))
        calibrated = apply_scaling(margins.T, self.slope_, self.offset_).T
        return np.where(self.varying_, calibrated, self.constants_)


def rotated(X: Matrix, *, normalize: bool) -> tuple[Floats, Callable[..., tuple[Floats, Floats]]]:
    """Items in as few dense columns as keep their inner products, and the way back.

    Parameters
    ----------
    X : array or sparse matrix, shape (n_items, n_features)
    normalize : bool
        Whether features are standardised first.

    Returns
    -------
    items : array of float64, shape (n_items, rank)
        The features themselves if there are no more of them than items.
    to_features : callable
        Turns weights of these columns, shape (n_labels, rank), and intercepts into coefficients of
        the features as given, shape (n_labels, n_features), and their intercepts.
    """
    n_items, n_features = X.shape
    mean, scale = np.zeros(n_features), np.ones(n_features)
    if normalize:
        scaler = StandardScaler(with_mean=not sp.issparse(X)).fit(X.astype(np.float64))
        mean, scale = scaler.mean_, scaler.scale_
    X = X @ sp.diags_array(1 / scale) if sp.issparse(X) else X / scale
    if n_features <= n_items:
        items = (X.toarray() if sp.issparse(X) else X) - mean / scale
        basis = None
    else:
        items, basis = _principal(X, normalize)

    def to_features(weights: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        if basis is not None:
            # Principal axes of centred items are combinations whose parts sum to zero, so that
            # the mean need not be subtracted.
            weights = np.asarray(X.T @ (basis @ weights.T)).T
        coef = weights / scale
        return coef, intercept - coef @ mean

    return np.ascontiguousarray(items, dtype=np.float64), to_features


def _principal(X: Matrix, centred: bool) -> tuple[Floats, Floats]:
    """Principal coordinates of items, and the combinations of items that their axes are."""
    products = X @ X.T
    products = products.toarray() if sp.issparse(products) else products
    if centred:
        means = products.mean(axis=0)
        products = products - means - means[:, np.newaxis] + means.mean()
    values, vectors = np.linalg.eigh(products)
    kept = values > max(values[-1] * _RANK_TOLERANCE, np.finfo(np.float64).tiny)
    lengths = np.sqrt(values[kept])
    return vectors[:, kept] * lengths, vectors[:, kept] / lengths


class RankSVM(MarginClassifier):
    """Support vector machine that ranks the labels of an item above the labels it has not.

    Minimises half the squared norms of all weight vectors plus C times the mean, over the pairs of
    a label that the item has and one that it has not, of how far the first fails to score higher
    by 1, summed over items. A linear function of the scores, fitted by least squares to the best
    thresholds of the training items, says how many of the labels are voted for.

    Parameters
    ----------
    C : float
        Weight of the ranking errors against the norm of the weights.
    normalize : bool
        Whether features are standardised. False is better for texts as TF-IDF.
    tol : float
        Relative duality gap at which training stops.
    max_iter : int
        Most sweeps over all pairs.
    cv : int
        Folds that give the margins on which posteriors are calibrated.
    random_state : int or None
        Of the folds.

    Attributes
    ----------
    coef_, intercept_ : array, shapes (n_labels, n_features) and (n_labels,)
        Of the margin: a label's score minus the threshold, which is linear as well.
    gap_ : float
        Proven relative distance from the minimum; above `tol` if `max_iter` was reached.
    n_iter_ : int
        Sweeps over all pairs.

    Notes
    -----
    Linear kernel; the intercepts are weights of one more feature, which is always 1. Votes are the
    labels whose score is above the threshold, posteriors are Platt scaling of out-of-fold margins.
    Labels that are constant in training are not ranked, and a single label is ranked against its
    complement, which makes an ordinary support vector machine. Training takes cv + 1 fits of
    O(n_pairs x min(n_items, n_features)) per sweep, where n_pairs is the sum over items of labels
    times missing labels. Fails where there are hundreds of
    labels (the pairs do not fit memory), where items have no labels or all of them (they are not
    ranked and move only the threshold), and where the number of labels of an item does not depend
    on its scores.

    References
    ----------
    Elisseeff and Weston, "A kernel method for multi-labelled classification", NIPS 2001.

    Examples
    --------
    >>> X, Y = [[-1.0], [-0.8], [0.9], [1.0]], [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> RankSVM(cv=2).fit(X, Y).predict([[-1.0], [1.0]]).tolist()
    [[0, 1], [1, 0]]
    """

    code = "ranksvm"

    def __init__(
        self,
        C: float = 1.0,
        *,
        normalize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        cv: int = 3,
        random_state: int | None = 0,
    ) -> None:
        self.C = C
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.cv = cv
        self.random_state = random_state

    def _learn(self, items: Floats, Y: LabelMatrix) -> tuple[Floats, Floats]:
        n_labels = Y.shape[1]
        if n_labels == 1:
            Y = np.hstack([Y, 1 - Y])
        items = np.column_stack([items, np.ones(len(items))])
        weights = self._ranking(items, Y)
        scores = items @ weights.T
        design = np.column_stack([scores, np.ones(len(scores))])
        threshold = np.linalg.lstsq(design, best_thresholds(scores, Y), rcond=None)[0]
        weights = weights - threshold[:-1] @ weights
        weights[:, -1] -= threshold[-1]
        return weights[:n_labels, :-1], weights[:n_labels, -1]

    def _ranking(self, items: Floats, Y: LabelMatrix) -> Floats:
        """Weights of the scores by which labels are ranked, shape (n_labels, n_columns)."""
        rows, has, lacks = np.nonzero((Y[:, :, np.newaxis] == 1) & (Y[:, np.newaxis, :] == 0))
        sizes = Y.sum(axis=1, dtype=np.float64)
        C = check_number(self.C, "C", 0.0)
        bounds = (C / np.maximum(sizes * (Y.shape[1] - sizes), 1.0))[rows]
        max_iter = check_int(self.max_iter, "max_iter", minimum=1)
        solution = fit_pairs(
            items, rows, (has, lacks), bounds, Y.shape[1], tol=self.tol, max_iter=max_iter
        )
        self.gap_, self.n_iter_ = solution.gap, solution.n_iter
        return solution.weights


def best_thresholds(scores: Floats, Y: LabelMatrix) -> Floats:
    """For each item, the threshold on its scores with the fewest wrong labels.

    The middle of the interval between two scores; half the margin beyond the scores if no label or
    every label is above it. Of several intervals, the highest.

    Examples
    --------
    >>> best_thresholds(np.array([[3.0, 1.0, 2.0]]), np.array([[1, 0, 0]])).tolist()
    [2.5]
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    falling = np.take_along_axis(scores, order, axis=1)
    # Each label above the threshold is one mistake more or less.
    gain = 2 * np.take_along_axis(Y, order, axis=1).astype(np.intp) - 1
    correct = np.cumsum(np.hstack([np.zeros((len(Y), 1), dtype=np.intp), gain]), axis=1)
    edges = np.hstack([falling[:, :1] + 1, falling, falling[:, -1:] - 1])
    at = np.arange(len(Y)), np.argmax(correct, axis=1)
    return np.asarray((edges[:, :-1] + edges[:, 1:])[at] / 2)
