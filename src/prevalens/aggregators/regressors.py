"""The regressors of RQ: from the estimates of all labels to the true prevalences of all labels.

RQ takes any scikit-learn regressor of several outputs. Two Protocols declare what a regressor may
offer beyond ``fit`` and ``predict``: `SharesSettings` and `LearnsFromProtocol`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

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
    """A regressor that fits several settings together faster than one after the other."""

    def fit_settings(self, settings: Sequence[Settings], X: Any, y: Any) -> Iterator[Any]:
        """One fitted regressor per setting, in that order."""


@runtime_checkable
class LearnsFromProtocol(Protocol):
    """A regressor that needs no samples: it uses the limit of a protocol's samples."""

    def fit_protocol(self, parts: Sequence[tuple[Floats, LabelMatrix, Any]]) -> Any:
        """Learn from items, their labels, and the protocol that would draw samples of them."""


class Regressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Checks input and shapes; a subclass writes `_fit` and `_predict` for two-dimensional Y."""

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows `X` and targets `y`, one column per target."""
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
        self._flat_target = y.ndim == 1
        self._fit(X, np.asarray(y, dtype=np.float64).reshape(len(y), -1))
        return self

    def predict(self, X: Any) -> Floats:
        """Predict the targets of rows."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        predicted = self._predict(X).reshape(len(X), -1)
        return predicted[:, 0] if self._flat_target else predicted

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
        Residuals up to this size cost nothing.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
    fit_intercept : bool
    tol : float
        Relative duality gap at which a label is finished.
    max_iter : int
        Maximum number of Newton steps.

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
        copies = [clone(self).set_params(**setting) for setting in settings]
        if any(set(setting) != {"C"} for setting in settings) or np.ndim(y) != 2:
            yield from (copy.fit(X, y) for copy in copies)
            return
        checked, Y = validate_data(self, X, y, multi_output=True, dtype=np.float64)
        path = linear_svr_path(
            checked, Y, Cs=[copy.C for copy in copies], **self._solver_settings()
        )
        for copy, solution in zip(copies, path, strict=True):
            validate_data(copy, X, y, multi_output=True, skip_check_array=True)
            copy._flat_target = False
            copy._keep(solution)
            yield copy

    def _fit(self, X: Floats, Y: Floats) -> None:
        self._keep(fit_linear_svr(X, Y, C=self.C, **self._solver_settings()))

    def _solver_settings(self) -> dict[str, Any]:
        return {name: value for name, value in self.get_params().items() if name != "C"}

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
    """Two rounds of linear support vector regression; the second also sees the first's output.

    Parameters
    ----------
    C : float
        Weight of the residuals, in both rounds.
    n_folds : int
        Number of folds of the first round's out-of-fold predictions, the inputs of the second.
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
        Order of the chain; None keeps the order of the labels.
    random_state : int or None
        Seed of a random order.

    Notes
    -----
    The regressions have different inputs, so they are fitted one after the other: with many labels
    far slower than `BatchedLinearSVR`. Errors propagate down the chain.

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
        self.chain_ = RegressorChain(
            BatchedLinearSVR(self.C), order=self.order, random_state=self.random_state
        ).fit(X, Y)

    def _predict(self, X: Floats) -> Floats:
        return np.asarray(self.chain_.predict(X))


class ProtocolMoments(NamedTuple):
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
        mean_x, mean_y, within_xx, within_xy = (
            np.mean(field, axis=0) for field in zip(*parts, strict=True)
        )
        off = [(part.mean_x - mean_x, part.mean_y - mean_y) for part in parts]
        between_xx = np.mean([np.outer(x, x) for x, _ in off], axis=0)
        between_xy = np.mean([np.outer(x, y) for x, y in off], axis=0)
        return cls(mean_x, mean_y, within_xx + between_xx, within_xy + between_xy)


