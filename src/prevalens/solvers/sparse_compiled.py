"""The product of a sparse matrix with many columns, compiled.

Four rows of the columns are added at a time, so that the sums are loaded and stored once for four
entries, with the widest vector instructions of the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from prevalens.solvers.columns import just_in_time

__all__ = ["add_product", "available"]

try:
    import numba
except ImportError:
    numba = None


def available() -> bool:
    """Tell whether numba is installed (the extra ``fast``)."""
    return numba is not None


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return just_in_time(numba, function)


def add_product(matrix: Any, T: npt.NDArray[Any], out: npt.NDArray[Any]) -> None:
    """Add a sparse matrix (CSR) times `T` to `out`; both have rows that are contiguous."""
    _add_product(matrix.indptr, matrix.indices, matrix.data, T, out)


@_compiled
def _add_product(indptr: Any, indices: Any, data: Any, T: Any, out: Any) -> None:
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
