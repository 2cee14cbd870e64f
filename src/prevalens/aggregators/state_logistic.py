"""The classifier that LPQ uses if it is given none."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from prevalens.solvers.multinomial import fit_multinomial
from prevalens.types import Floats
from prevalens.validation import PrevalensWarning, check_matrix

__all__ = ["StateLogistic"]


class StateLogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Multinomial logistic regression over label states.

    Parameters
    ----------
    C : float
        Weight of the loss against the penalty of the coefficients.

    Attributes
    ----------
    classes_ : array of int, shape (n_states,)
    coef_ : array, shape (n_states, n_features)
    intercept_ : array, shape (n_states,)

    Notes
    -----
    The objective of scikit-learn's `LogisticRegression`, solved by `prevalens.solvers`: no
    scaling of the features is needed for it to converge. Fails where states are not separated by
    planes.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [4.0], [5.0], [8.0], [9.0]], [0, 0, 1, 1, 2, 2]
    >>> StateLogistic(C=10.0).fit(X, y).predict([[0.5], [4.5], [8.5]]).tolist()
    [0, 1, 2]
    """

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from items and the numbers of their states."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        # A softmax over two classes counts the loss of a binary regression twice.
        weight = self.C / 2 if len(self.classes_) == 2 else self.C
        (found,) = fit_multinomial(check_matrix(X), codes.reshape(-1, 1), C=weight)
        self.coef_, self.intercept_ = found.coef, found.intercept
        if not found.converged:
            warnings.warn(
                f"The logistic regression over {len(self.classes_)} label states has not converged "
                f"after {found.n_iter} Newton steps; a smaller C converges sooner.",
                PrevalensWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable state of each item, shape (n_items,)."""
        return np.asarray(self.classes_[self._evidence(X).argmax(axis=1)])

    def predict_proba(self, X: Any) -> Floats:
        """Posterior of each state, shape (n_items, n_states)."""
        return np.asarray(softmax(self._evidence(X), axis=1))

    def _evidence(self, X: Any) -> Floats:
        return np.asarray(check_matrix(X) @ self.coef_.T) + self.intercept_
