"""Compilation by numba, if it is installed, and the compiled product of a sparse matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

try:
    import numba
except ImportError:
    numba = None


def available() -> bool:
    """Tell whether numba is installed (the extra ``fast``)."""
    return numba is not None


def just_in_time(numba: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled by numba; as it is if numba is None.

    Sums may be taken in any order (SIMD); infinities keep their meaning. Without the GIL the
    threads are the caller's own and need no threading layer, which is not safe everywhere.
    """
    if numba is None:
        return function
    flags = {"fastmath": {"reassoc", "contract"}, "error_model": "numpy", "nogil": True}
    try:
        compiled: Callable[..., Any] = numba.njit(cache=True, **flags)(function)
    except RuntimeError:
        # Nowhere to write a cache: a read-only installation without a home.
        compiled = numba.njit(**flags)(function)
    return compiled


def add_product(matrix: Any, T: npt.NDArray[Any], out: npt.NDArray[Any]) -> None:
    """Add a sparse matrix (CSR) times `T` to `out`; both have rows that are contiguous."""
    _add_product(matrix.indptr, matrix.indices, matrix.data, T, out)


def _add_product(indptr: Any, indices: Any, data: Any, T: Any, out: Any) -> None:
    # Four rows of the columns are added at a time, so that the sums are loaded and stored once for
    # four entries, with the widest vector instructions of the machine.
    for row in range(len(indptr) - 1):
        sums = out[row]
        at, end = indptr[row], indptr[row + 1]
        while at + 4 <= end:
            a, b, c, d = data[at], data[at + 1], data[at + 2], data[at + 3]
            A, B = T[indices[at]], T[indices[at + 1]]
            C, D = T[indices[at + 2]], T[indices[at + 3]]
            for j in range(len(sums)):
                sums[j] += a * A[j] + b * B[j] + c * C[j] + d * D[j]
            at += 4
        while at < end:
            a, A = data[at], T[indices[at]]
            for j in range(len(sums)):
                sums[j] += a * A[j]
            at += 1


_add_product = just_in_time(numba, _add_product)
