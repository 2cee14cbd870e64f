"""Preparations: from items to a matrix of numbers, fitted without labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from prevalens.tables.kinds import ColumnUse
from prevalens.validation import InputError, check_matrix


class CellError(InputError):
    """A cell is not what its column holds.

    Attributes
    ----------
    row : int
        Position of the item, from 0; callers that know its file turn it into a line number.
    what : str
        What is wrong.
    """

    def __init__(self, row: int, what: str) -> None:
        super().__init__(f"Item {row + 1}: {what}")
        self.row = row
        self.what = what


@dataclass(frozen=True)
class Unfamiliar:
    """The share of some items that does not occur in the training data.

    Attributes
    ----------
    share : float
        Share of words, or cells, that the preparation does not know.
    usual : float
        The share that is expected in items like the training items.
    examples : tuple of str
        The most frequent unknown words or cells.
    """

    share: float
    usual: float
    examples: tuple[str, ...] = ()


class Preparation(TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A scikit-learn transformer from items to a matrix of numbers.

    Attributes
    ----------
    kind : {"text", "columns", "array", "given", "scores"}
    n_features_ : int
        Columns of the matrix.
    """

    kind: str

    def fit(self, items: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn from the items of the training; labels are ignored."""
        self._learn(items)
        return self

    def fit_transform(self, items: Any, y: Any = None, **_: Any) -> Any:  # noqa: ARG002
        """Learn from the items and return their matrix, in one pass."""
        return self._learn(items)

    def transform(self, items: Any) -> Any:
        """A dense or sparse matrix, one row per item."""
        check_is_fitted(self, "n_features_")
        return self._transform(items)

    @abstractmethod
    def _learn(self, items: Any) -> Any:
        """Learn, set `n_features_`, and return the matrix of the items."""

    @abstractmethod
    def _transform(self, items: Any) -> Any:
        """Items to a matrix."""

    def unfitted(self) -> Preparation:
        """An unfitted copy, to be fitted on some of the items."""
        copy: Preparation = clone(self)
        return copy

    def for_labels(self, kept: Sequence[int]) -> Preparation:  # noqa: ARG002
        """An unfitted copy for some of the labels, by their numbers; only scores have labels."""
        return self.unfitted()

    def score_columns(self) -> tuple[str, ...]:
        """The columns of a table of which only numbers from 0 to 1 are read, or missing ones."""
        return ()

    def unfamiliar(self, items: Any) -> Unfamiliar | None:  # noqa: ARG002
        """How much of these items does not occur in the training; None if it is not known."""
        return None

    def column_uses(self, columns: Sequence[str] | None) -> tuple[ColumnUse, ...]:
        """What each of the columns that were read became; empty for items without columns."""
        return tuple(ColumnUse(name, self.kind, self.describe()) for name in columns or ())

    @abstractmethod
    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """A name for every column of the matrix."""

    @abstractmethod
    def describe(self) -> str:
        """A short description for people."""


class ArrayPreparation(Preparation):
    """Numbers as they are; only their shape is checked.

    Notes
    -----
    For embeddings and other features that were computed elsewhere. Features on very different
    scales should be scaled before, or given as named columns.

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
        """A short description for people."""
        return f"{self.n_features_:,} features as they are"


@runtime_checkable
class _Transformer(Protocol):
    def fit(self, items: Any) -> Any: ...

    def transform(self, items: Any) -> Any: ...


class GivenPreparation(Preparation):
    """A transformer of scikit-learn, or a pipeline of them, that the user provides.

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
        if not isinstance(self.transformer, _Transformer):
            raise InputError(f"A preparation needs fit and transform; got {self.transformer!r}.")
        self.transformer_ = self._called("fit", clone(self.transformer), items)
        matrix = self._transform(items)
        self.n_features_ = int(matrix.shape[1])
        return matrix

    def _transform(self, items: Any) -> Any:
        prepared = self._called("transform", self.transformer_, items)
        return check_matrix(prepared, "The prepared items")

    def _called(self, method: str, transformer: Any, items: Any) -> Any:
        """The result of a method of the transformer; its complaints become one sentence."""
        try:
            return getattr(transformer, method)(items)
        except InputError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"The preparation {type(self.transformer).__name__} does not take these items: "
                f"{' '.join(str(error).split())}"
            ) from error

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """The names the transformer gives, or ``x0``, ``x1``, ..."""
        try:
            return self.transformer_.get_feature_names_out(input_features)
        except (AttributeError, ValueError):
            return _numbered(self.n_features_)

    def describe(self) -> str:
        """A short description for people."""
        return f"{type(self.transformer).__name__} of the user, {self.n_features_:,} features"


def _numbered(count: int) -> npt.NDArray[np.object_]:
    return np.array([f"x{number}" for number in range(count)], dtype=object)
