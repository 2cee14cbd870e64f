"""The regressors of RQ: from the estimates of all labels to the true prevalences of all labels.

RQ takes any scikit-learn regressor of several outputs. What a regressor may offer beyond ``fit``
and ``predict`` is declared by two Protocols: `SharesSettings` and `LearnsFromProtocol`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import MultiTaskLasso, Ridge
from sklearn.model_selection import KFold
from sklearn.multioutput import RegressorChain
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from prevalens.protocols import MLAPP
from prevalens.protocols.grid import grid_points, positives_wanted
from prevalens.solvers.svr import LinearSVRSolution, fit_linear_svr, linear_svr_path
from prevalens.types import Floats, LabelMatrix, Settings
from prevalens.validation import InputError, PrevalensWarning, check_int


@runtime_checkable
class RegressorLike(Protocol):
    """A regressor of this package, of scikit-learn, or one that looks like them."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from rows and targets; returns the regressor."""

    def predict(self, X: Any) -> Any:
        """Predict the targets of rows."""


@runtime_checkable
class SharesSettings(Protocol):
    """A regressor that fits several settings of itself in less time than one after the other."""

    def fit_settings(self, settings: Sequence[Settings], X: Any, y: Any) -> Iterator[Any]:
        """One fitted regressor per setting, in that order."""


@runtime_checkable
class LearnsFromProtocol(Protocol):
    """A regressor that needs no samples: it computes what a protocol's samples tend to."""

    def fit_protocol(self, parts: Sequence[tuple[Floats, LabelMatrix, Any]]) -> Any:
        """Learn from items, their labels, and the protocol that would draw samples of them."""


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
        self, settings: Sequence[Settings], X: Any, y: Any
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
        Weight of the residuals in both rounds.
    n_folds : int
        The first round's answers that the second learns from come from this many folds.
    random_state : int or None
        Seed of the folds.

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

    def __init__(self, C: float = 1.0, n_folds: int = 5, *, random_state: int | None = 0) -> None:
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
    random_state : int or None
        Seed of a random order.

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

    def __init__(self, C: float = 1.0, order: Any = None, *, random_state: int | None = 0) -> None:
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


@dataclass(frozen=True)
class ProtocolMoments:
    """Means and covariances of estimates X and prevalences Y over samples.

    Attributes
    ----------
    mean_x : array of float, shape (n_inputs,)
    mean_y : array of float, shape (n_labels,)
    cov_xx : array of float, shape (n_inputs, n_inputs)
    cov_xy : array of float, shape (n_inputs, n_labels)
    """

    mean_x: Floats
    mean_y: Floats
    cov_xx: Floats
    cov_xy: Floats

    @classmethod
    def of_rows(cls, X: Floats, Y: Floats) -> ProtocolMoments:
        """Moments of samples that have been drawn, one row each."""
        x, y = X - X.mean(axis=0), Y - Y.mean(axis=0)
        return cls(X.mean(axis=0), Y.mean(axis=0), x.T @ x / len(x), x.T @ y / len(x))

    @classmethod
    def mixed(cls, parts: Sequence[ProtocolMoments]) -> ProtocolMoments:
        """Moments of the samples of several pools, with equally many of each."""
        mean_x = np.mean([part.mean_x for part in parts], axis=0)
        mean_y = np.mean([part.mean_y for part in parts], axis=0)
        off = [(part.mean_x - mean_x, part.mean_y - mean_y) for part in parts]
        between_xx = np.mean([np.outer(x, x) for x, _ in off], axis=0)
        between_xy = np.mean([np.outer(x, y) for x, y in off], axis=0)
        within_xx = np.mean([part.cov_xx for part in parts], axis=0)
        within_xy = np.mean([part.cov_xy for part in parts], axis=0)
        return cls(mean_x, mean_y, within_xx + between_xx, within_xy + between_xy)


@dataclass(frozen=True)
class _GridSums:
    """Sums over a label's reachable grid points, each of shape (n_labels,).

    Attributes
    ----------
    count : number of points
    share, squared : sums of m/k and of its square
    positive, negative : sums of the factors of the covariances of positives and of negatives
    """

    count: Floats
    share: Floats
    squared: Floats
    positive: Floats
    negative: Floats


def protocol_moments(X: Floats, Y: LabelMatrix, protocol: MLAPP) -> ProtocolMoments:
    """Exact moments of (mean of X, mean of Y) over the samples that ML-APP would draw.

    Parameters
    ----------
    X : array of float, shape (n_items, n_inputs)
    Y : 0/1 array, shape (n_items, n_labels)
    protocol : MLAPP
        Every label and reachable grid point counts the same.

    Notes
    -----
    O((n_items + n_labels) x n_inputs x (n_inputs + n_labels)) in matrix products.
    """
    cells = _grid_sums(Y, protocol)
    truth = Y.astype(np.float64)
    centre_x, centre_y = X.mean(axis=0), truth.mean(axis=0)
    # Around the means of the pool, so that nothing large cancels.
    x, y = X - centre_x, truth - centre_y
    positives = truth.sum(axis=0)
    ones = _class_means(truth, positives, x, y)
    zeros = _class_means(1.0 - truth, len(truth) - positives, x, y)
    total = cells.count.sum()
    mean_x, mean_y = (
        (cells.share @ one + (cells.count - cells.share) @ zero) / total
        for one, zero in zip(ones, zeros, strict=True)
    )
    both = cells.share - cells.squared
    neither = cells.count - 2.0 * cells.share + cells.squared
    within_one = _scatter_factor(cells.positive, positives)
    within_zero = _scatter_factor(cells.negative, len(truth) - positives)
    weight = truth @ within_one + (1.0 - truth) @ within_zero
    own_one = cells.squared - within_one * positives
    own_zero = neither - within_zero * (len(truth) - positives)

    def second(rows: Floats, one: Floats, zero: Floats) -> Floats:
        between = (ones[0].T * own_one + zeros[0].T * both) @ one
        between += (zeros[0].T * own_zero + ones[0].T * both) @ zero
        return np.asarray(((x.T * weight) @ rows + between) / total)

    return ProtocolMoments(
        centre_x + mean_x,
        centre_y + mean_y,
        second(x, ones[0], zeros[0]) - np.outer(mean_x, mean_x),
        second(y, ones[1], zeros[1]) - np.outer(mean_x, mean_y),
    )


