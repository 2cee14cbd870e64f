"""Counting after calibration: isotonic (PCC-PAV and PCC-EPAV), or over groups of items.

`PAV` replaces each label's posteriors by the best nondecreasing function of them that averages to
the training prevalence. `MulticalibratedPCC` shifts the log-odds of all labels in groups of items.
Both then average over the sample.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import isotonic_regression
from sklearn.tree import DecisionTreeRegressor

from prevalens.aggregators.base import Aggregator, label_chunks, per_label
from prevalens.batches import Columns, Statistic, fingerprint_of
from prevalens.crossfit import CrossFit
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.types import Array, Floats, Ints, LabelMatrix
from prevalens.validation import InputError, PrevalensError, check_choice, check_int, check_number

try:
    import clarabel
except ImportError:
    clarabel = None

SOLVERS = ("shift", "qp")
#: Tolerance of residuals and gap of the quadratic program.
_QP_TOL = 1e-10
_QP_ROUNDS = 500
#: Numbers of groups that multicalibration compares, and folds of the comparison.
_LEAVES = (1, 2, 4, 8, 16, 32)
_FOLDS = 3
#: Items of a group at least, and labels (those whose posteriors vary most) that define the groups.
_LEAST, _SEEN = 25, 32
#: Newton steps of the shifts, their greatest length, and the length at which they end.
_SHIFT_ROUNDS, _LONGEST, _SHIFT_TOL = 50, 2.0, 1e-9


class _Points(NamedTuple):
    """Labelled items with the same or nearly the same posterior, as one weighted point."""

    posterior: Floats
    share: Floats
    weight: Floats


class PAV(Aggregator):
    """Probabilistic classify and count on isotonically calibrated posteriors.

    Parameters
    ----------
    unify : float
        Items whose posteriors fall into the same cell of this width become one point: the
        unification heuristic of PCC-EPAV. 0 unifies only equal posteriors (PCC-PAV).
    prevalence : float, array of float of shape (n_labels,), or None
        Mean of the calibrated posteriors of the labelled items. None: the prevalence of these
        items. Give the prevalence of all training items if only a part of them has labelled
        scores.
    solver : {"shift", "qp"}
        "shift" uses the closed form below, "qp" solves the quadratic program by an interior-point
        solver (the extra ``qp``). Both give the same function.

    Attributes
    ----------
    calibration_ : list of (posteriors, calibrated), one pair of arrays per label
        The points of the calibration; between them it is linear, outside constant.

    Notes
    -----
    The quadratic program is ``min sum w (f - y)^2`` over ``0 <= f_1 <= ... <= f_m <= 1`` with
    ``sum w f = prevalence sum w``, one f per point, y the share of positives in it and w their
    number. A multiplier on the last condition adds a constant to all y, and isotonic regression
    commutes with adding constants and with clipping. Hence the solution is ``f = clip(iso(y) +
    shift, 0, 1)`` with iso the pool-adjacent-violators fit and the one shift that meets the
    condition. In particular the shift is 0, and the condition costs nothing, if the
    prevalence is that of the labelled items: isotonic regression preserves the mean.

    The method is built after its description by Moreo, Francisco and Sebastiani (2024): PAV
    calibration under the condition that the posteriors' expectation is the training prevalence,
    with unified documents to shrink the program.

    O(n_items log n_items) per label to fit, the mean over the samples to aggregate. Fails under
    prior shift: the calibration binds the estimates to the training prevalence.

    References
    ----------
    Levin, Roitman, "Enhanced probabilistic classify and count methods for multi-label text
    quantification", ICTIR 2017.
    Moreo, Francisco, Sebastiani, "Multi-label quantification", ACM TKDD 18, 2024.
    Zadrozny, Elkan, "Transforming classifier scores into accurate multiclass probability
    estimates", KDD 2002.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> posteriors = Scores([[0.1], [0.3], [0.6], [0.9]], kind="posteriors")
    >>> pav = PAV().fit(posteriors, [[0], [1], [0], [1]])
    >>> pav.aggregate(posteriors, Samples.from_indices([[0, 1], [1, 3]], n_items=4)).tolist()
    [[0.25], [0.75]]
    """

    code = "pav"
    consumes: Kind = "posteriors"
    joint = False

    def __init__(
        self,
        unify: float = 0.0,
        prevalence: float | npt.ArrayLike | None = None,
        *,
        solver: str = "shift",
    ) -> None:
        self.unify = unify
        self.prevalence = prevalence
        self.solver = solver

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        targets = self._check()
        solve = _solve_qp if self.solver == "qp" else _solve_shift
        self.calibration_ = []
        for label, target in enumerate(targets.tolist()):
            points = _unify(scores.values[:, label], Y[:, label], self.unify)
            fitted = solve(points, target)
            self.calibration_.append(_corners(points.posterior, fitted))

    def _aggregate(self, scores: Scores, samples: Samples) -> Floats:
        estimates = np.empty((len(samples), self.n_labels_))
        for labels in label_chunks(np.arange(self.n_labels_), scores.n_items):
            estimates[:, labels] = samples.mean(self._calibrated(scores, labels))
        return estimates

    def _calibrated(self, scores: Scores, labels: Ints) -> Floats:
        """Calibrated posteriors of some labels, shape (n_items, len(labels))."""
        calibrated = np.empty((scores.n_items, len(labels)))
        for column, label in enumerate(labels.tolist()):
            calibrated[:, column] = np.interp(scores.values[:, label], *self.calibration_[label])
        return calibrated

    @property
    def statistic(self) -> Statistic:
        """The calibrated posteriors."""
        labels = np.arange(self.n_labels_)
        name = f"calibrated {fingerprint_of(self.calibration_)}"
        return Columns(name, lambda scores: self._calibrated(scores, labels))

    def _from_means(self, means: Floats, sizes: Ints) -> Floats:  # noqa: ARG002
        return means

    def _check(self) -> Floats:
        """Check the parameters and return the prevalences to meet."""
        if not (isinstance(self.unify, (int, float)) and 0 <= self.unify < 1):
            raise InputError(f"unify must be a width from 0 to less than 1; got {self.unify!r}.")
        if check_choice(self.solver, "solver", SOLVERS) == "qp" and clarabel is None:
            raise InputError(
                'PAV(solver="qp") needs clarabel: pip install "prevalens[qp]", or use '
                'solver="shift", which gives the same result.'
            )
        if self.prevalence is None:
            return self.prevalence_
        return per_label(self.prevalence, "prevalence", self.n_labels_, open_ends=False)


def _unify(posteriors: Array, truth: LabelMatrix, width: float) -> _Points:
    """Merge items with equal posteriors, or with posteriors in the same cell of `width`."""
    posteriors = posteriors.astype(np.float64)
    keys = np.floor(posteriors / width) if width else posteriors
    distinct, group = np.unique(keys, return_inverse=True)
    weight = np.bincount(group).astype(np.float64)
    centre = np.bincount(group, weights=posteriors) / weight if width else distinct
    return _Points(centre, np.bincount(group, weights=truth) / weight, weight)


def _solve_shift(points: _Points, target: float) -> Floats:
    """Closed form: pool adjacent violators, then shift and clip."""
    fit: Floats = isotonic_regression(points.share, weights=points.weight).x
    total = points.weight.sum()
    if np.isclose(points.weight @ fit, target * total, rtol=0, atol=1e-12 * total):
        return fit
    # The weighted mean of clip(fit + shift, 0, 1) is piecewise linear in the shift: the slope of
    # a value starts at -fit and ends at 1 - fit.
    bends = np.concatenate([-fit, 1.0 - fit])
    order = np.argsort(bends, kind="stable")
    bends = bends[order]
    slopes = np.cumsum(np.concatenate([points.weight, -points.weight])[order])
    sums = np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(bends))])
    return np.clip(fit + np.interp(target * total, sums, bends), 0.0, 1.0)


def _solve_qp(points: _Points, target: float) -> Floats:
    """Solve the quadratic program by an interior-point method."""
    n = len(points.share)
    scale = points.weight / points.weight.sum()
    # Rows: the mean (equality); then f_1 >= 0, the steps f_(i+1) >= f_i, and f_n <= 1.
    steps = sp.diags_array([np.ones(n), -np.ones(n)], offsets=[0, -1], shape=(n + 1, n))
    conditions = sp.vstack([sp.csr_array(scale[np.newaxis, :]), -steps], format="csc")
    bounds = np.concatenate([[target], np.zeros(n), [1.0]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = _QP_ROUNDS
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _QP_TOL
    solution = clarabel.DefaultSolver(
        sp.csc_array(sp.diags_array(scale)),
        -scale * points.share,
        conditions,
        bounds,
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n + 1)],
        settings,
    ).solve()
    if solution.status not in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
        raise PrevalensError(
            f"The quadratic program of PAV was not solved ({solution.status}); use "
            'solver="shift", which needs none.'
        )
    # Interior points meet the conditions up to the tolerance; the calibration is exactly monotone.
    return np.clip(np.maximum.accumulate(np.asarray(solution.x)), 0.0, 1.0)


def _corners(posteriors: Floats, fitted: Floats) -> tuple[Floats, Floats]:
    """Drop the points inside flat pieces; linear interpolation does not need them."""
    flat = np.diff(fitted) == 0
    inside = np.concatenate([[False], flat]) & np.concatenate([flat, [False]])
    return posteriors[~inside], fitted[~inside]


class MulticalibratedPCC(Aggregator):
    """Mean posterior, calibrated in each of several groups of items (multicalibration).

    Groups are the leaves of a regression tree that reads the posteriors of all labels. In each
    leaf the log-odds of each label are shifted, so that posteriors and labels agree on average.

    Parameters
    ----------
    leaves : int or None
        Number of groups at most; 0 is `PCC`, 1 a single shift per label. None: the number from 1
        to 32 with the least squared error of posteriors in three-fold cross-validation; 0 if that
        is not better than `PCC` by more than its standard error.
    penalty : float
        Holds shifts back: that of a label is as if drawn around 0 with the variance 1 / penalty, so
        the default expects shifts of half a unit of log-odds.
    random_state : int
        Seed of the folds, and of the tree where splits are equally good.

    Attributes
    ----------
    leaves_ : int
        Number of groups.
    shifts_ : array of float, shape (n_leaves, n_labels)
        What is added to the log-odds of each label in each group.
    columns_ : array of int
        The labels whose posteriors the tree reads: the 32 whose posteriors vary most.

    Notes
    -----
    If only the features have moved, the error of a mean posterior is the mean over the new items of
    what the posteriors are wrong by; it is small for every such change that the groups can
    express. The tree is grown where labels deviate from their posteriors. If `fit` is given groups
    of items (``--group``), it is also grown to tell those of at least 25 items apart, the 32
    largest at most: new items have no such group, but are recognised by their posteriors.
    Cross-validation then tests groups that the shifts have not seen.

    O(n_items x n_labels) to aggregate. Fails under prior shift as `PCC` does, and where labelled
    items are too few to show what the posteriors are wrong by; it is then `PCC`.

    References
    ----------
    Hébert-Johnson, Kim, Reingold, Rothblum, "Multicalibration: calibration for the
    (computationally-identifiable) masses", ICML 2018.
    Kim, Kern, Goldwasser, Kreuter, Reingold, "Universal adaptability: target-independent inference
    that competes with propensity scoring", PNAS 119, 2022.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> posteriors = Scores(np.repeat([[0.2], [0.8]], 50, axis=0), kind="posteriors")
    >>> Y = np.repeat([1, 0, 1], [10, 80, 10])[:, np.newaxis]
    >>> mcpcc = MulticalibratedPCC(2, penalty=0.01).fit(posteriors, Y)
    >>> samples = Samples.from_indices([range(50), range(50, 100)], n_items=100)
    >>> mcpcc.aggregate(posteriors, samples).round(2).tolist()
    [[0.2], [0.2]]
    """

    code = "mcpcc"
    consumes: Kind = "posteriors"
    joint = True

    def __init__(
        self, leaves: int | None = None, *, penalty: float = 4.0, random_state: int = 0
    ) -> None:
        self.leaves = leaves
        self.penalty = penalty
        self.random_state = random_state

    def _fit_grouped(self, scores: Scores, Y: LabelMatrix, groups: Array | None) -> None:
        check_number(self.penalty, "penalty", 1e-6, 1e6)
        posteriors = np.asarray(scores.values, dtype=np.float64)
        order = np.argsort(-posteriors.var(axis=0), kind="stable")
        self.columns_ = np.sort(order[:_SEEN])
        leaves = self._chosen(posteriors, Y, groups) if self.leaves is None else self.leaves
        self._learn(posteriors, Y, groups, check_int(leaves, "leaves", minimum=0))

    def _chosen(self, posteriors: Floats, Y: LabelMatrix, groups: Array | None) -> int:
        """The number of leaves with the least error on items that it was not fitted on."""
        n_units = len(Y) if groups is None else len(np.unique(groups))
        if n_units < _FOLDS or len(Y) < _FOLDS * _LEAST:
            return 0
        gains = np.zeros((len(_LEAVES), len(Y)))
        for rest, held in CrossFit(_FOLDS, random_state=self.random_state).divide(Y, groups):
            own = None if groups is None else groups[rest]
            plain = np.square(Y[held] - posteriors[held]).sum(axis=1)
            for row, leaves in enumerate(_LEAVES):
                self._learn(posteriors[rest], Y[rest], own, leaves)
                calibrated = self._calibrated(Scores(posteriors[held]))
                gains[row, held] = plain - np.square(Y[held] - calibrated).sum(axis=1)
        best = int(np.argmax(gains.mean(axis=1)))
        error = gains[best].std() / np.sqrt(len(Y))
        return _LEAVES[best] if gains[best].mean() > error else 0

    def _learn(self, posteriors: Floats, Y: LabelMatrix, groups: Array | None, leaves: int) -> None:
        self._tree = None
        if leaves > 1:
            deviations = (Y - posteriors)[:, self.columns_]
            targets = np.hstack([deviations, _memberships(groups, len(Y))])
            self._tree = DecisionTreeRegressor(
                max_leaf_nodes=leaves, min_samples_leaf=_LEAST, random_state=self.random_state
            ).fit(posteriors[:, self.columns_], targets)
            self._nodes = np.flatnonzero(self._tree.tree_.children_left < 0)
        self.leaves_ = leaves if leaves <= 1 else len(self._nodes)
        self.shifts_ = np.zeros((1, Y.shape[1]))
        if leaves:
            leaf = self._leaf(posteriors)
            self.shifts_ = _shifts(posteriors, Y, leaf, self.leaves_, self.penalty)

    def _leaf(self, posteriors: Floats) -> Ints:
        """The group of each item."""
        if self._tree is None:
            return np.zeros(len(posteriors), dtype=np.intp)
        nodes = self._tree.apply(posteriors[:, self.columns_])
        return np.searchsorted(self._nodes, nodes)

    def _calibrated(self, scores: Scores) -> Floats:
        posteriors = scores.values.astype(np.float64)
        return _shift(posteriors, np.exp(self.shifts_)[self._leaf(posteriors)])

    @property
    def statistic(self) -> Statistic:
        """The calibrated posteriors."""
        name = f"multicalibrated {fingerprint_of([self.shifts_, self._tree])}"
        return Columns(name, self._calibrated)

    def _from_means(self, means: Floats, sizes: Ints) -> Floats:  # noqa: ARG002
        return means


def _memberships(groups: Array | None, n_items: int) -> Floats:
    """Members of each group that is large enough, shape (n_items, n_groups)."""
    if groups is None:
        return np.empty((n_items, 0))
    _, group_of, counts = np.unique(groups, return_inverse=True, return_counts=True)
    largest = np.argsort(-counts, kind="stable")[:_SEEN]
    kept = largest[counts[largest] >= _LEAST]
    return np.asarray(group_of[:, np.newaxis] == kept, dtype=np.float64)


def _shift(posteriors: Floats, factors: Floats) -> Floats:
    """Posteriors whose odds are multiplied by factors; 0 and 1 stay what they are."""
    raised = posteriors * factors
    return np.asarray(raised / (1.0 - posteriors + raised))


def _shifts(
    posteriors: Floats, Y: LabelMatrix, leaf: Ints, n_leaves: int, penalty: float
) -> Floats:
    """Shifts of log-odds, shape (n_leaves, n_labels), by penalised maximum likelihood.

    Newton's method for all leaves and labels at once: in each leaf, ``sum (y - p) = penalty *
    shift`` with the shifted posteriors p.
    """
    shifts = np.zeros((n_leaves, Y.shape[1]))
    members = sp.csr_array(
        (np.ones(len(leaf)), (leaf, np.arange(len(leaf)))), shape=(n_leaves, len(leaf))
    )
    positives = members @ Y.astype(np.float64)
    for _ in range(_SHIFT_ROUNDS):
        shifted = _shift(posteriors, np.exp(shifts)[leaf])
        slope = positives - members @ shifted - penalty * shifts
        curvature = members @ (shifted * (1.0 - shifted)) + penalty
        step = np.clip(slope / curvature, -_LONGEST, _LONGEST)
        shifts += step
        if np.abs(step).max() < _SHIFT_TOL:
            break
    return shifts
