"""Columns of a state, chosen and put together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from prevalens.solvers.design import column_dots, visible_only
from prevalens.solvers.newton import ColumnState


@dataclass
class Inner(ColumnState):
    numbers: np.ndarray


@dataclass
class State(ColumnState):
    matrix: np.ndarray
    row: np.ndarray
    names: list[str]
    inner: Inner
    shared: float


def state(n_columns: int) -> State:
    numbers = np.arange(n_columns)
    matrix = np.arange(3 * n_columns).reshape(3, n_columns)
    return State(matrix, numbers, [f"c{number}" for number in numbers], Inner(10 * numbers), 0.5)


@given(st.permutations(range(6)), st.integers(0, 6))
def test_parts_joined_are_the_columns_in_their_new_order(order: list[int], cut: int) -> None:
    whole, places = state(6), np.array(order)
    parts = [whole.select(part) for part in (places[:cut], places[cut:])]
    joined = parts[0].join(parts[1])
    np.testing.assert_array_equal(joined.matrix, whole.matrix[:, places])
    np.testing.assert_array_equal(joined.row, places)
    np.testing.assert_array_equal(joined.inner.numbers, 10 * places)
    assert joined.names == [f"c{number}" for number in order]
    assert joined.shared == 0.5


def test_selecting_leaves_the_state_as_it_was() -> None:
    whole = state(4)
    part = whole.select(np.array([2]))
    part.matrix[:] = -1
    np.testing.assert_array_equal(whole.matrix, state(4).matrix)


def test_column_dots_are_the_diagonal_of_the_product() -> None:
    A, B = np.random.default_rng(0).normal(size=(2, 7, 4))
    np.testing.assert_allclose(column_dots(A, B), np.diag(A.T @ B))


def test_what_is_not_visible_is_zero_even_where_it_is_infinite() -> None:
    T = np.array([[np.inf, 2.0], [3.0, np.nan]], dtype=np.float32)
    shown = visible_only(T, np.array([[False, True], [True, False]]))
    np.testing.assert_array_equal(shown, [[0, 2], [3, 0]])
    assert shown.dtype == np.float32
    assert visible_only(T, None) is T
