"""Tables: CSV, TSV, JSON lines and Parquet, with label columns or a column of tags."""

from __future__ import annotations

import csv
import fnmatch
import importlib
import io
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prevalens.collection import Collection
from prevalens.files import about, damaged, read_bytes, read_text
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import FormatError, InputError, PrevalensWarning

__all__ = ["Table", "csv_table", "jsonl_table", "parquet_table"]

_YES = {"1", "1.0", "true", "yes"}
_NO = {"0", "0.0", "false", "no"}
_SEPARATORS = re.compile(r"[,;|]")


@dataclass(frozen=True)
class Table:
    """Named columns of equal length, and the line of the file each row stands at.

    Columns without a name are left out: they are the row numbers some programs write.
    """

    path: Path
    columns: Mapping[str, Sequence[Any]]
    lines: Sequence[int]

    def collection(
        self,
        *,
        labels: str | Iterable[str] | None = None,
        tags: str | None = None,
        text: str | None = None,
        features: Iterable[str] | None = None,
        sep: str | None = None,
    ) -> Collection:
        """Choose which columns are labels and which are features; see `prevalens.datasets.read`."""
        if tags is None:
            chosen = self._label_columns(labels)
            Y, names = self._label_matrix(chosen), chosen
        else:
            chosen = [tags]
            Y, names = self._tag_matrix(tags, labels, sep)
        X, columns = self._items(text, features, chosen)
        with about(self.path):
            return Collection(X, Y, names, features=columns)

    def _items(
        self, text: str | None, features: Iterable[str] | None, labels: Sequence[str]
    ) -> tuple[Any, list[str] | None]:
        if text is not None:
            return self._texts(text), None
        columns = self._feature_columns(features, labels)
        return np.column_stack([self._numbers(name) for name in columns]), columns

    def column(self, name: str) -> Sequence[Any]:
        """The values of a column."""
        if name not in self.columns:
            raise InputError(f"{self.path} has no column {name!r}; it has {self._shown()}.")
        return self.columns[name]

    def _shown(self) -> str:
        names = list(self.columns)
        more = f", ... ({len(names)} in all)" if len(names) > 12 else ""
        return ", ".join(map(repr, names[:12])) + more

    def _label_columns(self, labels: str | Iterable[str] | None) -> list[str]:
        if labels is None:
            raise InputError(
                f"Say which columns of {self.path} are labels (labels=[...]) or which one holds "
                f"the tags (tags='...'); it has {self._shown()}."
            )
        if not isinstance(labels, str):
            return list(labels)
        found = [name for name in self.columns if fnmatch.fnmatchcase(name, labels)]
        if not found:
            raise InputError(f"No column of {self.path} fits {labels!r}; it has {self._shown()}.")
        return found

    def _label_matrix(self, names: Sequence[str]) -> LabelMatrix:
        if not names:
            raise InputError(f"No label columns of {self.path} are named.")
        Y = np.empty((len(self.lines), len(names)), dtype=np.int8)
        for j, name in enumerate(names):
            Y[:, j] = [self._yes_or_no(i, name, cell) for i, cell in enumerate(self.column(name))]
        return Y

    def _yes_or_no(self, row: int, name: str, cell: Any) -> bool:
        word = str(cell).strip().lower()
        if word not in _YES and word not in _NO:
            what = f"the label {name!r} is {cell!r}; expected 0 or 1."
            raise damaged(self.path, what, line=self.lines[row])
        return word in _YES

    def _tag_matrix(
        self, name: str, labels: str | Iterable[str] | None, sep: str | None
    ) -> tuple[LabelMatrix, list[str]]:
        sets = [self._tags(i, name, cell, sep) for i, cell in enumerate(self.column(name))]
        found = set().union(*sets)
        if labels is None:
            codeframe = sorted(found)
        else:
            codeframe = [labels] if isinstance(labels, str) else list(labels)
            self._warn_of_others(name, sorted(found.difference(codeframe)))
        if not codeframe:
            raise damaged(self.path, f"no row has a tag in column {name!r}.")
        position = {label: j for j, label in enumerate(codeframe)}
        Y = np.zeros((len(sets), len(codeframe)), dtype=np.int8)
        for i, tags in enumerate(sets):
            Y[i, [position[tag] for tag in tags if tag in position]] = 1
        return Y, codeframe

    def _warn_of_others(self, name: str, others: Sequence[str]) -> None:
        if others:
            warnings.warn(
                f"{len(others)} tags in column {name!r} of {self.path} are not among the labels "
                f"and are left out, such as {others[0]!r}.",
                PrevalensWarning,
                stacklevel=5,
            )

    def _tags(self, row: int, name: str, cell: Any, sep: str | None) -> set[str]:
        if cell is None:
            return set()
        if isinstance(cell, str):
            found: Any = self._tags_in_text(row, cell, sep)
        elif isinstance(cell, (list, tuple, np.ndarray)):
            found = cell
        else:
            what = f"the tags in column {name!r} are {cell!r}; expected a list or a text."
            raise damaged(self.path, what, line=self.lines[row])
        return {tag for one in found if one is not None and (tag := str(one).strip())}

    def _tags_in_text(self, row: int, cell: str, sep: str | None) -> list[Any]:
        if sep is not None:
            return cell.split(sep)
        if not cell.lstrip().startswith("["):
            return _SEPARATORS.split(cell)
        try:
            found = json.loads(cell)
        except (ValueError, RecursionError):
            what = f"the tags {cell[:40]!r} are not a JSON list."
            raise damaged(self.path, what, line=self.lines[row]) from None
        return found if isinstance(found, list) else [found]

    def _texts(self, name: str) -> list[str]:
        cells = self.column(name)
        for i, cell in enumerate(cells):
            if not isinstance(cell, str):
                what = f"the text in column {name!r} is {cell!r}; fill missing texts with ''."
                raise damaged(self.path, what, line=self.lines[i])
        return list(cells)

    def _feature_columns(self, features: Iterable[str] | None, labels: Sequence[str]) -> list[str]:
        chosen = (
            list(features)
            if features is not None
            else [name for name in self.columns if name not in set(labels)]
        )
        if not chosen:
            raise InputError(
                f"{self.path} has no feature columns; name the text column with text=."
            )
        return chosen

    def _numbers(self, name: str) -> Floats:
        cells = self.column(name)
        try:
            values = np.asarray(cells, dtype=np.float64)
            if values.ndim == 1 and np.isfinite(values).all():
                return values
        except (TypeError, ValueError, OverflowError):
            pass
        raise self._not_a_number(name, cells)

    def _not_a_number(self, name: str, cells: Sequence[Any]) -> FormatError:
        for i, cell in enumerate(cells):
            try:
                good = bool(np.isfinite(float(cell)))
            except (TypeError, ValueError, OverflowError):
                good = False
            if not good:
                what = (
                    f"the feature {name!r} is {str(cell)[:40]!r}, not a number; name the columns "
                    "to use with features=[...], or a text column with text=."
                )
                return damaged(self.path, what, line=self.lines[i])
        return damaged(self.path, f"the feature {name!r} is not a column of numbers.")


