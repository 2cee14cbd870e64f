"""ML-MPM: minimax probability machines of all labels, drawn together where labels co-occur."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from prevalens.classifiers.margins import MarginClassifier
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import check_int, check_number

_TINY = float(np.finfo(np.float64).tiny)


class MLMPM(MarginClassifier):
    """Minimax probability machines: the least worst-case error, given means and covariances.

    The hyperplane of a label minimises the sum of the two standard deviations of the scores, of
    items with and without the label, when their means differ by 1. Of all distributions with these
    means and covariances, the worst is then misclassified least. Labels that occur together are
    drawn to similar scores: `coupling` times the mean squared difference of their scores, weighed
    by the cosine of their columns of Y, is added for every pair.

    Parameters
    ----------
    ridge : float
        Added to the variances of all features, with and without the label; above 0.
    coupling : float
        Weight of the differences between labels; 0 learns each label alone.
    normalize : bool
        Whether features are standardised. False is better for texts as TF-IDF.
    tol : float
        Relative decrease of the minimised sum at which training stops.
    max_iter : int
        Most rounds over the labels.
    cv : int
        Folds that give the margins on which posteriors are calibrated.
    random_state : int or None
        Of the folds.

    Attributes
    ----------
    coef_, intercept_ : array, shapes (n_labels, n_features) and (n_labels,)
    bound_ : array of float, shape (n_varying_labels,)
        Least probability of a right vote, for the labels that vary in training, over all
        distributions with the training means and covariances.
    n_iter_ : int
        Rounds over the labels.

    Notes
    -----
    Linear kernel. Without coupling it is the machine of Lanckriet et al. for every label; the
    coupling is the regularisation by co-occurrence of ML-MPM as Moreo et al. describe it, without
    the manifolds of unlabelled items that its publication adds. Votes are positive margins,
    posteriors are Platt scaling of out-of-fold margins. Each round solves, for each label, a least
    squares problem whose weights are the last standard deviations. Training takes cv + 1 times
    O(n_labels n_items r^2) and O(n_labels r^3) per round, with r = min(n_items, n_features). Fails
    where a label is rare: both sides count alike in the worst case, so that it is voted for far too
    often (the posteriors are calibrated); and where means are equal and only the spread differs.

    References
    ----------
    Lanckriet, El Ghaoui, Bhattacharyya and Jordan, "A robust minimax approach to classification",
    JMLR 3, 2002. Jain and Rastogi, "Multi-label minimax probability machine with multi-manifold
    regularisation", Research Reports on Computer Science, 2021, doi 10.37256/rrcs.1120211193.
    Moreo, Francisco and Sebastiani, "Multi-label quantification", ACM TKDD 18(1), 2023.

    Examples
    --------
    >>> X, Y = [[-1.0], [-0.8], [0.9], [1.0]], [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> MLMPM(cv=2).fit(X, Y).predict([[-1.0], [1.0]]).tolist()
    [[0, 1], [1, 0]]
    """

    code = "mlmpm"

    def __init__(
        self,
        ridge: float = 0.1,
        coupling: float = 0.1,
        *,
        normalize: bool = True,
        tol: float = 1e-8,
        max_iter: int = 200,
        cv: int = 3,
        random_state: int | None = 0,
    ) -> None:
        self.ridge = ridge
        self.coupling = coupling
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.cv = cv
        self.random_state = random_state

    def _learn(self, items: Floats, Y: LabelMatrix) -> tuple[Floats, Floats]:
        ridge = check_number(self.ridge, "ridge", _TINY)
        coupling = check_number(self.coupling, "coupling", 0.0)
        ties, total = coupling * _co_occurrence(Y), _covariance(items)
        sides = [_ClassMoments.of(items, y, total, ridge) for y in Y.T]
        weights = np.zeros((len(sides), items.shape[1]))
        deviations = np.ones((len(sides), 2))
        least, self.n_iter_ = np.inf, 0
        for _ in range(check_int(self.max_iter, "max_iter", minimum=1)):
            for k, label in enumerate(sides):
                pull = ties[k] @ weights @ total
                weights[k] = label.step(deviations[k], ties[k].sum() * total, pull)
                deviations[k] = label.deviations(weights[k])
            self.n_iter_ += 1
            previous, least = least, deviations.sum() + _disagreement(weights, ties, total)
            if previous - least <= self.tol * least:
                break
        return weights, self._intercepts(sides, weights, deviations)

    def _intercepts(
        self, sides: list[_ClassMoments], weights: Floats, deviations: Floats
    ) -> Floats:
        """Boundaries with equal worst cases on both sides; keeps the bounds of these."""
        sums = np.maximum(deviations.sum(axis=1), _TINY)
        gaps = np.array([w @ label.difference for w, label in zip(weights, sides, strict=True)])
        kappa = gaps / sums
        self.bound_ = kappa**2 / (1 + kappa**2)
        middles = [w @ label.mean for w, label in zip(weights, sides, strict=True)]
        return np.asarray(kappa * deviations[:, 0] - np.array(middles))


@dataclass(frozen=True)
class _ClassMoments:
    """Moments of the items with a label, and of those without it.

    The covariance of the others is what remains of that of all items, so that only the items with
    the label are kept.

    Attributes
    ----------
    mean, difference : array, shape (n_columns,)
        Mean of the items with the label, and that minus the mean of the others.
    centred : array, shape (n_positives, n_columns)
        Items with the label, minus their mean.
    total : array, shape (n_columns, n_columns)
        Covariance of all items.
    odds, share : float
        Items with the label per item without it, and per item.
    ridge : float
    """

    mean: Floats
    difference: Floats
    centred: Floats
    total: Floats
    odds: float
    share: float
    ridge: float

    @classmethod
    def of(cls, items: Floats, y: LabelMatrix, total: Floats, ridge: float) -> _ClassMoments:
        has, lacks = items[y == 1], items[y == 0]
        mean = has.mean(axis=0)
        share = len(has) / len(items)
        difference = mean - lacks.mean(axis=0)
        return cls(mean, difference, has - mean, total, share / (1 - share), share, ridge)

    def deviations(self, weights: Floats) -> Floats:
        """Standard deviations of the scores on both sides."""
        own = float(np.mean((self.centred @ weights) ** 2))
        between = self.share * float(self.difference @ weights) ** 2
        other = (1 + self.odds) * float(weights @ self.total @ weights) - self.odds * own - between
        return np.sqrt(np.maximum([own, other], 0.0) + self.ridge * float(weights @ weights))

    def step(self, deviations: Floats, curvature: Floats, pull: Floats) -> Floats:
        """Minimise, with sqrt(v) replaced by its bound (v / s + s) / 2, under mean scores 1 apart.

        `curvature` and `pull` are the second and the negative first derivative of the coupling.
        """
        if not self.difference.any():
            return np.zeros_like(self.difference)
        system = self._weighted(*(1 / np.maximum(deviations, _TINY))) + curvature
        solved = cho_solve(cho_factor(system), np.column_stack([pull, self.difference]))
        missing = 1 - self.difference @ solved[:, 0]
        return np.asarray(solved[:, 0] + missing / (self.difference @ solved[:, 1]) * solved[:, 1])

    def _weighted(self, own: float, other: float) -> Floats:
        """The covariances of both sides, times two weights, in one matrix.

        Without the part of the difference of the means, in whose direction the weights are fixed.
        """
        found = self.centred.T @ self.centred
        found *= (own - self.odds * other) / len(self.centred)
        found += (1 + self.odds) * other * self.total
        found[np.diag_indices_from(found)] += self.ridge * (own + other)
        return np.asarray(found)


def _covariance(items: Floats) -> Floats:
    centred = items - items.mean(axis=0)
    return np.asarray(centred.T @ centred / len(items))


def _co_occurrence(Y: LabelMatrix) -> Floats:
    """Cosines between the columns of Y; 0 between a label and itself."""
    lengths = np.sqrt(Y.sum(axis=0, dtype=np.float64))
    cosines = (Y.T.astype(np.float64) @ Y) / np.outer(lengths, lengths)
    np.fill_diagonal(cosines, 0.0)
    return np.asarray(cosines)


def _disagreement(weights: Floats, ties: Floats, total: Floats) -> float:
    """Half the sum over pairs of labels of their tie times the variance of their difference."""
    products = weights @ total @ weights.T
    squares = np.diag(products)
    return float((ties * (squares[:, np.newaxis] + squares - 2 * products)).sum()) / 4
