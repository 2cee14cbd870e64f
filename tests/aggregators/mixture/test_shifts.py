"""Tilts of the labels against the joint Gaussian they stand for, done the long way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from prevalens.aggregators.mixture.shifts import Tilts

COUNT = 40.0


@pytest.fixture
def tilts():
    rng = np.random.default_rng(0)
    joint = np.cov(rng.normal(size=(8, 200)) * np.arange(1, 9)[:, np.newaxis])
    white = np.linalg.inv(np.linalg.cholesky(joint[:5, :5]))
    return Tilts(white @ joint[:5, 5:], rng.random(3), joint[5:, 5:], (0.5, 2.0))


def seen(tilts, scale):
    """Covariances of z, of z with the labels, and of the labels."""
    C, V = tilts.cross, tilts.covariance
    within = np.eye(len(C)) / COUNT + scale**2 * C @ C.T
    shared = C / COUNT + scale**2 * C @ V
    return within, shared, V / COUNT + scale**2 * V @ V


def test_the_likelihood_is_that_of_the_joint_gaussian(tilts):
    z = np.random.default_rng(1).normal(scale=0.3, size=(4, 5))
    turned = tilts.turn(z @ tilts.cross)
    log_likelihoods = tilts.log_likelihood(np.square(z).sum(axis=1), turned**2, COUNT)
    expected = np.column_stack(
        [
            multivariate_normal.logpdf(z, np.zeros(5), seen(tilts, scale)[0])
            for scale in tilts.all_scales
        ]
    )
    np.testing.assert_allclose(
        log_likelihoods - log_likelihoods[:, :1], expected - expected[:, :1], atol=1e-9
    )


@pytest.mark.parametrize("column", [0, 1, 2])
def test_mean_and_variance_are_conditional_ones(tilts, column):
    z = np.random.default_rng(2).normal(scale=0.3, size=(4, 5))
    scale = tilts.all_scales[column]
    within, shared, labels = seen(tilts, scale)
    estimates = tilts.alone(tilts.turn(z @ tilts.cross), scale, COUNT)
    expected = tilts.prevalence + z @ np.linalg.solve(within, shared)
    np.testing.assert_allclose(estimates, expected, atol=1e-9)
    left = np.diag(labels - shared.T @ np.linalg.solve(within, shared))
    np.testing.assert_allclose(tilts.variance(scale, COUNT), left, atol=1e-9)


def test_shares_of_samples_add_up(tilts):
    z = np.random.default_rng(3).normal(scale=0.3, size=(2, 5))
    turned = tilts.turn(z @ tilts.cross)
    shares = np.array([[0.2, 0.3, 0.1], [0.0, 0.0, 0.9]])
    alone = np.array([tilts.alone(turned, scale, COUNT) for scale in tilts.all_scales])
    np.testing.assert_allclose(
        tilts.mean(turned, shares, COUNT), np.einsum("ns,snl->nl", shares, alone), atol=1e-12
    )
