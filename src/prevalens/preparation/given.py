"""Items that are numbers already, and transformers that users bring along."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from prevalens.preparation.base import Preparation
from prevalens.validation import InputError, check_matrix

__all__ = ["ArrayPreparation", "GivenPreparation"]


class ArrayPreparation(Preparation):
    """Numbers stay as they are; only their form is checked.

    Notes
    -----
    For embeddings and other features that were made elsewhere. Features on very different scales
    should be scaled before, or given as named columns.

    Examples
    --------
    >>> ArrayPreparation().fit([[1.0, 2.0]]).transform([[3.0, 4.0]]).tolist()
    [[3.0, 4.0]]
    """

    kind = "array"

    def _learn(self, items: Any) -> Any:
        matrix = check_matrix(items, "The items")
        self.n_features_ = int(matrix.shape[1])
        return matrix

    def _transform(self, items: Any) -> Any:
        matrix = check_matrix(items, "The items")
        if matrix.shape[1] != self.n_features_:
            raise InputError(
                f"The model was trained on {self.n_features_} features, but the items have "
                f"{matrix.shape[1]}."
            )
        return matrix

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:  # noqa: ARG002
        """A name for every column of the matrix: ``x0``, ``x1``, ..."""
        return _numbered(self.n_features_)

    def describe(self) -> str:
        """What is done, in a short sentence."""
        return f"{self.n_features_:,} features as they are"


class GivenPreparation(Preparation):
    """A transformer of scikit-learn, or a pipeline of them, that the user brings along.

    Parameters
    ----------
    transformer : estimator with fit and transform
        It is cloned.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> prepared = GivenPreparation(CountVectorizer()).fit(["printer on fire", "no printer"])
    >>> prepared.n_features_
    4
    """

    kind = "given"

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def _learn(self, items: Any) -> Any:
        if not hasattr(self.transformer, "transform"):
            raise InputError(f"A preparation needs fit and transform; got {self.transformer!r}.")
        self.transformer_ = clone(self.transformer).fit(items)
        matrix = self._transform(items)
        self.n_features_ = int(matrix.shape[1])
        return matrix

    def _transform(self, items: Any) -> Any:
        return check_matrix(self.transformer_.transform(items), "The prepared items")

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """The names the transformer gives, or ``x0``, ``x1``, ..."""
        try:
            return self.transformer_.get_feature_names_out(input_features)
        except (AttributeError, ValueError):
            return _numbered(self.n_features_)

    def describe(self) -> str:
        """What is done, in a short sentence."""
        return f"{type(self.transformer).__name__} of the user, {self.n_features_:,} features"


def _numbered(count: int) -> npt.NDArray[np.object_]:
    return np.array([f"x{number}" for number in range(count)], dtype=object)
