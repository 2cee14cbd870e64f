"""MATLAB files of version 5 to 7 with a data and a target matrix.

The parser is our own, for matrices of numbers only, because scipy's crashes the interpreter on
some damaged files.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.collection import Collection
from prevalens.datasets.dataset import DatasetParts
from prevalens.files import about, damaged, read_bytes

_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
#: numpy type of the numbers in a data element, by its type number.
_NUMBERS = dict(enumerate(("i1", "u1", "i2", "u2", "i4", "u4", "f4"), start=1)) | {
    9: "f8",
    12: "i8",
    13: "u8",
}
_SPARSE = 5
#: Classes of full matrices: double, single, and whole numbers of one to eight bytes.
_FULL = range(6, 16)
_COMPLEX = 0x0800


def read_matlab(path: str | Path, *, data: str = "data", target: str = "target") -> Collection:
    """Read a MATLAB file, plain or compressed.

    Parameters
    ----------
    path : str or Path
    data, target : str
        Names of the two variables: (n_items, n_features) numbers, and 0/1 or -1/1 labels as
        (n_items, n_labels) or (n_labels, n_items).

    Notes
    -----
    Version 7.3 files are HDF5 and cannot be read; save them with ``-v7``.
    """
    path = Path(path)
    X, Y = _variables(path, data, target)
    n_items = X.shape[0]
    if Y.shape[0] != n_items and Y.shape[1] == n_items:
        Y = Y.T
    if Y.shape[0] != n_items:
        what = f"{data!r} has {n_items} rows, but {target!r} has the shape {Y.shape}."
        raise damaged(path, what)
    Y = Y.toarray() if sp.issparse(Y) else Y
    with about(path):
        return Collection(X, np.where(Y == -1, 0, Y))


def matlab_parts(
    data: Path, *, n_train: int, n_items: int | None = None, test_roll: int = 0
) -> DatasetParts:
    """Training and test items of a MATLAB file whose first `n_train` rows are for training.

    Parameters
    ----------
    data : Path
    n_train : int
    n_items : int, optional
        Only the first `n_items` rows are used; all rows if omitted.
    test_roll : int
        Positions by which the label columns of the test rows are moved to the right, cyclically,
        for files in which their order differs from that of the training rows.
    """
    whole = read_matlab(data)
    if min(whole.n_items, n_items or whole.n_items) <= n_train:
        raise damaged(data, f"there are {whole.n_items} rows, {n_train} are for training.")
    test = whole.take(slice(n_train, n_items))
    rolled = Collection(test.X, np.roll(test.Y, test_roll, axis=1), test.labels)
    return DatasetParts(whole.take(slice(None, n_train)), rolled)


def _variables(path: Path, *wanted: str) -> list[Any]:
    content = read_bytes(path)
    if content[:10] == b"MATLAB 7.3":
        raise damaged(path, "this is a MATLAB 7.3 file; save it with the option -v7.")
    order = {b"IM": "<", b"MI": ">"}.get(content[126:128])
    if order is None:
        raise damaged(path, "this is no MATLAB file of version 5 to 7.")
    try:
        matrices = dict(_matrices(content[_HEADER:], order, wanted))
    # Wrong sizes lead to errors of numpy or zlib.
    except (ValueError, IndexError, OverflowError, zlib.error) as error:
        raise damaged(path, f"the MATLAB file is damaged ({error}).") from error
    for name in wanted:
        if name not in matrices:
            raise damaged(path, f"there is no matrix of numbers {name!r} in it.")
    return [matrices[name] for name in wanted]


def _matrices(content: bytes, order: str, wanted: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Name and value of the wanted variables that are matrices of numbers."""
    for kind, inner in _elements(content, order):
        if kind == _COMPRESSED:
            yield from _matrices(zlib.decompress(inner), order, wanted)
        elif kind == _MATRIX:
            parts = _elements(inner, order)
            flags = int(_numbers(*_next(parts), order)[0])
            dimensions = _numbers(*_next(parts), order)
            name = _next(parts)[1].decode("latin-1")
            if name in wanted and len(dimensions) == 2 and not flags & _COMPLEX:
                shape = (int(dimensions[0]), int(dimensions[1]))
                value = _value(flags & 0xFF, shape, parts, order)
                if value is not None:
                    yield name, value


def _elements(content: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Type number and content of each data element."""
    at = 0
    while at + 8 <= len(content):
        kind, size = (int(number) for number in np.frombuffer(content, f"{order}u4", 2, at))
        # A small element has its size in the upper half of the type, and its content at once.
        start = at + 8
        if kind >> 16:
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
        if start + size > len(content):
            raise ValueError("it ends inside a variable")
        yield kind, content[start : start + size]
        # Elements start at multiples of 8, but for compressed ones.
        at = start + size if kind == _COMPRESSED else -(-(start + size) // 8) * 8
    if at < len(content):
        raise ValueError("it ends inside a variable")


def _next(parts: Iterator[tuple[int, bytes]]) -> tuple[int, bytes]:
    for part in parts:
        return part
    raise ValueError("a variable is incomplete")


def _numbers(kind: int, content: bytes, order: str) -> npt.NDArray[Any]:
    if kind not in _NUMBERS:
        raise ValueError(f"numbers of the unknown type {kind}")
    return np.frombuffer(content, order + _NUMBERS[kind])


def _value(
    kind: int, shape: tuple[int, int], parts: Iterator[tuple[int, bytes]], order: str
) -> Any:
    """A matrix, column after column in the file; None for anything but numbers."""
    if kind in _FULL:
        flat = _numbers(*_next(parts), order)
        return flat.reshape(shape, order="F").astype(np.float64)
    if kind != _SPARSE:
        return None
    rows, offsets = (_numbers(*_next(parts), order).astype(np.int64) for _ in range(2))
    values = _numbers(*_next(parts), order).astype(np.float64)
    stored = int(offsets[-1])
    if stored > min(len(rows), len(values)) or stored < 0:
        raise ValueError("a sparse matrix has too few entries")
    matrix = sp.csc_matrix((values[:stored], rows[:stored], offsets), shape=shape)
    matrix.check_format(full_check=True)
    return matrix
