"""Label powerset: every labelset of the training items is one class."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.classifiers.logistic import MultinomialLogistic
from prevalens.classifiers.response import offers
from prevalens.validation import count_items

__all__ = ["Powerset"]


class Powerset(MultiLabelClassifier):
    """One multi-class problem over the labelsets that occur in training.

    Parameters
    ----------
    estimator : multi-class classifier, optional
        Default: multinomial logistic regression.

    Attributes
    ----------
    states_ : array of int8, shape (n_states, n_labels)
        The labelsets seen in training, in lexicographic order: which labels each class stands for.
    estimator_ : fitted classifier, or None if there was a single labelset
        Its classes are the row numbers of `states_`.

    Notes
    -----
    Votes are the most probable labelset, which need not consist of the labels with posteriors
    above one half. Cannot answer a labelset it has not seen; with many labels nearly every item is
    its own class, and `RAkEL` is the way out.

    References
    ----------
    Boutell et al., "Learning multi-label scene classification", Pattern Recognition 37(9), 2004.

    Examples
    --------
    >>> X, Y = [[0.0], [0.2], [1.0], [1.2]], [[0, 0], [0, 0], [1, 1], [1, 1]]
    >>> model = Powerset().fit(X, Y)
    >>> model.states_.tolist(), model.predict([[0.0], [1.0]]).tolist()
    ([[0, 0], [1, 1]], [[0, 0], [1, 1]])
    """

    code = "lp"
    takes_texts = True

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    @available_if(lambda self: self._offers_posteriors())  # type: ignore[untyped-decorator]
    def predict_state_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Posterior probability of each labelset in `states_`, shape (n_items, n_states)."""
        check_is_fitted(self)
        return self._state_posteriors(self._check_items(X, reset=False))

    def _fit(self, X: Any, Y: npt.NDArray[np.int8]) -> None:
        self.states_, state_of = np.unique(Y, axis=0, return_inverse=True)
        self.estimator_ = None
        if len(self.states_) > 1:
            self.estimator_ = self._template().fit(X, state_of.ravel())

    def _template(self) -> Any:
        return MultinomialLogistic() if self.estimator is None else clone(self.estimator)

    def _offers_posteriors(self) -> bool:
        return self.estimator is None or "posteriors" in offers(self.estimator)

    def _state_posteriors(self, X: Any) -> npt.NDArray[np.float64]:
        if self.estimator_ is None:
            return np.ones((count_items(X), 1))
        return np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)

    def _posteriors(self, X: Any) -> npt.NDArray[np.float64]:
        # Rounding may leave a certain label a hair above 1.
        return np.minimum(self._state_posteriors(X) @ self.states_, 1.0)

    def _votes(self, X: Any) -> npt.NDArray[Any]:
        if self.estimator_ is None:
            return np.tile(self.states_, (count_items(X), 1))
        return np.asarray(self.states_[self.estimator_.predict(X)])
