"""Drifts of the items against the joint Gaussian they stand for, done the long way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from prevalens.aggregators.mixture.shifts import Drifts

COUNT = 40.0


@pytest.fixture
def drifts():
    rng = np.random.default_rng(0)
    joint = np.cov(rng.normal(size=(7, 300)) * np.arange(1, 8)[:, np.newaxis] / 7)
    white = np.linalg.inv(np.linalg.cholesky(joint[:4, :4]))
    cross, labels = white @ joint[:4, 4:], joint[4:, 4:]
    return Drifts(np.array([1.0, 0.9, 0.5, 0.1]), cross, rng.random(3), np.diag(labels), (0.1, 0.4))


def seen(drifts, scale):
    """Covariances of z, of z with the labels, and variances of the labels."""
    C, F = drifts.cross, np.diag(drifts.signal_share)
    within = scale**2 * F @ F + np.eye(4) / COUNT
    shared = scale**2 * F @ C + C / COUNT
    return within, shared, scale**2 * np.square(C).sum(axis=0) + drifts.variances / COUNT


def test_the_likelihood_is_that_of_the_joint_gaussian(drifts):
    z = np.random.default_rng(1).normal(scale=0.3, size=(5, 4))
    log_likelihoods = drifts.log_likelihood(np.square(z), COUNT)
    for column, scale in enumerate(drifts.scales):
        expected = multivariate_normal.logpdf(z, np.zeros(4), seen(drifts, scale)[0])
        np.testing.assert_allclose(
            log_likelihoods[:, column], expected + 2 * np.log(2 * np.pi), atol=1e-9
        )


@pytest.mark.parametrize("column", [0, 1])
def test_mean_and_variance_are_conditional_ones(drifts, column):
    z = np.random.default_rng(2).normal(scale=0.3, size=(5, 4))
    scale = drifts.scales[column]
    within, shared, labels = seen(drifts, scale)
    estimates = drifts.alone(z, scale, COUNT)
    shares = np.tile(np.eye(2)[column], (5, 1))
    np.testing.assert_allclose(drifts.mean(z, shares, COUNT), estimates, atol=1e-12)
    onto = np.linalg.solve(within, shared)
    np.testing.assert_allclose(estimates, drifts.prevalence + z @ onto, atol=1e-12)
    left = labels - np.einsum("ij,ij->j", shared, onto)
    np.testing.assert_allclose(drifts.variance(scale, COUNT), left, atol=1e-12)


def test_unlikely_drifts_are_not_followed(drifts):
    z = np.ones((2, 4))
    estimates = drifts.mean(z, np.array([[1e-9, 0.0], [0.5, 0.0]]), COUNT)
    np.testing.assert_allclose(estimates[0], 1e-9 * drifts.prevalence)
    assert np.abs(estimates[1] - 0.5 * drifts.prevalence).max() > 1e-3


def test_there_may_be_none(drifts):
    none = Drifts(drifts.signal_share, drifts.cross, drifts.prevalence, drifts.variances, ())
    assert none.log_likelihood(np.ones((3, 4)), COUNT).shape == (3, 0)
    np.testing.assert_array_equal(none.mean(np.ones((3, 4)), np.empty((3, 0)), COUNT), 0)
