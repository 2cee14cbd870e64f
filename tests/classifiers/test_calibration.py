"""Calibrated scores against the logistic function of their log-odds."""

import numpy as np
import pytest
from scipy.special import expit

from prevalens.classifiers.calibration import (
    calibrated_columns,
    calibrated_sums,
    scaled_log_odds,
)
from prevalens.solvers.score_counts import DistinctScores, ScoreCounts

#: Constant, slope, missing; the last is so steep that exp overflows.
COEFFICIENTS = np.array([[-1.0, 2.5, 0.3], [0.5, -1.0, -2.0], [0.0, 4000.0, 0.0]])


def _expected(scores):
    odds = scaled_log_odds(scores)
    constant, slope, missing = COEFFICIENTS.T
    return np.where(np.isnan(scores), expit(constant + missing), expit(constant + slope * odds))


@pytest.fixture(params=[np.float64, np.float32])
def scores(request):
    """More than one block of scores, some of them missing, 0 or 1."""
    rng = np.random.default_rng(0)
    scores = rng.beta(0.3, 0.6, (40_000, 3)).astype(request.param)
    scores[rng.random(scores.shape) < 0.1] = np.nan
    scores[:2] = 0, 1, 1
    return np.asfortranarray(scores)


def test_log_odds_are_odd_and_end_at_one():
    found = scaled_log_odds(np.array([0, 0.1, 0.5, 0.9, 1, np.nan]))
    np.testing.assert_allclose(found[[0, 2, 4]], [-1, 0, 1], atol=1e-12)
    assert found[1] == pytest.approx(-found[3])
    assert found[3] == pytest.approx(np.log(0.91 / 0.11) / np.log(1.01 / 0.01))
    assert np.isnan(found[5])


def test_columns_are_the_logistic_function_of_log_odds(scores):
    found = calibrated_columns(scores, COEFFICIENTS)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, _expected(scores.astype(float)), rtol=1e-9, atol=1e-300)


def test_sums_are_those_of_the_columns(scores):
    posteriors = calibrated_columns(scores, COEFFICIENTS)
    whole = ScoreCounts(tuple(DistinctScores(own, None) for own in scores.T), len(scores))
    parts = [np.unique(own, return_counts=True) for own in scores.T]
    distinct = [DistinctScores(values, counts.astype(float)) for values, counts in parts]
    for given in (whole, ScoreCounts(tuple(distinct), len(scores))):
        sums, squares = calibrated_sums(given, COEFFICIENTS)
        np.testing.assert_allclose(sums, posteriors.sum(axis=0), rtol=1e-10)
        np.testing.assert_allclose(squares, (posteriors**2).sum(axis=0), rtol=1e-10)
