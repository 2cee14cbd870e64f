from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.reports.svg import binned, equal_edges, flat
from prevalens.validation import InputError


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.integers(1, 8))
def test_nothing_is_lost_and_means_are_means(by: list[float], n_bins: int) -> None:
    x = np.array(by)
    y = np.arange(len(x), dtype=float)
    edges = np.linspace(0, 1, n_bins + 1)
    groups = binned(x, y, edges, (0.0, 0.5, 1.0))
    assert groups.counts.sum() == len(x)
    assert (groups.means * groups.counts).sum() == pytest.approx(y.sum())
    for number, mean, quantiles in zip(
        groups.numbers, groups.means, groups.quantiles.T, strict=True
    ):
        upper = x <= 1 if number == n_bins - 1 else x < edges[number + 1]
        own = y[(x >= edges[number]) & upper]
        assert mean == pytest.approx(own.mean())
        assert quantiles == pytest.approx([own.min(), np.median(own), own.max()])


def test_intervals_are_closed_below_and_the_outer_ones_take_everything_beyond() -> None:
    by = np.array([0.0, 0.5, 1.0, -3.0, 7.0])
    groups = binned(by, np.array([1.0, 10.0, 100.0, 1000.0, 10_000.0]), np.array([0.0, 0.5, 1.0]))
    assert groups.counts.tolist() == [2, 3]
    assert groups.means.tolist() == [1001 / 2, 10_110 / 3]
    assert groups.centres.tolist() == [-1.5, 8.5 / 3]
    assert groups.numbers.tolist() == [0, 1]


def test_no_quantiles_are_an_empty_array() -> None:
    groups = binned(np.array([0.1]), np.array([1.0]), np.linspace(0, 1, 3))
    assert groups.quantiles.size == 0


def test_edges_span_the_values_or_one_if_there_is_no_span() -> None:
    assert equal_edges(np.array([0.0, 1.0]), 2).tolist() == [0, 0.5, 1]
    assert equal_edges(np.array([3.0]), 2).tolist() == [3, 3.5, 4]


def test_values_must_be_there_finite_and_of_one_length() -> None:
    assert flat([[1, 2], [3, 4]], "x").tolist() == [1, 2, 3, 4]
    with pytest.raises(InputError, match="x is empty"):
        flat([], "x")
    with pytest.raises(InputError, match="x has values that are not finite"):
        flat([1, np.nan], "x")
    with pytest.raises(InputError, match="2 values on one axis but 1 on the other"):
        binned(np.zeros(2), np.zeros(1), np.linspace(0, 1, 3))
