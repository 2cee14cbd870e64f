"""Quantifiers over label states: shares that sum to one, for many samples at once."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, clone

from prevalens.aggregators.adjusted import ACC, PACC
from prevalens.aggregators.base import Aggregator
from prevalens.aggregators.counting import CC, PCC
from prevalens.aggregators.kernel_density import KDEyML, check_bandwidth
from prevalens.aggregators.sld import SLD
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.types import Array, Floats
from prevalens.validation import InputError, PrevalensWarning, check_int

#: Largest product of a share and its dual variable at which a problem is solved.
_TOLERANCE = 1e-14
_MAX_STEPS = 60
#: Part of the way to the boundary that a step may take, and centring parameter of the products.
_BACK_OFF = 0.995
_CENTRING = 0.05
#: Entries of the systems that are solved at a time.
_SIMPLEX_BLOCK = 2**21


def minimise_on_simplex(curve: Floats, pull: Floats) -> Floats:
    """Find shares p (not negative, sum 1) that minimise ``0.5 p curve p - pull p`` for each `pull`.

    A primal-dual interior-point method for all problems at once. Its number of steps (10 to 25)
    does not depend on how well the problem is conditioned.

    Parameters
    ----------
    curve : array, shape (n, n)
        Symmetric, without negative eigenvalues.
    pull : array, shape (n_problems, n)

    Notes
    -----
    O(n^3) per problem and step.

    References: Nocedal and Wright, "Numerical optimization", 2nd edition, 2006, chapter 16.6.
    """
    size = max(1, _SIMPLEX_BLOCK // curve.size)
    parts = [_minimise(curve, pull[i : i + size]) for i in range(0, len(pull), size)]
    return np.concatenate([np.empty((0, len(curve))), *parts])


def _minimise(curve: Floats, pull: Floats) -> Floats:
    n = len(curve)
    solved = np.full(pull.shape, 1.0 / n)
    live = np.arange(len(pull))
    shares = solved.copy()
    prices = np.full(pull.shape, max(1.0, float(np.abs(curve).max())))
    level = np.zeros((len(pull), 1))
    for _ in range(_MAX_STEPS):
        shares, prices, level = _step(curve, pull[live], shares, prices, level)
        solved[live] = shares
        going = (shares * prices).max(axis=1) > _TOLERANCE
        live, shares, prices, level = live[going], shares[going], prices[going], level[going]
        if len(live) == 0:
            break
    return solved / solved.sum(axis=1, keepdims=True)


def _step(
    curve: Floats, pull: Floats, shares: Floats, prices: Floats, level: Floats
) -> tuple[Floats, Floats, Floats]:
    """Do one Newton step towards equal and smaller ``shares * prices``, inside the boundary."""
    target = _CENTRING * (shares * prices).mean(axis=1, keepdims=True)
    wanted = pull - shares @ curve - level + target / shares
    systems = curve + (prices / shares)[:, :, np.newaxis] * np.eye(len(curve))
    sides = np.stack([wanted, np.ones_like(wanted)], axis=2)
    moves, per_level = np.moveaxis(np.linalg.solve(systems, sides), 2, 0)
    lift = (moves.sum(axis=1) + shares.sum(axis=1) - 1.0) / per_level.sum(axis=1)
    by_shares = moves - lift[:, np.newaxis] * per_level
    by_prices = (target - prices * by_shares) / shares - prices
    length = np.minimum(_reach(shares, by_shares), _reach(prices, by_prices))[:, np.newaxis]
    return (
        shares + length * by_shares,
        prices + length * by_prices,
        level + length * lift[:, np.newaxis],
    )


def _reach(values: Floats, moves: Floats) -> Floats:
    """Largest step of each row, at most 1, that keeps its values positive."""
    ratios = np.divide(-values, moves, out=np.full_like(values, np.inf), where=moves < 0)
    return np.minimum(1.0, _BACK_OFF * ratios.min(axis=1))


#: Entries of a block of (indices, states).
_BLOCK = 2**21
#: EM never stops before this many rounds, as in QuaPy.
_EM_ROUNDS = 12


class StateQuantifier(BaseEstimator, ABC):  # type: ignore[misc]
    """Estimate the shares of states in samples.

    Attributes
    ----------
    consumes : {"votes", "posteriors", "features"}
        Its input: a classifier's votes (a single 1 per row) or posteriors (rows sum to one), or
        the items themselves.
    needs_labelled_scores : bool
        Whether `fit` uses the scores, which must then be of items that the classifier was not
        trained on.
    reads_means : bool
        Whether the mean scores of a sample are all that it reads; it then has `from_means`.
    prior_ : array, shape (n_states,)
        Shares of the states in the labelled items.
    """

    consumes: Kind
    needs_labelled_scores: bool = False
    reads_means: bool = False

    def fit(self, values: Any, state_of: npt.NDArray[np.intp], n_states: int) -> Self:
        """Learn from labelled items.

        Parameters
        ----------
        values : array, shape (n_items, n_states), or items
            None if `needs_labelled_scores` is False.
        state_of : array of int, shape (n_items,)
            Every state from 0 to ``n_states - 1`` occurs.
        n_states : int
        """
        self.prior_ = np.bincount(state_of, minlength=n_states) / len(state_of)
        self._learn(values, state_of)
        return self

    def _learn(self, values: Any, state_of: npt.NDArray[np.intp]) -> None:
        """Learn more than the shares of the states. Default: nothing."""

    @abstractmethod
    def estimate(self, values: Any, samples: Samples) -> Floats:
        """Shares of the states in each sample, shape (n_samples, n_states)."""

    def from_means(self, means: Floats) -> Floats:
        """As `estimate`, from the mean scores of each sample, shape (n_samples, n_states)."""
        raise NotImplementedError


class MulticlassCC(StateQuantifier):
    """Classify and count: the share of votes for each state.

    Notes
    -----
    Fails under prior shift, as `CC` does.

    Examples
    --------
    >>> votes = np.eye(3)[[0, 0, 1, 2]]
    >>> MulticlassCC().fit(None, np.array([0, 0, 1, 2]), 3).estimate(votes, Samples.whole(4))
    array([[0.5 , 0.25, 0.25]])
    """

    consumes: Kind = "votes"
    reads_means = True

    def estimate(self, values: Any, samples: Samples) -> Floats:
        """See `StateQuantifier`."""
        return self.from_means(samples.mean(values))

    def from_means(self, means: Floats) -> Floats:
        """See `StateQuantifier`."""
        return means


class MulticlassPCC(MulticlassCC):
    """Probabilistic classify and count: the mean posterior of each state.

    Notes
    -----
    Pulled towards the training shares under prior shift, as `PCC` is.

    Examples
    --------
    >>> posteriors = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    >>> MulticlassPCC().fit(None, np.array([0, 1]), 3).estimate(posteriors, Samples.whole(2))
    array([[0.25, 0.5 , 0.25]])
    """

    consumes: Kind = "posteriors"


class MulticlassACC(StateQuantifier):
    """Adjusted classify and count: the shares whose expected votes are nearest to those seen.

    Parameters
    ----------
    guard : float or None
        Number of standard errors of the measured rates that penalise an adjustment, as in `ACC`;
        None (or 0) adjusts without guard.

    Attributes
    ----------
    rates_ : array, shape (n_states, n_states)
        Mean score for each state (rows) of the items of each state (columns).
    error_ : array, shape (n_states,)
        Standard error of each column, as a vector.

    Notes
    -----
    With q the mean scores of a sample, the answer p minimises ``|rates p - q|^2 +
    sum (guard error_t)^2 (p_t - q_t)^2`` among all shares. Without guard there is no second term,
    and the noise of the rates decides between similar states; with it a state of few items
    keeps nearly its unadjusted share, and a common one is adjusted (LPQ on Yeast in
    five clusters: absolute error .126, without guard .230). O(n_states^3) per sample.

    Fails where the rates of common states hardly differ.

    References
    ----------
    Firat, "Unified framework for quantification", arXiv 1606.00868, 2016 (least squares over all
    shares); Bunse, "On multi-class extensions of adjusted classify and count", LQ 2022.

    Examples
    --------
    >>> votes = np.eye(2)[[0] * 8 + [1] * 2 + [0] * 2 + [1] * 8]
    >>> truth = np.repeat([0, 1], 10)
    >>> acc = MulticlassACC(guard=0.0).fit(votes, truth, 2)
    >>> acc.estimate(np.eye(2)[[0, 0, 0, 1]], Samples.whole(4)).round(3)
    array([[0.917, 0.083]])
    """

    consumes: Kind = "votes"
    needs_labelled_scores = True
    reads_means = True

    def __init__(self, guard: float | None = 4.0) -> None:
        self.guard = guard

    def _learn(self, values: Any, state_of: npt.NDArray[np.intp]) -> None:
        guard = 0.0 if self.guard is None else self.guard
        if not guard >= 0:
            raise InputError(f"guard must be zero or positive, or None; got {self.guard!r}.")
        n_states = len(self.prior_)
        members = np.eye(n_states)[state_of]
        counts = members.sum(axis=0)
        self.rates_ = (np.asarray(values, dtype=np.float64).T @ members) / counts
        scatter = np.square(values - self.rates_.T[state_of]).sum()
        self.error_ = np.sqrt(scatter / max(len(state_of) - n_states, 1) / counts)
        self._resist = np.square(guard * self.error_)

    def estimate(self, values: Any, samples: Samples) -> Floats:
        """See `StateQuantifier`."""
        return self.from_means(samples.mean(values))

    def from_means(self, means: Floats) -> Floats:
        """See `StateQuantifier`."""
        curve = self.rates_.T @ self.rates_ + np.diag(self._resist)
        return minimise_on_simplex(curve, means @ self.rates_ + means * self._resist)


class MulticlassPACC(MulticlassACC):
    """Probabilistic adjusted classify and count: as `MulticlassACC`, with posteriors.

    Parameters
    ----------
    guard : float or None

    Notes
    -----
    Fails where the posteriors of common states hardly differ.

    Examples
    --------
    >>> posteriors = np.array([[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]])
    >>> pacc = MulticlassPACC(guard=0.0).fit(posteriors, np.array([0, 0, 1, 1]), 2)
    >>> pacc.estimate(posteriors, Samples.whole(4)).round(3)
    array([[0.5, 0.5]])
    """

    consumes: Kind = "posteriors"


class MulticlassSLD(StateQuantifier):
    """Saerens, Latinne and Decaestecker's EM over states.

    Parameters
    ----------
    tol : float
        A sample has converged when its shares move less than this on average in a round, after at
        least 12 rounds (QuaPy's rule).
    max_iter : int
        Maximum number of rounds.

    Notes
    -----
    The posteriors belong to the shares of the states in training. O(rounds x n_indices x
    n_states), in blocks of samples; each sample stops separately. Fails where posteriors are badly
    calibrated.

    References
    ----------
    Saerens, Latinne, Decaestecker, "Adjusting the outputs of a classifier to new a priori
    probabilities: a simple procedure", Neural Computation 14, 2002.

    Examples
    --------
    >>> posteriors = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.2, 0.8]])
    >>> sld = MulticlassSLD().fit(None, np.array([0, 0, 1, 1]), 2)
    >>> sld.estimate(posteriors, Samples.whole(4)).round(2)
    array([[0.64, 0.36]])
    """

    consumes: Kind = "posteriors"

    def __init__(self, tol: float = 1e-4, *, max_iter: int = 10_000) -> None:
        self.tol = tol
        self.max_iter = max_iter

    def estimate(self, values: Any, samples: Samples) -> Floats:
        """See `StateQuantifier`."""
        check_int(self.max_iter, "max_iter", minimum=1)
        ratios = self._likelihoods(np.asarray(values, dtype=np.float64))
        estimates = np.empty((len(samples), len(self.prior_)))
        unfinished = 0
        for rows, items in _equal_bags(samples, _BLOCK // len(self.prior_)):
            estimates[rows], left = self._settle(ratios[items])
            unfinished += left
        if unfinished:
            warnings.warn(
                f"EM over {len(self.prior_)} states had not settled after {self.max_iter} rounds "
                f"in {unfinished} of {len(samples)} samples; raise max_iter or tol.",
                PrevalensWarning,
                stacklevel=2,
            )
        return estimates

    def _likelihoods(self, posteriors: Floats) -> Floats:
        """Likelihood of each state, up to a factor per item, shape (n_items, n_states)."""
        return posteriors / self.prior_

    def _settle(self, ratios: Floats) -> tuple[Floats, int]:
        """EM on samples of equal size, shape (n_samples, size, n_states).

        Converged samples are dropped when they are at least half of those that remain.
        """
        settled = np.tile(self.prior_, (len(ratios), 1))
        live, shares = np.arange(len(ratios)), settled.copy()
        for step in range(1, self.max_iter + 1):
            after = _em_step(ratios, shares)
            going = np.abs(after - shares).mean(axis=1) >= self.tol
            shares = after
            if step < _EM_ROUNDS:
                continue
            settled[live] = shares
            if 2 * going.sum() <= len(live):
                live, shares, ratios = live[going], shares[going], ratios[going]
            if len(live) == 0:
                return settled, 0
        settled[live] = shares
        return settled, int(going.sum())


class MulticlassKDEy(MulticlassSLD):
    """Shares of the states' kernel densities under which a sample's posteriors are most likely.

    Parameters
    ----------
    bandwidth : float
        Of the Gaussian kernel among vectors of posteriors, as in `KDEyML`; 0.01 to 1.
    tol, max_iter : float, int
        As in `MulticlassSLD`.

    Attributes
    ----------
    points_ : array of float, shape (n_items, n_states)
        Posteriors of the labelled items, state by state.

    Notes
    -----
    KDEy-ML as published. The mixture of known densities with the greatest likelihood is the limit
    of EM, which is also what `MulticlassSLD` computes, with other likelihoods. O(n_items x
    n_labelled x n_states) for the densities of the items. Fails where states have few items.

    References
    ----------
    Moreo, González, del Coz, "Kernel density estimation for multiclass quantification", Machine
    Learning 114, 2025.

    Examples
    --------
    >>> posteriors = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.2, 0.8]])
    >>> kdey = MulticlassKDEy().fit(posteriors, np.array([0, 0, 1, 1]), 2)
    >>> kdey.estimate(posteriors, Samples.from_indices([[0, 1, 1, 2]], n_items=4)).round(2)
    array([[0.75, 0.25]])
    """

    needs_labelled_scores = True

    def __init__(
        self, bandwidth: float = 0.1, *, tol: float = 1e-5, max_iter: int = 10_000
    ) -> None:
        super().__init__(tol, max_iter=max_iter)
        self.bandwidth = bandwidth

    def _learn(self, values: Any, state_of: npt.NDArray[np.intp]) -> None:
        check_bandwidth(self.bandwidth)
        order = np.argsort(state_of, kind="stable")
        self.points_ = np.asarray(values, dtype=np.float64)[order]
        self._counts = np.bincount(state_of, minlength=len(self.prior_))

    def _likelihoods(self, posteriors: Floats) -> Floats:
        densities = np.empty((len(posteriors), len(self.prior_)))
        starts = np.concatenate([[0], np.cumsum(self._counts)[:-1]])
        step = max(1, _BLOCK // len(self.points_))
        for start in range(0, len(posteriors), step):
            rows = slice(start, start + step)
            exponents = cdist(posteriors[rows], self.points_, "sqeuclidean")
            exponents /= -2.0 * self.bandwidth**2
            # The nearest point of each item counts as 1, so that no item is out of reach of all.
            exponents -= exponents.max(axis=1, keepdims=True)
            kernels = np.exp(exponents, out=exponents)
            densities[rows] = np.add.reduceat(kernels, starts, axis=1) / self._counts
        return densities


def _em_step(ratios: Floats, shares: Floats) -> Floats:
    likelihood = np.matmul(ratios, shares[:, :, np.newaxis])[:, :, 0]
    # An item with zero likelihood under all states has no weight.
    weight = np.divide(1.0, likelihood, out=np.zeros_like(likelihood), where=likelihood > 0)
    evidence = np.matmul(weight[:, np.newaxis, :], ratios)[:, 0, :]
    return np.asarray(shares * evidence / ratios.shape[1])


def _equal_bags(samples: Samples, max_indices: int) -> Iterator[tuple[npt.NDArray[np.intp], Array]]:
    """Yield samples of equal size in portions: their positions, and their items as a table."""
    for size in np.unique(samples.sizes):
        of_size = np.flatnonzero(samples.sizes == size)
        step = max(1, max_indices // int(size))
        for start in range(0, len(of_size), step):
            rows = of_size[start : start + step]
            yield rows, samples[rows].flat.reshape(len(rows), int(size))


class OneVsRest(StateQuantifier):
    """Any aggregator of labels, applied to states as labels; estimates are scaled to sum to one.

    Parameters
    ----------
    aggregator : Aggregator

    Notes
    -----
    The scaling spreads errors: an error on one state changes the shares of all others.

    Examples
    --------
    >>> posteriors = np.array([[0.9, 0.1], [0.7, 0.3]])
    >>> OneVsRest(PCC()).fit(posteriors, np.array([0, 1]), 2).estimate(posteriors, Samples.whole(2))
    array([[0.8, 0.2]])
    """

    #: Every aggregator is fitted on scores, even if it does not use them.
    needs_labelled_scores = True

    def __init__(self, aggregator: Aggregator) -> None:
        self.aggregator = aggregator

    @property
    def consumes(self) -> Kind:  # type: ignore[override]
        """The kind of scores that the aggregator reads."""
        return self.aggregator.consumes

    def _learn(self, values: Any, state_of: npt.NDArray[np.intp]) -> None:
        members = np.eye(len(self.prior_), dtype=np.int8)[state_of]
        self.aggregator_ = clone(self.aggregator).fit(Scores(values, self.consumes), members)

    def estimate(self, values: Any, samples: Samples) -> Floats:
        """See `StateQuantifier`."""
        estimated = self.aggregator_.aggregate(Scores(values, self.consumes), samples)
        total = estimated.sum(axis=1, keepdims=True)
        return np.where(total > 0, estimated / np.where(total > 0, total, 1.0), self.prior_)


def multiclass(base: Aggregator) -> StateQuantifier:
    """Return the quantifier over states that corresponds to an aggregator of labels.

    CC, PCC, ACC, PACC, SLD and KDEyML have versions of their own; any other aggregator is applied
    to each state in turn.
    """
    simple: dict[type, type[StateQuantifier]] = {CC: MulticlassCC, PCC: MulticlassPCC}
    if type(base) in simple:
        return simple[type(base)]()
    adjusted: dict[type, type[MulticlassACC]] = {ACC: MulticlassACC, PACC: MulticlassPACC}
    if type(base) in adjusted:
        return adjusted[type(base)](base.guard)
    if type(base) is SLD:
        if base.calibrate is not None or base.prior is not None:
            raise InputError(
                "SLD with calibration or a prior has no version over label states; use SLD()."
            )
        return MulticlassSLD() if base.tol is None else MulticlassSLD(base.tol)
    if type(base) is KDEyML:
        return MulticlassKDEy(base.bandwidth)
    return OneVsRest(base)
