"""Scenario mixture: ask which change of the labels explains a sample, and what follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from prevalens.aggregators._posterior import Posterior
from prevalens.aggregators._scenarios import View
from prevalens.aggregators._score_moments import Moments
from prevalens.aggregators.base import Aggregator
from prevalens.aggregators.counting import binomial_median, medians
from prevalens.aggregators.rehearsal import Act, losses, rehearse, total_loss
from prevalens.estimate import Intervals
from prevalens.samples import Samples
from prevalens.scores import Kind, Scores
from prevalens.validation import InputError, check_choice

__all__ = ["ScenarioMixture"]

_Floats = npt.NDArray[np.float64]
_Classes = npt.NDArray[np.int64]
#: Shrinkages that are tried, around a middling one first.
_SHRINKAGES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
#: Tempers that are weighed against each other for every sample.
_TEMPERS = (1.0, 0.5, 0.25, 0.1)
#: Standard deviation of the drift of items, as a share of an item's own.
_DRIFTS = (0.07,)
#: Prior weights of no move, one label, many labels and drifting items. Most batches have moved
#: little, and what their mean score moves by is then noise of the classifier.
_PRIOR = (4.0, 1.0, 0.2, 1.0)
#: Expected numbers of positives at which intervals are calibrated apart.
_STRATA = (0.1, 0.3, 1.0, 3.0, 10.0)
#: With fewer items the rehearsal is too small to choose by: the shrinkage is the middling one.
_FEW = 1000
_MIDDLING = 0.1
#: Intervals are calibrated apart for this many classes of samples, by how far they seem to have
#: moved. Weights of the families there, 1 unless said: tilts are the rarest among samples that
#: moved far, and the hardest; for bands, which miss if one label does, they weigh more.
_CLASSES = 6
_WEIGHTS = {"label-tilt": 3.0, "natural": 1.5}
_BAND_WEIGHTS = {"label-tilt": 10.0}
#: Bands are multiples of intervals at this level, so that rare and frequent labels miss as often.
_TAIL = 0.99
#: Least multiple in that: a stratum without errors in rehearsal may have some yet.
_LEAST = 0.5
#: Share of what may be missed that bands give up: without, they covered less of new items than in
#: rehearsal, under tilts on four of six datasets less than 85 % (docs/mixture.md).
_BAND_SLACK = 0.2
#: Samples, or pairs of sample and label, from which a quantile is taken.
_ENOUGH = 60
#: Levels at which the calibration is remembered.
_LEVELS = np.concatenate([np.arange(0.0, 0.99, 0.01), np.arange(0.99, 1.0005, 0.001)])


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
        chosen by rehearsal; 0.1 with fewer than 1,000 items.
    temper : float, optional
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
    tempers_ : tuple of float
    loss_ : float
        Mean absolute error in rehearsal as a ratio to the training prevalence's; NaN without.
    losses_ : dict of str to float
        The same by family of shift.
    moments_ : Moments
        What was learnt of scores and labels.

    Notes
    -----
    Rehearsal: the labelled items are cut into parts; samples are drawn from each part under
    four families of shift (ML-APP, none, exponential tilt, random weights on label sets) and
    estimated with what was learnt from the other parts. The test data play no role.

    Fitting costs O(n d (d + L) + d^3) for d scores and L labels, five to ten times with
    rehearsal; aggregating O(d + L) products of (n_samples, L) matrices.

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

    def __init__(
        self,
        shrinkage: float | None = None,
        temper: float | None = None,
        *,
        point: str = "median",
        scales: Sequence[float] = (0.25, 0.5, 1.0, 2.0),
        prior: Sequence[float] = _PRIOR,
        random_state: int = 0,
    ) -> None:
        self.shrinkage = shrinkage
        self.temper = temper
        self.point = point
        self.scales = scales
        self.prior = prior
        self.random_state = random_state

    def _fit(self, scores: Scores, Y: npt.NDArray[np.int8]) -> None:
        self._check_parameters()
        values = scores.evidence
        self.tempers_ = _TEMPERS if self.temper is None else (float(self.temper),)
        self.shrinkage_ = self.shrinkage or _MIDDLING
        # A rehearsal of few items is too small to choose by.
        if self.shrinkage is None and len(Y) >= _FEW:
            self.shrinkage_ = self._shrunk(_Stage(values, Y, rehearse(Y, seed=self.random_state)))
        acts = rehearse(Y, seed=self.random_state, stratified=False)
        stage = _Stage(values, Y, acts)
        self.moments_ = Moments.of(values, Y)
        found = {act: self._rehearsed(stage, act) for act in acts}
        self.losses_ = losses(acts, lambda act: self._at_size(found[act].mean, act.size))
        self.loss_ = total_loss(self.losses_) if acts else float("nan")
        self._calibrate(found)

    def _check_parameters(self) -> None:
        check_choice(self.point, "point", ("median", "mean"))
        for name in ("shrinkage", "temper"):
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

    def _view(self, moments: Moments, shrinkage: float) -> View:
        scales = tuple(float(scale) for scale in self.scales)
        none, one, many, drift = (float(weight) for weight in self.prior)
        return View(moments, shrinkage, self.tempers_, scales, (none, one, many, drift), _DRIFTS)

    def _shrunk(self, stage: _Stage) -> float:
        """Descend over the shrinkage."""
        tried: dict[float, float] = {}

        def loss(shrinkage: float) -> float:
            if shrinkage not in tried:
                tried[shrinkage] = self._loss(stage, shrinkage)
            return tried[shrinkage]

        best = _MIDDLING
        for step in (2, 1):
            best = min(_neighbours(_SHRINKAGES, best, step), key=loss)
        return best

    def _loss(self, stage: _Stage, shrinkage: float) -> float:
        def estimate(act: Act) -> _Floats:
            view = stage.view(act, shrinkage, self._view)
            return self._at_size(view.posterior(stage.means(act), act.size).mean, act.size)

        return total_loss(losses(stage.acts, estimate))

    def _at_size(self, mean: _Floats, size: int) -> _Floats:
        return self._point(mean, np.full(len(mean), size))

    def _point(self, mean: _Floats, sizes: npt.NDArray[np.int64]) -> _Floats:
        return medians(mean, sizes) if self.point == "median" else mean

    def _calibrate(self, rehearsed: dict[Act, Posterior]) -> None:
        """Remember how far the truth lay from the posterior mean, in posterior deviations."""
        self.misfits_ = np.zeros(0)
        self.moves_ = np.zeros(0)
        self.deviations_ = np.tile(_gaussian(), (1, len(_STRATA) + 1, 1))
        self.largest_ = _gaussian(self.n_labels_)[np.newaxis] / _gaussian()[_level(_TAIL)]
        if not rehearsed:
            return
        found = rehearsed.items()
        self.misfits_ = np.sort(np.concatenate([p.misfit for _, p in found]))
        moved = np.concatenate([_moved(p, act.naive) for act, p in found])
        self.moves_ = np.quantile(moved, np.arange(1, _CLASSES) / _CLASSES)
        sort = np.searchsorted(self.moves_, moved)
        stratum = np.concatenate([_stratum(p.mean, act.size) for act, p in found])
        ratio = np.concatenate([_ratio(act.true, p, act.size) for act, p in found])
        self._remember_intervals(sort, stratum, ratio, _weights(rehearsed, _WEIGHTS))
        self._remember_bands(sort, stratum, ratio, _weights(rehearsed, _BAND_WEIGHTS))

    def _rehearsed(self, stage: _Stage, act: Act) -> Posterior:
        view = stage.view(act, self.shrinkage_, self._view)
        return view.posterior(stage.means(act), act.size, variance=True)

    def _remember_intervals(
        self, sort: _Classes, stratum: _Classes, ratio: _Floats, weights: _Floats
    ) -> None:
        """Quantiles of the ratios, by class of move and stratum of expected positives."""
        self.deviations_ = np.tile(self.deviations_, (_CLASSES, 1, 1))
        for number in np.unique(sort):
            for cell in range(len(_STRATA) + 1):
                inside = (sort == number)[:, np.newaxis] & (stratum == cell)
                if inside.sum() >= _ENOUGH:
                    each = np.broadcast_to(weights[:, np.newaxis], inside.shape)[inside]
                    self.deviations_[number, cell] = _quantiles(ratio[inside], each)

    def _remember_bands(
        self, sort: _Classes, stratum: _Classes, ratio: _Floats, weights: _Floats
    ) -> None:
        """Quantiles of a sample's largest ratio, in units of the tail of each label's stratum."""
        self.largest_ = np.tile(self.largest_, (_CLASSES, 1))
        largest = (ratio / self._tails(sort, stratum)).max(axis=1)
        wider = _LEVELS + _BAND_SLACK * (1 - _LEVELS)
        for number in np.unique(sort):
            rows = sort == number
            self.largest_[number] = _quantiles(largest[rows], weights[rows], wider)

    def _tails(self, sort: _Classes, stratum: _Classes) -> _Floats:
        """The multiples of the deviation at the tail's level, shape (n_samples, n_labels)."""
        found = self.deviations_[:, :, _level(_TAIL)][sort[:, np.newaxis], stratum]
        return np.maximum(found, _LEAST)

    def _aggregate(self, scores: Scores, samples: Samples) -> _Floats:
        posterior, sizes = self._posterior(scores, samples, variance=False)
        return self._point(posterior.mean, sizes)

    def _posterior(
        self, scores: Scores, samples: Samples, *, variance: bool
    ) -> tuple[Posterior, npt.NDArray[np.int64]]:
        means, sizes = samples.mean(scores.evidence), samples.sizes
        view = self._view(self.moments_, self.shrinkage_)
        n_labels = self.n_labels_
        whole = Posterior(
            np.empty((len(means), n_labels)),
            np.empty((len(means), n_labels if variance else 0)),
            np.empty(len(means)),
            np.empty((len(means), view.n_scenarios)),
        )
        for size in np.unique(sizes):
            rows = np.flatnonzero(sizes == size)
            part = view.posterior(means[rows], float(size), variance=variance)
            for target, source in zip(whole, part, strict=True):
                target[rows] = source
        return whole, sizes

    def intervals(self, scores: Scores, samples: Samples, level: float) -> Intervals:
        """Intervals per label, bands for all labels of a sample, and a goodness of fit.

        Parameters
        ----------
        scores : Scores
        samples : Samples
        level : float
            Such as 0.9.

        Notes
        -----
        The half-width is a multiple of the posterior's standard deviation. The multiple is the
        one that would have covered in rehearsal, for samples that seem to have moved about as
        far and labels of about the same expected number of positives; for bands, the one at which
        all labels of a sample would have been covered at once. The p-value is the
        share of rehearsed samples whose mean score lay at least as far from its best scenario.
        """
        posterior, sizes = self._posterior(scores, samples, variance=True)
        sort = np.searchsorted(self.moves_, _moved(posterior, self.moments_.prevalence))
        stratum = _stratum(posterior.mean, sizes[:, np.newaxis])
        at = _level(level)
        deviation = np.sqrt(posterior.variance)
        half = self.deviations_[:, :, at][sort[:, np.newaxis], stratum] * deviation
        largest = self.largest_[:, at][sort][:, np.newaxis]
        band = np.maximum(largest * self._tails(sort, stratum) * deviation, half)
        point = self._point(posterior.mean, sizes)
        lower, upper = _around(posterior.mean, half, point)
        band_lower, band_upper = _around(posterior.mean, band, point)
        return Intervals(lower, upper, band_lower, band_upper, self._p_value(posterior.misfit))

    def _p_value(self, misfit: _Floats) -> _Floats | None:
        if not len(self.misfits_):
            return None
        as_far = len(self.misfits_) - np.searchsorted(self.misfits_, misfit, side="left")
        return (1 + as_far) / (1 + len(self.misfits_))


