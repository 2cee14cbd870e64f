"""Scenario mixture: ask which change of the labels explains a sample, and what follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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
#: Shrinkages that are tried, around a middling one first.
_SHRINKAGES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
#: Tempers that are weighed against each other for every sample.
_TEMPERS = (1.0, 0.5, 0.25, 0.1)
#: Prior weights of one label and of many; and of none, of which the first will do that costs no
#: more than this share over counting where nothing has moved.
_MOVED = (1.0, 0.2)
_STILL = (1.0, 3.0, 10.0, 30.0)
_TOLERATED = 0.03
#: Expected numbers of positives at which intervals are calibrated apart.
_STRATA = (0.1, 0.3, 1.0, 3.0, 10.0)
#: With fewer items the rehearsal is too small to choose by: the shrinkage is the middling one, and
#: the prior weight of none the first.
_FEW = 1000
_MIDDLING = 0.1
#: Intervals are calibrated apart for this many classes of samples, by how far they seem to have
#: moved. Tilts count three times: they are the rarest among samples that moved far.
_CLASSES = 6
_AGAIN = {"label-tilt": 3}
#: Samples, or pairs of sample and label, from which a quantile is taken.
_ENOUGH = 60
#: Levels at which the calibration is remembered.
_LEVELS = np.concatenate([np.arange(0.0, 0.99, 0.01), np.arange(0.99, 1.0005, 0.001)])


class _Setting(NamedTuple):
    shrinkage: float
    prior: tuple[float, float, float]


class ScenarioMixture(Aggregator):
    """Weigh the ways in which the labels may have moved by how well they explain a sample.

    Three sorts of scenario are weighed: nothing moved; one label moved to a prevalence
    between 0 and 1 (as ML-APP does it); many labels moved a little (an exponential tilt of the
    labels). Each says what mean score and what prevalences to expect; a sample's own mean score
    says how likely each is. The answer is the mean over the scenarios, or a median.

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
    prior : sequence of three floats, optional
        Prior weights of no move, one label, many labels. Default: 1, 1, 0.2, and more for no move
        where rehearsal shows that samples without shift would suffer.
    random_state : int

    Attributes
    ----------
    shrinkage_ : float
    tempers_ : tuple of float
    prior_ : tuple of three floats
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
        prior: Sequence[float] | None = None,
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
        setting = _Setting(self.shrinkage or _MIDDLING, self._first_prior())
        # A rehearsal of few items is too small to choose by.
        if self.shrinkage is None and len(Y) >= _FEW:
            setting = self._shrunk(_Stage(values, Y, rehearse(Y, seed=self.random_state)), setting)
        acts = rehearse(Y, seed=self.random_state, stratified=False)
        stage = _Stage(values, Y, acts)
        if self.prior is None and len(Y) >= _FEW:
            setting = self._stilled(stage, setting, self._counted(scores, acts))
        self.shrinkage_, self.prior_ = setting
        self.moments_ = Moments.of(values, Y)
        found = {act: self._rehearsed(stage, act, setting) for act in acts}
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
        if prior is not None and (len(prior) != 3 or min(prior) < 0 or sum(prior) <= 0):
            raise InputError(
                f"prior must be three weights of at least 0, for no move, one label and many, or "
                f"None to have them chosen; got {prior!r}."
            )
        if not self.scales or min(self.scales) <= 0:
            raise InputError(f"scales must be numbers above 0; got {self.scales!r}.")

    def _view(self, moments: Moments, setting: _Setting) -> View:
        scales = tuple(float(scale) for scale in self.scales)
        return View(moments, setting.shrinkage, self.tempers_, scales, setting.prior)

    def _shrunk(self, stage: _Stage, start: _Setting) -> _Setting:
        """Descend over the shrinkage."""
        tried: dict[float, float] = {}

        def loss(setting: _Setting) -> float:
            if setting.shrinkage not in tried:
                tried[setting.shrinkage] = total_loss(self._losses(stage, setting))
            return tried[setting.shrinkage]

        best = start
        for step in (2, 1):
            around = _neighbours(_SHRINKAGES, best.shrinkage, step)
            best = min((start._replace(shrinkage=value) for value in around), key=loss)
        return best

    def _stilled(self, stage: _Stage, start: _Setting, counted: float) -> _Setting:
        """The least prior weight of no move with which samples without shift do not suffer."""
        still = stage.only("natural")
        for weight in _STILL:
            setting = start._replace(prior=(weight, *_MOVED))
            if total_loss(self._losses(still, setting)) <= counted * (1 + _TOLERATED):
                break
        return setting

    def _losses(self, stage: _Stage, setting: _Setting) -> dict[str, float]:
        return losses(stage.acts, lambda act: self._estimate(stage, act, setting))

    def _counted(self, scores: Scores, acts: Sequence[Act]) -> float:
        """Loss of the mean posterior in rehearsed samples without shift; infinite without them."""
        still = [act for act in acts if act.family == "natural"]
        if not still:
            return float("inf")

        def count(act: Act) -> _Floats:
            return self._at_size(act.samples.mean(scores.values[act.held]), act.size)

        return losses(still, count)["natural"]

    def _first_prior(self) -> tuple[float, float, float]:
        if self.prior is None:
            return (_STILL[0], *_MOVED)
        none, one, many = (float(weight) for weight in self.prior)
        return none, one, many

    def _estimate(self, stage: _Stage, act: Act, setting: _Setting) -> _Floats:
        view = stage.view(act, setting, self._view)
        return self._at_size(view.posterior(stage.means(act), act.size).mean, act.size)

    def _at_size(self, mean: _Floats, size: int) -> _Floats:
        return self._point(mean, np.full(len(mean), size))

    def _point(self, mean: _Floats, sizes: npt.NDArray[np.int64]) -> _Floats:
        return medians(mean, sizes) if self.point == "median" else mean

    def _calibrate(self, rehearsed: dict[Act, Posterior]) -> None:
        """Remember how far the truth lay from the posterior mean, in posterior deviations."""
        self.misfits_ = np.zeros(0)
        self.moves_ = np.zeros(0)
        self.deviations_ = np.tile(_gaussian(), (1, len(_STRATA) + 1, 1))
        self.largest_ = _gaussian(self.n_labels_)[np.newaxis]
        if not rehearsed:
            return
        found = rehearsed.items()
        self.misfits_ = np.sort(np.concatenate([p.misfit for _, p in found]))
        moved = np.concatenate([_moved(p, act.naive) for act, p in found])
        self.moves_ = np.quantile(moved, np.arange(1, _CLASSES) / _CLASSES)
        again = np.concatenate(
            [np.full(len(act.true), _AGAIN.get(act.family, 1)) for act in rehearsed]
        )
        sort = np.repeat(np.searchsorted(self.moves_, moved), again)
        stratum = np.concatenate([_stratum(p.mean, act.size) for act, p in found])
        ratio = np.concatenate([_ratio(act.true, p, act.size) for act, p in found])
        self._remember(sort, np.repeat(stratum, again, axis=0), np.repeat(ratio, again, axis=0))

    def _rehearsed(self, stage: _Stage, act: Act, setting: _Setting) -> Posterior:
        view = stage.view(act, setting, self._view)
        return view.posterior(stage.means(act), act.size, variance=True)

    def _remember(
        self, sort: npt.NDArray[np.intp], stratum: npt.NDArray[np.int64], ratio: _Floats
    ) -> None:
        """Quantiles of the ratios, by class of move and stratum of expected positives."""
        self.deviations_ = np.tile(self.deviations_, (_CLASSES, 1, 1))
        self.largest_ = np.tile(self.largest_, (_CLASSES, 1))
        for number in np.unique(sort):
            rows = sort == number
            self.largest_[number] = np.quantile(ratio[rows].max(axis=1), np.minimum(_LEVELS, 1))
            for cell in range(len(_STRATA) + 1):
                inside = ratio[rows][stratum[rows] == cell]
                if len(inside) >= _ENOUGH:
                    self.deviations_[number, cell] = np.quantile(inside, np.minimum(_LEVELS, 1))

    def _aggregate(self, scores: Scores, samples: Samples) -> _Floats:
        posterior, sizes = self._posterior(scores, samples, variance=False)
        return self._point(posterior.mean, sizes)

    def _posterior(
        self, scores: Scores, samples: Samples, *, variance: bool
    ) -> tuple[Posterior, npt.NDArray[np.int64]]:
        means, sizes = samples.mean(scores.evidence), samples.sizes
        view = self._view(self.moments_, _Setting(self.shrinkage_, self.prior_))
        n_labels = self.n_labels_
        whole = Posterior(
            np.empty((len(means), n_labels)),
            np.empty((len(means), n_labels if variance else 0)),
            np.empty(len(means)),
            np.empty((len(means), n_labels + 1 + len(tuple(self.scales)))),
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
        far and labels of about the same expected number of positives. The p-value is the
        share of rehearsed samples whose mean score lay at least as far from its best scenario.
        """
        posterior, sizes = self._posterior(scores, samples, variance=True)
        sort = np.searchsorted(self.moves_, _moved(posterior, self.moments_.prevalence))
        stratum = _stratum(posterior.mean, sizes[:, np.newaxis])
        at = int(np.argmin(np.abs(_LEVELS - level)))
        deviation = np.sqrt(posterior.variance)
        half = self.deviations_[:, :, at][sort[:, np.newaxis], stratum] * deviation
        band = np.maximum(self.largest_[:, at][sort][:, np.newaxis] * deviation, half)
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
        self._view: tuple[tuple[int, _Setting], View] | None = None
        self._means = {act: act.samples.mean(values[act.held]) for act in acts}

    def only(self, family: str) -> _Stage:
        """The acts of one family."""
        return _Stage(self._values, self._Y, [act for act in self.acts if act.family == family])

    def view(self, act: Act, setting: _Setting, make: Callable[[Moments, _Setting], View]) -> View:
        """The view of an act's fold; the acts of a fold come one after the other and share it."""
        key = act.fold, setting
        if self._view is None or self._view[0] != key:
            self._view = key, make(self._moments_of(act), setting)
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


def _gaussian(n_labels: int = 1) -> _Floats:
    """Multiples of the deviation for `_LEVELS`, were all errors Gaussian and independent."""
    return norm.ppf((1 + np.clip(_LEVELS, 0, 0.9999) ** (1 / n_labels)) / 2)
