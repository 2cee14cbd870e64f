"""Linear support vector regression for RQ: all labels at once, in two rounds, or in a chain."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.multioutput import RegressorChain
from sklearn.utils.validation import validate_data

from prevalens.aggregators._regressor import Floats, Regressor
from prevalens.solvers.svr import LinearSVRSolution, fit_linear_svr, linear_svr_path
from prevalens.validation import InputError, PrevalensWarning, check_int

__all__ = ["BatchedLinearSVR", "ChainedSVR", "StackedSVR"]


class BatchedLinearSVR(Regressor):
    """Linear support vector regression of all labels at once.

    Parameters
    ----------
    C : float
        Weight of the residuals against the size of the coefficients.
    epsilon : float
        Residuals up to here cost nothing.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
    fit_intercept : bool
    tol : float
        Relative duality gap at which a label is finished.
    max_iter : int
        Newton steps at most.

    Attributes
    ----------
    coef_ : array, shape (n_targets, n_features)
    intercept_ : array, shape (n_targets,)
    gap_ : array, shape (n_targets,)
        Proven bound of the relative distance from the minimum.

    Notes
    -----
    Minimises the function of scikit-learn's ``LinearSVR`` for every label, to a proven distance
    from its minimum; see `prevalens.solvers.svr`. Fails to capture relations that are
    not linear in the estimates.

    References
    ----------
    Ho and Lin, "Large-scale linear support vector regression", JMLR 13, 2012.

    Examples
    --------
    >>> X = [[0.1, 0.9], [0.2, 0.7], [0.4, 0.5], [0.8, 0.1]]
    >>> BatchedLinearSVR(C=1000).fit(X, X).predict([[0.5, 0.5]]).round(2).tolist()
    [[0.5, 0.5]]
    """

    code = "svr"

    def __init__(
        self,
        C: float = 1.0,
        epsilon: float = 0.0,
        *,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 300,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter

    def fit_settings(
        self, settings: Sequence[Mapping[str, Any]], X: Any, y: Any
    ) -> Iterator[BatchedLinearSVR]:
        """Fit one copy with each of several settings; values of C are solved along one path."""
        if any(set(setting) != {"C"} for setting in settings) or np.ndim(y) != 2:
            for setting in settings:
                yield clone(self).set_params(**setting).fit(X, y)
            return
        copies = [clone(self).set_params(**setting) for setting in settings]
        checked, Y = validate_data(self, X, y, multi_output=True, dtype=np.float64)
        path = linear_svr_path(
            checked, Y, Cs=[copy.C for copy in copies], **self._solver_settings()
        )
        for copy, solution in zip(copies, path, strict=True):
            validate_data(copy, X, y, multi_output=True, skip_check_array=True)
            copy._one_target = False
            copy._keep(solution)
            yield copy

    def _fit(self, X: Floats, Y: Floats) -> None:
        self._keep(fit_linear_svr(X, Y, C=self.C, **self._solver_settings()))

    def _solver_settings(self) -> dict[str, Any]:
        names = ("epsilon", "loss", "fit_intercept", "tol", "max_iter")
        return {name: getattr(self, name) for name in names}

    def _keep(self, solution: LinearSVRSolution) -> None:
        self.coef_, self.intercept_ = solution.coef, solution.intercept
        self.gap_, self.n_iter_ = solution.gap, solution.n_iter
        unfinished = np.flatnonzero(solution.gap > self.tol)
        if len(unfinished):
            warnings.warn(
                f"The regression of {len(unfinished)} of {len(solution.gap)} targets stopped at "
                f"max_iter={self.max_iter} steps, within {solution.gap.max():.1e} of the minimum; "
                "raise max_iter or tol.",
                PrevalensWarning,
                stacklevel=3,
            )

    def _predict(self, X: Floats) -> Floats:
        return np.asarray(X @ self.coef_.T + self.intercept_)


class StackedSVR(Regressor):
    """Two rounds of linear support vector regression: the second also sees the first's answers.

    Parameters
    ----------
    C : float
        Of both rounds.
    n_folds : int
        The first round's answers that the second learns from come from this many folds.
    random_state : int, optional
        Of the folds.

    Notes
    -----
    Costs `n_folds` + 2 batched regressions. Helps little where the inputs already carry all
    labels, as they do in RQ.

    References
    ----------
    Spyromitros-Xioufis et al., "Multi-target regression via input space expansion: treating
    targets as inputs", Machine Learning 104, 2016.

    Examples
    --------
    >>> X = [[0.1, 0.9], [0.2, 0.7], [0.4, 0.5], [0.8, 0.1]]
    >>> StackedSVR(C=1000, n_folds=2).fit(X, X).predict([[0.5, 0.5]]).round(1).tolist()
    [[0.5, 0.5]]
    """

    code = "stacked-svr"

    def __init__(
        self, C: float = 1.0, n_folds: int = 5, *, random_state: int | None = None
    ) -> None:
        self.C = C
        self.n_folds = n_folds
        self.random_state = random_state

    def _fit(self, X: Floats, Y: Floats) -> None:
        if len(X) < 2:
            raise InputError("StackedSVR needs at least two rows to divide; got 1 sample.")
        n_folds = min(check_int(self.n_folds, "n_folds", minimum=2), len(X))
        answers = np.empty_like(Y)
        for rest, held in KFold(n_folds, shuffle=True, random_state=self.random_state).split(X):
            answers[held] = BatchedLinearSVR(self.C).fit(X[rest], Y[rest]).predict(X[held])
        self.first_ = BatchedLinearSVR(self.C).fit(X, Y)
        self.second_ = BatchedLinearSVR(self.C).fit(np.hstack([X, answers]), Y)

    def _predict(self, X: Floats) -> Floats:
        return self.second_.predict(np.hstack([X, self.first_.predict(X)]))


class ChainedSVR(Regressor):
    """Linear support vector regressions in a chain: each also sees the targets before it.

    Parameters
    ----------
    C : float
    order : "random", sequence of int, or None
        The chain; None takes the labels as they stand.
    random_state : int, optional
        Of a random order.

    Notes
    -----
    The regressions have different inputs, so they are fitted one after the other: with many labels
    far slower than `BatchedLinearSVR`. Errors travel down the chain.

    References
    ----------
    Spyromitros-Xioufis et al., "Multi-target regression via input space expansion: treating
    targets as inputs", Machine Learning 104, 2016.

    Examples
    --------
    >>> X = [[0.1, 0.9], [0.2, 0.7], [0.4, 0.5], [0.8, 0.1]]
    >>> ChainedSVR(C=1000).fit(X, X).predict([[0.5, 0.5]]).round(2).tolist()
    [[0.5, 0.5]]
    """

    code = "chained-svr"

    def __init__(
        self, C: float = 1.0, order: Any = None, *, random_state: int | None = None
    ) -> None:
        self.C = C
        self.order = order
        self.random_state = random_state

    def _fit(self, X: Floats, Y: Floats) -> None:
        # The first argument has two names in the versions of scikit-learn that are supported.
        chain = RegressorChain(
            BatchedLinearSVR(self.C), order=self.order, random_state=self.random_state
        )
        self.chain_ = chain.fit(X, Y)

    def _predict(self, X: Floats) -> Floats:
        return np.asarray(self.chain_.predict(X))
