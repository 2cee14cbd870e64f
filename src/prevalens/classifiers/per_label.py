"""Binary relevance: one classifier per label, which sees no other label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.classifiers.logistic import BatchedLogistic, MultinomialLogistic
from prevalens.classifiers.response import offers, response
from prevalens.validation import InputError, count_items

__all__ = ["PerLabel"]

#: What belongs to the batched logistic regression and not to an estimator that is given.
_OWN = ("C", "class_weight", "tol", "max_iter")


def _has_odds(classifier: Any) -> bool:
    return classifier.estimator is None or hasattr(classifier.estimator, "decision_function")


class PerLabel(MultiLabelClassifier):
    """One classifier per label (binary relevance).

    Parameters
    ----------
    estimator : scikit-learn classifier of two classes, optional
        It is cloned for each label. Default: logistic regression, all labels solved together.
    C : float or array of float, shape (n_labels,)
        Of the logistic regression: weight of the loss against the penalty.
    class_weight : None, "balanced", dict, or a list of these, one per label
        Of the logistic regression.
    tol, max_iter : float, int
        Of the logistic regression; see `BatchedLogistic`.
    n_jobs : int, optional
        Labels trained at the same time, with an estimator of one's own.

    Attributes
    ----------
    batched_ : BatchedLogistic, or None
    estimators_ : list of fitted estimators
        With an estimator of one's own; a label that never varies has its constant instead.
    coef_, intercept_ : arrays
        Of the logistic regression.

    Notes
    -----
    Correlations between labels are lost here; an aggregator or a second layer may bring them
    back. A label that all training items carry, or none, is answered as such.

    References
    ----------
    Tsoumakas and Katakis, "Multi-label classification: an overview", International Journal of
    Data Warehousing and Mining 3(3), 2007.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> PerLabel().fit(X, [[0, 1], [0, 1], [1, 0], [1, 0]]).predict([[0.0], [3.0]]).tolist()
    [[0, 1], [1, 0]]
    """

    code = "lr"
    joint = False
    label_wise = True

    def __init__(
        self,
        estimator: Any = None,
        *,
        C: Any = 1.0,
        class_weight: Any = None,
        tol: float = 1e-7,
        max_iter: int = 100,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.C = C
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    @property
    def takes_texts(self) -> bool:  # type: ignore[override]
        """Texts go to an estimator of one's own, which may be a pipeline."""
        return self.estimator is not None

    def multiclass(self) -> Any:
        """An unfitted classifier of one label with many classes, with the same settings."""
        if self.estimator is not None:
            return clone(self.estimator)
        return MultinomialLogistic(self.C, self.class_weight)

    def fit_settings(self, settings: Sequence[Any], X: Any, Y: Any) -> Iterator[PerLabel]:
        """Fit a copy with each of several settings; the logistic regression in one go."""
        copies = [clone(self).set_params(**setting) for setting in settings]
        if any(copy.estimator is not None for copy in copies):
            yield from (copy.fit(X, Y) for copy in copies)
            return
        inner = [
            {name: getattr(copy, name) for name in setting if name in _OWN}
            for setting, copy in zip(settings, copies, strict=True)
        ]
        X, Y = self._check_training(X, Y)
        solved = self._batched().fit_settings(inner, X, Y)
        for copy, batched in zip(copies, solved, strict=True):
            copy._check_training(X, Y)
            copy.batched_, copy.estimators_ = batched, []
            yield copy

    def _batched(self) -> BatchedLogistic:
        return BatchedLogistic(**{name: getattr(self, name) for name in _OWN})

    def _fit(self, X: Any, Y: npt.NDArray[np.int8]) -> None:
        self.batched_, self.estimators_ = None, []
        if self.estimator is None:
            self.batched_ = self._batched().fit(X, Y)
            return
        jobs = (delayed(_fit_label)(self.estimator, X, y) for y in Y.T)
        self.estimators_ = list(Parallel(n_jobs=self.n_jobs)(jobs))

    @property
    def coef_(self) -> npt.NDArray[np.float64]:
        """Coefficients of the logistic regression, shape (n_labels, n_features)."""
        return self._solution().coef_

    @property
    def intercept_(self) -> npt.NDArray[np.float64]:
        """Intercepts of the logistic regression, shape (n_labels,)."""
        return self._solution().intercept_

    def _solution(self) -> BatchedLogistic:
        found: BatchedLogistic | None = getattr(self, "batched_", None)
        if found is None:
            raise AttributeError("Only a fitted PerLabel without an estimator has coefficients.")
        return found

    @available_if(_has_odds)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """How strongly each label is voted for, shape (n_items, n_labels); votes are above 0."""
        check_is_fitted(self)
        X = self._check_items(X, reset=False)
        if self.batched_ is not None:
            return self.batched_.decision_function(X)
        return self._columns(X, _odds)

    def _posteriors(self, X: Any) -> npt.NDArray[np.float64]:
        if self.batched_ is not None:
            return self.batched_.predict_proba(X)
        return self._columns(X, lambda one, X: response(one, X, "posteriors", 1).values[:, 0])

    def _votes(self, X: Any) -> npt.NDArray[Any]:
        if self.batched_ is not None:
            return self.batched_.predict(X)
        return self._columns(X, lambda one, X: response(one, X, "votes", 1).values[:, 0])

    def _columns(self, X: Any, ask: Any) -> npt.NDArray[np.float64]:
        """One column per label; a label that never varied has its constant."""
        values = np.empty((count_items(X), self.n_labels_))
        for label, one in enumerate(self.estimators_):
            values[:, label] = one if isinstance(one, int) else ask(one, X)
        return values

    def _offers_posteriors(self) -> bool:
        return self.estimator is None or "posteriors" in offers(self.estimator)


def _fit_label(estimator: Any, X: Any, y: npt.NDArray[np.int8]) -> Any:
    if y.min() == y.max():
        return int(y[0])
    try:
        return clone(estimator).fit(X, y)
    except TypeError as error:
        raise InputError(f"PerLabel cannot use {estimator!r}: {error}") from error


def _odds(one: Any, X: Any) -> npt.NDArray[np.float64]:
    odds: npt.NDArray[np.float64] = one.decision_function(X)
    return odds
