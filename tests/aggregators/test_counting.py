"""CC and PCC are means, and means are what they seem."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from prevalens.aggregators.counting import CC, PCC
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
    assert not CC.learns
    assert not PCC.learns
    assert (CC.joint, PCC.joint) == (False, False)
