"""How much an estimate moves when items, or the labelled data, are drawn again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prevalens.aggregators import Aggregator
from prevalens.samples import Samples
from prevalens.scores import Scores

__all__ = ["Noise", "measure_noise", "redrawn", "resample"]

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

    point: npt.NDArray[np.float64]
    items: npt.NDArray[np.float64]
    training: npt.NDArray[np.float64]


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
) -> Iterator[tuple[slice, npt.NDArray[np.float64]]]:
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
    point: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
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
