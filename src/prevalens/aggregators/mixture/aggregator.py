"""Scenario mixture: estimate prevalences under the changes of the labels that explain a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from sklearn.base import clone

from prevalens.aggregators.base import Aggregator, never_certain
from prevalens.aggregators.counting import medians
from prevalens.aggregators.mixture.calibration import Bands, BySize, Ends, Multiples
from prevalens.aggregators.mixture.scenarios import Moments, Posterior, ScenarioModel
from prevalens.estimate import Intervals
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.types import Array, Floats, Ints, LabelMatrix
from prevalens.validation import InputError, check_choice
from prevalens.validation_shifts import (
    SIZE,
    SIZES,
    ShiftedSplit,
    half_splits,
    losses,
    shifted_splits,
    total_loss,
)

#: Shrinkages that are tried, the default one first.
_SHRINKAGES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
#: Default evidence weights; every sample weights them by its evidence.
_EVIDENCE_WEIGHTS = (1.0, 0.5, 0.25, 0.1)
#: Standard deviation of the drift of items, as a share of an item's own.
_DRIFTS = (0.07,)
#: Prior weights of no move, one label, many labels and drifting items. Most batches have moved
#: little, and the change of their mean score is then noise of the classifier.
_PRIOR = (4.0, 1.0, 2.0, 1.0)
#: With fewer items the validation is too small to choose by: the shrinkage is the default one.
_FEW = 1000
_DEFAULT_SHRINKAGE = 0.1
#: Intervals are calibrated separately for this many classes of samples, by how far they seem to
#: have moved. Weights of the families in the calibration, 1 unless listed: tilts are the rarest
#: among samples that moved far, and have the largest errors.
_CLASSES = 6
_WEIGHTS = {"label-tilt": 3.0, "natural": 1.5}
#: Validation samples per family and size, over all folds, in units of three.
_SAMPLES = 75
#: The same for bands, which miss the truth if a single label does.
_BAND_CLASSES = 12
_BAND_WEIGHTS = {"label-tilt": 5.0, "natural": 5.0}


class ScenarioMixture(Aggregator):
    """Average over scenarios of shift, each weighted by how well it explains a sample.

    There are four kinds of scenario: no shift; one label moved to a prevalence between 0 and 1 (as
    in ML-APP); many labels moved a little (an exponential tilt of the labels); the items drifted,
    and the labels with them (covariate shift). Each predicts a mean score and prevalences; the
    mean score of the sample gives the likelihood of each. The estimate is the mean over the
    scenarios, or a median.

    Parameters
    ----------
    shrinkage : float, optional
        Share of the mean variance that is added to the variance of every score direction. Default:
        chosen by validation; 0.1 with fewer than 1,000 items.
    evidence_weight : float, optional
        Factor on the number of items that a sample counts for in the evidence; 1 trusts the
        Gaussian model fully. Default: several factors, each weighted by how well it explains
        the sample, so that a sample unlike the model counts for less.
    point : {"median", "mean"}
        "median" estimates the median of a binomial count with the expected prevalence as its
        probability, divided by the sample size: it has the lower absolute error, above all for
        rare labels. "mean" estimates the expected prevalence: estimates of several batches
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
    estimated with what was learnt from the other parts. Test data are not used.

    Fitting costs O(n d (d + L) + d^3) for d scores and L labels, five to ten times with
    validation; aggregating O(d + L) products of (n_samples, L) matrices.

    It fails where the items of a label look different in the batch than in training. It uses mean
    scores only: two batches with the same mean score get the same estimate. The derivation is in
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

    def _fit_grouped(self, scores: Scores, Y: LabelMatrix, groups: Array | None) -> None:
        values, state = scores.evidence, self.random_state
        self._choose(values, Y, groups)
        self.moments_ = Moments.of(values, Y)
        splits = shifted_splits(
            Y, random_state=state, n_samples=_SAMPLES, stratified=False, groups=groups, sizes=SIZES
        )
        posteriors = self._validated(values, Y, splits)
        usual = _usual(splits)
        self.losses_ = losses(usual, lambda s: self._point(posteriors[s].mean, s.samples.sizes))
        self.loss_ = total_loss(self.losses_) if usual else float("nan")
        for_bands = half_splits(Y, random_state=state, groups=groups, sizes=SIZES)
        self._calibrate(posteriors, self._validated(values, Y, for_bands))

    def validation_losses(
        self, scores: Scores, Y: LabelMatrix, *, groups: Array | None = None
    ) -> dict[str, float]:
        """Return the `losses_` that `fit` would compute; the aggregator stays as it is.

        It skips the intervals, on which a fit spends most of its time: use it to compare methods.
        """
        twin, values, state = clone(self), scores.evidence, self.random_state
        twin._choose(values, Y, groups)
        splits = shifted_splits(Y, random_state=state, stratified=False, groups=groups)
        return twin._losses(SplitCache(values, Y, splits), twin.shrinkage_)

    def _choose(self, values: Array, Y: LabelMatrix, groups: Array | None) -> None:
        """Set evidence weights and shrinkage: the given ones, or the best in validation."""
        self._check_parameters()
        self.evidence_weights_ = (
            _EVIDENCE_WEIGHTS if self.evidence_weight is None else (float(self.evidence_weight),)
        )
        self.shrinkage_ = self.shrinkage or _DEFAULT_SHRINKAGE
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
        weights = self.evidence_weights_
        return ScenarioModel(moments, shrinkage, weights, scales, tuple(self.prior), _DRIFTS)

    def _shrunk(self, splits: SplitCache) -> float:
        """Search the grid of shrinkages by coordinate steps of two, then of one."""

        @cache
        def loss(shrinkage: float) -> float:
            return total_loss(self._losses(splits, shrinkage))

        best = _SHRINKAGES.index(_DEFAULT_SHRINKAGE)
        for step in (2, 1):
            tried = (i for i in (best - step, best, best + step) if 0 <= i < len(_SHRINKAGES))
            best = min(tried, key=lambda i: loss(_SHRINKAGES[i]))
        return _SHRINKAGES[best]

    def _losses(self, cache: SplitCache, shrinkage: float) -> dict[str, float]:
        def estimate(split: ShiftedSplit) -> Floats:
            model = cache.model(split, shrinkage, self._model)
            posterior = model.posterior(cache.means[split], split.size)
            return self._point(posterior.mean, split.samples.sizes)

        return losses(cache.splits, estimate)

    def _point(self, mean: Floats, sizes: Ints) -> Floats:
        return medians(mean, sizes) if self.point == "median" else mean

    def _calibrate(
        self, validated: dict[ShiftedSplit, Posterior], for_bands: dict[ShiftedSplit, Posterior]
    ) -> None:
        """Keep how far the truth lay from the posterior mean, in posterior deviations."""
        self.multiples_: Multiples | BySize = Multiples.gaussian()
        self.bands_: Bands | BySize = Bands.gaussian(self.n_labels_)
        if validated:
            self.multiples_ = BySize.of(Multiples, validated, _CLASSES, _WEIGHTS)
            self.bands_ = BySize.of(Bands, for_bands, _BAND_CLASSES, _BAND_WEIGHTS)

    def _validated(
        self, values: Array, Y: LabelMatrix, splits: Sequence[ShiftedSplit]
    ) -> dict[ShiftedSplit, Posterior]:
        cache = SplitCache(values, Y, splits)
        return {
            split: cache.model(split, self.shrinkage_, self._model).posterior(
                cache.means[split], split.size, variance=True
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
        """Return estimates, and their intervals and bands.

        Parameters
        ----------
        scores : Scores
        samples : Samples
        level : float, optional
            Coverage, such as 0.9; None for no intervals.

        Notes
        -----
        The ends lie at multiples of the posterior's standard deviation. The multiples are those
        that would have covered in validation, for samples of about the same size that seem
        to have moved about as far, and labels of about the same move and expected number of
        positives; for bands, those at which all labels of a sample would have been covered at once.
        """
        if level is None:
            return self.aggregate(scores, samples), None
        self._check_input(scores, samples)
        posterior, sizes = self._posterior(scores, samples, variance=True)
        known = posterior, sizes, self.moments_.prevalence, level
        point = np.clip(self._point(posterior.mean, sizes), 0.0, 1.0)
        inner = _around(posterior.mean, self.multiples_.ends(*known), point)
        outer = _around(posterior.mean, self.bands_.ends(*known), point)
        outer = np.minimum(inner[0], outer[0]), np.maximum(inner[1], outer[1])
        return point, never_certain(Intervals(*inner, *outer), point, samples)


class SplitCache:
    """Mean scores of the splits, and the moments and models of their folds, computed once."""

    def __init__(self, values: Array, Y: LabelMatrix, splits: Sequence[ShiftedSplit]) -> None:
        self._values, self._Y = values, Y
        self.splits = splits
        self._moments: dict[int, Moments] = {}
        self._model: tuple[tuple[int, float], ScenarioModel] | None = None
        self.means = {split: split.samples.mean(values[split.held]) for split in splits}

    def model(
        self, split: ShiftedSplit, shrinkage: float, make: Callable[[Moments, float], ScenarioModel]
    ) -> ScenarioModel:
        """Return the model of the split's fold; consecutive splits of a fold share it."""
        if split.fold not in self._moments:
            self._moments[split.fold] = Moments.of(self._values[split.rest], self._Y[split.rest])
        key = split.fold, shrinkage
        if self._model is None or self._model[0] != key:
            self._model = key, make(self._moments[split.fold], shrinkage)
        return self._model[1]


def _usual(splits: Sequence[ShiftedSplit]) -> list[ShiftedSplit]:
    """The splits of the size at which methods are compared, or of the largest size below it."""
    size = max((split.planned for split in splits if split.planned <= SIZE), default=0)
    return [split for split in splits if split.planned == size]


def _around(mean: Floats, ends: Ends, point: Floats) -> tuple[Floats, Floats]:
    """Interval that holds the point; it starts at 0 where the likeliest count is 0."""
    lower = np.where(point == 0, 0.0, np.minimum(mean - ends[0], point))
    return np.clip(lower, 0, 1), np.clip(np.maximum(mean + ends[1], point), 0, 1)
