"""What batched solvers keep per column, chosen and put together as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["column_dots", "join_columns", "just_in_time", "select_columns", "visible_only"]

State = TypeVar("State")


def select_columns(state: State, columns: npt.NDArray[Any]) -> State:
    """A dataclass with only some columns.

    Columns are the last axis of arrays and the entries of lists; whatever has a method `select` is
    asked for its part; everything else is shared by all columns.
    """
    parts = {field.name: _part(getattr(state, field.name), columns) for field in fields(state)}  # type: ignore[arg-type]
    return replace(state, **parts)  # type: ignore[type-var]


def _part(value: Any, columns: npt.NDArray[Any]) -> Any:
    if isinstance(value, np.ndarray):
        return value[..., columns]
    if isinstance(value, list):
        return [value[column] for column in columns]
    return value.select(columns) if hasattr(value, "select") else value


def join_columns(left: State, right: State) -> State:
    """A dataclass with the columns of two."""
    parts = {
        field.name: _both(getattr(left, field.name), getattr(right, field.name))
        for field in fields(left)  # type: ignore[arg-type]
    }
    return replace(left, **parts)  # type: ignore[type-var]


def _both(left: Any, right: Any) -> Any:
    if isinstance(left, np.ndarray):
        return np.concatenate([left, right], axis=-1)
    if isinstance(left, list):
        return left + right
    return left.join(right) if hasattr(left, "join") else left


def visible_only(T: npt.NDArray[Any], visible: npt.NDArray[np.bool_] | None) -> npt.NDArray[Any]:
    """Parameters with zeros where a column may not use them; None if it may use all."""
    return T if visible is None else np.where(visible, T, T.dtype.type(0))


def column_dots(A: npt.NDArray[Any], B: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Inner products of the columns of two matrices."""
    return np.asarray(np.einsum("ij,ij->j", A, B))


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
