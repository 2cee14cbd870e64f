"""RLLS: regularised label-shift weights, label by label.

Label-shift methods look for the factors ``w = 1 + t`` by which the shares of negatives and
positives have changed, from ``C t = b``: C holds the shares of labelled items by prediction and
truth, b how far the mean prediction of the sample is from that of the labelled items. For one label
b has the form ``d (-1, 1)``, so that t is d times the solution for d = 1, which is computed once.
Without regularisation (BBSE) the estimate is that of `ACC` for votes and of `PACC` for posteriors.
"""

from __future__ import annotations

import numpy as np

from prevalens.aggregators.adjusted import PACC
from prevalens.aggregators.base import Aggregator
from prevalens.batches import VALUES, Statistic
from prevalens.scores import Kind, Scores
from prevalens.types import Floats, Ints, LabelMatrix
from prevalens.validation import check_fraction, check_number

#: Steps of the bisection for the multiplier of a label, between these powers of e.
_STEPS, _POWERS = 100, (-60.0, 60.0)


class RLLS(Aggregator):
    """Regularised learning under label shift: adjusted counting, held back if items are few.

    Parameters
    ----------
    alpha : float
        Factor of the regularisation, 0 or more; 0 is `PACC` without its guard (BBSE-soft).
    delta : float
        Probability with which the published bound on the error of C may fail; the smaller, the
        stronger the regularisation.

    Attributes
    ----------
    direction_ : array of float, shape (n_labels, 2)
        How much the weights of negatives and positives change per unit of the mean posterior.
    mean_ : array of float, shape (n_labels,)
        Mean posterior of the labelled items.

    Notes
    -----
    Minimises ``|C t - b| + rho |t|`` over t >= -1 with ``rho = 3 alpha (2 L / (3 n) + sqrt(2 L /
    n))`` and ``L = log(4 / delta)`` for n labelled items. The minimum satisfies ``(C'C + m I) t =
    C'b`` with the multiplier ``m = rho |C t - b| / |t|``, which is found by bisection for all
    labels at once; it is 0 for a small rho and infinite for a large one. The bound ``t >= -1``
    gives estimates of 0 and 1. O(n_items x n_labels) to fit, the mean of the samples to aggregate.

    Fails where regularisation is strong: the estimate then stays near the training prevalence,
    whatever the sample. A label that is constant in the labelled scores is estimated by its mean
    posterior.

    References
    ----------
    Azizzadenesheli, Liu, Yang, Anandkumar, "Regularized learning for domain adaptation under label
    shifts", ICLR 2019.
    Lipton, Wang, Smola, "Detecting and correcting for label shift with black box predictors",
    ICML 2018.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> posteriors = Scores([[0.8], [0.6], [0.3], [0.1]], kind="posteriors")
    >>> bag = Samples.from_indices([[0, 1, 2]], n_items=4)
    >>> for alpha in (0, 1):
    ...     rlls = RLLS(alpha).fit(posteriors, [[1], [1], [0], [0]])
    ...     print(rlls.aggregate(posteriors, bag).round(3).tolist())
    [[0.733]]
    [[0.5]]
    """

    code = "rlls"
    consumes: Kind = "posteriors"
    joint = False

    def __init__(self, alpha: float = 0.01, delta: float = 0.05) -> None:
        self.alpha = alpha
        self.delta = delta

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        rho = self._strength(len(Y))
        rates = PACC(guard=None).fit(scores, Y)
        tpr, fpr = np.nan_to_num(rates.tpr_), np.nan_to_num(rates.fpr_)
        share = self.prevalence_
        self.mean_ = share * tpr + (1.0 - share) * fpr
        absent, present = 1.0 - share, share
        without = [absent * (1.0 - fpr), present * (1.0 - tpr)]
        joint = np.array([without, [absent * fpr, present * tpr]])
        self.direction_ = _direction(np.moveaxis(joint, 2, 0), rho)
        self.varies_ = (share > 0) & (share < 1)

    def _strength(self, n_items: int) -> float:
        """Check the parameters and return rho."""
        level = np.log(4.0 / check_fraction(self.delta, "delta"))
        bound = 2.0 * level / (3.0 * n_items) + np.sqrt(2.0 * level / n_items)
        return float(3.0 * check_number(self.alpha, "alpha", 0.0) * bound)

    @property
    def statistic(self) -> Statistic:
        """The posteriors."""
        return VALUES

    def _from_means(self, means: Floats, sizes: Ints) -> Floats:  # noqa: ARG002
        moved = means - self.mean_
        weights = [np.maximum(1.0 + moved * self.direction_[:, k], 0.0) for k in (0, 1)]
        against, for_it = (1.0 - self.prevalence_) * weights[0], self.prevalence_ * weights[1]
        total = against + for_it
        usual = np.broadcast_to(self.prevalence_, total.shape).copy()
        shares = np.divide(for_it, total, out=usual, where=total > 0)
        return np.where(self.varies_, shares, means)


def _direction(joint: Floats, rho: float) -> Floats:
    """Minimise ``|C t - u| + rho |t|`` with ``u = (-1, 1)`` for every label.

    Parameters
    ----------
    joint : array of float, shape (n_labels, 2, 2)
        C: shares of items by prediction (rows) and truth.
    rho : float

    Returns
    -------
    array of float, shape (n_labels, 2)
    """
    target = np.array([-1.0, 1.0])
    squares, values = joint.swapaxes(1, 2) @ joint, joint.swapaxes(1, 2) @ target

    def solve(multiplier: Floats) -> Floats:
        # A multiplier of e^-60 stands for none: singular systems then have their least solution.
        ridge = multiplier[:, np.newaxis, np.newaxis] * np.eye(2)
        return np.asarray(np.linalg.solve(squares + ridge, values[:, :, np.newaxis])[:, :, 0])

    low, high = (np.full(len(joint), power) for power in _POWERS)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        found = solve(np.exp(middle))
        residual = np.linalg.norm((joint @ found[:, :, np.newaxis])[:, :, 0] - target, axis=1)
        # Too small a multiplier: the regularisation still outweighs the residual.
        small = rho * residual > np.exp(middle) * np.linalg.norm(found, axis=1)
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    return solve(np.exp(high))
