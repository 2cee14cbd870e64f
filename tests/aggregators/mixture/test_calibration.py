"""Multiples of deviations: they cover what was validated, class by class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from prevalens.aggregators.mixture.calibration import (
    _LEVELS,
    Bands,
    BySize,
    Ends,
    Multiples,
    _quantiles,
)
from prevalens.aggregators.mixture.scenarios import Posterior
from prevalens.samples import Samples
from prevalens.validation_shifts import ShiftedSplit

N_LABELS = 4
PREVALENCE = np.full(N_LABELS, 0.3)


def _act(family: str, true: np.ndarray, size: int = 100) -> ShiftedSplit:
    rows = np.arange(10)
    samples = Samples.from_indices([rows] * len(true), n_items=10)
    return ShiftedSplit(0, rows, rows, family, samples, size, true, PREVALENCE)


def _validated(
    scale: float,
    *,
    n_samples: int = 400,
    family: str = "natural",
    move: float = 0.2,
    bias: float = 0.0,
    size: int = 100,
    seed: int = 0,
) -> dict[ShiftedSplit, Posterior]:
    """Samples whose errors are `scale` posterior deviations on average, around `bias` of them."""
    rng = np.random.default_rng(seed)
    mean = 0.3 + move * rng.random((n_samples, 1)) * np.ones(N_LABELS)
    deviation = 0.01 + 0.02 * rng.random((n_samples, N_LABELS))
    true = mean + deviation * (bias + scale * rng.standard_normal(mean.shape))
    posterior = Posterior(mean, deviation**2, np.ones((n_samples, 1)))
    return {_act(family, true, size): posterior}


def _covered(ends: Ends, validated: dict[ShiftedSplit, Posterior]) -> np.ndarray:
    ((split, posterior),) = validated.items()
    error = split.true - posterior.mean
    return (-ends[0] - 1e-12 <= error) & (error <= ends[1] + 1e-12)


def _sizes(posterior: Posterior) -> np.ndarray:
    return np.full(len(posterior.mean), 100)


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_intervals_cover_the_rehearsed_share_in_every_class(scale: float, level: float) -> None:
    validated = _validated(scale)
    ((_, posterior),) = validated.items()
    multiples = Multiples.of(validated, 4, {})
    ends = multiples.ends(posterior, _sizes(posterior), PREVALENCE, level)
    covered = _covered(ends, validated)
    places = multiples.places(posterior, PREVALENCE)
    for number in range(4):
        share = covered[places == number].mean()
        assert level - 0.01 <= share <= level + 0.03


@pytest.mark.parametrize("bias", [-2.0, 2.0])
def test_errors_on_one_side_move_only_the_end_of_that_side(bias: float) -> None:
    # All labels have moved up, so that errors upwards lead away from the training prevalence.
    validated = _validated(0.1, bias=bias)
    ((_, posterior),) = validated.items()
    ends = Multiples.of(validated, 1, {}).ends(posterior, _sizes(posterior), PREVALENCE, 0.9)
    below, above = (end / np.sqrt(posterior.variance) for end in ends)
    far, none = (above, below) if bias > 0 else (below, above)
    assert np.all((far > 2.0) & (far < 2.4))
    np.testing.assert_array_equal(none, 0.0)


def test_sides_follow_the_move_of_the_label_and_not_up_and_down() -> None:
    validated = _validated(0.1, bias=2.0)
    multiples = Multiples.of(validated, 1, {})
    up = Posterior(np.full((1, 4), 0.4), np.full((1, 4), 0.02**2), np.ones((1, 1)))
    down = up._replace(mean=np.full((1, 4), 0.2))
    sizes = np.array([100])
    below, above = multiples.ends(up, sizes, PREVALENCE, 0.9)
    mirrored = multiples.ends(down, sizes, PREVALENCE, 0.9)
    np.testing.assert_allclose(mirrored, (above, below))


def test_labels_that_moved_far_have_multiples_of_their_own() -> None:
    still, far = _validated(0.5, move=0.001), _validated(4.0, move=1e-6, seed=1)
    ((split, posterior),) = far.items()
    far_mean = posterior.mean + 3 * np.sqrt(posterior.variance)
    moved = _act("natural", split.true + far_mean - posterior.mean)
    far = {moved: posterior._replace(mean=far_mean)}
    multiples = Multiples.of({**still, **far}, 1, {})
    for validated in (still, far):
        ((_, posterior),) = validated.items()
        ends = multiples.ends(posterior, _sizes(posterior), PREVALENCE, 0.9)
        assert _covered(ends, validated).mean() == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize("kind", [Multiples, Bands])
def test_between_two_sizes_ends_are_linear_in_the_logarithm_of_the_size(kind: type) -> None:
    small, large = _validated(0.5, size=20), _validated(3.0, size=500, seed=1)
    both = BySize.of(kind, {**small, **large}, 2, {})
    np.testing.assert_array_equal(both.sizes, [20, 500])
    posterior = Posterior(np.full((4, 4), 0.6), np.full((4, 4), 0.02**2), np.ones((4, 1)))
    sizes = np.array([5, 20, 100, 9000])
    alone = [
        kind.of(part, 2, {}).ends(posterior, sizes, PREVALENCE, 0.9) for part in (small, large)
    ]
    found = both.ends(posterior, sizes, PREVALENCE, 0.9)
    for side in (0, 1):
        assert np.all(alone[1][side] > alone[0][side])
        share = np.log(100 / 20) / np.log(500 / 20)
        between = (1 - share) * alone[0][side][2] + share * alone[1][side][2]
        np.testing.assert_allclose(found[side][:2], alone[0][side][:2])
        np.testing.assert_allclose(found[side][2], between)
        np.testing.assert_allclose(found[side][3], alone[1][side][3])


@pytest.mark.parametrize("kind", [Multiples, Bands])
def test_one_size_is_its_calibration_for_all_sizes(kind: type) -> None:
    validated = _validated(1.0)
    ((_, posterior),) = validated.items()
    sizes = np.arange(1, len(posterior.mean) + 1)
    known = posterior, sizes, PREVALENCE, 0.9
    alone = kind.of(validated, 3, {}).ends(*known)
    np.testing.assert_allclose(BySize.of(kind, validated, 3, {}).ends(*known), alone)


def test_folds_of_about_one_size_are_calibrated_together() -> None:
    first, second = _validated(1.0, size=33), _validated(1.0, size=34, seed=1)
    for validated in (first, second):
        ((split, posterior),) = validated.items()
        validated.clear()
        validated[replace(split, planned=34)] = posterior
    assert BySize.of(Multiples, {**first, **second}, 2, {}).sizes.tolist() == [34.0]


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_bands_cover_all_labels_of_more_than_the_asked_share(scale: float, level: float) -> None:
    validated = _validated(scale)
    ((_, posterior),) = validated.items()
    bands = Bands.of(validated, 4, {})
    ends = bands.ends(posterior, _sizes(posterior), PREVALENCE, level)
    together = _covered(ends, validated).all(axis=1)
    # The slack: fifteen per cent of what may be missed is not.
    assert 0.85 * (1 - level) + 0.02 >= 1 - together.mean() >= 0.85 * (1 - level) - 0.02


def test_a_family_of_great_weight_decides() -> None:
    easy, hard = _validated(0.5), _validated(3.0, family="label-tilt", seed=1)

    def covered(weight: float, validated: dict[ShiftedSplit, Posterior]) -> float:
        ((_, posterior),) = validated.items()
        multiples = Multiples.of({**easy, **hard}, 1, {"label-tilt": weight})
        ends = multiples.ends(posterior, _sizes(posterior), PREVALENCE, 0.9)
        return float(_covered(ends, validated).mean())

    assert covered(100.0, hard) == pytest.approx(0.9, abs=0.01)
    assert covered(0.01, easy) == pytest.approx(0.9, abs=0.01)
    assert covered(0.01, hard) < 0.5


def test_a_stratum_never_rehearsed_has_gaussian_multiples() -> None:
    validated = _validated(4.0)
    rare = Posterior(
        np.full((1, N_LABELS), 0.0005), np.full((1, N_LABELS), 0.01**2), np.ones((1, 1))
    )
    ends = Multiples.of(validated, 2, {}).ends(rare, np.array([100]), PREVALENCE, 0.9)
    np.testing.assert_allclose(ends, 0.01 * norm.ppf(0.95), rtol=1e-6)


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
