"""Scenario mixture: ask which change of the labels explains a sample, and what follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.base import clone

from prevalens.aggregators.base import Aggregator, never_certain
from prevalens.aggregators.counting import medians
from prevalens.aggregators.mixture.calibration import Bands, Multiples
from prevalens.aggregators.mixture.scenarios import Moments, Posterior, ScenarioModel
from prevalens.estimate import Intervals
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.types import Array, Floats, Ints, LabelMatrix
from prevalens.validation import InputError, check_choice
from prevalens.validation_shifts import (
    ShiftedSplit,
    half_splits,
    losses,
    shifted_splits,
    total_loss,
)

#: Shrinkages that are tried, around a middling one first.
_SHRINKAGES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
#: Evidence weights that are weighed against each other for every sample.
_EVIDENCE_WEIGHTS = (1.0, 0.5, 0.25, 0.1)
#: Standard deviation of the drift of items, as a share of an item's own.
_DRIFTS = (0.07,)
#: Prior weights of no move, one label, many labels and drifting items. Most batches have moved
#: little, and what their mean score moves by is then noise of the classifier.
_PRIOR = (4.0, 1.0, 0.2, 1.0)
#: With fewer items the validation is too small to choose by: the shrinkage is the middling one.
_FEW = 1000
_MIDDLING = 0.1
#: Intervals are calibrated apart for this many classes of samples, by how far they seem to have
#: moved. Weights of the families there, 1 unless said: tilts are the rarest among samples that
#: moved far, and the hardest.
_CLASSES = 6
_WEIGHTS = {"label-tilt": 3.0, "natural": 1.5}
#: The same for bands, which miss if one label does.
_BAND_CLASSES = 12
_BAND_WEIGHTS = {"label-tilt": 5.0, "natural": 5.0}


class ScenarioMixture(Aggregator):
    """Weigh the ways in which the labels may have moved by how well they explain a sample.

    Four sorts of scenario are weighed: nothing moved; one label moved to a prevalence
    between 0 and 1 (as ML-APP does it); many labels moved a little (an exponential tilt of the
    labels); the items drifted, and the labels with them (covariate shift). Each says what mean
    score and what prevalences to expect; a sample's own mean score says how likely each is. The
    answer is the mean over the scenarios, or a median.

    Parameters
    ----------
    shrinkage : float, optional
        Share of the mean variance that is added to the variance of every score direction. Default:
        chosen by validation; 0.1 with fewer than 1,000 items.
    evidence_weight : float, optional
        Factor on the number of items that a sample counts for in the evidence, 1 for full trust in
        the Gaussian model. Default: several are weighed, for each sample by how well it is
        explained, so that a sample unlike the model is trusted less.
    point : {"median", "mean"}
        "median" answers the median count that the expected prevalence leads one to expect in a
        sample of that size, divided by the size: it has the lower absolute error, above all for
        rare labels. "mean" answers the expected prevalence: estimates of several batches
        may be added up.
    scales : sequence of float
        Standard deviations of the labels' log-weights in the many-label scenarios.
    prior : sequence of four floats
        Prior weights of no move, one label, many labels, drifting items.
    random_state : int

    Attributes
    ----------
    shrinkage_ : float
    evidence_weights_ : tuple of float
    loss_ : float
        Mean absolute error in validation as a ratio to the training prevalence's; NaN without.
    losses_ : dict of str to float
        `loss_` by family of shift.
    moments_ : Moments
        Means and covariances of the labelled scores and of the labels.

    Notes
    -----
    Validation: the labelled items are cut into parts; samples are drawn from each part under
    four families of shift (ML-APP, none, exponential tilt, random weights on label sets) and
    estimated with what was learnt from the other parts. The test data play no role.

    Fitting costs O(n d (d + L) + d^3) for d scores and L labels, five to ten times with
    validation; aggregating O(d + L) products of (n_samples, L) matrices.

    It fails where the items of a label look different in the batch than in training, and trusts
    means: two batches with the same mean score get the same answer. The derivation is in
    ``docs/mixture.md``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Y = (rng.random((1200, 2)) < 0.4).astype(int)
    >>> scores = Scores(0.25 + 0.5 * Y, kind="posteriors")  # right, but too timid
    >>> mixture = ScenarioMixture(random_state=0).fit(scores, Y)
    >>> ones = Samples.from_indices([np.flatnonzero(Y[:, 0])], n_items=1200)
    >>> mixture.aggregate(scores, ones).round(1)
    array([[1. , 0.4]])
    """

    code = "mixture"
    consumes: Kind = "posteriors"
    joint = True
    has_intervals = True

    def __init__(
        self,
        shrinkage: float | None = None,
        evidence_weight: float | None = None,
        *,
        point: str = "median",
        scales: Sequence[float] = (0.25, 0.5, 1.0, 2.0),
        prior: Sequence[float] = _PRIOR,
        random_state: int = 0,
    ) -> None:
        self.shrinkage = shrinkage
        self.evidence_weight = evidence_weight
        self.point = point
        self.scales = scales
        self.prior = prior
        self.random_state = random_state

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        self._fit_grouped(scores, Y, None)

    def _fit_grouped(self, scores: Scores, Y: LabelMatrix, groups: Array | None) -> None:
        values, state = scores.evidence, self.random_state
        self._choose(values, Y, groups)
        self.moments_ = Moments.of(values, Y)
        splits = shifted_splits(Y, random_state=state, stratified=False, groups=groups)
        posteriors = self._validated(values, Y, splits)
        self.losses_ = losses(
            splits, lambda split: self._at_size(posteriors[split].mean, split.size)
        )
        self.loss_ = total_loss(self.losses_) if splits else float("nan")
        halves = half_splits(Y, random_state=state, groups=groups)
        self._calibrate(posteriors, self._validated(values, Y, halves))

    def validation_losses(
        self, scores: Scores, Y: LabelMatrix, *, groups: Array | None = None
    ) -> dict[str, float]:
        """The `losses_` that `fit` would find, without its intervals; nothing is kept.

        To choose by: a fit spends most of its time on intervals.
        """
        twin, values, state = clone(self), scores.evidence, self.random_state
        twin._choose(values, Y, groups)
        splits = shifted_splits(Y, random_state=state, stratified=False, groups=groups)
        return twin._losses(SplitCache(values, Y, splits), twin.shrinkage_)

    def _choose(self, values: Array, Y: LabelMatrix, groups: Array | None) -> None:
        """Evidence weights and shrinkage: those given, or those found best."""
        self._check_parameters()
        self.evidence_weights_ = (
            _EVIDENCE_WEIGHTS if self.evidence_weight is None else (float(self.evidence_weight),)
        )
        self.shrinkage_ = self.shrinkage or _MIDDLING
        # A validation of few items is too small to choose by.
        if self.shrinkage is None and len(Y) >= _FEW:
            splits = shifted_splits(Y, random_state=self.random_state, groups=groups)
            self.shrinkage_ = self._shrunk(SplitCache(values, Y, splits))

    def _check_parameters(self) -> None:
        check_choice(self.point, "point", ("median", "mean"))
        for name in ("shrinkage", "evidence_weight"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} must be above 0, or None to have it chosen; got {value}.")
        prior = self.prior
        if len(prior) != 4 or min(prior) < 0 or sum(prior) <= 0:
            raise InputError(
                f"prior must be four weights of at least 0, for no move, one label, many labels "
                f"and drifting items; got {prior!r}."
            )
        if not self.scales or min(self.scales) <= 0:
            raise InputError(f"scales must be numbers above 0; got {self.scales!r}.")

    def _model(self, moments: Moments, shrinkage: float) -> ScenarioModel:
        scales = tuple(float(scale) for scale in self.scales)
        none, one, many, drift = (float(weight) for weight in self.prior)
        return ScenarioModel(
            moments, shrinkage, self.evidence_weights_, scales, (none, one, many, drift), _DRIFTS
        )

    def _shrunk(self, cache: SplitCache) -> float:
        """Descend over the shrinkage."""
        tried: dict[float, float] = {}

        def loss(shrinkage: float) -> float:
            if shrinkage not in tried:
                tried[shrinkage] = total_loss(self._losses(cache, shrinkage))
            return tried[shrinkage]

        best = _MIDDLING
        for step in (2, 1):
            best = min(_neighbours(_SHRINKAGES, best, step), key=loss)
        return best

    def _losses(self, cache: SplitCache, shrinkage: float) -> dict[str, float]:
        def estimate(split: ShiftedSplit) -> Floats:
            model = cache.model(split, shrinkage, self._model)
            return self._at_size(model.posterior(cache.means(split), split.size).mean, split.size)

        return losses(cache.splits, estimate)

    def _at_size(self, mean: Floats, size: int) -> Floats:
        return self._point(mean, np.full(len(mean), size))

    def _point(self, mean: Floats, sizes: Ints) -> Floats:
        return medians(mean, sizes) if self.point == "median" else mean

    def _calibrate(
        self, validated: dict[ShiftedSplit, Posterior], halves: dict[ShiftedSplit, Posterior]
    ) -> None:
        """Remember how far the truth lay from the posterior mean, in posterior deviations."""
        self.misfits_ = np.zeros(0)
        self.multiples_, self.bands_ = Multiples.gaussian(), Bands.gaussian(self.n_labels_)
        if validated:
            self.misfits_ = np.sort(np.concatenate([p.misfit for p in validated.values()]))
            self.multiples_ = Multiples.of(validated, _CLASSES, _WEIGHTS)
            self.bands_ = Bands.of(halves, _BAND_CLASSES, _BAND_WEIGHTS)

    def _validated(
        self, values: Array, Y: LabelMatrix, splits: Sequence[ShiftedSplit]
    ) -> dict[ShiftedSplit, Posterior]:
        cache = SplitCache(values, Y, splits)
        return {
            split: cache.model(split, self.shrinkage_, self._model).posterior(
                cache.means(split), split.size, variance=True
            )
            for split in splits
        }

    def _aggregate(self, scores: Scores, samples: Samples) -> Floats:
        posterior, sizes = self._posterior(scores, samples, variance=False)
        return self._point(posterior.mean, sizes)

    def _posterior(
        self, scores: Scores, samples: Samples, *, variance: bool
    ) -> tuple[Posterior, Ints]:
        means, sizes = samples.mean(scores.evidence), samples.sizes
        model = self._model(self.moments_, self.shrinkage_)
        n_labels = self.n_labels_
        whole = Posterior(
            np.empty((len(means), n_labels)),
            np.empty((len(means), n_labels if variance else 0)),
            np.empty(len(means)),
            np.empty((len(means), model.n_scenarios)),
        )
        for size in np.unique(sizes):
            rows = np.flatnonzero(sizes == size)
            part = model.posterior(means[rows], float(size), variance=variance)
            for target, source in zip(whole, part, strict=True):
                target[rows] = source
        return whole, sizes

    def estimate(
        self, scores: Scores, samples: Samples, level: float | None = None
    ) -> tuple[Floats, Intervals | None]:
        """Estimates, intervals per label, bands for all labels of a sample, a goodness of fit.

        Parameters
        ----------
        scores : Scores
        samples : Samples
        level : float, optional
            Such as 0.9; None asks for no intervals.

        Notes
        -----
        The half-width is a multiple of the posterior's standard deviation. The multiple is the
        one that would have covered in validation, for samples that seem to have moved about as
        far and labels of about the same expected number of positives; for bands, the one at which
        all labels of a sample would have been covered at once. The p-value is the
        share of validated samples whose mean score lay at least as far from its best scenario.
        """
        if level is None:
            return self.aggregate(scores, samples), None
        self._check_input(scores, samples)
        posterior, sizes = self._posterior(scores, samples, variance=True)
        known = posterior, sizes, self.moments_.prevalence, level
        half = self.multiples_.half_widths(*known)
        band = np.maximum(self.bands_.half_widths(*known), half)
        point = np.clip(self._point(posterior.mean, sizes), 0.0, 1.0)
        lower, upper = _around(posterior.mean, half, point)
        band_lower, band_upper = _around(posterior.mean, band, point)
        p_value = self._p_value(posterior.misfit)
        intervals = Intervals(lower, upper, band_lower, band_upper, p_value)
        return point, never_certain(intervals, point, samples)

    def _p_value(self, misfit: Floats) -> Floats | None:
        if not len(self.misfits_):
            return None
        as_far = len(self.misfits_) - np.searchsorted(self.misfits_, misfit, side="left")
        return (1 + as_far) / (1 + len(self.misfits_))


class SplitCache:
    """Mean scores of the splits, and the moments and models of their folds, computed once."""

    def __init__(self, values: Array, Y: LabelMatrix, splits: Sequence[ShiftedSplit]) -> None:
        self._values, self._Y = values, Y
        self.splits = splits
        self._moments: dict[int, Moments] = {}
        self._model: tuple[tuple[int, float], ScenarioModel] | None = None
        self._means = {split: split.samples.mean(values[split.held]) for split in splits}

    def model(
        self, split: ShiftedSplit, shrinkage: float, make: Callable[[Moments, float], ScenarioModel]
    ) -> ScenarioModel:
        """The model of a split's fold; consecutive splits of one fold share it."""
        key = split.fold, shrinkage
        if self._model is None or self._model[0] != key:
            self._model = key, make(self._moments_of(split), shrinkage)
        return self._model[1]

    def _moments_of(self, split: ShiftedSplit) -> Moments:
        if split.fold not in self._moments:
            self._moments[split.fold] = Moments.of(self._values[split.rest], self._Y[split.rest])
        return self._moments[split.fold]

    def means(self, split: ShiftedSplit) -> Floats:
        """Mean scores of a split's samples."""
        return self._means[split]


def _neighbours(grid: Sequence[float], value: float, step: int) -> list[float]:
    at = int(np.argmin(np.abs(np.log(np.array(grid) / value))))
    return [grid[i] for i in (at - step, at, at + step) if 0 <= i < len(grid)]


def _around(mean: Floats, half: Floats, point: Floats) -> tuple[Floats, Floats]:
    """An interval that holds the point; from 0 on where the likeliest count is 0."""
    lower = np.where(point == 0, 0.0, np.minimum(mean - half, point))
    return np.clip(lower, 0, 1), np.clip(np.maximum(mean + half, point), 0, 1)
