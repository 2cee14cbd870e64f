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
from prevalens.tables.cells import finite
from prevalens.types import Floats
from prevalens.validation import InputError

_HEADER = re.compile(r"\d{1,9}\s+\d{1,9}\s+\d{1,9}")
_LABELS = re.compile(r"-?\d{1,9}(?:\.0*)?(?:,-?\d{1,9}(?:\.0*)?)*")
_FEATURES = re.compile(r"\s*(?:\d{1,9}:[^\s:]+(?:\s+|$))*")
_QUERY = re.compile(r"\s*qid:\S+")


@dataclass(frozen=True)
class _SvmFile:
    """One file: labels and entries of each item, and the sizes its header promises."""

    path: Path
    labels: list[list[int]]
    counts: list[int]
    columns: npt.NDArray[np.int64]
    values: Floats
    lines: list[int]
    header: tuple[int, int, int] | None

    def collection(self, n_features: int, base: int, names: dict[int, str]) -> Collection:
        """The items, with features counted from `base` and labels by number."""
        if n_features == 0 and not len(self.columns):
            raise damaged(self.path, "no item has a feature.")
        position = {number: j for j, number in enumerate(names)}
        Y = np.zeros((len(self.labels), len(names)), dtype=np.int8)
        for i, item in enumerate(self.labels):
            for label in item:
                if label not in position:
                    what = f"the label {label} is not among the {len(names)} labels given."
                    raise damaged(self.path, what, line=self.lines[i])
                Y[i, position[label]] = 1
        with about(self.path):
            return Collection(self._matrix(n_features, base), Y, names.values())

    def _matrix(self, n_features: int, base: int) -> Any:
        rows = np.repeat(np.arange(len(self.counts), dtype=np.int64), self.counts)
        columns = self.columns - base
        outside = np.flatnonzero((columns < 0) | (columns >= n_features))
        if len(outside):
            what = (
                f"feature {self.columns[outside[0]]} is outside of the {n_features} features "
                f"counted from {base}."
            )
            raise damaged(self.path, what, line=self.lines[rows[outside[0]]])
        keys = np.sort(rows * n_features + columns)
        repeated = np.flatnonzero(keys[1:] == keys[:-1])
        if len(repeated):
            row, column = divmod(int(keys[repeated[0]]), n_features)
            what = f"feature {column + base} stands twice."
            raise damaged(self.path, what, line=self.lines[row])
        offsets = np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)
        shape = (len(self.counts), n_features)
        matrix = sp.csr_matrix((self.values, columns, offsets), shape=shape)
        matrix.sort_indices()
        return matrix


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
        Number of features; the largest one that occurs if omitted.
    zero_based : bool, optional
        Whether the first feature is 0 or 1. Default: 0 if a feature 0 occurs or the file has
        a header line, else 1.
    labels : sequence of str, optional
        Names of the labels 0, 1, ... Default: the numbers that occur, in order.

    Notes
    -----
    Read the files of one dataset with the same `n_features`, `zero_based` and `labels`.
    """
    (collection,) = _collections([_parse(Path(path))], n_features, zero_based, labels)
    return collection


def svmlight_parts(train: Path, test: Path, *, zero_based: bool, n_features: int) -> DatasetParts:
    """Training and test items of a dataset in svmlight format, with the labels of both."""
    files = [_parse(train), _parse(test)]
    train_items, test_items = _collections(files, n_features, zero_based, None)
    return DatasetParts(train_items, test_items)


def _collections(
    files: Sequence[_SvmFile],
    n_features: int | None,
    zero_based: bool | None,
    labels: Sequence[str] | None,
) -> list[Collection]:
    headers = [file.header for file in files if file.header is not None]
    if zero_based is None:
        zero_based = bool(headers) or any((file.columns == 0).any() for file in files)
    base = 0 if zero_based else 1
    if n_features is None:
        sizes = [int(file.columns.max()) + 1 - base for file in files if len(file.columns)]
        n_features = max([*sizes, *(size for _, size, _ in headers)], default=0)
    if labels is None:
        numbers = {label for file in files for item in file.labels for label in item}
        numbers.update(*(range(count) for _, _, count in headers))
        if not numbers:
            raise InputError(f"No item of {files[0].path} has a label.")
        names = {number: str(number) for number in sorted(numbers)}
    else:
        names = dict(enumerate(labels))
    return [file.collection(n_features, base, names) for file in files]


def _parse(path: Path) -> _SvmFile:
    lines = read_text(path).split("\n")
    header = _header(lines[0])
    labels: list[list[int]] = []
    features: list[str] = []
    numbers: list[int] = []
    for number, line in enumerate(lines, start=1):
        content = line.partition("#")[0].rstrip()
        if not content or (header and number == 1):
            continue
        item_labels, item_features = _split(path, number, content)
        labels.append(item_labels)
        features.append(item_features)
        numbers.append(number)
    if not labels:
        raise damaged(path, "there are no items.")
    counts = [text.count(":") for text in features]
    parts = " ".join(features).replace(":", " ").split()
    cells = parts[1::2]
    try:
        values = np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        values = np.array([finite(cell) for cell in cells], dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        row = int(np.searchsorted(np.cumsum(counts), bad[0], side="right"))
        pair = ":".join(parts[2 * bad[0] : 2 * bad[0] + 2])
        raise damaged(path, f"the feature {pair[:40]!r} is not a number.", line=numbers[row])
    if header is not None and header[0] != len(labels):
        what = f"the first line promises {header[0]} items, but there are {len(labels)}."
        raise damaged(path, what, line=1)
    columns = np.fromiter(map(int, parts[0::2]), np.int64, len(values))
    return _SvmFile(path, labels, counts, columns, values, numbers, header)


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
