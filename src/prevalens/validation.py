"""Checks of all input, with the error messages.

Constructors of the package store their parameters, the functions here check the input, and the
code below trusts it. An error names the value, the place and what to do.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence

import narwhals as nw
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.errors import FormatError, InputError, PrevalensError, PrevalensWarning
from prevalens.types import Array, Floats, Items, LabelMatrix, Labels, Matrix

__all__ = [
    "FormatError",
    "InputError",
    "Matrix",
    "PrevalensError",
    "PrevalensWarning",
    "check_binary_matrix",
    "check_choice",
    "check_fraction",
    "check_int",
    "check_items",
    "check_label_names",
    "check_matrix",
    "check_number",
    "check_prevalences",
    "check_rng",
    "check_same_length",
    "column_names",
    "count_items",
    "is_texts",
    "take_items",
]


def check_int(value: object, name: str, *, minimum: int | None = None) -> int:
    """Return `value` as an int; raise InputError if it is none or too small."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InputError(f"{name} must be a whole number; got {value!r}.")
    if minimum is not None and value < minimum:
        raise InputError(f"{name} must be at least {minimum}; got {value}.")
    return int(value)


def check_fraction(value: object, name: str, *, open_ends: bool = True) -> float:
    """Return `value` as a float between 0 and 1; raise InputError if it is none."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(f"{name} must be a number between 0 and 1; got {value!r}.")
    number = float(value)
    inside = 0.0 < number < 1.0 if open_ends else 0.0 <= number <= 1.0
    if not inside:
        ends = "strictly between 0 and 1" if open_ends else "between 0 and 1"
        # Percent are a usual mistake.
        meant = f"; did you mean {number / 100:g}?" if 1 < number < 100 else "."
        raise InputError(f"{name} must lie {ends}; got {number:g}{meant}")
    return number


def check_number(value: object, name: str, least: float, most: float = np.inf) -> float:
    """Return `value` as a finite float from `least` to `most`; raise InputError if it is none."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not (number and least <= float(value) <= most and np.isfinite(float(value))):  # type: ignore[arg-type]
        ends = f"{least:g} or more" if most == np.inf else f"from {least:g} to {most:g}"
        raise InputError(f"{name} must be a number, {ends}; got {value!r}.")
    return float(value)  # type: ignore[arg-type]


def check_choice(value: object, name: str, choices: Sequence[str]) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
    return value


def check_rng(seed: object) -> np.random.Generator:
    """Turn a seed, a Generator or None into a Generator.

    A whole number gives the same stream every time; None takes a seed of the operating system.
    """
    known = (numbers.Integral, np.random.Generator, np.random.SeedSequence, np.random.BitGenerator)
    if seed is None or isinstance(seed, known):
        return np.random.default_rng(seed)  # type: ignore[arg-type]
    if isinstance(seed, np.random.RandomState):
        return np.random.default_rng(seed.randint(0, 2**31 - 1, size=4))
    raise InputError(
        f"A seed must be a whole number, a numpy Generator or None; got {type(seed).__name__}."
    )


def check_same_length(n_left: int, left: str, n_right: int, right: str) -> None:
    """Refuse two inputs whose numbers of rows differ."""
    if n_left != n_right:
        raise InputError(
            f"{left} has {n_left} rows but {right} has {n_right}; give one row per item in both."
        )


def is_texts(X: object) -> bool:
    """Tell whether `X` is a one-dimensional sequence of strings."""
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and X.dtype.kind in "OUT" and all(isinstance(x, str) for x in X)
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(isinstance(x, str) for x in X)


def _first_bad(values: Array, bad: npt.NDArray[np.bool_]) -> tuple[int, int, object]:
    row, column = np.argwhere(bad)[0]
    value = values[row, column]
    # As people write it: 2, not np.int64(2).
    return int(row), int(column), value.item() if isinstance(value, np.generic) else value


def _check_finite(
    X: Matrix, name: str, columns: Sequence[str] | None, *, missing: bool = False
) -> None:
    """Raise with row, column and value at the first NaN, unless it may be missing, or infinity."""
    data = X.data if sp.issparse(X) else X
    # In the usual case one sum is enough: it is finite only if all values are. A sum that
    # overflows is checked value by value below.
    with np.errstate(over="ignore", invalid="ignore"):
        total = data.sum(dtype=np.float64)
    if np.isfinite(total):
        return
    bad = np.isinf(data) if missing else ~np.isfinite(data)
    if not bad.any():
        return
    if sp.issparse(X):
        position = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(X.indptr, position, side="right") - 1)
        column, value = int(X.indices[position]), data[position]
    else:
        row, column, value = _first_bad(X, bad)
    where = f"{columns[column]!r}" if columns is not None else str(column)
    raise InputError(
        f"{name} has {value} at row {row}, column {where}; fill or drop missing and infinite "
        "values first."
    )


def check_matrix(
    X: Items,
    name: str = "X",
    *,
    columns: Sequence[str] | None = None,
    missing: bool = False,
) -> Matrix:
    """Return `X` as a two-dimensional float array or CSR matrix with finite values.

    Float32 and float64 are kept, all other types become float64. Input that has the right form
    already is not copied.

    Parameters
    ----------
    X : array-like or sparse matrix, shape (n_items, n_features)
    name : str
        Name of the matrix in error messages.
    columns : sequence of str, optional
        Feature names, used in error messages.
    missing : bool
        Whether NaN is allowed, for values that are missing.
    """
    if sp.issparse(X):
        X = sp.csr_array(X) if isinstance(X, sp.sparray) else sp.csr_matrix(X)
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
    else:
        X = _as_float_array(X, name)
    _check_shape(X, name, "features", "A single feature is X.reshape(-1, 1).")
    _check_finite(X, name, columns, missing=missing)
    return X


