"""Multiples of deviations: they cover what was validated, class by class."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from prevalens.aggregators.mixture.calibration import (
    _LEVELS,
    Bands,
    Multiples,
    _quantiles,
)
from prevalens.aggregators.mixture.scenarios import Posterior
from prevalens.samples import Samples
from prevalens.validation_shifts import ShiftedSplit

N_LABELS = 4
PREVALENCE = np.full(N_LABELS, 0.3)


def _act(family: str, true: np.ndarray) -> ShiftedSplit:
    rows = np.arange(10)
    samples = Samples.from_indices([rows] * len(true), n_items=10)
    return ShiftedSplit(0, rows, rows, family, samples, 100, true, PREVALENCE)


def _validated(
    scale: float, *, n_samples: int = 400, family: str = "natural", move: float = 0.2, seed: int = 0
) -> dict[ShiftedSplit, Posterior]:
    """Samples whose errors are `scale` posterior deviations on average."""
    rng = np.random.default_rng(seed)
    mean = 0.3 + move * rng.random((n_samples, 1)) * np.ones(N_LABELS)
    deviation = 0.01 + 0.02 * rng.random((n_samples, N_LABELS))
    true = mean + scale * deviation * rng.standard_normal(mean.shape)
    posterior = Posterior(mean, deviation**2, np.ones(n_samples), np.ones((n_samples, 1)))
    return {_act(family, true): posterior}


def _covered(half: np.ndarray, validated: dict[ShiftedSplit, Posterior]) -> np.ndarray:
    ((split, posterior),) = validated.items()
    return np.abs(split.true - posterior.mean) <= half + 1e-12


def _sizes(posterior: Posterior) -> np.ndarray:
    return np.full(len(posterior.mean), 100)


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_intervals_cover_the_rehearsed_share_in_every_class(scale: float, level: float) -> None:
    validated = _validated(scale)
    ((_, posterior),) = validated.items()
    multiples = Multiples.of(validated, 4, {})
    half = multiples.half_widths(posterior, _sizes(posterior), PREVALENCE, level)
    covered = _covered(half, validated)
    places = multiples.places(posterior, PREVALENCE)
    for number in range(4):
        share = covered[places == number].mean()
        assert level <= share + 1e-9 <= level + 0.02


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_bands_cover_all_labels_of_more_than_the_asked_share(scale: float, level: float) -> None:
    validated = _validated(scale)
    ((_, posterior),) = validated.items()
    bands = Bands.of(validated, 4, {})
    half = bands.half_widths(posterior, _sizes(posterior), PREVALENCE, level)
    together = _covered(half, validated).all(axis=1)
    # The slack: fifteen per cent of what may be missed is not.
    assert 0.85 * (1 - level) + 0.02 >= 1 - together.mean() >= 0.85 * (1 - level) - 0.02


def test_a_family_of_great_weight_decides() -> None:
    easy, hard = _validated(0.5), _validated(3.0, family="label-tilt", seed=1)

    def covered(weight: float, validated: dict[ShiftedSplit, Posterior]) -> float:
        ((_, posterior),) = validated.items()
        multiples = Multiples.of({**easy, **hard}, 1, {"label-tilt": weight})
        half = multiples.half_widths(posterior, _sizes(posterior), PREVALENCE, 0.9)
        return float(_covered(half, validated).mean())

    assert covered(100.0, hard) == pytest.approx(0.9, abs=0.01)
    assert covered(0.01, easy) == pytest.approx(0.9, abs=0.01)
    assert covered(0.01, hard) < 0.5


def test_a_stratum_never_rehearsed_has_gaussian_multiples() -> None:
    validated = _validated(4.0)
    rare = Posterior(
        np.full((1, N_LABELS), 0.0005), np.full((1, N_LABELS), 0.01**2), np.ones(1), np.ones((1, 1))
    )
    half = Multiples.of(validated, 2, {}).half_widths(rare, np.array([100]), PREVALENCE, 0.9)
    np.testing.assert_allclose(half, 0.01 * norm.ppf(0.95), rtol=1e-6)


def test_samples_that_all_moved_alike_leave_classes_that_have_what_all_have() -> None:
    validated = _validated(1.0, move=0.0)
    bands = Bands.of(validated, 6, {})
    np.testing.assert_array_equal(bands.largest, np.tile(bands.largest[:1], (6, 1)))
    assert np.all(bands.largest[:, 1:] > 0)


@given(
    values=st.lists(st.floats(0, 10), min_size=1, max_size=30),
    weights=st.lists(st.integers(1, 4), min_size=30, max_size=30),
)
def test_weighted_quantiles_are_those_of_repeated_values(values, weights):
    values, weights = np.array(values), np.array(weights[: len(values)])
    repeated = np.sort(np.repeat(values, weights))
    at = np.ceil((np.minimum(_LEVELS, 1) - 1e-9) * len(repeated)).astype(int) - 1
    np.testing.assert_array_equal(
        _quantiles(values, weights.astype(float)), repeated[np.clip(at, 0, None)]
    )
