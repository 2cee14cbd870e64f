"""Intervals for any quantifier: a bootstrap, calibrated on samples whose truth is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls
from sklearn.base import BaseEstimator, clone

from prevalens.aggregators.base import Aggregator, never_certain
from prevalens.batches import Batches, Columns, Histogram, Products, ScoredSamples
from prevalens.estimate import Intervals
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.types import Floats, Groups, Ints, LabelMatrix
from prevalens.validation import check_int, check_rng
from prevalens.validation_shifts import draw_shifts

#: Samples that intervals are calibrated on, per kind of shift and size, over all replicas.
_CALIBRATION_SAMPLES = 400
#: Least number of different items, or groups, with which a replica keeps copies together.
_LEAST_GROUPS = 10


class Bootstrap(BaseEstimator):  # type: ignore[misc]
    """Intervals of a quantifier's estimates, from resampled items and labelled scores.

    `fit` fits the aggregator again on resampled labelled scores. Each such replica estimates
    samples of the items it was not fitted on, drawn under several shifts (none, one label steered,
    all labels tilted, label sets weighted); an error model learns how far the truth lies from an
    estimate. For a batch, the variance of its estimate over resampled items, the variance over
    the replicas and the size of the move set the width of the interval.

    Parameters
    ----------
    replicas : int
        Fits of the aggregator on resampled labelled scores. One that learns nothing from scores
        (CC, PCC, uncalibrated SLD) is not refitted.
    resamples : int
        Number of times that the items of each sample are resampled.
    random_state : int

    Attributes
    ----------
    replicas_ : list of fitted Aggregator
    errors_ : ErrorModel
    n_labelled_ : int
        Number of items it was fitted on.

    Notes
    -----
    Costs `replicas` fits of the aggregator, and the scores of the scheme even for aggregators that
    need none. The classifier is not trained again: its own randomness enters only through
    the out-of-fold errors. Replicas are kept, and saved with a model.

    The truth that intervals cover is the prevalence of the batch itself, not of a population
    it came from. Fails where a batch has moved further than in the shifts of the calibration, or
    in another way.

    References
    ----------
    Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7, 1979.
    Vovk, Gammerman and Shafer, "Algorithmic learning in a random world", Springer 2005.

    Examples
    --------
    >>> from prevalens.aggregators import PCC
    >>> rng = np.random.default_rng(0)
    >>> Y = (rng.random((400, 2)) < 0.4).astype(np.int8)
    >>> scores = Scores(0.25 + 0.5 * Y, kind="posteriors")
    >>> pcc = PCC().fit(scores, Y)
    >>> bootstrap = Bootstrap().fit(pcc, scores, Y)
    >>> batches = ScoredSamples(scores, Samples.whole(400))
    >>> _, intervals = bootstrap.estimate(pcc, batches, 0.9)
    >>> truth = Y.mean(axis=0)
    >>> bool(np.all((intervals.lower <= truth) & (truth <= intervals.upper)))
    True
    """

    def __init__(self, *, replicas: int = 20, resamples: int = 40, random_state: int = 0) -> None:
        self.replicas = replicas
        self.resamples = resamples
        self.random_state = random_state

    def fit(
        self,
        aggregator: Aggregator,
        scores: Scores,
        Y: LabelMatrix,
        *,
        groups: Groups = None,
    ) -> Self:
        """Refit the aggregator and learn its errors.

        Parameters
        ----------
        aggregator : Aggregator
            Fitted or not; it is cloned.
        scores : Scores
            Labelled scores that the classifier did not train on.
        Y : 0/1 array, shape (n_items, n_labels)
        groups : array, shape (n_items,), optional
            Items with the same value are drawn together.
        """
        n_replicas = check_int(self.replicas, "replicas", minimum=2)
        times = check_int(self.resamples, "resamples", minimum=2)
        rng = check_rng(self.random_state)
        groups = None if groups is None else np.unique(groups, return_inverse=True)[1]
        fitted = list(_replicas(aggregator, scores, Y, groups, n_replicas, rng))
        refitted = fitted if aggregator.needs_labelled_scores else []
        self.replicas_ = [replica for replica, _ in refitted]
        per_part = -(-_CALIBRATION_SAMPLES // (2 * len(fitted)))
        noises, samples, families = [], [], []
        for replica, unseen in fitted:
            drawn, family = draw_shifts(Y[unseen], per_part, rng)
            part = Samples(unseen[drawn.flat], drawn.offsets, n_items=len(Y))
            batches = ScoredSamples(scores, part)
            noises.append(measure_noise(replica, self.replicas_, batches, times=times, rng=rng))
            samples.append(part)
            families.append(family)
        noise = Noise._make(map(np.concatenate, zip(*noises, strict=True)))
        truth = Samples.concat(samples).mean(Y)
        self.errors_ = fit_error_model(noise, truth, Y.mean(axis=0), np.concatenate(families))
        self.n_labelled_ = len(Y)
        return self

    def estimate(
        self, aggregator: Aggregator, batches: Batches, level: float
    ) -> tuple[Floats, Intervals]:
        """Return the estimates of batches, and their intervals and bands.

        Parameters
        ----------
        aggregator : fitted Aggregator
        batches : Batches
        level : float
        """
        rng = check_rng(self.random_state)
        noise = measure_noise(aggregator, self.replicas_, batches, times=self.resamples, rng=rng)
        point, intervals = noise.point, self.errors_.intervals(noise, level)
        # A label without errors in calibration may have some now: bands leave room for one item of
        # the batch, and for one in as many items as were labelled.
        least = np.maximum(1.0 / batches.sizes, 1.0 / self.n_labelled_)[:, np.newaxis]
        intervals = replace(
            intervals,
            band_lower=np.minimum(intervals.band_lower, np.maximum(point - least, 0.0)),
            band_upper=np.maximum(intervals.band_upper, np.minimum(point + least, 1.0)),
        )
        return point, never_certain(intervals, point, batches.sizes)


def _replicas(
    aggregator: Aggregator,
    scores: Scores,
    Y: LabelMatrix,
    groups: Ints | None,
    n_replicas: int,
    rng: np.random.Generator,
) -> Iterator[tuple[Aggregator, Ints]]:
    """Aggregators fitted on resampled rows, and the rows each has not seen."""
    everything = np.arange(len(Y))
    if not aggregator.needs_labelled_scores:
        yield clone(aggregator).fit(scores, Y), everything
        return
    for _ in range(n_replicas):
        rows = _drawn_again(everything, groups, rng)
        unseen = np.setdiff1d(everything, rows)
        # Copies of an item stay together, or an aggregator that divides the items would learn from
        # some copies and validate on others. Very few items cannot be divided so.
        together = rows if groups is None else groups[rows]
        kept = together if len(np.unique(together)) >= _LEAST_GROUPS else None
        replica = clone(aggregator).fit(scores.take(rows), Y[rows], groups=kept)
        # Of very few items all may have been drawn; then the replica estimates all of them.
        yield replica, unseen if len(unseen) > 1 else everything


def _drawn_again(everything: Ints, groups: Ints | None, rng: np.random.Generator) -> Ints:
    """As many rows, or groups of rows, as there are, with replacement."""
    if groups is None:
        return rng.integers(0, len(everything), len(everything))
    members = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    return np.concatenate([members[g] for g in rng.integers(0, len(members), len(members))])


#: Indices of resampled items at a time, for few labels; fewer where there are many.
_INDICES = 2**22
#: Batches whose means are drawn again at a time.
_BATCHES = 64


class Noise(NamedTuple):
    """Estimates of samples and two variances of each.

    Attributes
    ----------
    point : array of float, shape (n_samples, n_labels)
    items : array of float, of the same shape
        Variance when the items of the sample are drawn again.
    training : array of float, of the same shape
        Variance when the labelled items are drawn again; 0 where nothing was refitted.
    """

    point: Floats
    items: Floats
    training: Floats


def resample(samples: Samples, times: int, rng: np.random.Generator) -> Samples:
    """Draw the items of every sample again, with replacement, `times` times each.

    Returns
    -------
    Samples
        The `times` bags of the first sample, then those of the second, and so on.
    """
    sizes = np.repeat(samples.sizes, times)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    starts = np.repeat(np.repeat(samples.offsets[:-1], times), sizes)
    picks = (rng.random(int(offsets[-1])) * np.repeat(sizes, sizes)).astype(np.int64)
    return Samples(samples.flat[starts + picks], offsets, n_items=samples.n_items)


def redrawn(
    aggregator: Aggregator, batches: Batches, *, times: int, rng: np.random.Generator
) -> Iterator[tuple[slice, Floats]]:
    """Estimates of resampled items, a block of batches at a time.

    Yields
    ------
    rows : slice
        Which batches.
    estimates : array of float, shape (rows, times, n_labels)
    """
    if isinstance(batches, ScoredSamples):
        yield from _items_redrawn(aggregator, batches.scores, batches.samples, times, rng)
        return
    for start in range(0, len(batches), _BATCHES):
        rows = range(start, min(start + _BATCHES, len(batches)))
        each = [batches[np.array([row])] for row in rows]
        means = np.concatenate([_means_redrawn(aggregator, one, times, rng) for one in each])
        sizes = np.repeat(batches.sizes[rows.start : rows.stop], times)
        drawn = np.clip(aggregator._from_means(means, sizes), 0.0, 1.0)
        yield slice(rows.start, rows.stop), drawn.reshape(len(rows), times, -1)


def _means_redrawn(
    aggregator: Aggregator, batch: Batches, times: int, rng: np.random.Generator
) -> Floats:
    """Means of the statistic if the items of a batch were drawn again, shape (times, n_sums).

    Histograms are drawn bin by bin, labels independent of each other; other means are normal, with
    the covariances of the items.
    """
    statistic, size = aggregator.statistic, int(batch.sizes[0])
    assert statistic is not None  # or the batch could not have been read
    means = batch.mean(statistic)
    if isinstance(statistic, Histogram):
        shares, scores = (each[0] for each in statistic.read(means, aggregator.n_labels_))
        counts = np.stack([rng.multinomial(size, _to_one(own), times) for own in shares], axis=1)
        drawn = counts / size
        return np.stack([drawn, drawn * scores], axis=1).reshape(times, -1)
    assert isinstance(statistic, Columns)
    noise = rng.standard_normal((*means.shape[1:], times))
    moved = Products.scaled(noise, batch.mean(Products(statistic))[0], means[0])
    return np.asarray(np.clip(means + moved.T / np.sqrt(size), 0.0, 1.0))


def _to_one(shares: Floats) -> Floats:
    """Shares that sum to 1, or less by rounding."""
    return np.asarray(shares / max(float(shares.sum()), np.finfo(np.float64).tiny))


def _items_redrawn(
    aggregator: Aggregator,
    scores: Scores,
    samples: Samples,
    times: int,
    rng: np.random.Generator,
) -> Iterator[tuple[slice, Floats]]:
    per_index = times * max(1, aggregator.n_labels_ // 16)
    for rows, block in samples.blocks(max(1, _INDICES // per_index)):
        # A sample of millions of items is a block by itself; it is resampled a few times at once.
        at_once = int(np.clip(_INDICES // len(block.flat), 1, times))
        counts = [min(at_once, times - start) for start in range(0, times, at_once)]
        parts = [
            aggregator.aggregate(scores, resample(block, n, rng)).reshape(len(block), n, -1)
            for n in counts
        ]
        yield rows, np.concatenate(parts, axis=1)


def measure_noise(
    aggregator: Aggregator,
    replicas: Sequence[Aggregator],
    batches: Batches,
    *,
    times: int,
    rng: np.random.Generator,
) -> Noise:
    """Estimate batches, and the two variances of the estimates.

    Parameters
    ----------
    aggregator : fitted Aggregator
    replicas : sequence of fitted Aggregator
        The same, each fitted on labelled items drawn again; with fewer than two, the variance of
        training is 0.
    batches : Batches
    times : int
        Number of times that the items are resampled.
    rng : numpy Generator
    """
    point = aggregator.read(batches)
    items = np.empty_like(point)
    for rows, drawn in redrawn(aggregator, batches, times=times, rng=rng):
        items[rows] = drawn.var(axis=1, ddof=1)
    return Noise(point, items, _training_variance(replicas, batches, point))


def _training_variance(replicas: Sequence[Aggregator], batches: Batches, point: Floats) -> Floats:
    if len(replicas) < 2:
        return np.zeros_like(point)
    total, squares = np.zeros_like(point), np.zeros_like(point)
    for replica in replicas:
        # Differences from the point avoid cancellation.
        difference = replica.read(batches) - point
        total += difference
        squares += difference**2
    n = len(replicas)
    return np.asarray(np.maximum(squares - total**2 / n, 0.0) / (n - 1))


#: By how much the coverage of one kind of shift may stay below that of the mix of all.
_SLACK = 0.03
#: Weight of the solution of all labels in that of a single label, as a number of samples.
_SHARED = 50.0
#: Least variance of a label's error, as a share of its mean square.
_LEAST = 0.02
_WEIGHT_ROUNDS = 4
_TINY = 1e-8


@dataclass(frozen=True, eq=False)
class ErrorModel:
    """Where the truth lies around an estimate, label by label.

    The truth is the point, plus a line in how far the point has moved from the training
    prevalence, plus an error whose variance is a sum of: a constant, the two variances of
    `Noise`, the squared move of the label, the mean squared move of all labels. The
    quantiles of that error in units of its standard deviation are those of the samples it was
    learnt from.

    Attributes
    ----------
    training : array of float, shape (n_labels,)
        Prevalences in the training data.
    offset, slope : array of float, shape (n_labels,)
    weights : array of float, shape (n_labels, 5)
    floor : array of float, shape (n_labels,)
        Least variance.
    residuals : array of float32, shape (n_samples, n_labels)
        Studentised errors of the samples it was learnt from.
    family : array of int, shape (n_samples,)
        The kind of shift of each.
    """

    training: Floats
    offset: Floats
    slope: Floats
    weights: Floats
    floor: Floats
    residuals: npt.NDArray[np.float32]
    family: Ints

    def centre(self, point: Floats) -> Floats:
        """Where the truth is expected."""
        return point + self.offset + self.slope * (point - self.training)

    def deviation(self, noise: Noise) -> Floats:
        """Standard deviation of the truth around its centre."""
        return _deviation(self.weights, _parts(noise, self.training), self.floor)

    def intervals(self, noise: Noise, level: float) -> Intervals:
        """Intervals and bands; they hold the point, whatever the centre is."""
        centre, deviation = self.centre(noise.point), self.deviation(noise)
        below, above, around = _reaches(self, level)
        band = around * deviation
        lower = np.minimum(centre + below * deviation, noise.point)
        upper = np.maximum(centre + above * deviation, noise.point)
        ends = lower, upper, np.minimum(centre - band, lower), np.maximum(centre + band, upper)
        return Intervals(*np.clip(ends, 0.0, 1.0))

    def _reach(self, level: float) -> tuple[Floats, Floats]:
        """Quantiles per label, widened until they nearly cover in every kind of shift."""
        tail = (1.0 - level) / 2.0
        below, above = np.quantile(self.residuals, [tail, 1.0 - tail], axis=0)
        below, above = np.minimum(below, -_TINY), np.maximum(above, _TINY)
        needed = np.where(self.residuals > 0, self.residuals / above, self.residuals / below)
        factor = max(1.0, self._worst_family(needed, level))
        return below * factor, above * factor

    def _band_reach(self, level: float) -> float:
        largest = np.abs(self.residuals).max(axis=1)
        return max(float(np.quantile(largest, level)), self._worst_family(largest, level))

    def _worst_family(self, needed: npt.NDArray[np.float32], level: float) -> float:
        share = max(level - _SLACK, 0.0)
        kinds = np.unique(self.family)
        return max(float(np.quantile(needed[self.family == kind], share)) for kind in kinds)


@lru_cache(maxsize=8)
def _reaches(errors: ErrorModel, level: float) -> tuple[Floats, Floats, float]:
    """What intervals and bands reach in standard deviations; the same for all batches."""
    return *errors._reach(level), errors._band_reach(level)


def fit_error_model(noise: Noise, truth: Floats, training: Floats, family: Ints) -> ErrorModel:
    """Learn from samples whose true prevalences are known.

    Parameters
    ----------
    noise : Noise
    truth : array of float, shape (n_samples, n_labels)
    training : array of float, shape (n_labels,)
    family : array of int, shape (n_samples,)

    Notes
    -----
    O(n_samples x n_labels), and one small non-negative least squares per label and round.
    """
    error = truth - noise.point
    offset, slope = _line(noise.point - training, error)
    error = error - offset - slope * (noise.point - training)
    floor = _LEAST * ((error**2).mean(axis=0) + _TINY)
    parts = _parts(noise, training)
    weights = _fit_weights(parts, error**2, floor)
    residuals = (error / _deviation(weights, parts, floor)).astype(np.float32)
    return ErrorModel(training, offset, slope, weights, floor, residuals, family)


def _parts(noise: Noise, training: Floats) -> Floats:
    """The terms whose weighted sum is the variance of an error, (5, n_samples, n_labels)."""
    moved = (noise.point - training) ** 2
    everywhere = np.broadcast_to(moved.mean(axis=1, keepdims=True), moved.shape)
    return np.stack([np.ones_like(moved), noise.items, noise.training, moved, everywhere])


def _deviation(weights: Floats, parts: Floats, floor: Floats) -> Floats:
    sums = sum(weight * part for weight, part in zip(weights.T, parts, strict=True))
    return np.sqrt(np.maximum(sums, floor))


def _line(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Least squares of each column of y on that of x, a little shrunk."""
    dx, dy = x - x.mean(axis=0), y - y.mean(axis=0)
    slope = (dx * dy).sum(axis=0) / (1.05 * (dx**2).sum(axis=0) + _TINY)
    return y.mean(axis=0) - slope * x.mean(axis=0), slope


