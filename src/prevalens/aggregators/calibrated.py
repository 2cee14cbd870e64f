"""Counting after isotonic calibration: PCC-PAV and PCC-EPAV.

Each label's posteriors are replaced by the best nondecreasing function of them that
averages to the training prevalence, and then averaged over the sample.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import isotonic_regression

from prevalens.aggregators.base import Aggregator, label_chunks, per_label
from prevalens.batches import Columns, Statistic, fingerprint_of
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.types import Array, Floats, Ints, LabelMatrix
from prevalens.validation import InputError, PrevalensError, check_choice

try:
    import clarabel
except ImportError:
    clarabel = None

SOLVERS = ("shift", "qp")
#: Tolerance of residuals and gap of the quadratic program.
_QP_TOL = 1e-10
_QP_ROUNDS = 500


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
