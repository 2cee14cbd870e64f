"""Binary relevance: one classifier per label, trained without the other labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from joblib import Parallel, delayed
from scipy.special import expit
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prevalens.classifiers.base import CompositeClassifier
from prevalens.classifiers.logistic import BatchedLogistic
from prevalens.expression import Call, described
from prevalens.response import constant_labels, response
from prevalens.scores import Kind
from prevalens.solvers.design import linear_predictor
from prevalens.solvers.multinomial import MultinomialLogistic
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import InputError, count_items


def _has_decisions(classifier: PerLabel) -> bool:
    return classifier.estimator is None or hasattr(classifier.estimator, "decision_function")


class PerLabel(CompositeClassifier):
    """One classifier per label (binary relevance).

    Parameters
    ----------
    estimator : scikit-learn classifier of two classes, optional
        Cloned for each label. Default: logistic regression of all labels at once,
        `BatchedLogistic`, with the parameters below.
    C, class_weight, tol, max_iter
        Parameters of the default; ignored if an estimator is given.
    n_jobs : int, optional
        Labels trained at the same time where an estimator is given. The default uses as many
        threads as the linear algebra library.

    Attributes
    ----------
    estimators_ : list of fitted classifiers, one per label
        None for a label that all training items have, or none. Only if an estimator was given.
    classifier_ : fitted BatchedLogistic
        Only by default.
    coef_, intercept_ : array
        Of the default, shapes (n_labels, n_features) and (n_labels,).
    n_labels_ : int

    Notes
    -----
    Votes are the classifier's own, not posteriors above one half. A label that is constant in
    training gets that constant as its answer, with posteriors of exactly 0 or 1. Fails where other
    labels are the best predictors of a label: it does not use them.

    References
    ----------
    Boutell et al., "Learning multi-label scene classification", Pattern Recognition 2004.

    Examples
    --------
    >>> from prevalens.classifiers.per_label import PerLabel
    >>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [[0, 1], [0, 1], [1, 0], [1, 1]]
    >>> PerLabel().fit(X, Y).predict([[0.0], [3.0]]).tolist()
    [[0, 1], [1, 1]]
    >>> from sklearn.naive_bayes import GaussianNB
    >>> PerLabel(GaussianNB()).fit(X, Y).predict([[0.0], [3.0]]).tolist()
    [[0, 1], [1, 1]]
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
        tol: float = 1e-8,
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
    def expression(self) -> Call:
        """``lr`` with its settings by default, ``br`` around an estimator that was given."""
        return described(self, "lr" if self.estimator is None else "br")

    @property
    def takes_texts(self) -> bool:  # type: ignore[override]
        """True if an estimator was given; it decides whether texts are accepted."""
        return self.estimator is not None

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> Self:
        """Learn from labelled items.

        Parameters
        ----------
        X : array, sparse matrix or whatever the estimator takes, n_items rows
        Y : 0/1 array, shape (n_items, n_labels)
        sample_weight : array, shape (n_items,), optional
        """
        X, columns = self._check_training(X, Y)
        if self.estimator is None:
            self.classifier_ = self._batched().fit(X, Y, sample_weight)
        else:
            self._fit(X, columns, sample_weight)
        return self

    @available_if(lambda self: self.estimator is None)  # type: ignore[untyped-decorator]
    def fit_settings(
        self, settings: Sequence[Mapping[str, Any]], X: Any, Y: Any
    ) -> Iterator[PerLabel]:
        """Train the default with several settings, solved together; see `BatchedLogistic`."""
        for setting, batched in zip(
            settings, self._batched().fit_settings(settings, X, Y), strict=True
        ):
            model = clone(self).set_params(**setting)
            model.n_labels_, model.classes_ = batched.n_labels_, batched.classes_
            model._check_items(X, reset=True)
            model.classifier_ = batched
            yield model

    @available_if(_has_decisions)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """Confidence in each label, shape (n_items, n_labels); infinite for constant labels."""
        check_is_fitted(self)
        X = self._check_items(X, reset=False)
        if self.estimator is None:
            return np.asarray(self.classifier_.decision_function(X))
        values = self._constant(X, np.where(self.constants_ > 0, np.inf, -np.inf))
        for label, estimator in self._varying():
            values[:, label] = estimator.decision_function(X)
        return values

    def multiclass(self) -> Any:
        """An unfitted classifier of one target with many classes, with the same settings."""
        if self.estimator is not None:
            return clone(self.estimator)
        if np.ndim(self.C) > 0 or not isinstance(self.class_weight, (str, type(None))):
            raise InputError(
                "With C or class_weight per label or per class, PerLabel has no multiclass "
                "counterpart; give a number C and class_weight None or 'balanced'."
            )
        return MultinomialLogistic(
            C=self.C, class_weight=self.class_weight, tol=self.tol, max_iter=self.max_iter
        )

    @property
    def coef_(self) -> Floats:
        """Coefficients of the default, shape (n_labels, n_features)."""
        return np.asarray(self.classifier_.coef_)

    @property
    def intercept_(self) -> Floats:
        """Intercepts of the default, shape (n_labels,)."""
        return np.asarray(self.classifier_.intercept_)

    def _batched(self) -> BatchedLogistic:
        return BatchedLogistic(
            C=self.C, class_weight=self.class_weight, tol=self.tol, max_iter=self.max_iter
        )

    def _fit(self, X: Any, Y: LabelMatrix, sample_weight: Any = None) -> None:
        self.constants_ = Y[0].copy()
        varying = ~constant_labels(Y)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        # Classifiers of several labels take one label as a column, not as a flat array.
        flat = get_tags(self.estimator).target_tags.single_output
        fitted = Parallel(n_jobs=self.n_jobs)(
            delayed(_fitted)(self.estimator, X, Y[:, label if flat else [label]], weights)
            for label in np.flatnonzero(varying)
        )
        remaining = iter(fitted)
        self.estimators_ = [next(remaining) if varies else None for varies in varying]

    def respond(self, X: Any, kind: Kind) -> npt.NDArray[Any]:
        """Votes or posteriors of checked items, shape (n_items, n_labels)."""
        if self.estimator is None:
            log_odds = self._log_odds(X)
            return (log_odds > 0).astype(np.float64) if kind == "votes" else expit(log_odds)
        values = self._constant(X, self.constants_)
        for label, estimator in self._varying():
            values[:, label] = response(estimator, X, kind, 1).values[:, 0]
        return values

    def _log_odds(self, X: Any) -> Floats:
        """Log odds of checked items under the default."""
        if sp.issparse(X):
            return linear_predictor(X, self.coef_, self.intercept_)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def _constant(self, X: Any, row: npt.NDArray[Any]) -> Floats:
        return np.tile(row.astype(np.float64), (count_items(X), 1))

    def _varying(self) -> Iterator[tuple[int, Any]]:
        return (pair for pair in enumerate(self.estimators_) if pair[1] is not None)


def _fitted(estimator: Any, X: Any, y: LabelMatrix, weights: dict[str, Any]) -> Any:
    return clone(estimator).fit(X, y, **weights)
