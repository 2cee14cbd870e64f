"""Distinct scores and their numbers against counting by NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prevalens.solvers.score_counts import DistinctScores, ScoreCounts, distinct_scores

pytest.importorskip("numba")


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    digits=st.integers(0, 3),
    missing=st.sampled_from([0.0, 0.001, 0.3, 1.0]),
    extra=st.integers(0, 2000),
)
def test_every_score_is_counted_once(seed, digits, missing, extra):
    rng = np.random.default_rng(seed)
    scores = rng.beta(0.5, 1, 4100 + extra).round(digits)
    scores[rng.random(len(scores)) < missing] = np.nan
    found = distinct_scores(scores)
    values, counts = np.unique(scores, return_counts=True)
    kept = found.counts > 0
    np.testing.assert_array_equal(found.values[kept], values)
    np.testing.assert_array_equal(found.counts[kept], counts)


@pytest.mark.parametrize("other", [0.12345, -0.001, 1.001, 5.0, -np.inf, np.inf, 1e300, -1e300])
@pytest.mark.parametrize("at", [0, 1023, 1024, 4999])
def test_any_other_score_is_found(other, at):
    scores = np.full(5000, 0.5)
    scores[17] = np.nan
    scores[at] = other
    assert distinct_scores(scores) is None


def test_texts_of_scores_and_few_scores_are_left_as_they_are():
    for column in (["0.5"] * 5000, np.full(5000, "0.5"), np.full(10, 0.5), np.full(5000, 1)):
        assert distinct_scores(column) is None


def test_votes_and_answers_are_those_of_the_items():
    rng = np.random.default_rng(0)
    scores = rng.random((6000, 2)).round(2)
    scores[:70, 0] = np.nan
    whole = ScoreCounts(tuple(DistinctScores(column, None) for column in scores.T), 6000)
    counted = ScoreCounts(tuple(distinct_scores(column) for column in scores.T), 6000)
    for each in (whole, counted):
        np.testing.assert_array_equal(each.votes(), (scores > 0.5).sum(axis=0))
        np.testing.assert_array_equal(each.answers(), [5930, 6000])
