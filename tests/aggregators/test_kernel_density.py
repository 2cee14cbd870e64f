"""KDEy against densities that are summed over all labelled items."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from prevalens.aggregators import KDEyHD, KDEyML
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import InputError

rng = np.random.default_rng(0)
Y = (rng.random((200, 2)) < [0.2, 0.6]).astype(np.int8)
SCORES = Scores(rng.beta(1 + 2 * Y, 3 - 2 * Y))
BAGS = [np.flatnonzero(Y[:, 0]), np.arange(0, 200, 3), np.array([5]), np.arange(40, 80)]
SAMPLES = Samples.from_indices(BAGS, n_items=200)


def density(points: np.ndarray, centres: np.ndarray, bandwidth: float) -> np.ndarray:
    """Gaussian kernels in the plane (1 - p, p): squared distances are twice those in p."""
    squares = 2 * (points[:, np.newaxis] - centres) ** 2
    return np.exp(-squares / (2 * bandwidth**2)).mean(axis=1)


def classes(points: np.ndarray, j: int, bandwidth: float) -> tuple[np.ndarray, np.ndarray]:
    column = SCORES.values[:, j]
    return tuple(density(points, column[Y[:, j] == y], bandwidth) for y in (1, 0))


@pytest.mark.parametrize("bandwidth", [0.03, 0.1, 0.5])
def test_the_likelihood_is_greatest(bandwidth: float) -> None:
    found = KDEyML(bandwidth).fit(SCORES, Y).aggregate(SCORES, SAMPLES)
    for j in range(2):
        for i, bag in enumerate(BAGS):
            f, g = classes(SCORES.values[bag, j], j, bandwidth)
            best = minimize_scalar(
                lambda q, f=f, g=g: -np.log(q * f + (1 - q) * g).sum(),
                bounds=(0, 1),
                method="bounded",
                options={"xatol": 1e-9},
            )
            assert found[i, j] == pytest.approx(best.x, abs=2e-3)


@pytest.mark.parametrize("bandwidth", [0.05, 0.1, 0.5])
def test_the_hellinger_distance_is_least(bandwidth: float) -> None:
    found = KDEyHD(bandwidth).fit(SCORES, Y).aggregate(SCORES, SAMPLES)
    points = np.linspace(-3, 4, 20_001)
    for j in range(2):
        f, g = classes(points, j, bandwidth)
        for i, bag in enumerate(BAGS):
            own = density(points, SCORES.values[bag, j], bandwidth)
            best = minimize_scalar(
                lambda q, own=own, f=f, g=g: -np.sqrt(own * (q * f + (1 - q) * g)).sum(),
                bounds=(0, 1),
                method="bounded",
                options={"xatol": 1e-9},
            )
            assert found[i, j] == pytest.approx(best.x, abs=2e-3)


@pytest.mark.parametrize("kind", [KDEyML, KDEyHD])
def test_the_labelled_pool_gets_its_own_prevalence(kind: type) -> None:
    whole = kind(0.03).fit(SCORES, Y).aggregate(SCORES, Samples.whole(200))
    np.testing.assert_allclose(whole[0], Y.mean(axis=0), atol=0.02)


@pytest.mark.parametrize("kind", [KDEyML, KDEyHD])
def test_constant_labels_are_counted(kind: type) -> None:
    truth = Y.copy()
    truth[:, 0] = 0
    estimates = kind().fit(SCORES, truth).aggregate(SCORES, SAMPLES)
    np.testing.assert_allclose(estimates[:, 0], SAMPLES.mean(SCORES.values[:, 0]))


def test_an_item_far_from_all_labelled_ones_says_nothing() -> None:
    scores = Scores([[0.01], [0.02], [0.03], [0.04], [1.0]])
    kdey = KDEyML(0.01).fit(scores.take(slice(4)), [[1], [0], [1], [0]])
    each = Samples.from_indices([[4]], n_items=5)
    assert kdey.aggregate(scores, each)[0, 0] == 0.5


@pytest.mark.parametrize("kind", [KDEyML, KDEyHD])
@pytest.mark.parametrize("bandwidth", [0, 0.001, 2, "scott", True, np.nan])
def test_strange_bandwidths_are_named(kind: type, bandwidth: object) -> None:
    with pytest.raises(InputError, match=r"bandwidth must be a number, from 0\.01 to 1; got"):
        kind(bandwidth).fit(SCORES, Y)
