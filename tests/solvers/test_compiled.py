"""Compilation with and without numba, and the compiled sparse product against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from prevalens.solvers import compiled
from prevalens.solvers.compiled import just_in_time


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from(["float32", "float64"]))
def test_the_product_is_added(seed: int, kind: str) -> None:
    """Rows of all lengths: without entries, with fewer than four, with a rest after fours."""
    rng = np.random.default_rng(seed)
    n_rows, n_params, n_columns = rng.integers(1, [20, 12, 9], endpoint=True)
    matrix = sp.random(n_rows, n_params, density=rng.random(), format="csr", rng=rng, dtype=kind)
    T = rng.normal(size=(n_params, n_columns)).astype(kind)
    start = rng.normal(size=(n_rows, n_columns)).astype(kind)
    out = start.copy()
    compiled.add_product(matrix, T, out)
    np.testing.assert_allclose(out, start + matrix @ T, rtol=1e-4, atol=1e-5)


def test_it_is_there_exactly_when_numba_is() -> None:
    try:
        import numba  # noqa: F401
    except ImportError:
        assert not compiled.available()
    else:
        assert compiled.available()


def test_infinite_parameters_stay_infinite() -> None:
    out = np.zeros((1, 1))
    compiled.add_product(sp.csr_matrix([[1.0, 1.0]]), np.array([[np.inf], [1.0]]), out)
    assert out[0, 0] == pytest.approx(np.inf)


def double(x):
    return 2 * x


def test_without_a_compiler_the_function_stays_as_it_is():
    assert just_in_time(None, double) is double


def test_where_no_cache_can_be_written_it_is_compiled_without_one():
    asked = []

    class Compiler:
        @staticmethod
        def njit(**flags):
            asked.append(flags.pop("cache", False))
            assert flags["nogil"]

            def compile_(function):
                if asked[-1]:
                    raise RuntimeError("cannot cache function: no locator available")
                return lambda x: function(x)

            return compile_

    assert just_in_time(Compiler, double)(3) == 6
    assert asked == [True, False]
