"""The rows of an ARFF file, dense or sparse, as numbers.

Where every value is written as the number it becomes, all rows are converted at once; a look
at each value is needed only for other nominal values, for texts, and to name the culprit of an
error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.datasets.files import malformed
from prevalens.datasets.formats.arff_header import QUOTED, Attribute, short, split_cells, unquoted
from prevalens.validation import FormatError

__all__ = ["Body", "parse_rows"]

#: Longer positions cannot be right.
_POSITION = r"\d{1,9}"
_ENTRY = re.compile(rf"\s*({_POSITION})\s+({QUOTED}|[^,'\"\s]+)\s*(,|$)")
#: A sparse row without quotes, the usual case.
_PLAIN_ENTRY = rf"{_POSITION}\s+[^\s,{{}}'\"]+\s*"
_PLAIN_ROW = re.compile(rf"\{{\s*(?:{_PLAIN_ENTRY}(?:,\s*{_PLAIN_ENTRY})*)?\}}")

_Index: TypeAlias = npt.NDArray[np.int64]
_Texts: TypeAlias = dict[int, list[str]]


@dataclass(frozen=True)
class Body:
    """The rows after @data, stripped, and the line numbers they stand at."""

    path: Path
    attributes: tuple[Attribute, ...]
    rows: Sequence[str]
    lines: Sequence[int]

    def error(self, row: int, what: str) -> FormatError:
        """The error for something wrong in a row."""
        return malformed(self.path, self.lines[row], what)

    def bad_value(self, row: int, column: int, value: str) -> FormatError:
        """The error for a value that its attribute does not have."""
        attribute = self.attributes[column]
        if value == "?":
            what = f"attribute {attribute.name!r} is missing ('?'); fill in missing values first."
        else:
            what = f"attribute {attribute.name!r} ({attribute.kind}) has the value {short(value)}."
        return self.error(row, what)

    @property
    def in_numbers(self) -> bool:
        """Whether every value is written as the number it becomes."""
        return all(attribute.in_numbers for attribute in self.attributes)


def parse_rows(body: Body) -> tuple[Any, _Texts]:
    """Values, shape (n_items, n_attributes), and the texts of string attributes by position.

    Dense rows give an array, sparse rows a CSR matrix; string attributes are zero in it.
    """
    return _sparse(body) if body.rows[0].startswith("{") else _dense(body)


def _dense(body: Body) -> tuple[npt.NDArray[np.float64], _Texts]:
    numbers = _dense_at_once(body) if body.in_numbers else None
    return _dense_by_cell(body) if numbers is None else (numbers, {})


def _dense_at_once(body: Body) -> npt.NDArray[np.float64] | None:
    """All rows at once; None where a look at each cell is needed."""
    try:
        values = np.loadtxt(body.rows, delimiter=",", comments=None, ndmin=2)
    except (ValueError, OverflowError):
        return None
    if values.shape[1] != len(body.attributes) or not np.isfinite(values).all():
        return None
    for j, attribute in enumerate(body.attributes):
        if attribute.codes and not np.isin(values[:, j], list(attribute.codes.values())).all():
            return None
    return values


def _dense_by_cell(body: Body) -> tuple[npt.NDArray[np.float64], _Texts]:
    n = len(body.attributes)
    values = np.zeros((len(body.rows), n))
    texts: _Texts = {j: [] for j, a in enumerate(body.attributes) if a.kind == "string"}
    for i, row in enumerate(body.rows):
        cells = split_cells(row)
        if cells is None:
            raise body.error(i, "the quotes are not in order.")
        if len(cells) != n:
            raise body.error(i, f"there are {len(cells)} values for {n} attributes.")
        values[i] = _row_numbers(body, i, cells)
        for j, column in texts.items():
            column.append(cells[j])
    return values, texts


def _row_numbers(body: Body, i: int, cells: Sequence[str]) -> list[float]:
    numbers: list[float] = []
    for j, (cell, attribute) in enumerate(zip(cells, body.attributes, strict=True)):
        number = attribute.number(cell)
        if number is None:
            raise body.bad_value(i, j, cell)
        numbers.append(number)
    return numbers


@dataclass(frozen=True)
class _Entries:
    """The entries of all sparse rows, one after the other."""

    rows: _Index
    columns: _Index
    cells: Sequence[str]


def _sparse(body: Body) -> tuple[Any, _Texts]:
    entries = _entries(body)
    values = _sparse_at_once(body, entries) if body.in_numbers else None
    if values is None:
        values = _sparse_by_cell(body, entries)
    return _with_defaults(body, entries, values), _sparse_texts(body, entries)


def _entries(body: Body) -> _Entries:
    counts: list[int] = []
    positions: list[str] = []
    cells: list[str] = []
    for i, row in enumerate(body.rows):
        if _PLAIN_ROW.fullmatch(row):
            parts = row[1:-1].replace(",", " ").split()
        else:
            parts = _quoted_entries(body, i, row)
        counts.append(len(parts) // 2)
        positions += parts[0::2]
        cells += parts[1::2]
    rows = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    columns = np.fromiter(map(int, positions), np.int64, len(positions))
    _check_columns(body, rows, columns)
    return _Entries(rows, columns, cells)


def _quoted_entries(body: Body, i: int, row: str) -> list[str]:
    """Positions and values in turn."""
    if not (row.startswith("{") and row.endswith("}")):
        raise body.error(i, f"a sparse row stands in braces, got {short(row)}.")
    inner = row[1:-1]
    parts: list[str] = []
    at = 0
    while match := _ENTRY.match(inner, at):
        parts += (match.group(1), unquoted(match.group(2)))
        if not match.group(3):
            return parts
        at = match.end()
    raise body.error(i, f"expected a position and a value, got {short(inner[at:])}.")


def _check_columns(body: Body, rows: _Index, columns: _Index) -> None:
    n = len(body.attributes)
    outside = np.flatnonzero(columns >= n)
    if len(outside):
        entry = int(outside[0])
        what = f"an entry is at position {columns[entry]}, but there are {n} attributes (from 0)."
        raise body.error(int(rows[entry]), what)
    keys = np.sort(rows * n + columns)
    repeated = np.flatnonzero(keys[1:] == keys[:-1])
    if len(repeated):
        row, column = divmod(int(keys[repeated[0]]), n)
        raise body.error(row, f"attribute {body.attributes[column].name!r} has two values.")


def _sparse_at_once(body: Body, entries: _Entries) -> npt.NDArray[np.float64] | None:
    """All values at once; None where a look at each one is needed."""
    try:
        values = np.fromiter(map(float, entries.cells), np.float64, len(entries.cells))
    except (ValueError, OverflowError):
        return None
    if not np.isfinite(values).all():
        return None
    domains, of_attribute = _domains(body.attributes)
    of_entry = of_attribute[entries.columns]
    for number, domain in enumerate(domains):
        if domain and not np.isin(values[of_entry == number], domain).all():
            return None
    return values


def _domains(attributes: Sequence[Attribute]) -> tuple[list[tuple[float, ...]], _Index]:
    """The distinct sets of nominal numbers, and which of them each attribute has."""
    numbering: dict[tuple[float, ...], int] = {}
    of_attribute = [
        numbering.setdefault(tuple(a.codes.values()), len(numbering)) for a in attributes
    ]
    return list(numbering), np.array(of_attribute, dtype=np.int64)


def _sparse_by_cell(body: Body, entries: _Entries) -> npt.NDArray[np.float64]:
    values = np.empty(len(entries.cells))
    for entry, (column, cell) in enumerate(zip(entries.columns, entries.cells, strict=True)):
        number = body.attributes[column].number(cell)
        if number is None:
            raise body.bad_value(int(entries.rows[entry]), int(column), cell)
        values[entry] = number
    return values


def _sparse_texts(body: Body, entries: _Entries) -> _Texts:
    texts: _Texts = {}
    for j, attribute in enumerate(body.attributes):
        if attribute.kind == "string":
            texts[j] = [""] * len(body.rows)
            for entry in np.flatnonzero(entries.columns == j):
                texts[j][entries.rows[entry]] = entries.cells[int(entry)]
    return texts


def _with_defaults(body: Body, entries: _Entries, values: npt.NDArray[np.float64]) -> Any:
    """CSR matrix of the entries, and of what the omitted ones stand for."""
    shape = (len(body.rows), len(body.attributes))
    defaults = np.array([attribute.default for attribute in body.attributes])
    moved = values - defaults[entries.columns]
    matrix = sp.csr_matrix((moved, (entries.rows, entries.columns)), shape=shape)
    if defaults.any():
        everywhere = sp.csr_matrix(np.ones((shape[0], 1))) @ sp.csr_matrix(defaults)
        matrix = sp.csr_matrix(matrix + everywhere)
    matrix.eliminate_zeros()
    return matrix
