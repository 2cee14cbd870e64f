"""CC and PCC are means, and means are what they seem."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.aggregators.counting import CC, PCC, TrainingPrevalence
from prevalens.datasets import synthetic
from prevalens.protocols import MLAPP, LabelsetWeights, LabelTilt, Natural, Protocol
from prevalens.samples import Samples
from prevalens.scores import Scores


def test_perfect_votes_over_the_whole_pool_give_the_prevalence() -> None:
    Y = np.random.default_rng(0).integers(0, 2, (50, 3))
    votes = Scores(Y, kind="votes")
    estimates = CC().fit(votes, Y).aggregate(votes, Samples.whole(50))
    np.testing.assert_array_equal(estimates[0], Y.mean(axis=0))


def test_posteriors_that_are_votes_make_both_agree() -> None:
    rng = np.random.default_rng(1)
    Y, values = rng.integers(0, 2, (40, 3)), rng.integers(0, 2, (40, 3))
    samples = Samples.from_indices(rng.integers(0, 40, (6, 7)), n_items=40)
    votes, posteriors = Scores(values, kind="votes"), Scores(values, kind="posteriors")
    np.testing.assert_array_equal(
        CC().fit(votes, Y).aggregate(votes, samples),
        PCC().fit(posteriors, Y).aggregate(posteriors, samples),
    )


@given(seed=st.integers(0, 2**32 - 1))
def test_pcc_is_the_loop_over_samples(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.random((30, 4))
    bags = [rng.integers(0, 30, rng.integers(1, 20)) for _ in range(5)]
    posteriors = Scores(values, kind="posteriors")
    pcc = PCC().fit(posteriors, values > 0.5)
    estimates = pcc.aggregate(posteriors, Samples.from_indices(bags, n_items=30))
    slow = [[np.mean([values[i, j] for i in bag]) for j in range(4)] for bag in bags]
    np.testing.assert_allclose(estimates, slow, rtol=0, atol=1e-14)


def test_counting_declares_that_it_learns_nothing() -> None:
    assert not CC.needs_labelled_scores
    assert not PCC.needs_labelled_scores
    assert (CC.joint, PCC.joint) == (False, False)


@pytest.mark.parametrize(
    "protocol",
    [
        MLAPP(100, more_than=199, max_samples=200),
        Natural(100, 200),
        Natural(10, 200),
        LabelTilt(100, 200),
        LabelsetWeights(100, 200),
    ],
    ids=repr,
)
@pytest.mark.parametrize(("n_items", "n_labels"), [(334, 161), (600, 8)])
def test_intervals_of_the_training_prevalence_cover_under_drawn_shifts(
    protocol: Protocol, n_items: int, n_labels: int
) -> None:
    data = synthetic(n_train=n_items, n_test=1000, n_labels=n_labels, random_state=1)
    naive = TrainingPrevalence().fit(Scores(data.train.X, "features"), data.train.Y)
    samples = protocol.draw(data.test.Y, 3)
    point, intervals = naive.estimate(Scores(data.test.X, "features"), samples, 0.9)
    truth = samples.mean(data.test.Y)
    np.testing.assert_array_equal(point, np.tile(data.train.Y.mean(axis=0), (len(samples), 1)))
    assert np.mean((intervals.lower <= truth) & (truth <= intervals.upper)) > 0.8
    assert np.mean(intervals.upper - intervals.lower) < 0.6


def test_three_labelled_items_say_nothing_of_shifts() -> None:
    items = Scores(np.zeros((3, 1)), "features")
    naive = TrainingPrevalence().fit(items, [[1], [0], [0]])
    _, intervals = naive.estimate(items, Samples.whole(3), 0.9)
    assert (intervals.lower, intervals.upper) == (0, 1)
