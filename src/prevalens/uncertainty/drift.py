"""Drift: errors that no batch size removes, because items change between training and batch.

Prevalences are compared on the scale ``arcsin(sqrt(p))``, on which the noise of a share of n
items has the same variance, 1 / (4 n), whatever the share is. On that scale drift adds a constant
variance: a documented default, or one that was measured in held-out groups, or in a backtest over
time, where it grows with the square root of the horizon.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import chi2, norm, t
from sklearn.base import clone

from prevalens.aggregators.base import Aggregator
from prevalens.batches import OPENNESS, Batches, ScoredSamples
from prevalens.estimate import Intervals
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.tables.times import dates_of, day_numbers
from prevalens.types import Array, Floats, Ints, LabelMatrix
from prevalens.validation import InputError, check_same_length

#: Standard deviation of the drift where nothing is known of it, on the scale of arcsin(sqrt(p)): a
#: label of 10 % is then off by 1.8 points in a typical large batch, one of 50 % by 3 points.
DEFAULT_DRIFT = 0.03
#: The same at a horizon of a fifth of the training span. At this growth the default is the drift of
#: a batch that is two fifths of the training span ahead.
_PRIOR_DRIFT, _PRIOR_HORIZON = 0.025, 0.2
#: They count as much as this many origins or groups.
_PRIOR_ORIGINS = 3.0
#: Least horizon, and least variance of drift.
_NEAREST, _LEAST = 0.02, 1e-6
#: Degrees of freedom of the errors of drift, where bands are computed from intervals.
_FREEDOM = 5.0
#: Temperature of the weights of candidates at horizons that the backtest had.
_TEMPERATURE = 0.1
#: Share of the batches of a backtest that the alarm takes as usual.
_SLACK = 0.9
#: Labels with fewer positives before an origin do not count there.
FEWEST_POSITIVES = 10
_TINY = 1e-12


def arcsine(prevalence: Any) -> Floats:
    """``arcsin(sqrt(p))``, the scale on which drift is measured."""
    return np.arcsin(np.sqrt(np.clip(prevalence, 0.0, 1.0)))


def from_arcsine(angle: Any) -> Floats:
    """The prevalences of angles; angles outside of 0 to pi / 2 become 0 or 1."""
    return np.asarray(np.sin(np.clip(angle, 0.0, np.pi / 2)) ** 2)


def label_noise(batches: Batches, point: Floats) -> Floats:
    """Variance of a batch's prevalences given its scores, on the scale of `arcsine`.

    Returns
    -------
    array of float, shape (n_samples, n_labels)
        At most 1 / (4 n), that of labels of which the scores say nothing.
    """
    open_share = np.ones_like(point)
    if batches.kind == "posteriors":
        spread = batches.mean(OPENNESS)
        open_share = np.clip(spread / np.maximum(point * (1 - point), _TINY), 0.1, 1.0)
    return np.asarray(open_share / (4.0 * batches.sizes[:, np.newaxis]))


def widened(
    intervals: Intervals, point: Floats, deviation: float | Floats, level: float
) -> Intervals:
    """Intervals and bands with the variance of drift added on both sides of the point.

    Parameters
    ----------
    intervals : Intervals
    point : array of float, shape (n_samples, n_labels)
    deviation : float, or array of shape (n_samples, n_labels)
        Standard deviation of the drift, on the scale of `arcsine`.
    level : float

    Notes
    -----
    Squared distances from the point add up on the scale of `arcsine`. Bands are widened by the
    drift of all labels at once, see `together`.
    """
    if not np.any(np.asarray(deviation) > 0):
        return intervals
    own, all_ = quantile(level), quantile(level) * together(point.shape[1], level)
    lower, upper = _farther(intervals.lower, intervals.upper, point, own * deviation)
    ends = _farther(intervals.band_lower, intervals.band_upper, point, all_ * deviation)
    return Intervals(lower, upper, *ends, intervals.p_value)


def _farther(lower: Floats, upper: Floats, point: Floats, reach: Any) -> tuple[Floats, Floats]:
    centre = arcsine(point)
    below = np.hypot(centre - arcsine(lower), reach)
    above = np.hypot(arcsine(upper) - centre, reach)
    # Rounding must not move an end inwards.
    ends = from_arcsine(centre - below), from_arcsine(centre + above)
    return np.minimum(ends[0], lower), np.maximum(ends[1], upper)


def quantile(level: float) -> float:
    """Reach of an interval of this level in standard deviations of a Gaussian."""
    return float(ndtri(0.5 + level / 2.0))


@lru_cache(maxsize=256)
def together(n_labels: int, level: float) -> float:
    """Reach of a band over that of an interval, for Student errors of one common scale.

    The labels of a batch drift together: a batch that is far off in one is often far off in others.
    Their errors are Gaussian and independent given a scale that they share.

    Examples
    --------
    >>> [round(together(n_labels, 0.9), 2) for n_labels in (1, 10, 100)]
    [1.0, 1.77, 2.46]
    """
    scales = np.sqrt(chi2.ppf((np.arange(200) + 0.5) / 200, _FREEDOM) / _FREEDOM)
    single = t.ppf(0.5 + level / 2.0, _FREEDOM)

    def excess(ratio: float) -> float:
        inside = 2.0 * norm.cdf(ratio * single * scales) - 1.0
        return float(np.mean(inside**n_labels) - level)

    return 1.0 if n_labels == 1 else float(brentq(excess, 0.9, 20.0))


class LaterBatches(NamedTuple):
    """Later batches of one origin of a backtest, and what was estimated of them.

    Attributes
    ----------
    estimated : array of float, shape (n_candidates, n_batches, n_labels)
    true : array of float, shape (n_batches, n_labels)
    noise : array of float, shape (n_batches, n_labels)
        What `label_noise` gives.
    horizon : array of float, shape (n_batches,)
        Time from the last training item to the batch, as a share of the training span.
    ahead : array of float, shape (n_batches,)
        The same time in units of the time axis.
    weight : array of float, shape (n_batches,)
    counted : array of bool, shape (n_batches, n_labels)
        Labels with enough positives before the origin.
    excess : array of float, shape (n_batches,)
        What the alarm's `excess` gives; 0 without an alarm.
    """

    estimated: Floats
    true: Floats
    noise: Floats
    horizon: Floats
    ahead: Floats
    weight: Floats
    counted: npt.NDArray[np.bool_]
    excess: Floats

    @classmethod
    def concat(cls, origins: Sequence[LaterBatches]) -> LaterBatches:
        """The batches of several origins as one."""
        first = np.concatenate([origin.estimated for origin in origins], axis=1)
        rest = zip(*(origin[1:] for origin in origins), strict=True)
        return cls(first, *map(np.concatenate, rest))


@dataclass(frozen=True)
class TimeAxis:
    """Times as numbers.

    Attributes
    ----------
    last : float
        Time of the last training item.
    span : float
        Time from the first to the last training item.
    dates : bool
        True if times are dates, counted in days; False if they are numbers.

    Examples
    --------
    >>> axis = TimeAxis.of(np.array([0.0, 200.0]), dates=True)
    >>> axis.horizon(np.array([250.0])), axis.words(50)
    (array([0.25]), '2 months')
    """

    last: float
    span: float
    dates: bool

    @classmethod
    def of(cls, times: Floats, *, dates: bool) -> TimeAxis:
        """The axis of training items, which must not all have the same time."""
        last, span = float(times.max()), float(np.ptp(times))
        if not span:
            when = np.datetime64(int(last), "D") if dates else f"{last:g}"
            raise InputError(f"All training items are of {when}; horizons need a span of time.")
        return cls(last, span, dates)

    def horizon(self, times: Floats) -> Floats:
        """Times after the training period as shares of its span, at least 0.02."""
        return np.maximum((times - self.last) / self.span, _NEAREST)

    def words(self, ahead: float) -> str:
        """A duration for people."""
        if not self.dates:
            return f"{ahead:.3g} units of time"
        for unit, days in (("year", 365.25), ("month", 30.44), ("week", 7.0)):
            if ahead >= 1.5 * days or (ahead >= 0.75 * days and unit != "week"):
                number = round(ahead / days)
                return f"{number} {unit}{'' if number == 1 else 's'}"
        number = max(round(ahead), 1)
        return f"{number} day{'' if number == 1 else 's'}"


def as_numbers(times: Any) -> tuple[Floats, bool]:
    """Times as numbers, and whether they are dates, which are counted in days.

    Parameters
    ----------
    times : array-like of dates, ISO strings or numbers, shape (n,)

    Examples
    --------
    >>> as_numbers(["1970-01-02", "1970-01-04"])
    (array([1., 3.]), True)
    """
    array = np.asarray(times)
    if array.ndim != 1:
        raise InputError(f"time must have one entry per item; got shape {array.shape}.")
    if array.dtype == object and all(isinstance(each, Real) for each in array):
        array = array.astype(np.float64)
    dates = array.dtype.kind not in "iufb"
    if dates:
        try:
            with warnings.catch_warnings():
                # Dates with a time zone are converted to UTC, as they should be.
                warnings.simplefilter("ignore", UserWarning)
                array = array.astype("datetime64[s]")
        except (TypeError, ValueError) as error:
            raise InputError(
                f"time must be dates such as 2024-05-31, or numbers; got {array[0]!r} ({error})."
            ) from None
    missing = np.isnat(array) if dates else ~np.isfinite(array.astype(np.float64))
    if missing.any():
        raise InputError(f"time is missing for item {int(np.argmax(missing))}; drop such items.")
    return day_numbers(array) if dates else array.astype(np.float64), dates


def mean_times(samples: Samples, times: Any) -> Array:
    """The mean time of each sample, shape (n_samples,): dates for dates, numbers for numbers.

    Parameters
    ----------
    samples : Samples
    times : array-like of dates, ISO strings or numbers, shape (n_items,)

    Examples
    --------
    >>> mean_times(Samples.whole(2), ["2025-01-01", "2025-01-03"]).astype(str).tolist()
    ['2025-01-02T00:00:00']
    """
    numbers, dates = as_numbers(times)
    check_same_length(len(numbers), "time", samples.n_items, "X")
    means = samples.mean(numbers[:, np.newaxis])[:, 0]
    return dates_of(means) if dates else means


@dataclass(frozen=True)
class Backtest:
    """What was learnt from estimating later batches of the training period by earlier items.

    Attributes
    ----------
    axis : TimeAxis
    names : tuple of str
        The candidates.
    losses : array of float, shape (n_candidates,)
        Loss of each, half from the backtest and half from drawn shifts; the least is 1.
    reference : float
        Mean horizon of the batches; it is assumed for batches of unknown time.
    variance : float
        Variance of the drift at that horizon, on the scale of `arcsine`.
    ratios, largest : array of float, shape (2, n)
        Errors in expected deviations, ascending, and their weights: of each batch and label, and
        the largest one of each batch.
    slack : float
        Variance of the scores, beyond what label shift explains, that nine tenths of the batches do
        not exceed at the reference horizon.
    n_origins : int
    errors : tuple of pairs of floats
        Time ahead, and mean absolute error, in classes of horizon.
    notes : tuple of str

    Notes
    -----
    Fails where the items change more, or in another way, after the training period than in it: an
    abrupt change that has no precedent is not foreseen. The default drift counts as
    three further origins, because a handful of origins says little.

    Examples
    --------
    >>> from prevalens import Quantifier
    >>> from prevalens.aggregators import PCC
    >>> from prevalens.classifiers import PerLabel
    >>> from prevalens.datasets import synthetic
    >>> train = synthetic(n_train=300, n_test=10, n_labels=3, random_state=0).train
    >>> quantifier = Quantifier(PerLabel(), PCC(), uncertainty=None)
    >>> backtest = quantifier.fit(train.X, train.Y, time=range(300)).backtest_
    >>> backtest.names, backtest.n_origins
    (('pcc',), 4)
    >>> backtest.horizon([299, 449], 2).round(2)
    array([0.02, 0.5 ])
    """

    axis: TimeAxis
    names: tuple[str, ...]
    losses: Floats
    reference: float
    variance: float
    ratios: Floats
    largest: Floats
    slack: float
    n_origins: int
    errors: tuple[tuple[float, float], ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        origins: Sequence[LaterBatches],
        drawn: Floats,
        names: Sequence[str],
        axis: TimeAxis,
        notes: Sequence[str] = (),
    ) -> Backtest:
        """Learn from the batches of all origins.

        Parameters
        ----------
        origins : sequence of LaterBatches
        drawn : array of float, shape (n_candidates,)
            Validation losses of the candidates under drawn shifts; NaN where they are not known.
        names : sequence of str
            The candidates.
        axis : TimeAxis
        notes : sequence of str
        """
        batches = LaterBatches.concat(origins)
        pairs = batches.weight[:, np.newaxis] * batches.counted
        errors = np.abs(batches.estimated - batches.true)
        losses = _combined_losses((errors * pairs).sum(axis=(1, 2)) / pairs.sum(), drawn)
        reference = float(np.average(batches.horizon, weights=batches.weight))
        growth = np.sqrt(batches.horizon / reference)
        slack = _weighted_quantile(_ascending(batches.excess / growth, batches.weight), _SLACK)
        plain = cls(
            axis=axis,
            names=tuple(names),
            losses=losses,
            reference=reference,
            variance=_LEAST,
            ratios=np.empty((2, 0)),
            largest=np.empty((2, 0)),
            slack=max(slack, 0.0),
            n_origins=len(origins),
            notes=tuple(notes),
        )
        point = plain.combine(batches.estimated, batches.horizon)
        residual = arcsine(point) - arcsine(batches.true)
        excess = pairs * (residual**2 - batches.noise) / growth[:, np.newaxis]
        known = replace(plain, variance=max(float(excess.sum() / pairs.sum()), _LEAST))
        ratio = np.abs(residual) / known.deviation(batches.noise, batches.horizon)
        ratio = np.where(batches.counted, ratio, 0.0)
        return replace(
            known,
            ratios=_ascending(ratio[batches.counted], pairs[batches.counted]),
            largest=_ascending(ratio.max(axis=1), batches.weight),
            errors=_by_horizon(batches.ahead, np.abs(point - batches.true), pairs),
        )

    def horizon(self, times: Any, n_samples: int) -> Floats:
        """The horizon of each batch, from its time; the reference horizon without times.

        Parameters
        ----------
        times : array-like of shape (n_samples,), one value for all samples, or None
        n_samples : int
        """
        if times is None:
            return np.full(n_samples, self.reference)
        numbers, dates = as_numbers(np.atleast_1d(np.asarray(times)))
        if dates != self.axis.dates:
            kinds = ("numbers", "dates")
            raise InputError(
                f"The model was fitted with {kinds[self.axis.dates]} as times; the batch has "
                f"{kinds[dates]}."
            )
        return np.broadcast_to(self.axis.horizon(numbers), (n_samples,))

    def weights(self, horizon: Floats) -> Floats:
        """Weight of each candidate, shape (n_samples, n_candidates).

        Beyond the horizons of the backtest the ranking of the candidates counts less.
        """
        temperature = _TEMPERATURE * np.maximum(1.0, horizon / self.reference)
        logs = -(self.losses - 1.0) / temperature[:, np.newaxis]
        return np.asarray(np.exp(logs))

    def combine(self, estimated: Floats, horizon: Floats) -> Floats:
        """Weighted median over the candidates, label by label.

        Parameters
        ----------
        estimated : array of float, shape (n_candidates, n_samples, n_labels)
        horizon : array of float, shape (n_samples,)
        """
        return weighted_median(estimated, self.weights(horizon))

    def expected_slack(self, horizon: Floats) -> Floats:
        """Variance of the scores that drift over the horizon explains, for the alarm."""
        return np.asarray(self.slack * np.sqrt(horizon / self.reference))

    def deviation(self, noise: Floats, horizon: Floats) -> Floats:
        """Standard deviation of the truth around an estimate, on the scale of `arcsine`."""
        share = self.n_origins / (self.n_origins + _PRIOR_ORIGINS)
        own = share * self.variance * np.sqrt(horizon / self.reference)
        prior = (1.0 - share) * _PRIOR_DRIFT**2 * np.sqrt(horizon / _PRIOR_HORIZON)
        return np.sqrt(noise + (own + prior)[:, np.newaxis])

    def intervals(
        self, own: Intervals, point: Floats, noise: Floats, horizon: Floats, level: float
    ) -> Intervals:
        """Intervals around the point that would have covered in the backtest, joined with `own`.

        Parameters
        ----------
        own : Intervals
            Calibrated on drawn shifts. A backtest says nothing of shifts that did not occur in the
            training period, so the answer holds these intervals too.
        point, noise : array of float, shape (n_samples, n_labels)
        horizon : array of float, shape (n_samples,)
        level : float
        """
        deviation, centre = self.deviation(noise, horizon), arcsine(point)
        reach = self._shrunk(_weighted_quantile(self.ratios, level), quantile(level))
        joint = reach * together(point.shape[1], level)
        band = self._shrunk(max(_weighted_quantile(self.largest, level), reach), joint)
        lower, upper = (from_arcsine(centre + side * reach * deviation) for side in (-1, 1))
        ends = (from_arcsine(centre + side * band * deviation) for side in (-1, 1))
        band_lower, band_upper = ends
        joined = Intervals(
            np.minimum(lower, own.lower),
            np.maximum(upper, own.upper),
            np.minimum(band_lower, own.band_lower),
            np.maximum(band_upper, own.band_upper),
            own.p_value,
        )
        return joined.holding(point)

    def _shrunk(self, value: float, prior: float) -> float:
        """A reach from the backtest, shrunk towards that of the prior on the log scale."""
        share = self.n_origins / (self.n_origins + _PRIOR_ORIGINS)
        return float(np.exp(share * np.log(max(value, 0.3)) + (1.0 - share) * np.log(prior)))

    def describe(self) -> str:
        """The errors of the backtest by horizon, in one sentence."""
        parts = [
            f"{self.axis.words(ahead)} ahead by {100 * error:.1f} points"
            for ahead, error in self.errors
        ]
        origins = "one origin" if self.n_origins == 1 else f"{self.n_origins} origins"
        return f"In a backtest over {origins}, estimates were off {', '.join(parts)}."


def weighted_median(values: Floats, weights: Floats) -> Floats:
    """The least value with half of the weight at or below it, over the first axis.

    Parameters
    ----------
    values : array of float, shape (n_candidates, n_samples, n_labels)
    weights : array of float, shape (n_samples, n_candidates)

    Examples
    --------
    >>> values = np.array([0.1, 0.2, 0.9]).reshape(3, 1, 1)
    >>> weighted_median(values, np.array([[1.0, 1.0, 1.5]])).item()
    0.2
    """
    order = np.argsort(values, axis=0, kind="stable")
    spread = np.broadcast_to(weights.T[:, :, np.newaxis], values.shape)
    share = np.cumsum(np.take_along_axis(spread, order, axis=0), axis=0)
    first = (share >= (0.5 - 1e-12) * share[-1]).argmax(axis=0)[np.newaxis]
    return np.take_along_axis(np.take_along_axis(values, order, axis=0), first, axis=0)[0]


def _combined_losses(backtest: Floats, drawn: Floats) -> Floats:
    """Half the loss of the backtest and half that of drawn shifts; the least is 1."""
    backtest = backtest / max(backtest.min(), _TINY)
    drawn = drawn / max(np.min(drawn, initial=np.inf, where=~np.isnan(drawn)), _TINY)
    losses = np.where(np.isnan(drawn), backtest, (backtest + drawn) / 2.0)
    return losses / losses.min()


def _ascending(values: Floats, weights: Floats) -> Floats:
    order = np.argsort(values, kind="stable")
    return np.stack([values[order], weights[order]])


def _weighted_quantile(pairs: Floats, level: float) -> float:
    """The least value with that share of the weight at or below it."""
    values, weights = pairs
    share = np.cumsum(weights) / weights.sum()
    return float(values[min(np.searchsorted(share, level - 1e-9), len(values) - 1)])


def _by_horizon(ahead: Floats, errors: Floats, pairs: Floats) -> tuple[tuple[float, float], ...]:
    """Time ahead and error of the nearest, the middle and the farthest third of the batches."""
    order = np.argsort(ahead, kind="stable")
    return tuple(
        (
            float(np.mean(ahead[rows])),
            float((errors[rows] * pairs[rows]).sum() / max(pairs[rows].sum(), _TINY)),
        )
        for rows in np.array_split(order, 3)
        if len(rows)
    )


#: Least number of items of a group that counts as a batch, and of groups to learn from.
_SMALLEST_GROUP, _FEWEST_GROUPS = 20, 4


def drift_between_groups(
    aggregator: Aggregator, scores: Scores, Y: LabelMatrix, groups: Any, folds: Ints | None
) -> float:
    """Standard deviation of the drift between groups of items, such as sources or sites.

    Each group is a batch that is estimated by what was learnt from the groups of other folds.

    Parameters
    ----------
    aggregator : Aggregator
        It is cloned.
    scores : Scores
        Of items whose group the classifier has not seen.
    Y : 0/1 array, shape (n_items, n_labels)
    groups : array, shape (n_items,)
    folds : array of int, shape (n_items,), or None
        Which classifier scored each item.

    Returns
    -------
    float
        On the scale of `arcsine`. The default counts as three groups. With fewer than four groups
        of 20 items or more it is the default.

    Notes
    -----
    Costs a fit of the aggregator per fold.
    """
    codes = np.unique(groups, return_inverse=True)[1]
    large = np.flatnonzero(np.bincount(codes) >= _SMALLEST_GROUP)
    if folds is None or len(large) < _FEWEST_GROUPS:
        return DEFAULT_DRIFT
    excess = []
    for fold in np.unique(folds[np.isin(codes, large)]):
        rest, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        samples, names = Samples.by_group(codes[held])
        samples = samples[np.isin(names, large)]
        fitted = clone(aggregator).fit(scores.take(rest), Y[rest], groups=codes[rest])
        pool = scores.take(held)
        point = fitted.aggregate(pool, samples)
        squared = (arcsine(point) - arcsine(samples.mean(Y[held]))) ** 2
        counted = Y[rest].sum(axis=0, dtype=np.int64) >= FEWEST_POSITIVES
        excess.append((squared - label_noise(ScoredSamples(pool, samples), point))[:, counted])
    found = np.concatenate([part.mean(axis=1) for part in excess if part.shape[1]] or [[]])
    total = max(float(found.sum()), 0.0) + _PRIOR_ORIGINS * DEFAULT_DRIFT**2
    return float(np.sqrt(total / (len(found) + _PRIOR_ORIGINS)))


def check_drift(value: Any) -> float:
    """Return a standard deviation of drift; raise `InputError` if it is invalid."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise InputError(
            f"drift must be a number from 0 (none) to 1, such as {DEFAULT_DRIFT}; got {value!r}."
        )
    return float(value)
