"""What every multi-label classifier of this package shares: the door and the shapes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from prevalens.types import Floats, LabelMatrix
from prevalens.validation import (
    InputError,
    Matrix,
    check_binary_matrix,
    check_matrix,
    check_same_length,
    count_items,
    is_texts,
)

__all__ = ["MultiLabelClassifier", "append_columns"]


class MultiLabelClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A scikit-learn classifier whose answers have one column per label.

    A subclass writes `_fit` and `_posteriors`, and `_votes` where a vote is more than a posterior
    above one half; all three may trust their input.

    Attributes
    ----------
    joint : bool
        False if each label is learnt alone (BC), True if the classifier is natively multi-label
        (MLC).
    label_wise : bool
        True if a label's answer depends on no other label's training values, so that dividing the
        labels changes nothing.
    takes_texts : bool
        True if texts may be handed in, because all items go to another estimator as they are.
    n_labels_ : int
        Number of labels seen in `fit`.
    classes_ : array of int
        The positions of the labels, or 0 and 1 for a single label, as scikit-learn's
        one-vs-rest has it.
    """

    joint: bool = True
    label_wise: bool = False
    takes_texts: bool = False

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

    def _offers_posteriors(self) -> bool:
        """False where a part inside has no posteriors; then there is no `predict_proba`."""
        return True

    def _check_training(self, X: Any, Y: Any) -> tuple[Any, LabelMatrix]:
        """Labelled items in form; what is remembered of them is set."""
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
        # Only the names and the number of features are scikit-learn's; the values, and the
        # sentence if one is wrong, are the door's.
        names = getattr(X, "columns", None)
        matrix = check_matrix(X, columns=None if names is None else [str(c) for c in names])
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
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.target_tags.two_d_labels = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        return tags


def append_columns(X: Matrix, more: npt.NDArray[Any]) -> Matrix:
    """Features with further columns to their right; a sparse matrix stays sparse."""
    if more.shape[1] == 0:
        return X
    if sp.issparse(X):
        return sp.hstack([X, more], format="csr")
    return np.hstack([X, more])
