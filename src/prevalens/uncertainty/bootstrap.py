"""Intervals for any quantifier, by drawing the items of every sample again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from prevalens.aggregators import Aggregator
from prevalens.estimate import Intervals
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import check_int, check_rng

__all__ = ["Bootstrap", "resample"]


class Bootstrap(BaseEstimator):  # type: ignore[misc]
    """Intervals from estimates of resampled items.

    Parameters
    ----------
    resamples : int
        Times that the items of each sample are drawn again.
    random_state : int
    """

    def __init__(self, *, resamples: int = 100, random_state: int = 0) -> None:
        self.resamples = resamples
        self.random_state = random_state

    def intervals(
        self, aggregator: Aggregator, scores: Scores, samples: Samples, level: float
    ) -> Intervals:
        """Intervals and bands of many samples at the given level."""
        n_resamples = check_int(self.resamples, "resamples", minimum=2)
        again = resample(samples, n_resamples, check_rng(self.random_state))
        point = aggregator.aggregate(scores, samples)
        drawn = aggregator.aggregate(scores, again).reshape(len(samples), n_resamples, -1)
        tail = (1 - level) / 2
        lower, upper = np.quantile(drawn, [tail, 1 - tail], axis=1)
        spread = np.maximum(drawn.std(axis=1), 1e-12)
        largest = (np.abs(drawn - point[:, np.newaxis]) / spread[:, np.newaxis]).max(axis=2)
        reach = np.quantile(largest, level, axis=1)[:, np.newaxis] * spread
        return Intervals(
            np.minimum(lower, point),
            np.maximum(upper, point),
            np.clip(point - reach, 0, 1),
            np.clip(point + reach, 0, 1),
        )


def resample(samples: Samples, times: int, rng: np.random.Generator) -> Samples:
    """Draw the items of every sample again, with replacement, `times` times each.

    Returns
    -------
    Samples
        The `times` bags of the first sample, then those of the second, and so on.
    """
    sizes = np.repeat(samples.sizes, times)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    starts = np.repeat(samples.offsets[:-1], times)
    picks: npt.NDArray[np.int64] = (rng.random(offsets[-1]) * np.repeat(sizes, sizes)).astype(
        np.int64
    )
    flat = samples.flat[np.repeat(starts, sizes) + picks]
    return Samples(flat, offsets, n_items=samples.n_items)