def _grid_sums(Y: LabelMatrix, protocol: MLAPP) -> _GridSums:
    served = protocol.reachable(Y).astype(np.float64)
    size = protocol.size
    wanted = positives_wanted(grid_points(protocol.grid), size).astype(np.float64)
    positives = Y.sum(axis=0, dtype=np.float64)[:, np.newaxis]
    negatives = len(Y) - positives
    others = size - wanted
    return _GridSums(
        count=served.sum(axis=1),
        share=served @ (wanted / size),
        squared=served @ (wanted / size) ** 2,
        positive=(served * wanted * (1.0 - wanted / np.maximum(positives, 1.0))).sum(axis=1)
        / size**2,
        negative=(served * others * (1.0 - others / np.maximum(negatives, 1.0))).sum(axis=1)
        / size**2,
    )


def _class_means(members: Floats, counts: Floats, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Mean rows of each label's members, shapes (n_labels, n_inputs) and (n_labels, n_labels)."""
    share = members.T / np.maximum(counts, 1.0)[:, np.newaxis]
    return np.asarray(share @ x), np.asarray(share @ y)


def _scatter_factor(factor: Floats, counts: Floats) -> Floats:
    """From the factor of an unbiased covariance to that of the sum of squares."""
    return np.asarray(np.where(counts > 1, factor / np.maximum(counts - 1.0, 1.0), 0.0))


class MomentsRidge(Regressor):
    """Ridge regression on the exact moments of ML-APP: what sampled ridge tends to.

    In ``RQ(PCC(), "moments")`` no samples are drawn. For bases that are means over items: CC, PCC,
    and ACC and PACC before they are clipped. Given rows, it is `NormalisedRidge`.

    Parameters
    ----------
    alpha : float
        Penalty of the squared coefficients of standardised inputs, per row.

    Attributes
    ----------
    coef_ : array of float, shape (n_inputs, n_labels)
    intercept_ : array of float, shape (n_labels,)

    Notes
    -----
    One linear system in the number of labels. Ridge regression gives means; absolute errors of rare
    labels are smaller with `BatchedLinearSVR`, which gives medians.

    References
    ----------
    Cochran, "Sampling techniques", Wiley 1977 (variances without replacement).

    Examples
    --------
    >>> X = [[0.1, 0.9], [0.2, 0.7], [0.4, 0.5], [0.8, 0.1]]
    >>> MomentsRidge(alpha=1e-9).fit(X, X).predict([[0.5, 0.5]]).round(2).tolist()
    [[0.5, 0.5]]
    """

    code = "moments"

    def __init__(self, alpha: float = 0.01) -> None:
        self.alpha = alpha

    def fit_protocol(self, parts: Sequence[tuple[Floats, LabelMatrix, Any]]) -> MomentsRidge:
        """Learn from labelled items and the protocol that would draw samples of them.

        Parameters
        ----------
        parts : list of (values, Y, protocol)
            For each pool: the values that the base's estimates are means of, labels, an MLAPP.
        """
        for _, _, protocol in parts:
            if not isinstance(protocol, MLAPP):
                raise InputError(
                    f"Exact moments are known for MLAPP alone; got {protocol!r}. Use the "
                    "regressor 'ridge', which learns from samples."
                )
        moments = [protocol_moments(X, Y, protocol) for X, Y, protocol in parts]
        self._one_target = moments[0].cov_xy.shape[1] == 1
        self.n_features_in_ = len(moments[0].mean_x)
        self._solve(ProtocolMoments.mixed(moments))
        return self

    def _fit(self, X: Floats, Y: Floats) -> None:
        self._solve(ProtocolMoments.of_rows(X, Y))

    def _solve(self, moments: ProtocolMoments) -> None:
        deviation = np.sqrt(np.maximum(np.diag(moments.cov_xx), 0.0))
        # As StandardScaler does it: what does not vary is left as it is.
        deviation = np.where(deviation > 1e-12, deviation, 1.0)
        system = moments.cov_xx / np.outer(deviation, deviation)
        system[np.diag_indices_from(system)] += self.alpha
        standard = np.linalg.solve(system, moments.cov_xy / deviation[:, np.newaxis])
        self.coef_ = standard / deviation[:, np.newaxis]
        self.intercept_ = moments.mean_y - moments.mean_x @ self.coef_

    def _predict(self, X: Floats) -> Floats:
        return np.asarray(X @ self.coef_ + self.intercept_)


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
    random_state : int or None

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
        random_state: int | None = 0,
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
    if not isinstance(regressor, RegressorLike):
        raise InputError(f"The regressor must have fit and predict; got {regressor!r}.")
    return regressor
