"""Training on labels some of which never change.

A label that all training items carry, or none, teaches nothing, and many scikit-learn classifiers
refuse it. It happens when a rare label's few items all fall into one fold.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prevalens.classifiers.response import is_joint, offers, response, takes_several_labels
from prevalens.scores import Kind
from prevalens.validation import InputError, check_binary_matrix, count_items

__all__ = ["VaryingLabels", "constant_labels", "train"]


def constant_labels(Y: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
    """Tell for each label whether all items agree on it."""
    return np.asarray(Y.min(axis=0) == Y.max(axis=0))


def train(classifier: Any, X: Any, Y: npt.NDArray[np.int8]) -> Any:
    """Fit a clone of `classifier`; where it refuses constant labels, fit it on the others.

    Returns
    -------
    fitted classifier
        A `VaryingLabels` around it if constant labels had to be kept from it.
    """
    if not constant_labels(Y).any():
        return _fit_quietly(clone(classifier), X, Y)
    try:
        return _fit_quietly(clone(classifier), X, Y)
    except ValueError:
        # If the constant labels were not the reason, this raises the same error again.
        return VaryingLabels(classifier).fit(X, Y)


class VaryingLabels(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that sees only the labels that vary; the others are answered as they are.

    Parameters
    ----------
    classifier : multi-label classifier

    Attributes
    ----------
    varying_ : array of int
        Positions of the labels the classifier is trained on.
    constants_ : array of int8, shape (n_labels,)
        The first item's labels: the answer where a label does not vary.
    classifier_ : fitted classifier, or None if no label varies

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multioutput import MultiOutputClassifier
    >>> refusing = MultiOutputClassifier(LogisticRegression())
    >>> VaryingLabels(refusing).fit([[0], [1]], [[0, 1], [1, 1]]).predict([[1]]).tolist()
    [[1, 1]]
    """

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    @property
    def joint(self) -> bool:
        """Whether the classifier looks at labels together."""
        return is_joint(self.classifier)

    def fit(self, X: Any, Y: Any) -> Self:
        """Train on the labels that vary."""
        Y = check_binary_matrix(Y)
        self.varying_ = np.flatnonzero(~constant_labels(Y))
        self.constants_ = Y[0].copy()
        self.classifier_ = None
        if len(self.varying_):
            self.classifier_ = _fit_quietly(clone(self.classifier), X, Y[:, self.varying_])
        return self

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Votes, shape (n_items, n_labels)."""
        return self._spread(X, "votes").astype(np.int64)

    @available_if(lambda self: "posteriors" in offers(self.classifier))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Posteriors, shape (n_items, n_labels)."""
        return self._spread(X, "posteriors")

    def _spread(self, X: Any, kind: Kind) -> npt.NDArray[np.float64]:
        check_is_fitted(self)
        values = np.tile(self.constants_.astype(np.float64), (count_items(X), 1))
        if self.classifier_ is not None:
            scores = response(self.classifier_, X, kind, len(self.varying_))
            values[:, self.varying_] = scores.values
        return values


def _fit_quietly(classifier: Any, X: Any, Y: npt.NDArray[np.int8]) -> Any:
    """Fit without the warnings about what is done on purpose here."""
    with warnings.catch_warnings():
        # A single label is a column on purpose, and whoever trains on constant labels has said so.
        warnings.simplefilter("ignore", DataConversionWarning)
        warnings.filterwarnings("ignore", "Label .* is present in all training examples")
        try:
            return classifier.fit(X, Y)
        except ValueError as error:
            if Y.shape[1] == 1 or isinstance(error, InputError) or takes_several_labels(classifier):
                raise
            name = type(classifier).__name__
            raise InputError(
                f"{name} refused {Y.shape[1]} labels at once; wrap it: PerLabel({name}(...)). "
                f"It said: {error}"
            ) from error
