"""Scenario mixture: estimate prevalences under the changes of the labels that explain a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cache
from itertools import groupby

import numpy as np
from sklearn.base import clone

from prevalens.aggregators.base import Aggregator, never_certain
from prevalens.aggregators.counting import medians
from prevalens.aggregators.mixture.calibration import Bands, BySize, Ends, Multiples
from prevalens.aggregators.mixture.scenarios import Moments, Posterior, ScenarioModel
from prevalens.batches import EVIDENCE, Batches, Statistic
from prevalens.estimate import Intervals
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
_PRIOR = (4.0, 1.0, 0.2, 1.0)
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
    >>> from prevalens.samples import Samples
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
        splits = shifted_splits(
            Y, random_state=state, n_samples=_SAMPLES, groups=groups, sizes=SIZES
        )
        cache = SplitCache(values, Y, splits)
        usual = cache.usual()
        self._choose(usual, len(Y))
        self.moments_ = Moments.of(values, Y)
        posteriors = self._validated(cache)
        self.losses_ = losses(
            usual.splits, lambda s: self._point(posteriors[s].mean, s.samples.sizes)
        )
        self.loss_ = total_loss(self.losses_) if splits else float("nan")
        for_bands = half_splits(Y, random_state=state, groups=groups, sizes=SIZES)
        self._calibrate(posteriors, self._validated(SplitCache(values, Y, for_bands)))

    def validation_losses(
        self, scores: Scores, Y: LabelMatrix, *, splits: Sequence[ShiftedSplit]
    ) -> dict[str, float]:
        """Validation losses by family, on splits of the items; the aggregator stays as it is.

        With ``shifted_splits(Y, random_state=...)`` they are the `losses_` of a
        fit. The intervals are skipped, on which a fit spends most of its time: use it to compare
        methods, on the same splits.
        """
        twin, cache = clone(self), SplitCache(scores.evidence, Y, splits)
        twin._choose(cache, len(Y))
        return twin._losses(cache, twin.shrinkage_)

    def _choose(self, cache: SplitCache, n_items: int) -> None:
        """Set evidence weights and shrinkage: the given ones, or the best in validation."""
        self._check_parameters()
        self.evidence_weights_ = (
            _EVIDENCE_WEIGHTS if self.evidence_weight is None else (float(self.evidence_weight),)
        )
        self.shrinkage_ = self.shrinkage or _DEFAULT_SHRINKAGE
        # A validation of few items is too small to choose by.
        if self.shrinkage is None and n_items >= _FEW and cache.splits:
            self.shrinkage_ = self._shrunk(cache.half())

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
        found = cache.posteriors(lambda moments: self._model(moments, shrinkage))
        return losses(cache.splits, lambda s: self._point(found[s].mean, s.samples.sizes))

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

    def _validated(self, cache: SplitCache) -> dict[ShiftedSplit, Posterior]:
        return cache.posteriors(
            lambda moments: self._model(moments, self.shrinkage_), variance=True
        )

    @property
    def statistic(self) -> Statistic:
        """The scores, those of an ensemble's members side by side."""
        return EVIDENCE

    def _from_means(self, means: Floats, sizes: Ints) -> Floats:
        return self._point(self._posterior(means, sizes, variance=False).mean, sizes)

    def _posterior(self, means: Floats, sizes: Ints, *, variance: bool) -> Posterior:
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
        return whole

    def _estimate(self, batches: Batches, level: float) -> tuple[Floats, Intervals | None]:
        """Return estimates, and their intervals and bands.

        Notes
        -----
        The ends lie at multiples of the posterior's standard deviation. The multiples are those
        that would have covered in validation, for samples of about the same size that seem
        to have moved about as far, and labels of about the same move and expected number of
        positives; for bands, those at which all labels of a sample would have been covered at once.
        """
        sizes = batches.sizes
        posterior = self._posterior(batches.mean(EVIDENCE), sizes, variance=True)
        known = posterior, sizes, self.moments_.prevalence, level
        point = np.clip(self._point(posterior.mean, sizes), 0.0, 1.0)
        inner = _around(posterior.mean, self.multiples_.ends(*known), point)
        outer = _around(posterior.mean, self.bands_.ends(*known), point)
        outer = np.minimum(inner[0], outer[0]), np.maximum(inner[1], outer[1])
        return point, never_certain(Intervals(*inner, *outer), point, sizes)


class SplitCache:
    """Splits by fold and size, with the fold's moments and the mean scores, computed once."""

    def __init__(self, values: Array, Y: LabelMatrix, splits: Sequence[ShiftedSplit]) -> None:
        self._folds = []
        moments: dict[int, Moments] = {}
        for (number, _), group in groupby(splits, key=lambda split: (split.fold, split.size)):
            fold = list(group)
            means = np.vstack([split.samples.mean(values[split.held]) for split in fold])
            if number not in moments:
                rest = fold[0].rest
                moments[number] = Moments.of(values[rest], Y[rest])
            self._folds.append((fold, moments[number], means))

    @property
    def splits(self) -> list[ShiftedSplit]:
        """The splits of all folds."""
        return [split for fold, _, _ in self._folds for split in fold]

    def usual(self) -> SplitCache:
        """The splits of the size at which methods are compared, or of the largest size below it."""
        planned = [fold[0].planned for fold, _, _ in self._folds]
        size = max((number for number in planned if number <= SIZE), default=0)
        usual = copy(self)
        usual._folds = [fold for fold in self._folds if fold[0][0].planned == size]
        return usual

    def half(self) -> SplitCache:
        """The first half of the folds."""
        half = copy(self)
        half._folds = self._folds[: (len(self._folds) + 1) // 2]
        return half

    def posteriors(
        self, make: Callable[[Moments], ScenarioModel], *, variance: bool = False
    ) -> dict[ShiftedSplit, Posterior]:
        """Posteriors of the splits, those of a fold and size computed together."""
        found: dict[ShiftedSplit, Posterior] = {}
        # The sizes of a fold share its model.
        models = {id(moments): make(moments) for _, moments, _ in self._folds}
        for fold, moments, means in self._folds:
            whole = models[id(moments)].posterior(means, fold[0].size, variance=variance)
            ends = np.cumsum([len(split.true) for split in fold])
            parts = zip(*(np.split(field, ends[:-1]) for field in whole), strict=True)
            found |= {split: Posterior(*part) for split, part in zip(fold, parts, strict=True)}
        return found


def _around(mean: Floats, ends: Ends, point: Floats) -> tuple[Floats, Floats]:
    """Interval that holds the point; it starts at 0 where the likeliest count is 0."""
    lower = np.where(point == 0, 0.0, np.minimum(mean - ends[0], point))
    return np.clip(lower, 0, 1), np.clip(np.maximum(mean + ends[1], point), 0, 1)
