"""SLD: the prevalence under which the posteriors of a sample are most likely."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from prevalens.aggregators import sld_blocked, sld_compiled
from prevalens.aggregators.base import FEW, Aggregator, label_chunks, per_label
from prevalens.aggregators.sld_blocked import Rule, poles
from prevalens.batches import FINE, Statistic
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.solvers.scaling import FORMS, apply_scaling, fit_scaling
from prevalens.types import Array, Floats, Ints, LabelMatrix
from prevalens.validation import InputError, PrevalensWarning, check_choice, check_int

METHODS = ("exact", "em")
#: The prior that ignores class weights, as its name.
TRAINING = "training"
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
    calibrate : {None, "platt", "vector"}
        Whether to calibrate the posteriors of each label on the labelled scores first. "platt" is a
        line through their log-odds: for a single label the bias-corrected temperature scaling
        (BCTS) of Alexandari et al. "vector" has separate slopes for log p and -log(1 - p): their
        vector scaling. A label whose line does not rise by 4 standard errors is estimated by
        its prior.
    prior : float, array of float of shape (n_labels,), "training" or None
        The prevalence the posteriors belong to. None: the prevalence of the labelled scores, or
        the mean of the calibrated ones; if the classifier has class weights and posteriors are not
        calibrated, the prevalence under these weights (0.5 if they are balanced). "training": the
        prevalence of the labelled scores, whatever the weights.
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
    slope_ : array of float, shape (1, n_labels) or (2, n_labels)
        The calibration of each label, with `calibrate` only: one slope, or one for log p and
        one for -log(1 - p).
    intercept_ : array of float, shape (n_labels,)

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
        prior: float | npt.ArrayLike | str | None = None,
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
        named = isinstance(self.prior, str) and check_choice(self.prior, "prior", (TRAINING,))
        self.prior_ = (self.prevalence_ if named or scores.prior is None else scores.prior).copy()
        if self.calibrate is not None:
            check_choice(self.calibrate, "calibrate", tuple(FORMS))
            self._fit_calibration(scores, Y)
        if self.prior is not None and not named:
            self.prior_ = per_label(self.prior, "prior", self.n_labels_, open_ends=True)

    def _fit_calibration(self, scores: Scores, Y: LabelMatrix) -> None:
        """Fit the lines; the prior becomes the mean of the calibrated posteriors."""
        form = FORMS[str(self.calibrate)]
        self.slope_ = np.ones((form, self.n_labels_))
        self.intercept_ = np.zeros(self.n_labels_)
        varies = (self.prevalence_ > 0) & (self.prevalence_ < 1)
        for labels in label_chunks(np.flatnonzero(varies), scores.n_items):
            lines = fit_scaling(scores.values[:, labels], Y[:, labels], form)
            self.slope_[:, labels], self.intercept_[labels] = lines
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
        return apply_scaling(posteriors, self.slope_[:, labels], self.intercept_[labels])
