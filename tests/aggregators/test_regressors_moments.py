"""Exact moments of ML-APP: against all samples there are, and as the limit of sampled ridge."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from prevalens.aggregators import CC, PACC, PCC, RQ, SLD, NormalisedRidge
from prevalens.aggregators.regressors import MomentsRidge, ProtocolMoments, protocol_moments
from prevalens.protocols import MLAPP, LabelTilt
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import InputError


def labelled(n: int, n_labels: int, seed: int = 0) -> tuple[Scores, np.ndarray]:
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n, n_labels)) + rng.normal(size=(n, 1))
    Y = (latent > 0.6).astype(np.int8)
    values = 1 / (1 + np.exp(-(latent + rng.normal(size=latent.shape))))
    return Scores(values, "posteriors"), Y


def all_samples(X: np.ndarray, Y: np.ndarray, protocol: MLAPP) -> ProtocolMoments:
    """Every sample of every reachable cell, each cell with the same weight."""
    cells = []
    for label, points in enumerate(protocol.reachable(Y)):
        ones, zeros = np.flatnonzero(Y[:, label] == 1), np.flatnonzero(Y[:, label] == 0)
        for place in np.flatnonzero(points):
            m = int(np.ceil(protocol.size * place / (protocol.grid - 1)))
            rows = [
                [*left, *right]
                for left in combinations(ones, m)
                for right in combinations(zeros, protocol.size - m)
            ]
            drawn = Samples.from_indices(rows, n_items=len(Y))
            means = np.hstack([drawn.mean(X), drawn.mean(Y)])
            cells.append((means.mean(axis=0), means.T @ means / len(means)))
    mean = np.mean([cell_mean for cell_mean, _ in cells], axis=0)
    cov = np.mean([two for _, two in cells], axis=0) - np.outer(mean, mean)
    d = X.shape[1]
    return ProtocolMoments(mean[:d], mean[d:], cov[:d, :d], cov[:d, d:])


def test_moments_are_those_of_all_samples() -> None:
    scores, Y = labelled(9, 3, seed=1)
    Y[:, 2] = 0
    Y[4, 2] = 1  # a single positive has no covariance, and hides most of the grid
    protocol = MLAPP(size=4, grid=5)
    exact_moments, wanted = (f(scores.values, Y, protocol) for f in (protocol_moments, all_samples))
    for name in ("mean_x", "mean_y", "cov_xx", "cov_xy"):
        np.testing.assert_allclose(getattr(exact_moments, name), getattr(wanted, name), atol=1e-12)


def test_rows_give_normalised_ridge() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((50, 4))
    X[:, 3] = 0.5
    Y = rng.random((50, 3))
    exact, sampled = MomentsRidge(0.1).fit(X, Y), NormalisedRidge(0.1).fit(X, Y)
    np.testing.assert_allclose(exact.predict(X), sampled.predict(X), atol=1e-10)
    flat = MomentsRidge(0.1).fit(X, Y[:, 0])
    np.testing.assert_allclose(flat.predict(X), exact.predict(X)[:, 0], atol=1e-12)


def test_sampled_ridge_tends_to_it() -> None:
    scores, Y = labelled(300, 5)
    bags = MLAPP(size=40, grid=11).draw(Y, 1)
    exact = RQ(PCC(), "moments", protocol=MLAPP(size=40)).fit(scores, Y).aggregate(scores, bags)
    off = []
    for repeats in (1, 64):
        protocol = MLAPP(size=40, repeats=repeats)
        sampled = RQ(PCC(), "ridge", protocol=protocol).fit(scores, Y)
        off.append(np.sqrt(np.mean((sampled.aggregate(scores, bags) - exact) ** 2)))
    # Eight times closer with 64 times the samples, give or take the luck of the draw.
    assert off[1] < off[0] / 3
    assert off[1] < 2e-3


def test_adjusted_bases_are_cross_fitted_and_not_clipped() -> None:
    scores, Y = labelled(600, 4)
    bags = MLAPP(size=60, grid=11).draw(Y, 1)
    exact = RQ(PACC(), "moments").fit(scores, Y)
    sampled = RQ(PACC(), "ridge").fit(scores, Y)
    assert exact.n_training_samples_ == 0
    truth = bags.mean(Y)
    errors = [np.abs(rq.aggregate(scores, bags) - truth).mean() for rq in (exact, sampled)]
    assert errors[0] < 1.1 * errors[1]


def test_settings_keep_exact_moments() -> None:
    scores, Y = labelled(200, 3)
    rq = RQ(PCC(), MomentsRidge())
    fitted = list(rq.fit_settings([{"regressor__alpha": a} for a in (0.01, 10.0)], scores, Y))
    whole = Samples.whole(200)
    alone = RQ(PCC(), MomentsRidge(10.0)).fit(scores, Y)
    np.testing.assert_array_equal(
        fitted[1].aggregate(scores, whole), alone.aggregate(scores, whole)
    )


def test_one_label_and_votes() -> None:
    scores, Y = labelled(200, 1)
    votes = Scores((scores.values > 0.5).astype(float), "votes")
    rq = RQ(CC(), "moments").fit(votes, Y)
    assert rq.aggregate(votes, Samples.whole(200)).shape == (1, 1)


def test_refusals_are_sentences() -> None:
    scores, Y = labelled(200, 3)
    with pytest.raises(InputError, match="CC, PCC, ACC or PACC; got SLD"):
        RQ(SLD(), "moments").fit(scores, Y)
    with pytest.raises(InputError, match=r"got PCC\(point='median'\)"):
        RQ(PCC(point="median"), "moments").fit(scores, Y)
    with pytest.raises(InputError, match="known for MLAPP alone; got LabelTilt"):
        RQ(PCC(), "moments", protocol=LabelTilt(50, 100)).fit(scores, Y)
