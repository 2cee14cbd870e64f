"""Type aliases and protocols that the whole package shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

#: An array of numbers of any type.
Array: TypeAlias = npt.NDArray[Any]
#: Prevalences, posteriors, errors: an array of float64 of any shape.
Floats: TypeAlias = npt.NDArray[np.float64]
#: When items were written, datetime64 of any unit, shape (n_items,).
Times: TypeAlias = npt.NDArray[np.datetime64]
#: Row numbers, counts, positions.
Ints: TypeAlias = npt.NDArray[np.int64]
#: Labels of items as 0 and 1, shape (n_items, n_labels).
LabelMatrix: TypeAlias = npt.NDArray[np.int8]
#: Items in any form that is accepted: array, sparse matrix, data frame or list of texts.
Items: TypeAlias = Any
#: Numbers as a dense array or a scipy sparse matrix, one row per item.
Matrix: TypeAlias = Any
#: Labels in any form that is accepted: 0/1 matrix, data frame or list of label sets.
Labels: TypeAlias = Any
#: For each item the group it belongs to: array, list or column of a frame.
Groups: TypeAlias = Any
#: Called with a short message before each stage of long work.
Progress: TypeAlias = Callable[[str], None]
#: Parameters of an estimator by name.
Settings: TypeAlias = Mapping[str, Any]


class Classifier(Protocol):
    """A multi-label classifier: of this package, of scikit-learn, or one that looks like them.

    `prevalens.response.response` reads its answers, whatever their shape.
    """

    def fit(self, X: Items, Y: Labels) -> Any:
        """Learn from labelled items; returns the classifier."""
