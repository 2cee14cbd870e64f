"""Regressors for RQ: from the estimates of all labels to the prevalences of all labels.

Any scikit-learn regressor of several outputs will do; these are the six of the paper
and `MomentsRidge`, which needs no samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import MultiTaskLasso, Ridge
from sklearn.preprocessing import StandardScaler

from prevalens.aggregators._regressor import Floats, Regressor
from prevalens.aggregators.moments import MomentsRidge
from prevalens.aggregators.svr_regressors import BatchedLinearSVR, ChainedSVR, StackedSVR
from prevalens.validation import InputError

__all__ = [
    "REGRESSORS",
    "BatchedLinearSVR",
    "ChainedSVR",
    "MomentsRidge",
    "NormalisedLasso",
    "NormalisedRidge",
    "PrevalenceForest",
    "StackedSVR",
    "check_regressor",
]


class _Normalised(Regressor):
    """A penalised regression on inputs of mean 0 and sum of squares 1."""

    def _fit(self, X: Floats, Y: Floats) -> None:
        self.scaler_ = StandardScaler().fit(X)
        self.regressor_ = self._make(len(X)).fit(self.scaler_.transform(X), Y)
        self.n_iter_ = self.regressor_.n_iter_

    def _make(self, n_rows: int) -> Any:
        raise NotImplementedError

    def _predict(self, X: Floats) -> Floats:
        return np.asarray(self.regressor_.predict(self.scaler_.transform(X)))


class NormalisedRidge(_Normalised):
    """Ridge regression on inputs of mean 0 and sum of squares 1.

    Parameters
    ----------
    alpha : float
        Penalty of the squared coefficients.

    Notes
    -----
    What scikit-learn's ``Ridge(normalize=True)`` was until its version 1.2: standardised inputs and
    a penalty times the number of rows. One linear system for all labels. Pulled by outliers
    more than `BatchedLinearSVR`.

    References
    ----------
    Hoerl and Kennard, "Ridge regression: biased estimation for nonorthogonal problems",
    Technometrics 12, 1970.

    Examples
    --------
    >>> X = [[0.1, 0.9], [0.2, 0.7], [0.4, 0.5], [0.8, 0.1]]
    >>> NormalisedRidge(alpha=1e-9).fit(X, X).predict([[0.5, 0.5]]).round(2).tolist()
    [[0.5, 0.5]]
    """

    code = "ridge"

    def __init__(self, alpha: float = 0.01) -> None:
        self.alpha = alpha

    def _make(self, n_rows: int) -> Any:
        return Ridge(alpha=self.alpha * n_rows)


class NormalisedLasso(_Normalised):
    """Multi-task Lasso on inputs of mean 0 and sum of squares 1.

    Parameters
    ----------
    alpha : float
        Penalty of each input's coefficients for all labels together (their norm): an input is
        used for all labels or for none.
    max_iter : int
    tol : float

    Notes
    -----
    What scikit-learn's ``MultiTaskLasso(normalize=True)`` was until its version 1.2: standardised
    inputs and a penalty times the root of the number of rows. Every label wants its own
    estimate as input, so a large penalty drops labels rather than noise.

    References
    ----------
    Obozinski, Taskar and Jordan, "Joint covariate selection and joint subspace selection for
    multiple classification problems", Statistics and Computing 20, 2010.

    Examples
    --------
    >>> X = [[0.1, 0.9], [0.2, 0.7], [0.4, 0.5], [0.8, 0.1]]
    >>> NormalisedLasso(alpha=1e-9).fit(X, X).predict([[0.5, 0.5]]).round(2).tolist()
    [[0.5, 0.5]]
    """

    code = "lasso"

    def __init__(self, alpha: float = 1e-4, *, max_iter: int = 10_000, tol: float = 1e-4) -> None:
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol

    def _make(self, n_rows: int) -> Any:
        alpha = self.alpha * np.sqrt(n_rows)
        return MultiTaskLasso(alpha=alpha, max_iter=self.max_iter, tol=self.tol)


class PrevalenceForest(Regressor):
    """A random forest whose trees answer for all labels together.

    Parameters
    ----------
    n_estimators : int
        Trees.
    n_jobs : int, optional
    random_state : int, optional

    Notes
    -----
    Cannot answer beyond what it was trained on, which prevalences between 0 and 1 rarely ask for.
    Needs many training samples where there are many labels.

    References
    ----------
    Breiman, "Random forests", Machine Learning 45, 2001.

    Examples
    --------
    >>> X = [[0.1, 0.9], [0.2, 0.7], [0.4, 0.5], [0.8, 0.1]]
    >>> PrevalenceForest(10, random_state=0).fit(X, X).predict([[0.5, 0.5]]).shape
    (1, 2)
    """

    code = "rf"

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Floats, Y: Floats) -> None:
        forest = RandomForestRegressor(
            self.n_estimators, n_jobs=self.n_jobs, random_state=self.random_state
        )
        self.forest_ = forest.fit(X, Y[:, 0] if Y.shape[1] == 1 else Y)

    def _predict(self, X: Floats) -> Floats:
        return np.asarray(self.forest_.predict(X))


#: The regressors that have a short name, by which `RQ` and the catalogue know them.
REGRESSORS: tuple[type[Regressor], ...] = (
    BatchedLinearSVR,
    StackedSVR,
    ChainedSVR,
    NormalisedRidge,
    NormalisedLasso,
    PrevalenceForest,
    MomentsRidge,
)


def check_regressor(regressor: Any) -> Any:
    """A regressor from None (`BatchedLinearSVR`), a short name, or an estimator."""
    if regressor is None:
        return BatchedLinearSVR()
    by_code = {maker.code: maker for maker in REGRESSORS}
    if isinstance(regressor, str):
        if regressor not in by_code:
            raise InputError(
                f"There is no regressor called {regressor!r}; there are {', '.join(by_code)}, or "
                "give a scikit-learn regressor of several outputs."
            )
        return by_code[regressor]()
    if not (hasattr(regressor, "fit") and hasattr(regressor, "predict")):
        raise InputError(f"The regressor must have fit and predict; got {regressor!r}.")
    return regressor
