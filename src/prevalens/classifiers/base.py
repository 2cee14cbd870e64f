"""The base class of all multi-label classifiers of this package: checks and shapes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from prevalens.response import offers
from prevalens.scores import Kind
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import (
    InputError,
    Matrix,
    check_binary_matrix,
    check_matrix,
    check_same_length,
    column_names,
    count_items,
    is_texts,
)


class MultiLabelClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A scikit-learn classifier whose predictions have one column per label.

    A subclass declares `code` and implements `_fit` and `_posteriors`, which get checked input.
    Everything else has a default, or is optional and declared as a Protocol:

    ======================== ======================================================================
    `joint`                  False if each label is learnt alone (BC); default True (MLC)
    `label_wise`             True if a label's answer depends on no other label's training values,
                             so that dividing the labels changes nothing; default False
    `takes_texts`            True if texts go to another estimator as they are; default False
    `takes_missing`          True if numbers may be missing (NaN); default False
    `_votes`                 votes; default: posteriors above one half
    `_offers_posteriors`     False if a part inside has no posteriors, so that there is no
                             `predict_proba`; default True
    `fit_settings`           trains several settings in less time than one after the other
                             (`prevalens.crossfit.TrainsTogether`)
    `member_posteriors`,     posteriors of several members side by side, and their mean
    `mean_of`                (`prevalens.response.HasMembers`)
    `multiclass`             the counterpart for one target with many classes
                             (`prevalens.response.HasMulticlass`)
    `label_class_weights`    class weights of each label, if they differ
                             (`prevalens.response.HasClassWeights`)
    `expression`             the name in the grammar of methods, if it is not `code` with the
                             parameters that differ from their defaults
    `of_members`             makes the classifier from any number of others, in that grammar
    `expected_bytes`         size of the fitted classifier, known before training (forests)
    ======================== ======================================================================

    A classifier of scikit-learn or of your own needs none of these: `prevalens.response` calls its
    scikit-learn methods.

    Attributes
    ----------
    code : str
        Name in the grammar of methods.
    n_labels_ : int
        Number of labels seen in `fit`.
    classes_ : array of int
        The positions of the labels, or 0 and 1 for a single label, as in scikit-learn's
        one-vs-rest.
    """

    joint: bool = True
    label_wise: bool = False
    takes_texts: bool = False
    takes_missing: bool = False

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from labelled items.

        Parameters
        ----------
        X : array or sparse matrix, shape (n_items, n_features)
        Y : 0/1 array, shape (n_items, n_labels)
        """
        X, Y = self._check_training(X, Y)
        self._fit(X, Y)
        return self

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Vote for or against each label, shape (n_items, n_labels)."""
        check_is_fitted(self)
        return self._votes(self._check_items(X, reset=False)).astype(np.int64, copy=False)

    @available_if(lambda self: self._offers_posteriors())  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Posterior probability of each label, shape (n_items, n_labels)."""
        check_is_fitted(self)
        posteriors = self._posteriors(self._check_items(X, reset=False))
        return posteriors.astype(np.float64, copy=False)

    @abstractmethod
    def _fit(self, X: Any, Y: LabelMatrix) -> None:
        """Learn; the input has been checked."""

    @abstractmethod
    def _posteriors(self, X: Any) -> Floats:
        """Posteriors of checked items."""

    def _votes(self, X: Any) -> npt.NDArray[Any]:
        return self._posteriors(X) > 0.5

    def respond(self, X: Any, kind: Kind) -> npt.NDArray[Any]:
        """Votes or posteriors of items that were checked before, shape (n_items, n_labels)."""
        return self._votes(X) if kind == "votes" else self._posteriors(X)

    def _offers_posteriors(self) -> bool:
        """False if a part inside has no posteriors; then there is no `predict_proba`."""
        return True

    def _check_training(self, X: Any, Y: Any) -> tuple[Any, LabelMatrix]:
        """Check labelled items and remember their numbers of features and labels."""
        if Y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; give "
                "one row of 0/1 per item."
            )
        X = self._check_items(X, reset=True)
        Y = check_binary_matrix(Y)
        check_same_length(count_items(X), "X", Y.shape[0], "Y")
        self.n_labels_ = Y.shape[1]
        self.classes_ = np.arange(max(self.n_labels_, 2))
        return X, Y

    def _check_items(self, X: Any, *, reset: bool) -> Any:
        if is_texts(X):
            return self._check_texts(X)
        # scikit-learn remembers the names and the number of features; the values were checked.
        names = column_names(X)
        matrix = check_matrix(X, columns=names)
        validate_data(self, X if names is not None else matrix, skip_check_array=True, reset=reset)
        return matrix

    def _check_texts(self, X: Any) -> Any:
        if not self.takes_texts:
            name = type(self).__name__
            raise InputError(
                f"{name} needs a matrix of features, not texts; put a vectorizer before it: "
                f"make_pipeline(TfidfVectorizer(), {name}())."
            )
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = self.takes_texts
        tags.input_tags.allow_nan = self.takes_missing
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.target_tags.two_d_labels = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        return tags


class CompositeClassifier(MultiLabelClassifier):
    """A classifier whose scores come from another classifier inside it.

    A subclass implements `respond` instead of `_posteriors` and `_votes`.

    Attributes
    ----------
    part : str
        The parameter that holds the other classifier, or None for the default. There are
        posteriors if that classifier has posteriors.
    """

    part: str = "estimator"

    @abstractmethod
    def respond(self, X: Any, kind: Kind) -> npt.NDArray[Any]:
        """Votes or posteriors of checked items, shape (n_items, n_labels)."""

    def _posteriors(self, X: Any) -> Floats:
        return self.respond(X, "posteriors")

    def _votes(self, X: Any) -> npt.NDArray[Any]:
        return self.respond(X, "votes")

    def _offers_posteriors(self) -> bool:
        given = vars(self)[self.part]
        return given is None or "posteriors" in offers(given)


def append_columns(X: Matrix, more: npt.NDArray[Any]) -> Matrix:
    """Append columns to features; a sparse matrix stays sparse."""
    if more.shape[1] == 0:
        return X
    if sp.issparse(X):
        return sp.hstack([X, more], format="csr")
    return np.hstack([X, more])
