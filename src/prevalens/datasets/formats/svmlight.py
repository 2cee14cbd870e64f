"""Multi-label svmlight and libsvm files: ``3,17 1:0.5 8:1`` per item.

Also the format of the extreme classification repository, which is the same with a first line
``n_items n_features n_labels``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.collection import Collection
from prevalens.datasets.dataset import DatasetParts
from prevalens.files import about, damaged, read_text
from prevalens.types import Floats
from prevalens.validation import FormatError, InputError

__all__ = ["read_svmlight", "svmlight_parts"]

_HEADER = re.compile(r"\d{1,9}\s+\d{1,9}\s+\d{1,9}")
_LABELS = re.compile(r"-?\d{1,9}(?:\.0*)?(?:,-?\d{1,9}(?:\.0*)?)*")
_FEATURES = re.compile(r"\s*(?:\d{1,9}:[^\s:]+(?:\s+|$))*")
_QUERY = re.compile(r"\s*qid:\S+")


@dataclass(frozen=True)
class _Parsed:
    """One file: labels and entries of each item, and the sizes its header promises."""

    path: Path
    labels: list[list[int]]
    counts: list[int]
    columns: npt.NDArray[np.int64]
    values: Floats
    lines: list[int]
    header: tuple[int, int, int] | None

    @property
    def first(self) -> int | None:
        """The smallest feature number, None if there is none."""
        return int(self.columns.min()) if len(self.columns) else None

    def matrix(self, n_features: int, base: int) -> Any:
        """CSR matrix of the entries, features counted from `base`."""
        columns = self.columns - base
        outside = np.flatnonzero((columns < 0) | (columns >= n_features))
        if len(outside):
            row = self._rows()[outside[0]]
            what = (
                f"feature {self.columns[outside[0]]} is outside of the {n_features} features "
                f"counted from {base}."
            )
            raise damaged(self.path, what, line=self.lines[row])
        offsets = np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)
        matrix = sp.csr_matrix(
            (self.values, columns, offsets), shape=(len(self.counts), n_features)
        )
        keys = np.sort(self._rows() * n_features + columns)
        repeated = np.flatnonzero(keys[1:] == keys[:-1])
        if len(repeated):
            row, column = divmod(int(keys[repeated[0]]), n_features)
            raise damaged(self.path, f"feature {column + base} stands twice.", line=self.lines[row])
        matrix.sort_indices()
        return matrix

    def _rows(self) -> npt.NDArray[np.int64]:
        return np.repeat(np.arange(len(self.counts), dtype=np.int64), self.counts)


def read_svmlight(
    path: str | Path,
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    labels: Sequence[str] | None = None,
) -> Collection:
    """Read a multi-label svmlight or libsvm file, plain or compressed.

    Parameters
    ----------
    path : str or Path
    n_features : int, optional
        Number of features; the largest one that occurs if left out.
    zero_based : bool, optional
        Whether the first feature is 0 or 1. Left out: 0 if a feature 0 occurs or the file has
        a header line, else 1.
    labels : sequence of str, optional
        Names of the labels 0, 1, ... Left out: the numbers that occur, in order.

    Notes
    -----
    Read the files of one dataset with the same `n_features`, `zero_based` and `labels`.
    """
    parsed = _parse(Path(path))
    base = _base([parsed], zero_based)
    size = _n_features([parsed], base, n_features)
    return _collection(parsed, size, base, _names([parsed], labels))


def svmlight_parts(train: Path, test: Path, *, zero_based: bool, n_features: int) -> DatasetParts:
    """Training and test items of a dataset in svmlight format, with the labels of both."""
    parsed = [_parse(train), _parse(test)]
    names = _names(parsed, None)
    base = _base(parsed, zero_based)
    first, second = (_collection(one, n_features, base, names) for one in parsed)
    return DatasetParts(first, second)


def _parse(path: Path) -> _Parsed:
    lines = read_text(path).split("\n")
    header = _header(lines[0])
    labels: list[list[int]] = []
    counts: list[int] = []
    features: list[str] = []
    numbers: list[int] = []
    for number, line in enumerate(lines, start=1):
        content = line.partition("#")[0].rstrip()
        if not content or (header and number == 1):
            continue
        item_labels, item_features = _split(path, number, content)
        labels.append(item_labels)
        counts.append(item_features.count(":"))
        features.append(item_features)
        numbers.append(number)
    if not labels:
        raise damaged(path, "there are no items.")
    columns, values = _numbers(path, features, numbers)
    if header is not None and header[0] != len(labels):
        what = f"the first line promises {header[0]} items, but there are {len(labels)}."
        raise damaged(path, what, line=1)
    return _Parsed(path, labels, counts, columns, values, numbers, header)


def _header(line: str) -> tuple[int, int, int] | None:
    if not _HEADER.fullmatch(line.strip()):
        return None
    items, features, labels = map(int, line.split())
    return items, features, labels


def _split(path: Path, number: int, content: str) -> tuple[list[int], str]:
    """Labels, and the text of the features."""
    start = content.split(maxsplit=1)[0]
    # A line that starts with a blank or with a feature has no labels.
    has_labels = not content[0].isspace() and ":" not in start
    rest = content[len(start) :] if has_labels else content
    if has_labels and not _LABELS.fullmatch(start):
        raise damaged(path, f"expected label numbers, got {start[:40]!r}.", line=number)
    query = _QUERY.match(rest)
    rest = rest[query.end() :] if query else rest
    if not _FEATURES.fullmatch(rest):
        raise damaged(path, f"expected features as number:value, got {rest[:40]!r}.", line=number)
    labels = [int(float(label)) for label in start.split(",")] if has_labels else []
    return labels, rest


def _numbers(
    path: Path, features: list[str], lines: list[int]
) -> tuple[npt.NDArray[np.int64], Floats]:
    parts = " ".join(features).replace(":", " ").split()
    try:
        values = np.fromiter(map(float, parts[1::2]), np.float64, len(parts) // 2)
    except ValueError:
        raise _bad_value(path, features, lines) from None
    if not np.isfinite(values).all():
        raise _bad_value(path, features, lines)
    return np.fromiter(map(int, parts[0::2]), np.int64, len(parts) // 2), values


def _bad_value(path: Path, features: list[str], lines: list[int]) -> FormatError:
    for text, line in zip(features, lines, strict=True):
        for pair in text.split():
            try:
                good = np.isfinite(float(pair.partition(":")[2]))
            except ValueError:
                good = False
            if not good:
                return damaged(path, f"the feature {pair[:40]!r} is not a number.", line=line)
    return damaged(path, "a feature is not a number.")


def _base(files: Sequence[_Parsed], zero_based: bool | None) -> int:
    if zero_based is not None:
        return 0 if zero_based else 1
    zero = any(one.header is not None or one.first == 0 for one in files)
    return 0 if zero else 1


def _n_features(files: Sequence[_Parsed], base: int, n_features: int | None) -> int:
    if n_features is not None:
        return n_features
    sizes = [one.header[1] for one in files if one.header is not None]
    sizes += [int(one.columns.max()) + 1 - base for one in files if len(one.columns)]
    return max(sizes, default=0)


def _names(files: Sequence[_Parsed], labels: Sequence[str] | None) -> dict[int, str]:
    """Number and name of each label."""
    if labels is not None:
        return dict(enumerate(labels))
    promised = [range(one.header[2]) for one in files if one.header is not None]
    occurring = [label for one in files for item in one.labels for label in item]
    numbers = sorted(set(occurring).union(*promised))
    if not numbers:
        raise InputError(f"No item of {files[0].path} has a label.")
    return {number: str(number) for number in numbers}


def _collection(parsed: _Parsed, n_features: int, base: int, names: dict[int, str]) -> Collection:
    column = {number: j for j, number in enumerate(names)}
    Y = np.zeros((len(parsed.labels), len(names)), dtype=np.int8)
    for i, item in enumerate(parsed.labels):
        for label in item:
            if label not in column:
                what = f"the label {label} is not among the {len(names)} labels given."
                raise damaged(parsed.path, what, line=parsed.lines[i])
            Y[i, column[label]] = 1
    if n_features == 0 and not len(parsed.columns):
        raise damaged(parsed.path, "no item has a feature.")
    with about(parsed.path):
        return Collection(parsed.matrix(n_features, base), Y, names.values())