def csv_table(path: str | Path, *, delimiter: str | None = None) -> Table:
    """Read a CSV file with a header line, plain or compressed.

    Parameters
    ----------
    path : str or Path
    delimiter : str, optional
        What stands between columns. Left out: tab for ``.tsv``, else the one of comma,
        semicolon and tab that is most frequent in the header.
    """
    path = Path(path)
    content = read_text(path)
    mark = delimiter or _delimiter(path, content)
    with _long_fields():
        reader = csv.reader(io.StringIO(content, newline=""), delimiter=mark, strict=True)
        try:
            rows = [(reader.line_num, row) for row in reader if row]
        except csv.Error as error:
            raise damaged(path, f"this is no proper CSV ({error}).", line=reader.line_num) from None
    if len(rows) < 2:
        raise damaged(path, "expected a line of column names and at least one row.")
    header = [name.strip() for name in rows[0][1]]
    _check_header(path, header)
    for line, row in rows[1:]:
        if len(row) != len(header):
            what = f"there are {len(row)} values for {len(header)} columns."
            raise damaged(path, what, line=line)
    values = zip(*(row for _, row in rows[1:]), strict=True)
    columns = {name: cells for name, cells in zip(header, values, strict=True) if name}
    return Table(path, columns, [line for line, _ in rows[1:]])


@contextmanager
def _long_fields() -> Iterator[None]:
    """Allow texts of any length; the csv module keeps its limit for the whole process."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _delimiter(path: Path, content: str) -> str:
    if ".tsv" in path.suffixes:
        return "\t"
    header = content.partition("\n")[0]
    return max(",;\t", key=header.count)


def _check_header(path: Path, header: Sequence[str]) -> None:
    named = [name for name in header if name]
    if not named:
        raise damaged(path, "the columns have no names.", line=1)
    for name in named:
        if named.count(name) > 1:
            raise damaged(path, f"two columns are called {name!r}.", line=1)


def jsonl_table(path: str | Path) -> Table:
    """Read JSON lines, plain or compressed: one object per line; a missing key is null."""
    path = Path(path)
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            rows.append(_json_object(path, number, line))
            lines.append(number)
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        raise damaged(path, "there are no items.")
    return Table(path, {name: [row.get(name) for row in rows] for name in names}, lines)


def _json_object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"this is not JSON ({error}).", line=number) from None
    if not isinstance(value, dict):
        raise damaged(path, f"expected a JSON object, got {line.strip()[:40]!r}.", line=number)
    return value


def parquet_table(path: str | Path) -> Table:
    """Read a Parquet file; needs pyarrow (``pip install "prevalens[frames]"``)."""
    path = Path(path)
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(
            f'{path} needs pyarrow to be read: pip install "prevalens[frames]".'
        ) from None
    # No Python file: Arrow's threads may let go of one only when Python is ending, and abort it.
    content = arrow.BufferReader(read_bytes(path))
    # The parser answers a damaged file with errors of several kinds.
    try:
        found = parquet.ParquetFile(content).read()
        columns = {
            name: column.to_numpy()
            for name, column in zip(found.column_names, found.columns, strict=True)
        }
    except Exception as error:
        raise damaged(path, f"this is no readable Parquet file ({error}).") from None
    if found.num_rows == 0 or not columns:
        raise damaged(path, "there are no items.")
    return Table(path, columns, range(1, found.num_rows + 1))
