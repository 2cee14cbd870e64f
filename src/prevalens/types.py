"""Type aliases that the whole package shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Floats", "Items", "LabelMatrix", "Progress"]

#: Prevalences, posteriors, errors: an array of float64 of any shape.
Floats: TypeAlias = npt.NDArray[np.float64]
#: Labels of items as 0 and 1, shape (n_items, n_labels).
LabelMatrix: TypeAlias = npt.NDArray[np.int8]
#: Items in any form that is accepted: array, sparse matrix, data frame or list of texts.
Items: TypeAlias = Any
#: Called with a short message before each stage of long work.
Progress: TypeAlias = Callable[[str], None]
