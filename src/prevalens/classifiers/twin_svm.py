"""ML-TSVM: a hyperplane near the items that have the label, and away from the others."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from prevalens.classifiers.margins import MarginClassifier
from prevalens.solvers.pairs import fit_pairs
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import check_int, check_number


class MLTSVM(MarginClassifier):
    """Twin support vector machines: each label has a hyperplane that its items are near to.

    The hyperplane of a label minimises half the squared scores of the items that have it, plus
    half `alpha` times the squared norm of weights and intercept, plus C times how far the scores of
    the other items exceed -1. An item has the labels to whose hyperplanes its distance is at most
    the least of ``1 / |w|`` over all labels.

    Parameters
    ----------
    C : float
        Cost of items without the label that are nearer than 1 to the hyperplane.
    alpha : float
        Weight of the squared norm; above 0.
    normalize : bool
        Whether features are standardised. False is better for texts as TF-IDF.
    tol : float
        Relative duality gap at which the training of a label stops.
    max_iter : int
        Most sweeps over the items.
    cv : int
        Folds that give the margins on which posteriors are calibrated.
    random_state : int or None
        Of the folds.

    Attributes
    ----------
    coef_, intercept_ : array, shapes (n_labels, n_features) and (n_labels,)
        In units in which an item has the label if its score is between -1 and 1; the margin is 1
        minus the size of the score.
    gap_ : float
        Largest proven relative distance of a label from its minimum.
    n_iter_ : int
        Sweeps of the label that took most.

    Notes
    -----
    Linear kernel. Votes are positive margins, posteriors are Platt scaling of out-of-fold margins.
    Labels are learnt one by one and meet only in the common distance. Training takes cv + 1 times,
    for each label, O(r^3 + n_items r^2) and O(n_items r) per sweep, with r = min(n_items,
    n_features). Fails where a label's items surround the others or have no direction in common:
    they are then near no hyperplane; and where one label has much larger weights than the others,
    since it sets the common distance.

    References
    ----------
    Chen, Shao, Li and Deng, "MLTSVM: a novel twin support vector machine to multi-label learning",
    Pattern Recognition 52, 2016.

    Examples
    --------
    >>> X, Y = [[-1.0], [-0.9], [0.9], [1.0]], [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> MLTSVM(cv=2).fit(X, Y).predict([[-1.0], [1.0]]).tolist()
    [[0, 1], [1, 0]]
    """

    code = "mltsvm"

    def __init__(
        self,
        C: float = 1.0,
        alpha: float = 1.0,
        *,
        normalize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        cv: int = 3,
        random_state: int | None = 0,
    ) -> None:
        self.C = C
        self.alpha = alpha
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.cv = cv
        self.random_state = random_state

    def _learn(self, items: Floats, Y: LabelMatrix) -> tuple[Floats, Floats]:
        items = np.column_stack([items, np.ones(len(items))])
        self.gap_, self.n_iter_ = 0.0, 0
        planes = np.array([self._plane(items[y == 1], items[y == 0]) for y in Y.T])
        # |score| / |w| <= min 1 / |w|, as a bound of 1; a plane without weights takes every item.
        norms = np.linalg.norm(planes[:, :-1], axis=1)
        units = planes * (norms.max() / np.maximum(norms, np.finfo(np.float64).tiny))[:, np.newaxis]
        return units[:, :-1], units[:, -1]

    def _plane(self, near: Floats, far: Floats) -> Floats:
        """Weights and intercept of a label, from the items that have it and those that have not."""
        alpha = check_number(self.alpha, "alpha", np.finfo(np.float64).tiny)
        root = cholesky(near.T @ near + alpha * np.eye(near.shape[1]), lower=True)
        # In the metric of the quadratic term it is a support vector machine with the side -1 alone;
        # a pair of opposite vectors has half the penalty of their difference.
        rows = np.ascontiguousarray(solve_triangular(root, far.T, lower=True).T)
        ones = np.ones(len(far), dtype=np.intp)
        solution = fit_pairs(
            rows,
            np.arange(len(far)),
            (ones, 0 * ones),
            ones * check_number(self.C, "C", 0.0) / 2,
            2,
            tol=self.tol,
            max_iter=check_int(self.max_iter, "max_iter", minimum=1),
        )
        self.gap_ = max(self.gap_, solution.gap)
        self.n_iter_ = max(self.n_iter_, solution.n_iter)
        difference = solution.weights[0] - solution.weights[1]
        return np.asarray(solve_triangular(root, difference, lower=True, trans="T"))

    def _margins(self, scores: Floats) -> Floats:
        return 1 - np.abs(scores)