def _check_shape(matrix: Matrix, name: str, columns: str, hint: str) -> None:
    """Refuse what is not a table with rows and columns; `columns` says what the columns are."""
    if matrix.ndim != 2:
        raise InputError(
            f"{name} must have two dimensions (items, {columns}); got {matrix.ndim}. {hint}"
        )
    if matrix.shape[0] == 0:
        raise InputError(f"{name} has no items; give at least one row.")
    if matrix.shape[1] == 0:
        raise InputError(f"{name} has no {columns}; give at least one column.")


def _as_float_array(X: Items, name: str) -> Array:
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise InputError(f"{name} is not a table of numbers: its rows differ in length.") from error
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype.kind not in "biufO":
        raise InputError(f"{name} must hold numbers; its type is {array.dtype}.")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(_not_a_number(array, name)) from error


def _not_a_number(array: Array, name: str) -> str:
    for index, value in np.ndenumerate(array):
        try:
            float(value)
        except (TypeError, ValueError):
            place = ", ".join(
                f"{word} {i}" for word, i in zip(("row", "column"), index, strict=False)
            )
            return f"{name} must hold numbers; got {value!r} at {place}."
    return f"{name} must hold numbers."


def check_binary_matrix(
    Y: Labels, name: str = "Y", *, labels: Sequence[str] | None = None
) -> LabelMatrix:
    """Return `Y` as a dense 0/1 array of int8, shape (n_items, n_labels).

    Errors name the labels, if they are given.
    """
    if sp.issparse(Y):
        Y = np.asarray(sp.csr_matrix(Y).todense())
    try:
        array = np.asarray(Y)
    except ValueError as error:
        raise InputError(f"{name} is not a table: its rows differ in length.") from error
    _check_shape(array, name, "labels", "For one label use Y.reshape(-1, 1).")
    if array.dtype == np.bool_:
        return array.astype(np.int8)
    good = (array == 0) | (array == 1)
    if not np.all(good):
        row, column, value = _first_bad(array, ~np.asarray(good, dtype=bool))
        where = f"column {column}" if labels is None else f"label {labels[column]!r}"
        raise InputError(f"{name} must be 0 or 1 everywhere; got {value!r} at row {row}, {where}.")
    return np.ascontiguousarray(array, dtype=np.int8)


def check_label_names(labels: Iterable[object] | None, n_labels: int) -> tuple[str, ...]:
    """Return one distinct, non-empty name per label; None gives ``label_0``, ``label_1``, ..."""
    if labels is None:
        return tuple(f"label_{j}" for j in range(n_labels))
    if isinstance(labels, str):
        raise InputError(f"labels must be a list of names, not the single string {labels!r}.")
    names = tuple(str(name) for name in labels)
    if len(names) != n_labels:
        raise InputError(f"There are {n_labels} label columns but {len(names)} label names.")
    seen: dict[str, int] = {}
    for position, name in enumerate(names):
        if not name.strip():
            raise InputError(f"The label name at position {position} is empty.")
        if name in seen:
            raise InputError(
                f"The label name {name!r} stands twice, at positions {seen[name]} and {position}."
            )
        seen[name] = position
    return names


def check_prevalences(values: npt.ArrayLike, name: str) -> Floats:
    """Return prevalences as float64, shape (n_samples, n_labels); one vector becomes one row."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 1:
        array = array[np.newaxis, :]
    if array.ndim != 2:
        raise InputError(f"{name} must have shape (n_samples, n_labels); got {array.shape}.")
    bad = ~((array >= 0) & (array <= 1))
    if bad.any():
        row, column, value = _first_bad(array, bad)
        raise InputError(
            f"{name} must lie between 0 and 1; got {value} in sample {row}, label {column}."
        )
    return array


def column_names(table: object) -> list[str] | None:
    """The names of a data frame's columns; None for anything that is not a data frame."""
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    return list(frame.columns) if isinstance(frame, nw.DataFrame) else None


def count_items(X: Items) -> int:
    """Number of items in an array, sparse matrix, data frame or list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_items(X: Items, rows: Array | slice | Sequence[int]) -> Items:
    """Some items of an array, sparse matrix, data frame or list, by positions, mask or slice."""
    if sp.issparse(X) or isinstance(X, np.ndarray):
        return X[rows]
    positions = np.arange(count_items(X))[rows]
    frame = nw.from_native(X, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(frame, (nw.DataFrame, nw.Series)):
        return nw.to_native(frame[positions.tolist()])
    return [X[i] for i in positions]


def check_items(X: Items, *, missing: bool = False) -> Items:
    """Check items that are numbers; the classifier's own preparation checks texts and frames.

    With `missing`, NaN is a value that the classifier takes.
    """
    native = nw.from_native(X, pass_through=True, allow_series=True)
    mixed = isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 2
    if mixed or isinstance(native, (nw.DataFrame, nw.Series)):
        return X
    return np.asarray(X, dtype=object) if is_texts(X) else check_matrix(X, missing=missing)
