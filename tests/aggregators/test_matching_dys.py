"""DyS against its distances, minimised one sample at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from prevalens.aggregators.matching import DyS, HDy
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.validation import InputError


def topsoe(p, q):
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = p * np.log(2 * p / (p + q)), q * np.log(2 * q / (p + q))
    return np.nansum(parts)


def hellinger(p, q):
    return np.sum((np.sqrt(p) - np.sqrt(q)) ** 2)


def probsymm(p, q):
    total = p + q
    return 2 * np.sum((p - q) ** 2 / np.where(total > 0, total, 1))


DISTANCES = {"topsoe": topsoe, "hellinger": hellinger, "probsymm": probsymm}


def labelled(seed: int, n_items: int = 120) -> tuple[Scores, np.ndarray]:
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_items, 2)) < [0.3, 0.6]).astype(np.int8)
    Y[:2] = [[0, 0], [1, 1]]
    return Scores(rng.beta(1 + 2 * Y, 3 - 2 * Y)), Y


@pytest.mark.parametrize("distance", DISTANCES)
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32 - 1), bins=st.integers(2, 25))
def test_no_other_share_is_nearer(distance: str, seed: int, bins: int) -> None:
    scores, Y = labelled(seed)
    bags = np.random.default_rng(seed).integers(0, 120, (3, 20))
    found = DyS(bins, distance).fit(scores, Y)
    estimates = found.aggregate(scores, Samples.from_indices(bags, n_items=120))
    for j in range(2):
        column = scores.values[:, j]

        def histogram(values):
            return np.histogram(values, bins=bins, range=(0, 1))[0] / len(values)

        pos, neg = histogram(column[Y[:, j] == 1]), histogram(column[Y[:, j] == 0])
        for i, bag in enumerate(bags):
            own = histogram(column[bag])

            def loss(q, own=own, pos=pos, neg=neg):
                return DISTANCES[distance](q * pos + (1 - q) * neg, own)

            best = minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-8})
            least = min(best.fun, loss(0.0), loss(1.0))
            assert loss(estimates[i, j]) == pytest.approx(least, abs=1e-6)


def test_hellinger_is_hdy_between_the_points_of_its_grid() -> None:
    scores, Y = labelled(1)
    samples = Samples.from_indices(np.random.default_rng(0).integers(0, 120, (20, 30)), n_items=120)
    exact = DyS(8, "hellinger").fit(scores, Y).aggregate(scores, samples)
    grid = HDy(8, grid=101).fit(scores, Y).aggregate(scores, samples)
    assert np.abs(exact - grid).max() <= 0.01


def test_several_numbers_of_bins_give_the_median() -> None:
    scores, Y = labelled(2)
    samples = Samples.from_indices(np.random.default_rng(0).integers(0, 120, (5, 30)), n_items=120)
    several = DyS([3, 8, 20]).fit(scores, Y).aggregate(scores, samples)
    each = [DyS(bins).fit(scores, Y).aggregate(scores, samples) for bins in (3, 8, 20)]
    np.testing.assert_allclose(several, np.median(each, axis=0), atol=1e-12)


@pytest.mark.parametrize("kind", [DyS, HDy])
def test_classes_that_look_the_same_are_counted(kind: type) -> None:
    scores = Scores([[0.31], [0.32], [0.33], [0.34]])
    fitted = kind(8).fit(scores, [[1], [0], [1], [0]])
    assert fitted.aggregate(scores, Samples.whole(4))[0, 0] == pytest.approx(0.325)


@pytest.mark.parametrize("distance", DISTANCES)
def test_pure_samples_are_recognised(distance: str) -> None:
    scores, Y = labelled(3)
    bags = [np.flatnonzero(Y[:, 0]), np.flatnonzero(1 - Y[:, 0])]
    samples = Samples.from_indices(bags, n_items=120)
    estimates = DyS(distance=distance).fit(scores, Y).aggregate(scores, samples)
    np.testing.assert_allclose(estimates[:, 0], [1, 0], atol=1e-5)


def test_strange_parameters_are_named() -> None:
    scores, Y = labelled(4)
    with pytest.raises(InputError, match="distance must be one of 'topsoe', 'hellinger'"):
        DyS(distance="euclid").fit(scores, Y)
    with pytest.raises(InputError, match="bins must be at least 2; got 1"):
        DyS(1).fit(scores, Y)
