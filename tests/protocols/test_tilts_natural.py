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


def test_groups_come_together() -> None:
    groups = np.repeat(np.arange(20), 5)
    Y = np.tile([[0], [1]], (50, 1))
    samples = Natural(size=23, n_samples=400, groups=groups).draw(Y, 0)
    chosen = np.array([np.bincount(groups[bag], minlength=20) for bag in samples])
    # Four whole groups, and three items of a fifth.
    assert np.all(np.sort(chosen, axis=1)[:, -5:] == [3, 5, 5, 5, 5])
    np.testing.assert_allclose(chosen.mean(axis=0), 23 / 20, atol=0.3)
    np.testing.assert_allclose(samples.mean(np.eye(100)).mean(axis=0), 0.01, atol=0.004)


def test_groups_of_one_item_are_no_groups() -> None:
    Y = np.tile([[0], [1]], (50, 1))
    alone = Natural(size=20, n_samples=3000, groups=np.arange(100)).draw(Y, 0).mean(Y)
    plain = Natural(size=20, n_samples=3000).draw(Y, 0).mean(Y)
    assert alone.std() == pytest.approx(plain.std(), rel=0.06)


def test_groups_of_another_pool_are_refused() -> None:
    with pytest.raises(InputError, match="groups has 3 rows but Y has 4"):
        Natural(size=2, n_samples=1, groups=[0, 1, 1]).draw(np.eye(4), 0)
