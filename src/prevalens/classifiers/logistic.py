"""Logistic regression of all labels at once, as an estimator around the batched solver."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from prevalens.classifiers.base import MultiLabelClassifier
from prevalens.solvers.design import linear_predictor
from prevalens.solvers.logistic import fit_logistic, fit_logistic_folds, fit_logistic_path
from prevalens.solvers.multinomial import (
    LogisticParameters,
    classes_of,
    not_converged,
    weights_of_classes,
)
from prevalens.solvers.path import LinearFit
from prevalens.types import Floats, Ints, LabelMatrix
from prevalens.validation import (
    InputError,
    check_binary_matrix,
    check_same_length,
    column_names,
)


def for_all_labels(C: Any, class_weight: Any) -> bool:
    """Whether a setting is the same for all labels: one number C and one class weight."""
    return np.ndim(C) == 0 and isinstance(class_weight, (str, Mapping, type(None)))


#: Labels that a warning names; of more it gives the number.
_NAMED = 5


class BatchedLogistic(LogisticParameters, MultiLabelClassifier):
    """Logistic regression of every label, solved together.

    The objective is that of scikit-learn's `LogisticRegression` with ridge penalty, label by
    label; the labels share every pass over the items.

    Parameters
    ----------
    C : float or array of float, shape (n_labels,)
        Weight of the loss against the penalty.
    class_weight : None, "balanced", dict, or a list of these with one entry per label
        "balanced" gives both classes of a label the same total weight. A dict has the weights
        of 0 and 1, or of both classes if `y` has one dimension.
    fit_intercept : bool
        The intercept is not penalised.
    tol : float
        A label is finished when the predicted decrease of its next Newton step is no more than this
        share of the objective.
    max_iter : int
        Newton steps per label.

    Attributes
    ----------
    coef_ : array, shape (n_labels, n_features)
    intercept_ : array, shape (n_labels,)
        Plus or minus infinity for a label that all training items have, or none: its
        posteriors are exactly 1 or 0.
    classes_ : array
        The two classes if `y` had one dimension; else the positions of the labels.
    n_iter_ : array of int, shape (n_labels,)
        Newton steps.
    converged_ : array of bool, shape (n_labels,)

    Notes
    -----
    Time is some tens of passes over the items, each a matrix product for all labels; memory is
    bounded by chunks of labels. It uses as many threads as the linear algebra library. It is slow
    on sparse features of very different scales: scale them first.

    References
    ----------
    Lin, Weng and Keerthi, "Trust region Newton method for large-scale logistic regression", JMLR
    2008.

    Examples
    --------
    >>> from prevalens.classifiers.logistic import BatchedLogistic
    >>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [[0, 1], [0, 1], [1, 0], [1, 1]]
    >>> BatchedLogistic().fit(X, Y).predict_proba([[0.0], [3.0]]).round(2).tolist()
    [[0.19, 0.82], [0.81, 0.67]]
    """

    joint = False
    label_wise = True

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> Self:
        """Learn from labelled items.

        Parameters
        ----------
        X : array or sparse matrix, shape (n_items, n_features)
        Y : 0/1 array, shape (n_items, n_labels); or any two classes, shape (n_items,)
        sample_weight : array, shape (n_items,), optional
        """
        X = self._check_items(X, reset=True)
        columns = self._check_labels(Y)
        check_same_length(X.shape[0], "X", columns.shape[0], "Y")
        self._fit(X, columns, sample_weight)
        self._warn(column_names(Y))
        return self

    def fit_settings(
        self, settings: Sequence[Mapping[str, Any]], X: Any, Y: Any
    ) -> Iterator[BatchedLogistic]:
        """Train with several settings; those of `C` and `class_weight` are solved as one path.

        Parameters
        ----------
        settings : list of dict
            Parameters by name.
        X, Y
            As for `fit`.

        Yields
        ------
        BatchedLogistic
            Fitted, one per setting, in the order given.
        """
        clones = [clone(self).set_params(**setting) for setting in settings]
        if self._one_path(settings) and np.ndim(Y) == 2:
            yield from self._fit_path(clones, X, Y)
        else:
            yield from (model.fit(X, Y) for model in clones)

    def out_of_fold(
        self, strengths: Sequence[float], X: Any, Y: Any, divisions: Sequence[tuple[Ints, Ints]]
    ) -> list[Floats]:
        """Posteriors of all items by regressions that have not seen them, solved together.

        Parameters
        ----------
        strengths : list of float
            Values of `C`.
        X, Y
            As for `fit`; the labels as a matrix.
        divisions : list of (rows to train on, rows to score)
            Together they score all rows.

        Returns
        -------
        list of array, shape (n_items, n_labels)
            One per strength.
        """
        found = [np.empty(np.shape(Y)) for _ in strengths]
        stopping = {name: vars(self)[name] for name in ("class_weight", "tol", "max_iter")}
        rest = [rows for rows, _ in divisions]
        fits = fit_logistic_folds(X, Y, rest, Cs=strengths, **stopping)
        for fit, (_, held) in zip(fits, divisions, strict=True):
            for number, posteriors in enumerate(found):
                model = clone(self).set_solution(fit[number], column_names(Y))
                posteriors[held] = model.predict_proba(X[held])
        return found

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Vote for or against each label, shape (n_items, n_labels); or classes, (n_items,)."""
        positive = self._decide(X) > 0
        if not self._flat:
            return positive.astype(np.int8)
        return np.asarray(np.where(positive[:, 0], self.classes_[-1], self.classes_[0]))

    def predict_proba(self, X: Any) -> Floats:
        """Posterior of each label, shape (n_items, n_labels); or of each class, (n_items, 2)."""
        posteriors = expit(self._decide(X))
        if not self._flat:
            return np.asarray(posteriors)
        return np.hstack([1.0 - posteriors, posteriors])[:, -len(self.classes_) :]

    def decision_function(self, X: Any) -> Floats:
        """Log odds of each label, shape (n_items, n_labels); or of the second class, (n_items,)."""
        log_odds = self._decide(X)
        return log_odds[:, 0] if self._flat else log_odds

    def _fit(self, X: Any, Y: LabelMatrix, sample_weight: Any = None) -> None:
        options = self.get_params() | {"class_weight": self._class_weight()}
        self._keep(fit_logistic(X, Y, sample_weight=sample_weight, **options))

    def _posteriors(self, X: Any) -> Floats:
        return np.asarray(expit(linear_predictor(X, self.coef_, self.intercept_)))

    def _decide(self, X: Any) -> Floats:
        check_is_fitted(self)
        items = self._check_items(X, reset=False)
        return linear_predictor(items, self.coef_, self.intercept_)

    def _check_labels(self, Y: Any) -> LabelMatrix:
        """Labels as columns of 0 and 1; remembers how they were given."""
        self._flat = np.ndim(Y) == 1
        if not self._flat:
            columns = check_binary_matrix(Y)
            self.n_labels_ = columns.shape[1]
            self.classes_ = np.arange(max(self.n_labels_, 2))
            return columns
        self.classes_, self.n_labels_ = classes_of(Y), 1
        if len(self.classes_) > 2:
            raise InputError(
                f"BatchedLogistic learns labels of two classes; y has {len(self.classes_)}. "
                "Use MultinomialLogistic, or one column of 0 and 1 per class."
            )
        return (np.asarray(Y) == self.classes_[-1]).astype(np.int8)[:, np.newaxis]

    def _class_weight(self) -> Any:
        """Class weights in terms of 0 and 1."""
        if not self._flat or not isinstance(self.class_weight, Mapping):
            return self.class_weight
        weights = weights_of_classes(self.class_weight, self.classes_)
        return {0: weights[0], 1: weights[-1]}

    def _one_path(self, settings: Sequence[Mapping[str, Any]]) -> bool:
        """Whether settings are pairs of a number C and a class weight for all labels."""
        return all(set(setting) <= {"C", "class_weight"} for setting in settings) and all(
            for_all_labels(setting.get("C", self.C), setting.get("class_weight", self.class_weight))
            for setting in settings
        )

    def _fit_path(self, clones: Sequence[Any], X: Any, Y: Any) -> Iterator[BatchedLogistic]:
        names = column_names(Y)
        for model in clones:
            matrix, columns = model._check_items(X, reset=True), model._check_labels(Y)
        weights = _distinct([model.class_weight for model in clones])
        Cs = _distinct([float(model.C) for model in clones])
        stopping = {name: vars(self)[name] for name in ("fit_intercept", "tol", "max_iter")}
        path = fit_logistic_path(matrix, columns, Cs=Cs, class_weights=weights, **stopping)
        for model in clones:
            model._keep(path[path.settings.index((float(model.C), model.class_weight))])
            model._warn(names)
            yield model

    def set_solution(self, fit: LinearFit, names: Sequence[Any] | None = None) -> Self:
        """Become fitted with solutions computed elsewhere; warnings call the labels by `names`."""
        self._flat, self.n_labels_ = False, len(fit.coef)
        self.classes_ = np.arange(max(self.n_labels_, 2))
        self.n_features_in_ = fit.coef.shape[1]
        self._keep(fit)
        self._warn(names)
        return self

    def _keep(self, fit: LinearFit) -> None:
        self.coef_, self.intercept_ = fit.coef, fit.intercept
        self.n_iter_, self.converged_ = fit.n_iter, fit.converged

    def _warn(self, names: Any) -> None:
        """Name the labels that did not converge."""
        unconverged = np.flatnonzero(~self.converged_)
        if not len(unconverged):
            return
        shown = [str(place if names is None else names[place]) for place in unconverged[:_NAMED]]
        more = "" if len(unconverged) <= _NAMED else f" and {len(unconverged) - _NAMED} more"
        what = "y" if self._flat else f"label {', '.join(shown)}{more}"
        warnings.warn(not_converged(what, self.max_iter), ConvergenceWarning, stacklevel=3)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.two_d_labels = False
        return tags


def _distinct(values: Sequence[Any]) -> list[Any]:
    """The different values, in the order in which they come; they need not be hashable."""
    return [value for place, value in enumerate(values) if value not in values[:place]]
