"""Drawing items again: bags of the right size, and variances that theory knows."""

from __future__ import annotations

import numpy as np

from prevalens.aggregators import PCC
from prevalens.batches import ScoredSamples
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.uncertainty import bootstrap as module
from prevalens.uncertainty.bootstrap import measure_noise, redrawn, resample

RNG = np.random.default_rng(0)
SCORES = Scores(RNG.random((60, 3)))
SAMPLES = Samples.from_indices([range(40), range(30, 60), [7]], n_items=60)
BATCHES = ScoredSamples(SCORES, SAMPLES)
COUNT = PCC().fit(SCORES, np.eye(60, 3))


def test_resampled_bags_hold_items_of_their_sample() -> None:
    again = resample(SAMPLES, 5, np.random.default_rng(1))
    assert again.sizes.tolist() == [40] * 5 + [30] * 5 + [1] * 5
    for position, bag in enumerate(again):
        assert set(bag) <= set(SAMPLES[position // 5])
    assert len({tuple(bag) for bag in again}) == 11


def test_variance_of_a_mean() -> None:
    noise = measure_noise(COUNT, [], BATCHES, times=4000, rng=np.random.default_rng(2))
    wanted = [SCORES.values[bag].var(axis=0) / len(bag) for bag in SAMPLES]
    np.testing.assert_allclose(noise.items, wanted, rtol=0.15, atol=1e-15)
    np.testing.assert_array_equal(noise.point, SAMPLES.mean(SCORES.values))
    assert not noise.training.any()


class _Moved(PCC):
    """PCC that answers a constant more."""

    def __init__(self, by: float = 0.0) -> None:
        super().__init__()
        self.by = by

    def _aggregate(self, scores: Scores, samples: Samples) -> np.ndarray:
        return super()._aggregate(scores, samples) + self.by


def test_training_variance_is_that_over_replicas() -> None:
    moves = [-0.01, 0.0, 0.02, 0.05]
    replicas = [_Moved(by).fit(SCORES, np.eye(60, 3)) for by in moves]
    samples = SAMPLES[:2]
    noise = measure_noise(
        COUNT, replicas, ScoredSamples(SCORES, samples), times=2, rng=np.random.default_rng(0)
    )
    np.testing.assert_allclose(noise.training, np.var(moves, ddof=1))


def test_blocks_and_large_samples_draw_as_many(monkeypatch) -> None:
    monkeypatch.setattr(module, "_INDICES", 100)
    shapes = [
        (rows, drawn.shape)
        for rows, drawn in redrawn(COUNT, BATCHES, times=7, rng=np.random.default_rng(0))
    ]
    assert [shape[1:] for _, shape in shapes] == [(7, 3)] * len(shapes)
    assert sum(shape[0] for _, shape in shapes) == 3


def test_every_item_of_a_sample_is_drawn_again_equally_often() -> None:
    samples = Samples.from_indices([[3, 5, 8], [9, 2]], n_items=10)
    again = resample(samples, 6000, np.random.default_rng(0))
    counts = np.bincount(again.flat, minlength=10)
    np.testing.assert_allclose(counts[[3, 5, 8, 9, 2]], 6000, rtol=0.05)
    assert counts.sum() == 5 * 6000


def test_the_variance_of_few_draws_is_unbiased() -> None:
    noise = measure_noise(COUNT, [], BATCHES, times=3, rng=np.random.default_rng(5))
    drawn = redrawn(COUNT, BATCHES, times=3, rng=np.random.default_rng(5))
    for rows, estimates in drawn:
        mean = estimates.sum(axis=1) / 3
        squares = ((estimates - mean[:, np.newaxis]) ** 2).sum(axis=1)
        np.testing.assert_allclose(noise.items[rows], squares / 2)
