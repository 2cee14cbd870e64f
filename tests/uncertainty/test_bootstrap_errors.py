"""The model of errors: it finds what errors were made of, and covers as promised."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.uncertainty.bootstrap import ErrorModel, Noise, fit_error_model

TRAINING = np.array([0.4, 0.5, 0.6])


def drawn(n: int, seed: int, scale: float = 1.0) -> tuple[Noise, np.ndarray, np.ndarray]:
    """Truth = point + 0.02 + 0.5 (point - training) + noise of known variance."""
    rng = np.random.default_rng(seed)
    point = TRAINING + rng.normal(0, 0.05, (n, 3))
    items = rng.uniform(0.0002, 0.002, (n, 3))
    training = rng.uniform(0, 0.0005, (n, 3))
    error = rng.normal(size=(n, 3)) * np.sqrt(2 * items + training) * scale
    truth = point + 0.02 + 0.5 * (point - TRAINING) + error
    return Noise(point, items, training), truth, rng.integers(0, 2, n)


@pytest.fixture(scope="module")
def model() -> ErrorModel:
    noise, truth, family = drawn(8000, 0)
    return fit_error_model(noise, truth, TRAINING, family)


def test_line_and_variances_are_recovered(model: ErrorModel) -> None:
    np.testing.assert_allclose(model.slope, 0.5, atol=0.1)
    np.testing.assert_allclose(model.offset, 0.02, atol=0.005)
    noise, _, _ = drawn(500, 1)
    wanted = np.sqrt(2 * noise.items + noise.training)
    np.testing.assert_allclose(model.deviation(noise), wanted, rtol=0.15)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
def test_new_samples_are_covered_as_promised(model: ErrorModel, level: float) -> None:
    noise, truth, _ = drawn(4000, 2)
    intervals = model.intervals(noise, level)
    inside = (intervals.lower <= truth) & (truth <= intervals.upper)
    # An interval also holds the point itself, which adds a little where the line moves it out.
    assert np.all(np.abs(inside.mean(axis=0) - level) < (0.06 if level < 0.9 else 0.03))
    bands = (intervals.band_lower <= truth) & (truth <= intervals.band_upper)
    assert level - 0.03 < bands.all(axis=1).mean() < level + 0.06
    assert np.all(
        (intervals.band_lower <= intervals.lower) & (intervals.upper <= intervals.band_upper)
    )
    assert np.all((intervals.lower <= noise.point) & (noise.point <= intervals.upper))


def test_no_kind_of_shift_is_left_far_behind() -> None:
    easy, hard = drawn(900, 3), drawn(100, 4, scale=3.0)
    noise = Noise._make(map(np.concatenate, zip(easy[0], hard[0], strict=True)))
    truth = np.concatenate([easy[1], hard[1]])
    model = fit_error_model(noise, truth, TRAINING, np.repeat([0, 1], [900, 100]))
    intervals = model.intervals(noise, 0.9)
    inside = (intervals.lower <= truth) & (truth <= intervals.upper)
    assert inside[900:].mean() >= 0.86


def test_labels_that_never_err_get_narrow_intervals() -> None:
    noise, truth, family = drawn(300, 5)
    point, truth = noise.point.copy(), truth.copy()
    point[:, 2] = truth[:, 2] = 0.0
    noise = Noise(point, np.where(np.arange(3) == 2, 0.0, noise.items), noise.training)
    intervals = fit_error_model(noise, truth, TRAINING, family).intervals(noise, 0.9)
    assert np.all(intervals.upper[:, 2] < 1e-3)
    assert np.all(np.isfinite(intervals.upper))
