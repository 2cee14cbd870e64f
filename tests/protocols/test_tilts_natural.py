"""Uniform sampling."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.protocols import Natural
from prevalens.validation import InputError


def test_every_item_is_drawn_equally_often() -> None:
    Y = np.eye(20)
    samples = Natural(size=5, n_samples=20_000).draw(Y, 0)
    drawn = np.bincount(samples.flat, minlength=20)
    assert np.all(np.abs(drawn - 5000) < 5 * np.sqrt(20_000 * 0.25 * 0.75))


def test_the_whole_pool_as_a_sample_has_its_prevalences() -> None:
    Y = np.random.default_rng(0).integers(0, 2, (30, 4))
    samples = Natural(size=30, n_samples=3).draw(Y, 0)
    np.testing.assert_array_equal(samples.mean(Y), np.tile(Y.mean(axis=0), (3, 1)))


def test_nothing_is_steered() -> None:
    samples = Natural(size=2, n_samples=3).draw(np.eye(4), 0)
    assert samples.target.tolist() == [-1, -1, -1]
    assert np.isnan(samples.prevalence).all()


def test_too_large_a_sample_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="choose size=4 or smaller"):
        Natural(size=5).draw(np.eye(4), 0)
    with pytest.raises(InputError, match="n_samples must be at least 1"):
        Natural(size=2, n_samples=0).draw(np.eye(4), 0)
