"""How much an estimate moves when items, or the labelled data, are drawn again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from prevalens.aggregators import Aggregator
from prevalens.estimate import Intervals
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.types import Floats

__all__ = ["ErrorModel", "Noise", "fit_error_model", "measure_noise", "redrawn", "resample"]

#: Indices of resampled items at a time, for few labels; fewer where there are many.
_INDICES = 2**22


@dataclass(frozen=True)
class Noise:
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
    aggregator: Aggregator,
    scores: Scores,
    samples: Samples,
    *,
    times: int,
    rng: np.random.Generator,
) -> Iterator[tuple[slice, Floats]]:
    """Estimates of resampled items, a block of samples at a time.

    Yields
    ------
    rows : slice
        Which samples.
    estimates : array of float, shape (rows, times, n_labels)
    """
    per_index = times * max(1, aggregator.n_labels_ // 16)
    for rows, block in samples.blocks(max(1, _INDICES // per_index)):
        # A sample of millions of items stands alone in its block; it is drawn a few times at once.
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
    scores: Scores,
    samples: Samples,
    *,
    times: int,
    rng: np.random.Generator,
) -> Noise:
    """Estimate samples, and the two variances of the estimates.

    Parameters
    ----------
    aggregator : fitted Aggregator
    replicas : sequence of fitted Aggregator
        The same, each fitted on labelled items drawn again; with fewer than two, the variance of
        training is 0.
    scores : Scores
    samples : Samples
    times : int
        How often the items are drawn again.
    rng : numpy Generator
    """
    point = aggregator.aggregate(scores, samples)
    items = np.empty_like(point)
    for rows, drawn in redrawn(aggregator, scores, samples, times=times, rng=rng):
        items[rows] = drawn.var(axis=1, ddof=1)
    return Noise(point, items, _training_variance(replicas, scores, samples, point))


def _training_variance(
    replicas: Sequence[Aggregator],
    scores: Scores,
    samples: Samples,
    point: Floats,
) -> Floats:
    if len(replicas) < 2:
        return np.zeros_like(point)
    total, squares = np.zeros_like(point), np.zeros_like(point)
    for replica in replicas:
        # Around the point itself, so that nothing cancels.
        difference = replica.aggregate(scores, samples) - point
        total += difference
        squares += difference**2
    n = len(replicas)
    return np.asarray(np.maximum(squares - total**2 / n, 0.0) / (n - 1))


Floats: TypeAlias = Floats

#: By how much the coverage of one kind of shift may stay below that of the mix of all.
_SLACK = 0.03
#: Samples' worth of trust that a label puts into what all labels say about variances.
_SHARED = 50.0
#: Least variance of a label's error, as a share of its mean square.
_LEAST = 0.02
_ROUNDS = 4
_TINY = 1e-8


@dataclass(frozen=True)
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
    family: npt.NDArray[np.int64]

    def centre(self, point: Floats) -> Floats:
        """Where the truth is expected."""
        return point + self.offset + self.slope * (point - self.training)

    def deviation(self, noise: Noise) -> Floats:
        """Standard deviation of the truth around its centre."""
        sums = sum(w * part for w, part in zip(self.weights.T, self._parts(noise), strict=True))
        return np.sqrt(np.maximum(sums, self.floor))

    def _parts(self, noise: Noise) -> list[Floats]:
        return _parts(noise, self.training)

    def intervals(self, noise: Noise, level: float) -> Intervals:
        """Intervals and bands; they hold the point, whatever the centre is."""
        centre, deviation = self.centre(noise.point), self.deviation(noise)
        below, above = self._reach(level)
        lower, upper = centre + below * deviation, centre + above * deviation
        band = self._band_reach(level) * deviation
        return Intervals(
            np.clip(np.minimum(lower, noise.point), 0.0, 1.0),
            np.clip(np.maximum(upper, noise.point), 0.0, 1.0),
            np.clip(np.minimum(np.minimum(centre - band, lower), noise.point), 0.0, 1.0),
            np.clip(np.maximum(np.maximum(centre + band, upper), noise.point), 0.0, 1.0),
        )

    def _reach(self, level: float) -> tuple[Floats, Floats]:
        """Quantiles per label, widened until no kind of shift is left far behind."""
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


def fit_error_model(
    noise: Noise, truth: Floats, training: Floats, family: npt.NDArray[np.int64]
) -> ErrorModel:
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
    parts = np.stack(_parts(noise, training))
    weights = _fit_weights(parts, error**2, floor)
    model = ErrorModel(training, offset, slope, weights, floor, np.empty((0, 0), "f4"), family)
    residuals = (error / model.deviation(noise)).astype(np.float32)
    return ErrorModel(training, offset, slope, weights, floor, residuals, family)


def _parts(noise: Noise, training: Floats) -> list[Floats]:
    """What the variance of an error is a sum of."""
    moved = (noise.point - training) ** 2
    everywhere = np.broadcast_to(moved.mean(axis=1, keepdims=True), moved.shape)
    return [np.ones_like(moved), noise.items, noise.training, moved, everywhere]


def _line(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Least squares of each column of y on that of x, a little shrunk."""
    dx, dy = x - x.mean(axis=0), y - y.mean(axis=0)
    slope = (dx * dy).sum(axis=0) / (1.05 * (dx**2).sum(axis=0) + _TINY)
    return y.mean(axis=0) - slope * x.mean(axis=0), slope


def _fit_weights(parts: Floats, squared: Floats, floor: Floats) -> Floats:
    """Non-negative weights per label, each row of squared errors weighted by its precision."""
    variance = np.broadcast_to(floor / _LEAST, squared.shape)
    weights = np.zeros((squared.shape[1], len(parts)))
    for _ in range(_ROUNDS):
        precision = 1.0 / variance**2
        gram = np.einsum("inl,jnl,nl->lij", parts, parts, precision, optimize=True)
        target = np.einsum("inl,nl,nl->li", parts, squared, precision, optimize=True)
        weights = _shared_solution(gram, target, len(squared))
        variance = np.maximum(np.einsum("li,inl->nl", weights, parts), floor)
    return weights


def _shared_solution(gram: Floats, target: Floats, n_rows: int) -> Floats:
    """One solution per label, drawn towards the solution of all labels together."""
    together = _nonnegative(gram.sum(axis=0), target.sum(axis=0))
    trust = _SHARED / n_rows * np.einsum("lii->li", gram)
    return np.stack(
        [
            _nonnegative(one + np.diag(own), wanted + own * together)
            for one, own, wanted in zip(gram, trust, target, strict=True)
        ]
    )


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