class _GridSums(NamedTuple):
    """Sums over a label's reachable grid points, each of shape (n_labels,).

    Attributes
    ----------
    points : number of points
    share, squared : sums of m/k and of its square
    positive, negative : sums of the factors of the covariances of positives and of negatives
    """

    points: Floats
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
    # Differences from the means of the pool avoid cancellation.
    x, y = X - centre_x, truth - centre_y
    positives = truth.sum(axis=0)
    with_label = _class_means(truth, positives, x, y)
    without = _class_means(1.0 - truth, len(truth) - positives, x, y)
    total = cells.points.sum()
    mean_x, mean_y = (
        (cells.share @ high + (cells.points - cells.share) @ low) / total
        for high, low in zip(with_label, without, strict=True)
    )
    both = cells.share - cells.squared
    neither = cells.points - 2.0 * cells.share + cells.squared
    within_high = _scatter_factor(cells.positive, positives)
    within_low = _scatter_factor(cells.negative, len(truth) - positives)
    weight = truth @ within_high + (1.0 - truth) @ within_low
    own_high = cells.squared - within_high * positives
    own_low = neither - within_low * (len(truth) - positives)

    def second(rows: Floats, high: Floats, low: Floats) -> Floats:
        between = (with_label[0].T * own_high + without[0].T * both) @ high
        between += (without[0].T * own_low + with_label[0].T * both) @ low
        return np.asarray(((x.T * weight) @ rows + between) / total)

    return ProtocolMoments(
        centre_x + mean_x,
        centre_y + mean_y,
        second(x, with_label[0], without[0]) - np.outer(mean_x, mean_x),
        second(y, with_label[1], without[1]) - np.outer(mean_x, mean_y),
    )


def _grid_sums(Y: LabelMatrix, protocol: MLAPP) -> _GridSums:
    served = protocol.reachable(Y).astype(np.float64)
    size = protocol.size
    wanted = positives_wanted(grid_points(protocol.grid), size).astype(np.float64)
    positives = Y.sum(axis=0, dtype=np.float64)[:, np.newaxis]
    negatives = len(Y) - positives
    factors = [
        (served * drawn * (1.0 - drawn / np.maximum(available, 1.0))).sum(axis=1) / size**2
        for drawn, available in ((wanted, positives), (size - wanted, negatives))
    ]
    share = wanted / size
    return _GridSums(served.sum(axis=1), served @ share, served @ share**2, *factors)


def _class_means(members: Floats, counts: Floats, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Mean rows of each label's members, shapes (n_labels, n_inputs) and (n_labels, n_labels)."""
    share = members.T / np.maximum(counts, 1.0)[:, np.newaxis]
    return np.asarray(share @ x), np.asarray(share @ y)


def _scatter_factor(factor: Floats, counts: Floats) -> Floats:
    """Turn the factor of an unbiased covariance into that of the sum of squares."""
    return np.asarray(np.where(counts > 1, factor / np.maximum(counts - 1.0, 1.0), 0.0))


class MomentsRidge(Regressor):
    """Ridge regression on the exact moments of ML-APP, the limit of ridge on many samples.

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
        self._flat_target = moments[0].cov_xy.shape[1] == 1
        self.n_features_in_ = len(moments[0].mean_x)
        self._solve(ProtocolMoments.mixed(moments))
        return self

    def _fit(self, X: Floats, Y: Floats) -> None:
        self._solve(ProtocolMoments.of_rows(X, Y))

    def _solve(self, moments: ProtocolMoments) -> None:
        deviation = np.sqrt(np.maximum(np.diag(moments.cov_xx), 0.0))
        # As in StandardScaler: constant inputs are not scaled.
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
    """A random forest whose trees predict all labels together.

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    n_jobs : int, optional
    random_state : int or None

    Notes
    -----
    Cannot extrapolate beyond its training targets, which prevalences between 0 and 1 rarely need.
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
        self.forest_ = RandomForestRegressor(**self.get_params())
        self.forest_.fit(X, Y[:, 0] if Y.shape[1] == 1 else Y)

    def _predict(self, X: Floats) -> Floats:
        return np.asarray(self.forest_.predict(X))


#: The regressors that `RQ` and the catalogue accept by a short name, their `code`.
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
    """Return a regressor from None (`BatchedLinearSVR`), a short name, or an estimator."""
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
