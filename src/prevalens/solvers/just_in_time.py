"""Compilation of hot loops, where the extra ``fast`` is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["just_in_time"]


def just_in_time(numba: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled by numba; as it is where there is none (None).

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
