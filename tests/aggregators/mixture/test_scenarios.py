"""The closed forms against sums done the long way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from prevalens.aggregators.mixture.scenarios import Moments, ScenarioModel


@pytest.fixture(scope="module")
def labelled():
    rng = np.random.default_rng(0)
    Y = (rng.random((400, 3)) < [0.5, 0.3, 0.2]).astype(np.int8)
    values = 0.3 * Y @ np.array([[1, 0.3, 0], [0, 1, 0.2], [0.1, 0, 1]]) + rng.normal(
        scale=0.2, size=(400, 3)
    )
    return values, Y


def model(labelled, **changes):
    settings = {
        "shrinkage": 1e-9,
        "evidence_weights": (1.0,),
        "scales": (1.0,),
        "prior": (1.0, 1.0, 1.0, 1.0),
    }
    return ScenarioModel(Moments.of(*labelled), **(settings | changes))


def test_moments_are_those_of_the_items(labelled):
    values, Y = labelled
    moments = Moments.of(values, Y)
    for label in range(3):
        turned = (values - values.mean(axis=0)) @ moments.axes
        low = turned[Y[:, label] == 0].mean(axis=0)
        high = turned[Y[:, label] == 1].mean(axis=0)
        np.testing.assert_allclose(moments.low[label], low, atol=1e-12)
        np.testing.assert_allclose(moments.low[label] + moments.step[label], high, atol=1e-12)
        both = Y[Y[:, label] == 1].mean(axis=0)
        np.testing.assert_allclose(moments.others_low[label] + moments.others_step[label], both)
    np.testing.assert_allclose(moments.covariance, np.cov(Y.T, bias=True))


def test_weights_are_the_evidence_summed_over_a_fine_grid(labelled):
    values, Y = labelled
    scenario_model = model(labelled)
    size, z = 50, values[Y[:, 0] == 1][:50].mean(axis=0)
    posterior = scenario_model.posterior(z[np.newaxis], size)
    expected = _weights_by_hand(values, Y, z, size)
    np.testing.assert_allclose(posterior.weights[0], expected, rtol=0.02, atol=1e-6)


def _weights_by_hand(values, Y, z, size):
    n_items, mean = len(Y), values.mean(axis=0)
    covariance = np.cov(values.T, bias=True)
    evidences = []
    for label in range(3):
        rows = Y[:, label] == 1
        grid = np.linspace(0, 1, 2001)
        reachable = min(rows.sum() / 100, 1.0)
        density = 0.05 + 0.95 * (grid <= reachable) / reachable
        likelihood = [
            multivariate_normal.pdf(
                z,
                g * values[rows].mean(axis=0) + (1 - g) * values[~rows].mean(axis=0),
                covariance * (1 / size + g**2 / rows.sum() + (1 - g) ** 2 / (~rows).sum()),
            )
            for g in grid
        ]
        evidences.append(np.trapezoid(np.array(likelihood) * density, grid) * reachable)
    single = np.array(evidences)
    shares = np.minimum(Y.sum(axis=0) / 100, 1.0)
    single /= shares.sum()
    noise = 1 / size + 1 / n_items
    cross = (values - mean).T @ (Y - Y.mean(axis=0)) / n_items
    none = multivariate_normal.pdf(z, mean, covariance * noise)
    many = multivariate_normal.pdf(z, mean, covariance * noise + cross @ cross.T)
    weights = np.concatenate([single, [none, many]])
    return weights / weights.sum()


def test_many_moves_are_the_conditional_mean_of_a_gaussian(labelled):
    values, Y = labelled
    size, scale = 50, 1.0
    scenario_model = model(labelled, prior=(0.0, 0.0, 1.0, 0.0), scales=(scale,))
    z = values.mean(axis=0) + 0.02
    count = 1 / (1 / size + 1 / len(Y))
    S, V = np.cov(values.T, bias=True), np.cov(Y.T, bias=True)
    C = (values - values.mean(axis=0)).T @ (Y - Y.mean(axis=0)) / len(Y)
    seen = S / count + scale**2 * C @ C.T
    shared = C / count + scale**2 * C @ V
    expected = Y.mean(axis=0) + shared.T @ np.linalg.solve(seen, z - values.mean(axis=0))
    posterior = scenario_model.posterior(z[np.newaxis], size)
    np.testing.assert_allclose(posterior.mean[0], expected, atol=2e-3)


def test_blocks_of_samples_change_nothing(labelled, monkeypatch):
    values, _ = labelled
    whole = model(labelled).posterior(values[:40], 30, variance=True)
    monkeypatch.setattr("prevalens.aggregators.mixture.scenarios._BLOCK", 21)
    parts = model(labelled).posterior(values[:40], 30, variance=True)
    for left, right in zip(whole, parts, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-12)


def test_variance_shrinks_with_the_size_of_the_sample(labelled):
    values, _ = labelled
    mean = values[:60].mean(axis=0)[np.newaxis]
    small = model(labelled).posterior(mean, 20, variance=True).variance
    large = model(labelled).posterior(mean, 200, variance=True).variance
    assert np.all(large < small)


def test_several_tempers_are_weighed_by_their_evidence(labelled):
    values, Y = labelled
    rng = np.random.default_rng(1)
    means = np.array([values[rng.choice(len(Y), 40)].mean(axis=0) for _ in range(30)])
    means[::3] += [0.3, -0.2, 0.1]
    weights = (1.0, 0.25, 0.05)
    together = model(labelled, evidence_weights=weights).posterior(means, 40, variance=True)
    shares, alone = [], []
    for weight in weights:
        seen = model(labelled, evidence_weights=(weight,))
        part = seen._at(seen._see(means, 40), np.arange(30), 40, weight, variance=True)
        shares.append(part.evidence)
        alone.append(part)
    shares = np.exp(shares - np.max(shares, axis=0))
    shares /= shares.sum(axis=0)
    mean = sum(share[:, np.newaxis] * part.mean for share, part in zip(shares, alone, strict=True))
    second = sum(
        share[:, np.newaxis] * (part.variance + part.mean**2)
        for share, part in zip(shares, alone, strict=True)
    )
    np.testing.assert_allclose(together.mean, np.clip(mean, 0, 1), atol=1e-5)
    np.testing.assert_allclose(together.variance, second - mean**2, atol=1e-5)
    # Samples that no move of a label explains count for less.
    trust = np.array(weights) @ shares
    assert trust[::3].mean() < trust[1::3].mean()


def test_the_rough_evidence_is_near_the_integral(labelled):
    values, Y = labelled
    seen = model(labelled)
    means = np.array([values[Y[:, label] == 1][:50].mean(axis=0) for label in range(3)])
    rows = np.arange(3)
    exact = seen._at(seen._see(means, 50), rows, 50, 1.0, variance=False).evidence
    np.testing.assert_allclose(seen._rough(seen._see(means, 50), 50, 1.0), exact, atol=3)


def test_shrinkage_makes_few_items_count_less(labelled):
    assert model(labelled)._mean_signal_share == pytest.approx(1)
    assert model(labelled, shrinkage=1.0)._mean_signal_share < 0.7
