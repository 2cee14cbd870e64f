"""What every preparation offers: fit without labels, transform, and how new the items look."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from prevalens.errors import InputError

__all__ = ["CellError", "Preparation", "Unfamiliar"]


class CellError(InputError):
    """A cell is not what its column holds.

    Attributes
    ----------
    row : int
        Of the item among those handed in, from 0; who knows where they came from can say the line.
    what : str
    """

    def __init__(self, row: int, what: str) -> None:
        super().__init__(f"Item {row + 1}: {what}")
        self.row = row
        self.what = what


@dataclass(frozen=True)
class Unfamiliar:
    """How much of some items was not there in training.

    Attributes
    ----------
    share : float
        Of the words, or of the cells, that the preparation does not know.
    usual : float
        The share to expect of items that are like those of the training.
    examples : tuple of str
        The most frequent unknown ones.
    """

    share: float
    usual: float
    examples: tuple[str, ...] = ()


class Preparation(TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A scikit-learn transformer from items to a matrix of numbers.

    Attributes
    ----------
    kind : {"text", "columns", "array", "given"}
    n_features_ : int
        Columns of the matrix.
    """

    kind: str

    def fit(self, items: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn from the items of the training; labels are not looked at."""
        self._learn(items)
        return self

    def fit_transform(self, items: Any, y: Any = None, **_: Any) -> Any:  # noqa: ARG002
        """Learn from the items and give their matrix, in one pass."""
        return self._learn(items)

    def transform(self, items: Any) -> Any:
        """A dense or sparse matrix, one row per item."""
        check_is_fitted(self, "n_features_")
        return self._transform(items)

    @abstractmethod
    def _learn(self, items: Any) -> Any:
        """Learn, set `n_features_`, and give the items' matrix."""

    @abstractmethod
    def _transform(self, items: Any) -> Any:
        """Items to a matrix."""

    def unfamiliar(self, items: Any) -> Unfamiliar | None:  # noqa: ARG002
        """How much of these items was not there in training; None where it cannot be told."""
        return None

    @abstractmethod
    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """A name for every column of the matrix."""

    @abstractmethod
    def describe(self) -> str:
        """What is done, in a short sentence."""
