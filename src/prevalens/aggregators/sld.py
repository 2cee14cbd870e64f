"""SLD: the prevalence under which the posteriors of a sample are most likely."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from prevalens.aggregators import sld_blocked, sld_compiled
from prevalens.aggregators.base import FEW, Aggregator, label_chunks, per_label
from prevalens.aggregators.sld_blocked import Rule, poles
from prevalens.batches import FINE, Statistic
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.types import Array, Floats, Ints, LabelMatrix
from prevalens.validation import InputError, PrevalensWarning, check_choice, check_int

METHODS = ("exact", "em")
#: Default tolerance of each method. EM: as in QuaPy.
_TOL = {"exact": 1e-9, "em": 1e-4}


class MaximumLikelihood(Aggregator):
    """Prevalences under which the items of a sample are most likely, label by label.

    A subclass sets `prior_` and `_rule` in `_fit`, and may write `_calibrated`. Labels whose prior
    is 0 or 1 are estimated by their mean posterior.
    """

    consumes: Kind = "posteriors"
    joint = False
    least_positives = FEW
    prior_: Floats
    _rule: Rule

    def _calibrated(self, posteriors: Floats, labels: Ints) -> Floats:  # noqa: ARG002
        """Posteriors of some labels under `prior_`; input and output (len(labels), n_items)."""
        return posteriors

    def _aggregate(self, scores: Scores, samples: Samples) -> Floats:
        engine = sld_compiled if sld_compiled.available() else sld_blocked
        estimates = np.empty((len(samples), self.n_labels_))
        odds = (self.prior_ > 0) & (self.prior_ < 1)
        estimates[:, ~odds] = samples.mean(scores.values[:, ~odds])
        unfinished = 0
        for labels in label_chunks(np.flatnonzero(odds), scores.n_items):
            prior = self.prior_[labels]
            table = poles(self._calibrated(_rows(scores, labels), labels), prior)
            estimates[:, labels], left = engine.maximise(table, prior, samples, self._rule)
            unfinished += left
        self._warn(unfinished, estimates.size)
        return estimates

    @property
    def statistic(self) -> Statistic:
        """Histograms of the posteriors."""
        return FINE

    def _from_means(self, means: Floats, sizes: Ints) -> Floats:
        shares, posteriors = FINE.read(means, self.n_labels_)
        estimates = np.asarray((shares * posteriors).sum(axis=2))
        odds = np.flatnonzero((self.prior_ > 0) & (self.prior_ < 1))
        table = posteriors[:, odds].swapaxes(0, 1).reshape(len(odds), -1)
        prior = self.prior_[odds]
        weights = shares[:, odds].swapaxes(0, 1).reshape(len(odds), -1)
        estimates[:, odds], unfinished = sld_blocked.maximise_weighted(
            poles(self._calibrated(table, odds), prior), weights, prior, len(sizes), self._rule
        )
        self._warn(unfinished, estimates.size)
        return estimates

    def _warn(self, unfinished: int, n_estimates: int) -> None:
        if unfinished:
            warnings.warn(
                f"{type(self).__name__} had not settled after max_iter={self._rule.max_iter} "
                f"rounds in {unfinished} of {n_estimates} estimates; raise max_iter, or use "
                'method="exact".',
                PrevalensWarning,
                stacklevel=4,
            )


def _rows(scores: Scores, labels: Array) -> Floats:
    """The posteriors of some labels, shape (len(labels), n_items)."""
    return np.ascontiguousarray(scores.values[:, labels].T, dtype=np.float64)


class SLD(MaximumLikelihood):
    """Saerens, Latinne and Decaestecker's prior adjustment (also known as EMQ, or MLLS).

    Parameters
    ----------
    calibrate : {None, "platt"}
        Whether to calibrate the posteriors of each label on the labelled scores first, by a line
        through their log-odds. For a single label that is the bias-corrected temperature
        scaling (BCTS) of Alexandari et al. A label whose line does not rise by 4 standard
        errors is estimated by its prior.
    prior : float, array of float of shape (n_labels,), or None
        The prevalence the posteriors belong to. None: the prevalence of the labelled scores,
        or the mean of the calibrated ones. Posteriors of a classifier that was trained with
        balanced class weights belong to 0.5.
    method : {"exact", "em"}
        "exact" finds the maximum of the likelihood in a handful of passes; "em" takes the steps
        of the EM algorithm, which converge to the same point, and stops when they are small,
        often well before it.
    tol : float or None
        Stop at a move below this. None: 1e-9 for "exact", 1e-4 for "em", which also
        takes at least 12 steps (QuaPy's rule).
    max_iter : int
        Maximum number of passes.

    Attributes
    ----------
    prior_ : array of float, shape (n_labels,)
        The prevalences that posteriors are divided by.
    slope_, intercept_ : array of float, shape (n_labels,)
        The calibration of each label, with `calibrate` only.

    Notes
    -----
    The exact method finds the zero of the derivative of the log-likelihood. The derivative is the
    sum of the evidence for the label and of the evidence against it; each of the two is replaced
    by the hyperbola with the same value and derivative, and the crossing of the hyperbolas is the
    next estimate, kept within a bracket. The likelihood is concave, so there is one maximum,
    possibly at 0 or 1, and EM converges to it from every start. If no item holds evidence, the
    estimate stays at the prior. Each estimate stops separately.

    O(passes x n_indices x n_labels); usually 4 passes for "exact", 12 to 200 for "em".
    Compiled and in ``NUMBA_NUM_THREADS`` threads with the extra ``fast``
    (``pip install "prevalens[fast]"``), in blocks of numpy without it; memory beyond the
    result is bounded.

    A label that is constant in the labelled scores has no prior odds; unless `prior` gives
    them, its estimate is the mean posterior. Fails where posteriors are badly calibrated, most
    of all overconfident: an item with posterior 0 or 1 outweighs all others.

    References
    ----------
    Saerens, Latinne, Decaestecker, "Adjusting the outputs of a classifier to new a priori
    probabilities: a simple procedure", Neural Computation 14, 2002.
    Alexandari, Kundaje, Shrikumar, "Maximum likelihood with bias-corrected calibration is
    hard-to-beat at label shift adaptation", ICML 2020.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> posteriors = Scores([[0.9], [0.8], [0.3], [0.2]], kind="posteriors")
    >>> sld = SLD(prior=0.5).fit(posteriors, [[1], [1], [0], [0]])
    >>> samples = Samples.from_indices([[0, 1, 2, 3], [0, 1, 1, 2]], n_items=4)
    >>> sld.aggregate(posteriors, samples).round(3).tolist()
    [[0.638], [1.0]]
    """

    code = "sld"

    def __init__(
        self,
        calibrate: str | None = None,
        prior: float | npt.ArrayLike | None = None,
        *,
        method: str = "exact",
        tol: float | None = None,
        max_iter: int = 1000,
    ) -> None:
        self.calibrate = calibrate
        self.prior = prior
        self.method = method
        self.tol = tol
        self.max_iter = max_iter

    @property
    def needs_labelled_scores(self) -> bool:  # type: ignore[override]
        """Only calibration looks at the labelled scores; the prior comes from Y alone."""
        return self.calibrate is not None

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        self._rule = self._check_rule()
        self.prior_ = self.prevalence_.copy()
        if self.calibrate is not None:
            check_choice(self.calibrate, "calibrate", ("platt",))
            self._fit_calibration(scores, Y)
        if self.prior is not None:
            self.prior_ = per_label(self.prior, "prior", self.n_labels_, open_ends=True)

    def _fit_calibration(self, scores: Scores, Y: LabelMatrix) -> None:
        """Fit the lines; the prior becomes the mean of the calibrated posteriors."""
        self.slope_, self.intercept_ = np.ones(self.n_labels_), np.zeros(self.n_labels_)
        varies = (self.prevalence_ > 0) & (self.prevalence_ < 1)
        for labels in label_chunks(np.flatnonzero(varies), scores.n_items):
            lines = fit_platt(scores.values[:, labels], Y[:, labels])
            self.slope_[labels], self.intercept_[labels] = lines
            self.prior_[labels] = self._calibrated(_rows(scores, labels), labels).mean(axis=1)

    def _check_rule(self) -> Rule:
        method = check_choice(self.method, "method", METHODS)
        tol = _TOL[method] if self.tol is None else self.tol
        if not (isinstance(tol, (int, float)) and tol > 0):
            raise InputError(f"tol must be a positive number or None; got {tol!r}.")
        return Rule(method == "exact", float(tol), check_int(self.max_iter, "max_iter", minimum=1))

    def _calibrated(self, posteriors: Floats, labels: Ints) -> Floats:
        if self.calibrate is None:
            return posteriors
        return apply_platt(posteriors, self.slope_[labels], self.intercept_[labels])


#: Posteriors of exactly 0 and 1 have no log-odds; they are moved inside by this much.
_PLATT_EDGE = 1e-12
#: Pull of the slope towards 1; decides only where the log-odds do not vary.
_PLATT_RIDGE = 1e-6
_PLATT_ROUNDS = 100
#: Standard errors by which a slope must exceed 0. Of 960,000 uninformative labels
#: (five shapes of scores, 2 to 50 positives among 30 or 300 negatives) two passed.
_PLATT_GUARD = 4.0


def _log_odds(posteriors: Array) -> Floats:
    """Log-odds in float64, finite also for posteriors of 0 and 1."""
    return np.asarray(logit(np.clip(posteriors.astype(np.float64), _PLATT_EDGE, 1.0 - _PLATT_EDGE)))


def apply_platt(posteriors: Array, slope: Floats, intercept: Floats) -> Floats:
    """Calibrate posteriors, shape (n_labels, n_items), by one line per row."""
    line = slope[:, np.newaxis] * _log_odds(posteriors) + intercept[:, np.newaxis]
    return np.asarray(expit(line))


def fit_platt(posteriors: Array, Y: LabelMatrix) -> tuple[Floats, Floats]:
    """Fit slope and intercept of every label by maximum likelihood.

    Parameters
    ----------
    posteriors : array, shape (n_items, n_labels)
    Y : 0/1 array, shape (n_items, n_labels)

    Returns
    -------
    slope, intercept : arrays of float64, shape (n_labels,)
        A label whose slope is not significantly positive gets slope 0 and the intercept of its
        prevalence: its posteriors cannot be distinguished from noise.
    """
    x = _log_odds(posteriors)
    # Platt's targets: 0 and 1 moved inside by as much as the number of items justifies.
    positives = Y.sum(axis=0, dtype=np.float64)
    high, low = (positives + 1.0) / (positives + 2.0), 1.0 / (len(Y) - positives + 2.0)
    targets = np.where(Y == 1, high, low)
    slope, intercept = _platt_newton(x, targets)
    h11, h10, h00 = _curvature(x, expit(slope * x + intercept))
    useless = slope <= _PLATT_GUARD * np.sqrt(h00 / (h11 * h00 - h10 * h10))
    slope[useless] = 0.0
    intercept[useless] = logit(targets.mean(axis=0))[useless]
    return slope, intercept


def _platt_loss(x: Floats, targets: Floats, slope: Floats, intercept: Floats) -> Floats:
    z = slope * x + intercept
    loss: Floats = np.sum(np.logaddexp(0.0, z) - targets * z, axis=0)
    return loss + 0.5 * _PLATT_RIDGE * (slope - 1.0) ** 2


def _platt_newton(x: Floats, targets: Floats) -> tuple[Floats, Floats]:
    """Newton's method with step halving, for all labels at once."""
    slope, intercept = np.ones(x.shape[1]), np.zeros(x.shape[1])
    loss = _platt_loss(x, targets, slope, intercept)
    for _ in range(_PLATT_ROUNDS):
        rise, shift = _platt_step(x, targets, slope, intercept)
        length = np.ones_like(slope)
        trial = _platt_loss(x, targets, slope + rise, intercept + shift)
        while np.any(worse := (trial > loss + 1e-12 * np.abs(loss)) & (length > 1e-8)):
            length[worse] *= 0.5
            trial = _platt_loss(x, targets, slope + length * rise, intercept + length * shift)
        slope, intercept, loss = slope + length * rise, intercept + length * shift, trial
        if np.max(np.abs(rise) + np.abs(shift)) < 1e-10:
            break
    return slope, intercept


def _platt_step(
    x: Floats, targets: Floats, slope: Floats, intercept: Floats
) -> tuple[Floats, Floats]:
    """Solve the 2x2 Newton system of every label in closed form."""
    p = expit(slope * x + intercept)
    residual = p - targets
    g1 = np.sum(residual * x, axis=0) + _PLATT_RIDGE * (slope - 1.0)
    g0 = np.sum(residual, axis=0)
    h11, h10, h00 = _curvature(x, p)
    determinant = h11 * h00 - h10 * h10
    return (h10 * g0 - h00 * g1) / determinant, (h10 * g1 - h11 * g0) / determinant


def _curvature(x: Floats, p: Floats) -> tuple[Floats, Floats, Floats]:
    """Second derivatives of the loss: slope twice, slope and intercept, intercept twice."""
    weight = p * (1.0 - p)
    h11: Floats = np.sum(weight * x * x, axis=0)
    h10: Floats = np.sum(weight * x, axis=0)
    h00: Floats = np.sum(weight, axis=0)
    return h11 + _PLATT_RIDGE, h10, h00 + _PLATT_RIDGE
