"""Forman's threshold methods: adjusted counting with votes at other thresholds than 0.5.

A vote is a posterior of at least the threshold. `T50`, `XThreshold`, `MaxThreshold` and `Friedman`
choose one threshold per label; `MedianSweep` and `MedianSweep2` take the median of the estimates
at all thresholds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from prevalens.aggregators.adjusted import AdjustedTransform
from prevalens.aggregators.binned import BinnedAggregator
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.solvers.compiled import just_in_time
from prevalens.types import Array, Floats, Ints, LabelMatrix
from prevalens.validation import check_int

try:
    import numba
except ImportError:
    numba = None

#: Least difference of tpr and fpr at the thresholds of `MedianSweep2`.
_GAP = 0.25


class _Curve(NamedTuple):
    """The rates of one label at each of its candidate thresholds, ascending."""

    thresholds: Floats
    tpr: Floats
    fpr: Floats


def _curve(posteriors: Array, truth: Array) -> _Curve:
    """Rates of the votes at every different posterior; O(n_items log n_items)."""
    thresholds, place = np.unique(posteriors.astype(np.float64), return_inverse=True)
    rates = []
    for members in (truth, 1 - truth):
        found = np.bincount(place, weights=members, minlength=len(thresholds))
        above = np.cumsum(found[::-1])[::-1]
        rates.append(above / max(above[0], 1.0))
    return _Curve(thresholds, *rates)


class _ChosenThreshold(AdjustedTransform):
    """Adjusted counting with the votes at one threshold per label."""

    def __init__(self, guard: float | None = 4.0) -> None:
        super().__init__(guard)

    def _learn(self, values: Array, Y: LabelMatrix) -> None:
        self.threshold_ = np.full(self.n_labels_, 0.5)
        for label in np.flatnonzero((self.prevalence_ > 0) & (self.prevalence_ < 1)).tolist():
            curve = _curve(values[:, label], Y[:, label])
            # Among equally good thresholds, the one that separates the classes best.
            order = np.lexsort([curve.fpr - curve.tpr, np.round(self._badness(curve), 12)])
            self.threshold_[label] = curve.thresholds[order[0]]

    @abstractmethod
    def _badness(self, curve: _Curve) -> Floats:
        """What the chosen threshold has least of, shape (n_thresholds,)."""

    def _transform(self, values: Floats, labels: Ints) -> Floats:
        return (values >= self.threshold_[labels]).astype(np.float64)


class T50(_ChosenThreshold):
    """Adjusted counting at the threshold where half of the positives get a vote.

    Parameters
    ----------
    guard : float or None
        As in `ACC`; labels that are not adjusted are estimated by their mean posterior.

    Attributes
    ----------
    threshold_ : array of float, shape (n_labels,)
        The least posterior that is a vote for the label.
    tpr_, fpr_, adjusted_ : arrays, shape (n_labels,)
        As in `ACC`, of the votes at that threshold.

    Notes
    -----
    Candidates are all different posteriors of the labelled items; of those with a tpr equally near
    to 0.5 the one with the least fpr. O(n_items log n_items) per label to fit.
    Fails for rare labels: the threshold rests on the posteriors of a few positives.

    References
    ----------
    Forman, "Quantifying counts and costs via classification", DMKD 17, 2008.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> posteriors = Scores([[0.9], [0.6], [0.4], [0.2]], kind="posteriors")
    >>> t50 = T50(guard=None).fit(posteriors, [[1], [1], [0], [0]])
    >>> t50.threshold_.tolist()
    [0.9]
    >>> t50.aggregate(posteriors, Samples.whole(4)).tolist()
    [[0.5]]
    """

    code = "t50"

    def _badness(self, curve: _Curve) -> Floats:
        return np.abs(curve.tpr - 0.5)


class XThreshold(_ChosenThreshold):
    """Adjusted counting at the threshold where as many positives are missed as negatives voted for.

    Parameters
    ----------
    guard : float or None
        As in `T50`.

    Attributes
    ----------
    threshold_, tpr_, fpr_, adjusted_ : arrays, shape (n_labels,)
        As in `T50`.

    Notes
    -----
    The threshold where the curves of tpr and 1 - fpr cross (method X). Complexity and ties as in
    `T50`. Fails where positives and negatives are hardly separated: both rates are then near 0.5,
    and their small difference is divided by.

    References
    ----------
    Forman, "Quantifying counts and costs via classification", DMKD 17, 2008.

    Examples
    --------
    >>> from prevalens.scores import Scores
    >>> posteriors = Scores([[0.9], [0.6], [0.4], [0.2]], kind="posteriors")
    >>> XThreshold(guard=None).fit(posteriors, [[1], [0], [1], [0]]).threshold_.tolist()
    [0.6]
    """

    code = "x"

    def _badness(self, curve: _Curve) -> Floats:
        return np.abs(1.0 - curve.tpr - curve.fpr)


class MaxThreshold(_ChosenThreshold):
    """Adjusted counting at the threshold where tpr and fpr differ most.

    Parameters
    ----------
    guard : float or None
        As in `T50`.

    Attributes
    ----------
    threshold_, tpr_, fpr_, adjusted_ : arrays, shape (n_labels,)
        As in `T50`.

    Notes
    -----
    Method MAX: the difference that the noise of a sample is divided by is as large as it can be.
    Complexity and ties as in `T50`. Fails where few labelled items make one threshold look better
    than it is.

    References
    ----------
    Forman, "Quantifying counts and costs via classification", DMKD 17, 2008.

    Examples
    --------
    >>> from prevalens.scores import Scores
    >>> posteriors = Scores([[0.9], [0.6], [0.4], [0.2]], kind="posteriors")
    >>> MaxThreshold(guard=None).fit(posteriors, [[1], [1], [0], [0]]).threshold_.tolist()
    [0.6]
    """

    code = "max"

    def _badness(self, curve: _Curve) -> Floats:
        return curve.fpr - curve.tpr


class Friedman(AdjustedTransform):
    """Adjusted counting with the training prevalence as the threshold of votes.

    Parameters
    ----------
    guard : float or None
        As in `T50`.

    Attributes
    ----------
    tpr_, fpr_, adjusted_ : arrays, shape (n_labels,)
        As in `T50`.

    Notes
    -----
    With calibrated posteriors, a posterior above the prevalence is evidence for the label and one
    below it evidence against; counting at that threshold has little variance. Complexity of `PACC`.
    Fails where posteriors are badly calibrated, so that nearly all are above the prevalence, or
    nearly none.

    References
    ----------
    Friedman, "Class counts in future unlabeled samples", MIT CSAIL Big Data Event, 2014.
    Tasche, "Comments on Friedman's method for class distribution estimation", LQ 2024.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> posteriors = Scores([[0.4], [0.3], [0.1], [0.1], [0.3]], kind="posteriors")
    >>> friedman = Friedman(guard=None).fit(posteriors, [[1], [0], [0], [0], [0]])
    >>> friedman.aggregate(posteriors, Samples.from_indices([[0, 1, 2]], n_items=5)).round(3)
    array([[0.333]])
    """

    code = "friedman"

    def _learn(self, values: Array, Y: LabelMatrix) -> None:
        """Nothing but the prevalence, which is known."""

    def _transform(self, values: Floats, labels: Ints) -> Floats:
        return (values >= self.prevalence_[labels]).astype(np.float64)


class MedianSweep(BinnedAggregator):
    """Median of the adjusted counts at all thresholds (MS).

    Parameters
    ----------
    thresholds : int
        Maximum number of thresholds per label. If the labelled items have more different
        posteriors, as many of them as this, at equal steps of rank.

    Attributes
    ----------
    tpr_, fpr_ : list of arrays of float, one per label
        The rates at each threshold that is used; none for a label that is constant.
    edges_ : list of arrays of float, one per label
        These thresholds.

    Notes
    -----
    Thresholds where tpr equals fpr are left out; estimates are clipped to [0, 1] before
    the median. A label without thresholds is estimated by its mean posterior.
    O(n_labels x n_samples x thresholds); compiled with the extra ``fast``. Fails where positives
    and negatives are hardly separated: many thresholds then give 0 or 1.

    References
    ----------
    Forman, "Quantifying counts and costs via classification", DMKD 17, 2008.

    Examples
    --------
    >>> from prevalens.samples import Samples
    >>> from prevalens.scores import Scores
    >>> posteriors = Scores([[0.9], [0.6], [0.4], [0.2]], kind="posteriors")
    >>> sweep = MedianSweep().fit(posteriors, [[1], [1], [0], [0]])
    >>> sweep.aggregate(posteriors, Samples.from_indices([[0, 1, 2]], n_items=4)).round(3)
    array([[0.667]])
    """

    code = "ms"

    def __init__(self, thresholds: int = 100) -> None:
        self.thresholds = thresholds

    def _fit(self, scores: Scores, Y: LabelMatrix) -> None:
        most = check_int(self.thresholds, "thresholds", minimum=1)
        curves = [_curve(scores.values[:, j], Y[:, j]) for j in range(self.n_labels_)]
        kept = [_thinned(curve, self._usable(curve), most) for curve in curves]
        self.edges_ = [curve.thresholds for curve in kept]
        self.tpr_ = [curve.tpr for curve in kept]
        self.fpr_ = [curve.fpr for curve in kept]
        varies = (self.prevalence_ > 0) & (self.prevalence_ < 1)
        self.matched_ = varies & np.array([len(edges) > 0 for edges in self.edges_], dtype=bool)

    def _usable(self, curve: _Curve) -> Array:
        """Mask of the thresholds whose estimates count."""
        return curve.tpr != curve.fpr

    def _match_items(self, bins: Ints, samples: Samples, label: int) -> Floats:
        if numba is None:
            return super()._match_items(bins, samples, label)
        estimates = np.empty(len(samples))
        gap = self.tpr_[label] - self.fpr_[label]
        rates = self.fpr_[label] / gap, 1.0 / gap
        _sweep(bins, samples.flat, samples.offsets, *rates, estimates)
        return estimates

    def _match(self, shares: Floats, sizes: Ints, label: int) -> Floats:  # noqa: ARG002
        votes = np.cumsum(shares[:, :0:-1], axis=1)[:, ::-1]
        votes -= self.fpr_[label]
        votes /= self.tpr_[label] - self.fpr_[label]
        np.clip(votes, 0.0, 1.0, out=votes)
        return np.asarray(np.median(votes, axis=1, overwrite_input=True))


class MedianSweep2(MedianSweep):
    """Median of the adjusted counts at the thresholds where tpr exceeds fpr by a quarter (MS2).

    Parameters
    ----------
    thresholds : int
        As in `MedianSweep`.

    Attributes
    ----------
    tpr_, fpr_, edges_ : list of arrays of float, one per label
        As in `MedianSweep`.

    Notes
    -----
    Fails where no threshold separates the classes so far: such a label is estimated by its mean
    posterior, as if there was no shift. Complexity of `MedianSweep`.

    References
    ----------
    Forman, "Quantifying counts and costs via classification", DMKD 17, 2008.

    Examples
    --------
    >>> from prevalens.scores import Scores
    >>> posteriors = Scores([[0.9], [0.6], [0.4], [0.2]], kind="posteriors")
    >>> MedianSweep2().fit(posteriors, [[1], [1], [0], [0]]).edges_[0].tolist()
    [0.4, 0.6, 0.9]
    """

    code = "ms2"

    def _usable(self, curve: _Curve) -> Array:
        return curve.tpr - curve.fpr > _GAP


def _thinned(curve: _Curve, usable: Array, most: int) -> _Curve:
    """The usable part of a curve, with at most so many thresholds."""
    rows = np.flatnonzero(usable)
    if len(rows) > most:
        rows = rows[np.linspace(0, len(rows) - 1, most).round().astype(np.intp)]
    return _Curve(*(part[rows] for part in curve))


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return just_in_time(numba, function)


#: Values that are looked at one by one, once no more than these can be the one sought.
_FEW_LEFT = 16
#: Least part of the interval that a probe divides off.
_LEAST_PART = 0.15


@_compiled
def _sweep(bins: Any, flat: Any, offsets: Any, start: Any, slope: Any, medians: Any) -> None:
    """Fill `medians` with the medians over thresholds of ``clip(slope * votes - start, 0, 1)``.

    One sample after the other, so that its estimates at all thresholds stay in the fastest cache.
    """
    n_thresholds = len(start)
    above, estimates = np.empty(n_thresholds + 1, np.int32), np.empty(n_thresholds)
    left = np.empty(n_thresholds + 1)
    rank = (n_thresholds - 1) // 2
    for i in range(len(offsets) - 1):
        size = offsets[i + 1] - offsets[i]
        above[:] = 0
        for k in range(offsets[i], offsets[i + 1]):
            above[bins[flat[k]]] += 1
        for t in range(n_thresholds - 1, 0, -1):
            above[t] += above[t + 1]
        total, zeros, share = 0.0, 0, 1.0 / size
        for t in range(n_thresholds):
            estimate = min(max(above[t + 1] * share * slope[t] - start[t], 0.0), 1.0)
            estimates[t] = estimate
            total += estimate
            zeros += estimate <= 0.0
        median = _value_at(rank, estimates, total / n_thresholds, zeros, left)
        if n_thresholds % 2 == 0 and _count_to(estimates, median) == rank + 1:
            median = 0.5 * (median + _next(estimates, median))
        medians[i] = median


@_compiled
def _count_to(values: Any, limit: float) -> int:
    """Number of values up to a limit."""
    count = 0
    for t in range(len(values)):
        count += values[t] <= limit
    return count


@_compiled
def _next(values: Any, limit: float) -> float:
    """The least value above a limit, at most 1."""
    least = 1.0
    for t in range(len(values)):
        least = min(least, values[t] if values[t] > limit else 1.0)
    return least


@_compiled
def _value_at(rank: int, values: Any, probe: float, zeros: int, left: Any) -> float:
    """The value of a rank, from 0, among values from 0 to 1 of which `zeros` are 0.

    Values up to a probe are counted, by interpolation between earlier counts, until few values
    remain between two probes; these are sorted.
    """
    low, high, below, to = 0.0, 1.0, zeros, len(values)
    if zeros > rank:
        return 0.0
    # All that remain may be equal, so the number of probes is bounded.
    for _ in range(20):
        if to - below <= _FEW_LEFT:
            break
        count = _count_to(values, probe)
        if count > rank:
            high, to = probe, count
        else:
            low, below = probe, count
        part = (rank + 0.5 - below) / (to - below)
        probe = low + (high - low) * min(max(part, _LEAST_PART), 1.0 - _LEAST_PART)
    n_left = 0
    for t in range(len(values)):
        left[n_left] = values[t]
        n_left += (values[t] > low) & (values[t] <= high)
    return float(np.sort(left[:n_left])[rank - below])