class _Stage:
    """What the acts share: their mean scores, and the moments and views of their folds."""

    def __init__(
        self, values: npt.NDArray[Any], Y: npt.NDArray[np.int8], acts: Sequence[Act]
    ) -> None:
        self._values, self._Y = values, Y
        self.acts = acts
        self._moments: dict[int, Moments] = {}
        self._view: tuple[tuple[int, float], View] | None = None
        self._means = {act: act.samples.mean(values[act.held]) for act in acts}

    def view(self, act: Act, shrinkage: float, make: Callable[[Moments, float], View]) -> View:
        """The view of an act's fold; the acts of a fold come one after the other and share it."""
        key = act.fold, shrinkage
        if self._view is None or self._view[0] != key:
            self._view = key, make(self._moments_of(act), shrinkage)
        return self._view[1]

    def _moments_of(self, act: Act) -> Moments:
        if act.fold not in self._moments:
            self._moments[act.fold] = Moments.of(self._values[act.rest], self._Y[act.rest])
        return self._moments[act.fold]

    def means(self, act: Act) -> _Floats:
        """Mean scores of an act's samples."""
        return self._means[act]


def _neighbours(grid: Sequence[float], value: float, step: int) -> list[float]:
    at = int(np.argmin(np.abs(np.log(np.array(grid) / value))))
    return [grid[i] for i in (at - step, at, at + step) if 0 <= i < len(grid)]


