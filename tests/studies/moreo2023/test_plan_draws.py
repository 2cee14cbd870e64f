"""Folds and samples as the paper's code draws them."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.studies.moreo2023.plan import CoarseAPP, InOrder
from prevalens.validation import InputError


def labels(n_items: int, *positives: int) -> np.ndarray:
    """A matrix whose columns have so many positives, at the head."""
    return (np.arange(n_items)[:, np.newaxis] < np.array(positives)).astype(np.int8)


def test_folds_are_neighbours() -> None:
    parts = list(InOrder(3).split(np.zeros((7, 1))))
    assert [rows.tolist() for _, rows in parts] == [[0, 1, 2], [3, 4], [5, 6]]
    for rest, rows in parts:
        assert sorted([*rest, *rows]) == list(range(7))


def test_samples_hold_what_they_were_steered_to() -> None:
    Y = labels(300, 33, 4, 150)
    protocol = CoarseAPP()
    samples = protocol.draw(Y, 0)
    drawn = samples.mean(Y)[np.arange(len(samples)), samples.target]
    np.testing.assert_allclose(drawn, samples.prevalence)
    assert set(samples.target) == {0, 2}, "a label of fewer than five positives is not steered"
    points = {label: np.unique(samples.prevalence[samples.target == label]) for label in (0, 2)}
    np.testing.assert_allclose(points[0], np.arange(7) * 0.05)
    np.testing.assert_allclose(points[2], np.arange(21) * 0.05)
    repeats = 5_000 // (21 * 3)
    assert protocol.count(Y) == len(samples) == repeats * (7 + 21)


def test_items_are_repeated_only_if_they_run_short() -> None:
    Y = labels(120, 40)
    samples = CoarseAPP().draw(Y, 0)
    for rows, share in zip(samples, samples.prevalence, strict=True):
        times = np.bincount(rows, minlength=120)
        assert times[:40].max() <= 1, "positives never run short"
        short = 100 - round(100 * share) > 80
        assert (times[40:].max() > 1) == short


def test_many_labels_have_one_sample_each() -> None:
    Y = np.repeat(labels(200, 20), 300, axis=1)
    assert CoarseAPP().count(Y) == 300 * 5


def test_a_pool_without_enough_positives() -> None:
    with pytest.raises(InputError, match="No label of the pool has 5 positives"):
        CoarseAPP().draw(labels(50, 4), 0)
