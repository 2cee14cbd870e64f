"""Multinomial logistic regression of several targets on one design, at once.

For each target (column of `targets`) with classes k = 0, ..., K - 1 the solution minimises
scikit-learn's objective ``0.5 sum_k |w_k|^2 + C sum_i s_i (log sum_k exp(z_ik) - z_i,y_i)`` with
``z_ik = x_i w_k + b_k``, the intercepts free. Every class is a column; the columns of all targets
and settings share their products with the items. The solver is in `newton` and `path`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from prevalens.solvers.design import Array, linear_predictor
from prevalens.solvers.logistic import fit_logistic
from prevalens.solvers.losses import (
    SoftmaxLoss,
    check_sample_weight,
    check_stopping,
    check_strengths,
)
from prevalens.solvers.path import LinearFit, Problems, solve_path
from prevalens.types import Floats
from prevalens.validation import InputError, Matrix, check_matrix, check_same_length


def fit_multinomial(
    X: Matrix,
    targets: Any,
    *,
    C: float | Array = 1.0,
    class_weight: str | Sequence[Any] | None = None,
    sample_weight: Array | None = None,
    tol: float = 1e-8,
    max_iter: int = 100,
    fit_intercept: bool = True,
) -> list[LinearFit]:
    """Fit one multinomial logistic regression per target.

    Parameters
    ----------
    X : array or sparse matrix, shape (n_items, n_features)
    targets : array of int, shape (n_items, n_targets)
        Class numbers; each target uses all of 0, ..., its largest.
    C : float or array of float, shape (n_targets,)
    class_weight : None, "balanced", or a list with an entry per target
        An entry is one of these or an array with the weights of the classes.
    sample_weight, tol, max_iter, fit_intercept
        As for `fit_logistic`.

    Returns
    -------
    list of LinearFit, one per target
        With one row of coefficients and one intercept per class; the intercepts sum to zero.

    Notes
    -----
    Two classes are a softmax like any other, as if C were doubled in a binary regression. The time
    is that of `fit_logistic` for as many labels as there are classes in all.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
    >>> (fit,) = fit_multinomial(X, [[0], [0], [1], [1], [2], [2]])
    >>> fit.coef.round(2).ravel().tolist()
    [-0.95, -0.0, 0.95]
    """
    targets = _check_targets(targets)
    X = check_matrix(X)
    check_same_length(X.shape[0], "X", len(targets), "targets")
    tol, max_iter = check_stopping(tol, max_iter)
    items = _Items(targets, class_weight, check_sample_weight(sample_weight, len(targets)))
    intercept = items.log_shares() if fit_intercept else np.zeros(items.n_columns)
    problems = Problems(
        groups=[group for group in items.groups if len(group) > 1],
        C=np.repeat(check_strengths(C, targets.shape[1]), items.sizes)[np.newaxis],
        make_loss=items.loss,
        start=(np.zeros((items.n_columns, X.shape[1])), intercept),
    )
    solution = solve_path(X, problems, fit_intercept=fit_intercept, tol=tol, max_iter=max_iter)
    fits = []
    for group in items.groups:
        intercept = solution.intercept[0, group]
        intercept = intercept - intercept.mean()
        fits.append(
            replace(solution[0, group[0]], coef=solution.coef[0, group], intercept=intercept)
        )
    return fits


class _Items:
    """Targets and weights of all items."""

    def __init__(
        self, targets: npt.NDArray[np.int64], class_weight: Any, sample_weight: Array | None
    ) -> None:
        self.targets = targets
        self.sizes = targets.max(axis=0) + 1
        self.n_columns = int(self.sizes.sum())
        self.groups = np.split(np.arange(self.n_columns), np.cumsum(self.sizes)[:-1])
        counts = np.ones(len(targets)) if sample_weight is None else sample_weight
        self._counts = [
            np.bincount(target, weights=counts, minlength=size).astype(np.float64)
            for target, size in zip(targets.T, self.sizes, strict=True)
        ]
        per_target = _one_per_target(class_weight, targets.shape[1])
        self._class_weights = [
            _class_weights(weight, count)
            for weight, count in zip(per_target, self._counts, strict=True)
        ]
        self._sample_weight = sample_weight

    def log_shares(self) -> Array:
        """Centred logarithms of the weighted class shares: the best intercepts without features."""
        parts = []
        for count, weight in zip(self._counts, self._class_weights, strict=True):
            share = count * weight
            # A class all of whose items weigh nothing starts as if it had a little.
            logarithm = np.log(np.maximum(share, 1e-3 * share.max()))
            parts.append(logarithm - logarithm.mean())
        return np.concatenate(parts)

    def loss(self, columns: Array, C: Array, curvature_type: npt.DTypeLike) -> SoftmaxLoss:
        """The loss of the targets that `columns` belong to."""
        chosen = [number for number, group in enumerate(self.groups) if group[0] in columns]
        sizes = self.sizes[chosen]
        starts = np.cumsum(sizes) - sizes
        weights = np.ones((1, len(chosen))) * C[starts]
        if any(np.any(self._class_weights[number] != 1) for number in chosen):
            weights = weights * np.column_stack(
                [self._class_weights[number][self.targets[:, number]] for number in chosen]
            )
        if self._sample_weight is not None:
            weights = weights * self._sample_weight[:, np.newaxis]
        return SoftmaxLoss(self.targets[:, chosen] + starts, sizes, weights, curvature_type)


def _one_per_target(class_weight: Any, n_targets: int) -> Sequence[Any]:
    if class_weight is None or isinstance(class_weight, str):
        return [class_weight] * n_targets
    if isinstance(class_weight, Mapping) or len(class_weight) != n_targets:
        raise InputError(
            f"class_weight must be None, 'balanced', or a list with one entry for each of the "
            f"{n_targets} targets; got {class_weight!r}."
        )
    return list(class_weight)


def _class_weights(weight: Any, counts: Floats) -> Floats:
    if weight is None:
        return np.ones(len(counts))
    if isinstance(weight, str) and weight == "balanced":
        return counts.sum() / (len(counts) * np.where(counts > 0, counts, np.inf))
    weights = np.asarray(weight, dtype=np.float64)
    if weights.shape != (len(counts),) or not np.all(weights > 0):
        raise InputError(
            f"The class weights of a target must be {len(counts)} positive numbers; got {weight!r}."
        )
    return weights


def _check_targets(targets: Any) -> npt.NDArray[np.int64]:
    array = np.asarray(targets)
    if (
        array.ndim != 2
        or array.shape[0] == 0
        or array.shape[1] == 0
        or array.dtype.kind not in "iub"
    ):
        raise InputError(
            "targets must be whole numbers of shape (n_items, n_targets), at least one each; got "
            f"shape {array.shape} of type {array.dtype}."
        )
    array = array.astype(np.int64)
    for number, target in enumerate(array.T):
        counts = np.bincount(target) if target.min() >= 0 else np.zeros(1)
        if not counts.all():
            raise InputError(
                f"Target {number} must use every class number from 0 to {target.max()}; number "
                "its classes anew with numpy.unique(target, return_inverse=True)."
            )
    return array


def classes_of(y: Any) -> npt.NDArray[Any]:
    """The distinct classes of `y`, which must be classes and not measurements."""
    check_classification_targets(y)
    return np.unique(np.asarray(y))


def weights_of_classes(class_weight: Any, classes: npt.NDArray[Any]) -> Any:
    """A dict of class weights as a list in the order of the classes."""
    if not isinstance(class_weight, Mapping):
        return class_weight
    unknown = set(class_weight) - set(classes.tolist())
    if unknown:
        raise InputError(f"class_weight names {sorted(unknown)}, which y does not have.")
    return [float(class_weight.get(name, 1.0)) for name in classes.tolist()]


def not_converged(what: str, max_iter: int) -> str:
    """The warning about a logistic regression that stopped before its minimum."""
    return (
        f"Logistic regression of {what} did not converge in {max_iter} Newton steps; raise "
        "max_iter, scale the features, or lower C."
    )


class LogisticParameters(BaseEstimator):  # type: ignore[misc]
    """The parameters that all logistic regressions of this package share."""

    def __init__(
        self,
        C: Any = 1.0,
        class_weight: Any = None,
        *,
        fit_intercept: bool = True,
        tol: float = 1e-8,
        max_iter: int = 100,
    ) -> None:
        self.C = C
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter


class MultinomialLogistic(ClassifierMixin, LogisticParameters):  # type: ignore[misc]
    """Logistic regression of one target with any number of classes.

    The objective is that of scikit-learn's `LogisticRegression` with ridge penalty: a softmax over
    the classes, or the binary loss if there are two.

    Parameters
    ----------
    C : float
        Weight of the loss against the penalty.
    class_weight : None, "balanced", or dict from class to weight
    fit_intercept : bool
        The intercepts are not penalised.
    tol : float
        Finished when the predicted decrease of the next Newton step is no more than this share of
        the objective.
    max_iter : int
        Newton steps.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
    coef_ : array, shape (n_classes, n_features), or (1, n_features) for two classes
    intercept_ : array, shape (n_classes,), or (1,) for two classes
    n_iter_ : int
        Newton steps.
    converged_ : bool

    Notes
    -----
    A single class is allowed: it is always the prediction. Each class adds a column to every
    product, so that many rare classes take much time.

    References
    ----------
    Boehning, "Multinomial logistic regression algorithm", Ann. Inst. Statist. Math. 1992.

    Examples
    --------
    >>> from prevalens.solvers.multinomial import MultinomialLogistic
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], list("aabbcc")
    >>> MultinomialLogistic().fit(X, y).predict([[0.0], [2.5], [5.0]]).tolist()
    ['a', 'b', 'c']
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from items and their classes.

        Parameters
        ----------
        X : array or sparse matrix, shape (n_items, n_features)
        y : array, shape (n_items,)
        sample_weight : array, shape (n_items,), optional
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        self.classes_ = classes_of(y)
        codes = np.searchsorted(self.classes_, y)[:, np.newaxis]
        weights = weights_of_classes(self.class_weight, self.classes_)
        options = {**self.get_params(), "sample_weight": sample_weight}
        if len(self.classes_) == 2:
            both = dict(enumerate(weights)) if isinstance(weights, list) else weights
            fit = fit_logistic(X, codes, **options | {"class_weight": both})
        else:
            (fit,) = fit_multinomial(X, codes, **options | {"class_weight": [weights]})
        self.coef_, self.intercept_ = fit.coef, fit.intercept
        self.n_iter_, self.converged_ = int(np.max(fit.n_iter)), bool(np.all(fit.converged))
        if not self.converged_:
            warnings.warn(not_converged("y", self.max_iter), ConvergenceWarning, stacklevel=2)
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each item, shape (n_items,)."""
        log_odds = self.decision_function(X)
        if log_odds.ndim == 1:
            return np.asarray(self.classes_[(log_odds > 0).astype(np.intp)])
        return np.asarray(self.classes_[log_odds.argmax(axis=1)])

    def predict_proba(self, X: Any) -> Floats:
        """Posterior of each class, shape (n_items, n_classes)."""
        log_odds = self.decision_function(X)
        if log_odds.ndim == 1:
            return np.column_stack([expit(-log_odds), expit(log_odds)])
        return np.asarray(softmax(log_odds, axis=1))

    def decision_function(self, X: Any) -> Floats:
        """Predictor of each class, shape (n_items, n_classes).

        For two classes it is the log odds of the second, shape (n_items,).
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        predictor = linear_predictor(X, self.coef_, self.intercept_)
        return predictor[:, 0] if len(self.classes_) == 2 else predictor

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
