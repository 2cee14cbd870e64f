"""Grids in exact arithmetic, and even shares."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.protocols.grid import grid_points, positives_wanted, share_out, spread
from prevalens.validation import InputError


@given(st.integers(2, 300))
def test_points_of_a_number_are_evenly_spaced_from_0_to_1(n_points: int) -> None:
    points = grid_points(n_points)
    assert len(points) == n_points
    assert points[0] == 0
    assert points[-1] == 1
    assert {b - a for a, b in pairwise(points)} == {Fraction(1, n_points - 1)}


@given(st.integers(2, 300), st.integers(1, 500))
def test_floats_mean_the_fractions_they_are_near(n_points: int, size: int) -> None:
    """numpy's grids of floats ask for the same numbers of positives as the exact ones."""
    exact = positives_wanted(grid_points(n_points), size)
    for floats in (np.linspace(0, 1, n_points), np.arange(n_points) * (1 / (n_points - 1))):
        np.testing.assert_array_equal(
            positives_wanted(grid_points(np.minimum(floats, 1.0)), size), exact
        )


def test_hundred_items_at_hundredths_need_as_many_positives_as_hundredths() -> None:
    np.testing.assert_array_equal(positives_wanted(grid_points(101), 100), np.arange(101))
    written = [round(0.01 * i, 2) for i in range(101)]
    np.testing.assert_array_equal(positives_wanted(grid_points(written), 100), np.arange(101))


@given(st.fractions(0, 1, max_denominator=1000), st.integers(1, 500))
def test_positives_are_rounded_up(point: Fraction, size: int) -> None:
    (wanted,) = positives_wanted([point], size)
    assert wanted - 1 < size * point <= wanted


def test_fractions_and_whole_numbers_are_kept() -> None:
    assert grid_points([Fraction(1, 3), 0, np.int64(1)]) == (Fraction(1, 3), 0, 1)


@pytest.mark.parametrize(
    ("grid", "sentence"),
    [
        (1, "grid must be at least 2; got 1"),
        (True, "grid must be a whole number; got True"),
        ("fine", "number of points or a list of prevalences; got 'fine'"),
        (0.5, "number of points or a list of prevalences; got 0.5"),
        ([], "grid has no prevalences"),
        ([0.5, 1.5], "between 0 and 1; got 1.5"),
        ([float("nan")], "between 0 and 1; got nan"),
        (["0.5"], "between 0 and 1; got '0.5'"),
        ([True], "between 0 and 1; got True"),
    ],
)
def test_refusals_name_the_value(grid: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        grid_points(grid)


@given(st.integers(1, 400), st.integers(0, 400))
def test_spread_chooses_distinct_places_and_grows(n: int, n_chosen: int) -> None:
    n_chosen = min(n, n_chosen)
    chosen = spread(n, n_chosen)
    assert len(set(chosen.tolist())) == n_chosen
    assert set(chosen.tolist()) <= set(range(n))
    assert set(chosen.tolist()) <= set(spread(n, min(n, n_chosen + 1)).tolist())


def test_spread_serves_every_label_and_every_grid_point() -> None:
    """5 of 101 points each: no label is left out and the chosen points differ between labels."""
    n_labels, n_points = 60, 101
    label, point = np.divmod(spread(n_labels * n_points, 5 * n_labels), n_points)
    per_label = np.bincount(label, minlength=n_labels)
    per_point = np.bincount(point, minlength=n_points)
    assert per_label.min() >= 4
    assert per_label.max() <= 6
    assert per_point.min() >= 1


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 9), st.integers(1, 999))
def test_shares_are_even_and_add_up(
    n_labels: int, n_points: int, repeats: int, max_samples: int
) -> None:
    served = np.random.default_rng(n_labels).random((n_labels, n_points)) < 0.7
    served[0, 0] = True
    shares = share_out(served, repeats, max_samples)
    assert shares.sum() == min(max_samples, served.sum() * repeats)
    assert np.all(shares[~served] == 0)
    assert np.ptp(shares[served]) <= 1
    assert shares.max() <= repeats


def test_the_cap_must_be_a_whole_number_above_0() -> None:
    with pytest.raises(InputError, match="max_samples must be at least 1; got 0"):
        share_out(np.ones((1, 1), dtype=bool), 1, 0)
