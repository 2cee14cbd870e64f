"""ARFF files: attributes and how their values become numbers, dense and sparse rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.collection import Collection
from prevalens.files import about, damaged, read_text
from prevalens.tables.cells import finite
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import FormatError

_QUOTED = r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{]++)\s*(.+)", re.IGNORECASE | re.DOTALL)
_KEYWORD = re.compile(r"\s*@(relation|attribute|data)\b", re.IGNORECASE)
_CELL = re.compile(rf"\s*({_QUOTED}|[^,'\"]*?)\s*(,|$)")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_WHITE = {"n": "\n", "r": "\r", "t": "\t"}
_NUMERIC = ("numeric", "real", "integer")
_YES_NO = ({"yes": 1, "no": 0}, {"true": 1, "false": 0}, {"y": 1, "n": 0}, {"t": 1, "f": 0})


@dataclass(frozen=True)
class Attribute:
    """A declared column.

    Attributes
    ----------
    name : str
    kind : {"numeric", "nominal", "string"}
    codes : dict of str to float
        The number each nominal value becomes; empty for other kinds.
    """

    name: str
    kind: Literal["numeric", "nominal", "string"]
    codes: dict[str, float] = field(default_factory=dict)

    @property
    def default(self) -> float:
        """The value of an entry that is omitted from a sparse row."""
        return next(iter(self.codes.values()), 0.0)

    @property
    def in_numbers(self) -> bool:
        """Whether every value is a number that becomes itself."""
        if self.kind == "string":
            return False
        return all(finite(value) == code for value, code in self.codes.items())

    @property
    def number_of(self) -> Callable[[str], float | None]:
        """A function that returns the number of a value, or None for an invalid value."""
        if self.kind == "string":
            return lambda _: 0.0
        return self.codes.get if self.kind == "nominal" else finite


def parse_header(path: Path, lines: Sequence[str]) -> tuple[str, tuple[Attribute, ...], int]:
    """Relation name, attributes, and the number of lines up to and with @data."""
    relation = ""
    attributes: list[Attribute] = []
    for number, line in enumerate(lines, start=1):
        if not is_content(line):
            continue
        keyword = _KEYWORD.match(line)
        if keyword is None:
            what = f"expected @relation, @attribute or @data, got {short(line)}."
            raise damaged(path, what, line=number)
        match keyword.group(1).lower():
            case "relation":
                relation = unquoted(line[keyword.end() :].strip())
            case "attribute":
                attributes.append(_attribute(path, number, line.strip()))
            case _:
                _check_names(path, attributes)
                return relation, tuple(attributes), number
    raise damaged(path, "this is no ARFF file: it has no line @data.")


def is_content(line: str) -> bool:
    """Whether a line is neither blank nor a comment."""
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith("%")


def short(text: str, most: int = 40) -> str:
    """An excerpt of the file for an error message."""
    text = text.strip()
    return repr(text if len(text) <= most else f"{text[:most]}...")


def unquoted(text: str) -> str:
    """The name inside quotes, its backslash escapes resolved; other text as it is."""
    if len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]:
        return _ESCAPE.sub(lambda match: _WHITE.get(match[1], match[1]), text[1:-1])
    return text


def split_cells(row: str) -> list[str] | None:
    """Split at the commas outside quotes; None if a quote is not closed."""
    if "'" not in row and '"' not in row:
        return [cell.strip() for cell in row.split(",")]
    cells, position = [], 0
    while match := _CELL.match(row, position):
        cells.append(unquoted(match.group(1)))
        if not match.group(2):
            return cells
        position = match.end()
    return None


def _check_names(path: Path, attributes: Sequence[Attribute]) -> None:
    if not attributes:
        raise damaged(path, "no @attribute is declared before @data.")
    for name, count in Counter(attribute.name for attribute in attributes).items():
        if count > 1:
            raise damaged(path, f"the attribute {name!r} is declared twice.")


def _attribute(path: Path, number: int, line: str) -> Attribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise damaged(
            path, f"an attribute needs a name and a type, got {short(line)}.", line=number
        )
    name, kind = unquoted(match.group(1)), match.group(2).strip()
    if kind.startswith("{"):
        if not kind.endswith("}"):
            raise damaged(
                path, f"the values of attribute {name!r} lack a closing brace.", line=number
            )
        return Attribute(name, "nominal", _codes(_domain(path, number, name, kind[1:-1])))
    if kind.lower() in _NUMERIC:
        return Attribute(name, "numeric")
    if kind.lower() == "string":
        return Attribute(name, "string")
    raise damaged(path, f"attribute {name!r} has the unknown type {short(kind)}.", line=number)


def _domain(path: Path, number: int, name: str, inner: str) -> list[str]:
    values = split_cells(inner)
    if values is None or "" in values:
        raise damaged(path, f"the values of attribute {name!r} cannot be read.", line=number)
    if len(set(values)) < len(values):
        raise damaged(path, f"attribute {name!r} declares a value twice.", line=number)
    return values


def _codes(values: Sequence[str]) -> dict[str, float]:
    """The number of each nominal value."""
    numbers = [number for value in values if (number := finite(value)) is not None]
    if len(set(numbers)) == len(values):
        return dict(zip(values, numbers, strict=True))
    for pair in _YES_NO:
        if len(values) == 2 and {value.lower() for value in values} == pair.keys():
            return {value: float(pair[value.lower()]) for value in values}
    return {value: float(i) for i, value in enumerate(values)}


#: A position; longer numbers cannot be valid.
_POSITION = r"\d{1,9}"
_ENTRY = re.compile(rf"\s*({_POSITION})\s+({_QUOTED}|[^,'\"\s]+)\s*(,|$)")
#: A sparse row without quotes, the usual case.
_PLAIN_ENTRY = rf"{_POSITION}\s+[^\s,{{}}'\"]+\s*"
_PLAIN_ROW = re.compile(rf"\{{\s*(?:{_PLAIN_ENTRY}(?:,\s*{_PLAIN_ENTRY})*)?\}}")

_Index: TypeAlias = npt.NDArray[np.int64]
_Texts: TypeAlias = dict[int, list[str]]


@dataclass(frozen=True)
class Body:
    """The rows after @data, stripped, and their line numbers."""

    path: Path
    attributes: tuple[Attribute, ...]
    rows: Sequence[str]
    lines: Sequence[int]

    def error(self, row: int, what: str) -> FormatError:
        """The error for something wrong in a row."""
        return damaged(self.path, what, line=self.lines[row])


@dataclass(frozen=True)
class _Entries:
    """The values of all rows, one after the other, with their rows and columns."""

    rows: _Index
    columns: _Index
    cells: Sequence[str]


def parse_rows(body: Body) -> tuple[Any, _Texts]:
    """Values, shape (n_items, n_attributes), and the texts of string attributes by position.

    Dense rows give an array, sparse rows a CSR matrix; string attributes are zero in it.
    """
    if body.rows[0].startswith("{"):
        entries = _sparse_entries(body)
        return _with_defaults(body, entries), _texts(body, entries)
    values = _dense_at_once(body)
    if values is not None:
        return values, {}
    entries = _dense_entries(body)
    return _numbers(body, entries).reshape(len(body.rows), -1), _texts(body, entries)


def _dense_at_once(body: Body) -> Floats | None:
    """All rows at once; None if the cells must be read one by one."""
    if not all(attribute.in_numbers for attribute in body.attributes):
        return None
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


def _dense_entries(body: Body) -> _Entries:
    n = len(body.attributes)
    cells: list[str] = []
    for i, row in enumerate(body.rows):
        parts = split_cells(row)
        if parts is None:
            raise body.error(i, "the quotes are not in order.")
        if len(parts) != n:
            raise body.error(i, f"there are {len(parts)} values for {n} attributes.")
        cells += parts
    rows, columns = np.divmod(np.arange(len(cells), dtype=np.int64), n)
    return _Entries(rows, columns, cells)


def _sparse_entries(body: Body) -> _Entries:
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


def _numbers(body: Body, entries: _Entries) -> Floats:
    """The number of each entry."""
    number_of = [attribute.number_of for attribute in body.attributes]
    columns = entries.columns.tolist()
    numbers = [number_of[column](cell) for column, cell in zip(columns, entries.cells, strict=True)]
    if None in numbers:
        entry = numbers.index(None)
        attribute, value = body.attributes[columns[entry]], entries.cells[entry]
        what = f"attribute {attribute.name!r} ({attribute.kind}) has the value {short(value)}."
        if value == "?":
            what = f"attribute {attribute.name!r} is missing ('?'); fill in missing values first."
        raise body.error(int(entries.rows[entry]), what)
    return np.array(numbers, dtype=np.float64)


def _texts(body: Body, entries: _Entries) -> _Texts:
    texts: _Texts = {}
    for j, attribute in enumerate(body.attributes):
        if attribute.kind == "string":
            texts[j] = [""] * len(body.rows)
            for entry in np.flatnonzero(entries.columns == j):
                texts[j][entries.rows[entry]] = entries.cells[int(entry)]
    return texts


def _with_defaults(body: Body, entries: _Entries) -> Any:
    """CSR matrix of the entries and of the default values of omitted ones."""
    shape = (len(body.rows), len(body.attributes))
    defaults = np.array([attribute.default for attribute in body.attributes])
    moved = _numbers(body, entries) - defaults[entries.columns]
    matrix = sp.csr_matrix((moved, (entries.rows, entries.columns)), shape=shape)
    if defaults.any():
        everywhere = sp.csr_matrix(np.ones((shape[0], 1))) @ sp.csr_matrix(defaults)
        matrix = sp.csr_matrix(matrix + everywhere)
    matrix.eliminate_zeros()
    return matrix


@dataclass(frozen=True)
class Arff:
    """A parsed file.

    Attributes
    ----------
    path : Path
    relation : str
    attributes : tuple of Attribute
    values : float array or CSR matrix, shape (n_items, n_attributes)
        Columns of string attributes hold zeros.
    texts : dict of int to list of str
        The values of each string attribute, by its position.
    """

    path: Path
    relation: str
    attributes: tuple[Attribute, ...]
    values: Any
    texts: dict[int, list[str]]

    def collection(self, label_positions: Sequence[int]) -> Collection:
        """Items whose labels are the attributes at the given positions, in that order."""
        Y = self._label_matrix(list(label_positions))
        labels = [self.attributes[j].name for j in label_positions]
        chosen = set(label_positions)
        rest = [j for j in range(len(self.attributes)) if j not in chosen]
        if not rest:
            raise damaged(self.path, "every attribute is a label, there are no features.")
        with about(self.path):
            if any(j in self.texts for j in rest):
                return Collection(self._only_texts(rest), Y, labels)
            features = [self.attributes[j].name for j in rest]
            return Collection(self.values[:, rest], Y, labels, features=features)

    def _label_matrix(self, positions: list[int]) -> LabelMatrix:
        columns = self.values[:, positions]
        stored = columns.data if sp.issparse(columns) else columns
        wrong = {j: "holds texts" for j in positions if j in self.texts}
        if ((stored != 0) & (stored != 1)).any():
            values = columns.toarray() if sp.issparse(columns) else columns
            row, column = np.argwhere((values != 0) & (values != 1))[0]
            wrong.setdefault(positions[column], f"has the value {values[row, column]:g}")
        for position, why in wrong.items():
            name = self.attributes[position].name
            raise damaged(self.path, f"the label {name!r} {why}; labels must be 0 or 1.")
        Y = columns.astype(np.int8)
        return np.asarray(Y.toarray() if sp.issparse(Y) else Y)

    def _only_texts(self, positions: list[int]) -> list[str]:
        if len(positions) == 1:
            return self.texts[positions[0]]
        name = self.attributes[next(iter(self.texts))].name
        what = (
            f"the string attribute {name!r} stands among {len(positions)} features; texts are "
            "read only where they are the single feature."
        )
        raise damaged(self.path, what)


def parse_arff(path: str | Path) -> Arff:
    """Read an ARFF file, plain or compressed.

    Notes
    -----
    Fails with a FormatError that names the line on anything that is not ARFF, on missing
    values, and on date and relational attributes. Time and memory are linear in the file.
    """
    path = Path(path)
    # Not splitlines: it also splits at characters that may occur inside a quoted text.
    lines = read_text(path).split("\n")
    relation, attributes, start = parse_header(path, lines)
    numbers = [i for i in range(start, len(lines)) if is_content(lines[i])]
    if not numbers:
        raise damaged(path, "there are no items after @data.")
    rows = [lines[i].strip() for i in numbers]
    values, texts = parse_rows(Body(path, attributes, rows, [i + 1 for i in numbers]))
    return Arff(path, relation, attributes, values, texts)
