"""Logistic regression of all labels at once, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from prevalens.solvers.logistic import LogisticFit, fit_logistic, fit_logistic_path
from prevalens.validation import InputError, check_binary_matrix

__all__ = ["BatchedLogistic", "MultinomialLogistic"]

#: How many labels a warning names before it says "and so on".
_NAMED = 10
#: The parameters whose settings are solved together.
_SHARED = {"C", "class_weight"}


class BatchedLogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression with a ridge penalty, one per label, all solved together.

    Minimises the objective of scikit-learn's ``LogisticRegression`` for each label, with a free
    intercept.

    Parameters
    ----------
    C : float or array of float, shape (n_labels,)
        Weight of the loss against the penalty.
    class_weight : None, "balanced", dict, or a list of these, one per label
    tol : float
        A label is finished when its next step promises to lower the objective by no more than this
        share.
    max_iter : int
        Newton steps per label at most.
    fit_intercept : bool

    Attributes
    ----------
    coef_ : array, shape (n_labels, n_features)
    intercept_ : array, shape (n_labels,)
        Infinite for a label that all items have, minus infinite if none has it: such a
        label's posterior is exactly 1 or 0.
    n_iter_ : array of int, shape (n_labels,)
    classes_ : list of arrays, or array for a one-dimensional y

    Notes
    -----
    Time O(passes x entries of X x labels), as matrix products; memory bounded by chunks of labels.
    A sparse X stays sparse. Badly scaled features need many passes.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> model = BatchedLogistic().fit(X, [[0, 1], [0, 1], [1, 0], [1, 0]])
    >>> model.predict([[0.0], [3.0]]).tolist()
    [[0, 1], [1, 0]]
    """

    def __init__(
        self,
        C: Any = 1.0,
        class_weight: Any = None,
        *,
        tol: float = 1e-7,
        max_iter: int = 100,
        fit_intercept: bool = True,
    ) -> None:
        self.C = C
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from labelled items.

        Parameters
        ----------
        X : array or sparse matrix, shape (n_items, n_features)
        y : 0/1 array, shape (n_items, n_labels); or two classes, shape (n_items,)
        sample_weight : array of float, shape (n_items,), optional
        """
        names = _label_names(y)
        X, Y, sample_weight = self._check(X, y, sample_weight)
        found = fit_logistic(
            X,
            Y,
            C=self.C,
            class_weight=self._weights_by_code(),
            sample_weight=sample_weight,
            **self._stopping(),
        )
        self._keep(found, names)
        return self

    def fit_settings(self, settings: Sequence[Any], X: Any, Y: Any) -> Iterator[BatchedLogistic]:
        """Fit a copy with each of several settings; values of C and class_weight in one go."""
        copies = [clone(self).set_params(**setting) for setting in settings]
        if not all(
            _SHARED.issuperset(setting) and copy._is_plain()
            for setting, copy in zip(settings, copies, strict=True)
        ):
            yield from (copy.fit(X, Y) for copy in copies)
            return
        names = _label_names(Y)
        checked, labels, _ = self._check(X, Y, None)
        Cs = sorted({float(copy.C) for copy in copies})
        weights = list(dict.fromkeys(copy.class_weight for copy in copies))
        path = fit_logistic_path(checked, labels, Cs=Cs, class_weights=weights, **self._stopping())
        position = {setting: number for number, setting in enumerate(path.settings)}
        for copy in copies:
            copy._check(X, Y, None)
            copy._keep(path[position[float(copy.C), copy.class_weight]], names)
            yield copy

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Log odds of each label, shape (n_items, n_labels); (n_items,) for 1-D y."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        odds = np.asarray(X @ self.coef_.T) + self.intercept_
        return odds[:, 0] if self._one_dimensional else odds

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Vote for or against each label, shape (n_items, n_labels) or (n_items,)."""
        votes = (self.decision_function(X) > 0).astype(np.int8)
        return self.classes_[votes] if self._one_dimensional else votes

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Posterior of each label, shape (n_items, n_labels); of both classes for 1-D y."""
        posteriors = expit(self.decision_function(X))
        if self._one_dimensional:
            return np.column_stack([1 - posteriors, posteriors])
        return posteriors

    def _is_plain(self) -> bool:
        """Whether all labels share one C and one hashable class weight."""
        return np.ndim(self.C) == 0 and (
            self.class_weight is None or self.class_weight == "balanced"
        )

    def _check(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, npt.NDArray[np.int8], Any]:
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        self._one_dimensional = np.ndim(y) == 1 if not hasattr(y, "shape") else len(y.shape) == 1
        Y = self._two_classes(y) if self._one_dimensional else self._many_labels(y)
        if X.shape[0] != Y.shape[0]:
            raise InputError(f"X has {X.shape[0]} rows but y has {Y.shape[0]}.")
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        return X, Y, sample_weight

    def _two_classes(self, y: Any) -> npt.NDArray[np.int8]:
        y = column_or_1d(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise InputError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}. Use MultinomialLogistic for several classes."
            )
        self.classes_: Any
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y holds one class only, {self.classes_[0]!r}; two are needed.")
        return codes.reshape(-1, 1).astype(np.int8)

    def _many_labels(self, y: Any) -> npt.NDArray[np.int8]:
        Y = check_binary_matrix(y)
        self.classes_ = [np.array([0, 1])] * Y.shape[1]
        return Y

    def _weights_by_code(self) -> Any:
        """Class weights with the codes 0 and 1 for keys, whatever the classes are called."""
        if not (self._one_dimensional and isinstance(self.class_weight, dict)):
            return self.class_weight
        return {code: self.class_weight.get(name, 1.0) for code, name in enumerate(self.classes_)}

    def _stopping(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("tol", "max_iter", "fit_intercept")}

    def _keep(self, found: LogisticFit, names: Sequence[str] | None) -> None:
        self.coef_, self.intercept_ = found.coef, found.intercept
        self.n_iter_ = found.n_iter
        unfinished = np.flatnonzero(~found.converged)
        if len(unfinished) == 0:
            return
        named = [str(j) if names is None else names[j] for j in unfinished[:_NAMED]]
        more = f" and {len(unfinished) - _NAMED} more" if len(unfinished) > _NAMED else ""
        warnings.warn(
            f"Logistic regression stopped at max_iter={self.max_iter} before it converged for the "
            f"labels {', '.join(named)}{more}; scale the features, or raise max_iter.",
            ConvergenceWarning,
            stacklevel=3,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        return tags


class MultinomialLogistic(LogisticRegression):  # type: ignore[misc]
    """Multinomial logistic regression of one label with many classes, such as label states.

    Parameters
    ----------
    C : float
        Weight of the loss against the penalty.
    class_weight : None, "balanced" or dict
    tol : float
    max_iter : int

    Examples
    --------
    >>> model = MultinomialLogistic(C=100).fit([[0.0], [1.0], [2.0]], ["a", "b", "c"])
    >>> model.predict([[0.0], [2.0]]).tolist()
    ['a', 'c']
    """

    def __init__(
        self,
        C: float = 1.0,
        class_weight: Any = None,
        *,
        tol: float = 1e-4,
        max_iter: int = 1000,
    ) -> None:
        super().__init__(C=C, class_weight=class_weight, tol=tol, max_iter=max_iter)


def _label_names(y: Any) -> list[str] | None:
    frame = nw.from_native(y, eager_only=True, pass_through=True)
    return list(frame.columns) if isinstance(frame, nw.DataFrame) else None