def _moved(posterior: Posterior, prevalence: _Floats) -> _Floats:
    """How far a sample seems to have moved from the training items."""
    found: _Floats = np.abs(posterior.mean - prevalence).mean(axis=1)
    return found


def _stratum(mean: _Floats, size: Any) -> npt.NDArray[np.int64]:
    return np.searchsorted(_STRATA, mean * size, side="right")


def _ratio(true: _Floats, posterior: Posterior, size: int) -> _Floats:
    """Distance of the truth in posterior deviations; none for a rare label that is absent."""
    ratio = np.abs(true - posterior.mean) / np.sqrt(posterior.variance)
    return np.where((true == 0) & (binomial_median(posterior.mean, size) == 0), 0.0, ratio)


def _around(mean: _Floats, half: _Floats, point: _Floats) -> tuple[_Floats, _Floats]:
    """An interval that holds the point; from 0 on where the likeliest count is 0."""
    lower = np.where(point == 0, 0.0, np.minimum(mean - half, point))
    return np.clip(lower, 0, 1), np.clip(np.maximum(mean + half, point), 0, 1)


def _level(level: float) -> int:
    return int(np.argmin(np.abs(_LEVELS - level)))


def _weights(acts: Iterable[Act], by_family: dict[str, float]) -> _Floats:
    """One for each sample of the acts."""
    return np.concatenate([np.full(len(a.true), by_family.get(a.family, 1.0)) for a in acts])


def _quantiles(values: _Floats, weights: _Floats, levels: _Floats = _LEVELS) -> _Floats:
    """At each level: the least value with so much of the weight at or below it."""
    order = np.argsort(values)
    share = np.cumsum(weights[order]) / weights.sum()
    # Sums of weights may end a little below 1.
    at = np.searchsorted(share, np.minimum(levels, 1) - 1e-9)
    return values[order][np.minimum(at, len(values) - 1)]


def _gaussian(n_labels: int = 1) -> _Floats:
    """Multiples of the deviation for `_LEVELS`, were all errors Gaussian and independent."""
    return norm.ppf((1 + np.clip(_LEVELS, 0, 0.9999) ** (1 / n_labels)) / 2)