def _fit_weights(parts: Floats, squared: Floats, floor: Floats) -> Floats:
    """Non-negative weights per label, each row of squared errors weighted by its precision."""
    variance = np.broadcast_to(floor / _LEAST, squared.shape)
    weights = np.zeros((squared.shape[1], len(parts)))
    for _ in range(_WEIGHT_ROUNDS):
        precision = 1.0 / variance**2
        gram = np.einsum("inl,jnl,nl->lij", parts, parts, precision, optimize=True)
        target = np.einsum("inl,nl,nl->li", parts, squared, precision, optimize=True)
        weights = _shared_solution(gram, target, len(squared))
        variance = np.maximum(np.einsum("li,inl->nl", weights, parts), floor)
    return weights


def _shared_solution(gram: Floats, target: Floats, n_rows: int) -> Floats:
    """One solution per label, shrunk towards the solution of all labels together."""
    together = _nonnegative(gram.sum(axis=0), target.sum(axis=0))
    trust = _SHARED / n_rows * np.einsum("lii->li", gram)
    solutions = [
        _nonnegative(matrix + np.diag(own), wanted + own * together)
        for matrix, own, wanted in zip(gram, trust, target, strict=True)
    ]
    return np.stack(solutions)


def _nonnegative(gram: Floats, target: Floats) -> Floats:
    """Non-negative least squares from the normal equations, scaled to a unit diagonal."""
    scale = np.sqrt(np.diag(gram))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    kept = values > 1e-10 * values[-1]
    root = np.sqrt(values[kept])
    solution, _ = nnls(
        root[:, np.newaxis] * vectors[:, kept].T, vectors[:, kept].T @ (target / scale) / root
    )
    return np.asarray(solution / scale)
