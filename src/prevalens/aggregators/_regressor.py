"""What the regressors of this package share: the door and the shapes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = ["Floats", "Regressor"]

Floats = npt.NDArray[np.float64]


class Regressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """The door and the shapes; a subclass writes `_fit` and `_predict` for two-dimensional Y."""

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows `X` and targets `y`, one column per target."""
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
        self._one_target = y.ndim == 1
        self._fit(X, np.asarray(y, dtype=np.float64).reshape(len(y), -1))
        return self

    def predict(self, X: Any) -> Floats:
        """Predict the targets of rows."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        predicted = self._predict(X).reshape(len(X), -1)
        return predicted[:, 0] if self._one_target else predicted

    def _fit(self, X: Floats, Y: Floats) -> None:
        raise NotImplementedError

    def _predict(self, X: Floats) -> Floats:
        raise NotImplementedError
