"""Files of clients: their sizes are checked before they are read, and their columns previewed."""

from __future__ import annotations

import codecs
import importlib
import math
import os
import resource
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from prevalens.errors import FormatError
from prevalens.files import ByteSource
from prevalens.service.problems import Problem
from prevalens.service.settings import Limits
from prevalens.service.storage import plain_path, stored_reading
from prevalens.tables.cells import is_missing
from prevalens.tables.kinds import is_identifier, kind_of
from prevalens.tables.labels import json_list, separator_of
from prevalens.tables.opening import open_table
from prevalens.tables.table import Chunk, Table

_PIECE = 2**20
#: Bytes that are searched for letters that UTF-8 does not have, and marks of other encodings.
_SEARCHED = 50 * 2**20
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: Maximum members of a workbook; real workbooks have a handful.
_MEMBERS = 2000
#: Tables shrink to a tenth when packed; a file that unpacks to this many times its size, and to
#: more than `_HARMLESS` bytes, is taken for an attack.
_GROWTH = 300
_HARMLESS = 50 * 10**6
#: Tags that a member of a workbook may have, plus this many per packed byte; sheets full of the
#: same number, as openpyxl writes them, have about two.
_TAGS, _TAGS_PER_BYTE = 400_000, 8
#: Maximum letters of a cell.
_LONGEST_CELL = 10**7
#: Letters of a chunk of rows, beyond which it is divided: preparing texts takes far more memory.
_CHUNK_LETTERS = 10**7
#: Bytes that may be allocated to open a file or to read some rows, plus this many per stored byte.
_HEADROOM, _MEMORY_GROWTH = 400 * 10**6, 20
#: Longest first line, which names the columns.
_HEAD = 4 * 10**6
#: Rows by which a preview judges the columns, rows that it shows, and letters of a cell.
_PREVIEWED, _SHOWN, _CELL = 500, 6, 300
#: Letters of a cell by which a preview judges its column.
_LOOKED_AT = 5000
#: Kinds of columns that have another name in the HTTP interface.
_KINDS = {"date": "time", "vector": "category"}
#: Short texts have this many words, and this share of them are different.
_WORDS, _DIFFERENT = 1.5, 0.5


def opened(path: Path, name: str, limits: Limits) -> ClientTable:
    """A client's file as a table, within the limits.

    Parameters
    ----------
    path : Path
        Where the file is.
    name : str
        The client's name for it, for messages.
    limits : Limits
    """
    allowed = _allowed(path, limits)
    plain = unpacked(path, name, allowed)
    with plain.open("rb") as file:
        start = file.read(4)
    if start.startswith(b"PK"):
        _check_workbook(plain, name, allowed)
        _check_tags(plain, name)
    elif start == b"PAR1":
        _check_parquet(plain, name, limits)
    else:
        _check_head(plain, name)
    memory = _HEADROOM + _MEMORY_GROWTH * plain.stat().st_size
    with memory_limit(memory):
        table = open_table(plain, name=name, **stored_reading(path))
    client_table = ClientTable(table, limits, budget=ReadingBudget(allowed, memory))
    if _has_more_lines(plain, limits.rows):
        _check_rows(client_table)
    return client_table


def _has_more_lines(path: Path, count: int) -> bool:
    """Whether a file has more than `count` line breaks. O(bytes)."""
    with path.open("rb") as file:
        return sum(piece.count(b"\n") for piece in iter(lambda: file.read(_PIECE), b"")) > count


def _check_rows(table: ClientTable) -> None:
    """Read one column to the end: too many rows are refused before anything is estimated."""
    for _ in table.chunks(table.columns[:1]):
        pass


def unpacked(path: Path, name: str, allowed: int) -> Path:
    """The file without its compression, measured while it grows to `allowed` bytes at most."""
    target = plain_path(path)
    if target.exists():
        return target
    with ByteSource(path, name).opened() as (stream, stored):
        if stream is stored:
            return path
        try:
            with target.open("xb") as plain:
                _copy(stream, plain, name, allowed)
            _check_plain(target, name)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
    return target


def _check_plain(path: Path, name: str) -> None:
    with ByteSource(path, name).opened() as (stream, stored):
        if stream is not stored:
            raise Problem("bad_input", f"{name} is compressed twice; compress it once.")


def _allowed(path: Path, limits: Limits) -> int:
    """Bytes that a compressed file may unpack to."""
    return min(limits.unpacked_bytes, max(_HARMLESS, _GROWTH * path.stat().st_size))


def _copy(packed: IO[bytes], plain: IO[bytes], name: str, allowed: int) -> None:
    done = 0
    while piece := packed.read(_PIECE):
        done += len(piece)
        if done > allowed:
            raise _grows(name, allowed)
        plain.write(piece)


def _check_workbook(path: Path, name: str, allowed: int) -> None:
    """Add up what the members of a workbook say they unpack to; readers stop at that size."""
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = [member.file_size for member in archive.infolist()]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise FormatError(f"{name}: this is no readable Excel workbook.") from error
    if len(sizes) > _MEMBERS or sum(sizes) > allowed:
        raise _grows(name, allowed)


def _check_tags(path: Path, name: str) -> None:
    """Count the tags of a workbook: millions of equal ones are packed to almost nothing."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            most = _TAGS + _TAGS_PER_BYTE * member.compress_size
            try:
                with archive.open(member) as stream:
                    pieces = iter(lambda: stream.read(_PIECE), b"")
                    tags = sum(piece.count(b"<") for piece in pieces)
            except (zipfile.BadZipFile, zlib.error, OSError, RuntimeError, EOFError) as error:
                raise FormatError(f"{name}: this is no readable Excel workbook.") from error
            if tags > most:
                raise Problem(
                    "too_large",
                    f"{name} has {tags:,} tags in {member.compress_size:,} packed bytes; no real "
                    "workbook repeats itself so often. Save it as CSV.",
                )


def _check_parquet(path: Path, name: str, limits: Limits) -> None:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
        about = parquet.ParquetFile(path).metadata
        groups = [about.row_group(number) for number in range(about.num_row_groups)]
        size = sum(group.total_byte_size for group in groups)
    except Exception:
        # Damaged, or pyarrow is missing: the reader has a sentence for both.
        return
    if about.num_columns > limits.columns:
        raise too_many(name, about.num_columns, "columns", limits.columns)
    if about.num_rows > limits.rows:
        raise too_many(name, about.num_rows, "rows", limits.rows)
    if size > limits.unpacked_bytes:
        raise _grows(name, limits.unpacked_bytes)


def _check_head(path: Path, name: str) -> None:
    with path.open("rb") as file:
        start = file.read(_HEAD)
    # One long line is no table; JSON may have everything in one, and is checked as it is read.
    if len(start) == _HEAD and b"\n" not in start and not start.lstrip().startswith((b"[", b"{")):
        raise Problem("too_large", f"{name}: the first line, which names the columns, has no end.")


def _grows(name: str, allowed: int) -> Problem:
    return Problem(
        "too_large",
        f"{name} would unpack to more than the {allowed / 1e6:,.0f} MB that this server reads.",
    )


def too_many(name: str, count: int, what: str, allowed: int) -> Problem:
    """The refusal of a table that is too long or too wide."""
    return Problem(
        "too_large",
        f"{name} has {count:,} {what} or more; this server reads up to {allowed:,} (--max-{what}).",
    )


@dataclass(frozen=True)
class ReadingBudget:
    """What reading a file may take; both bounds grow with the size of the file.

    Parameters
    ----------
    decoded : int
        Characters of all cells; a dictionary can make gigabytes of cells from a few bytes.
    memory : int
        Bytes that may be allocated for one chunk of rows.
    """

    decoded: int
    memory: int


class ClientTable(Table):
    """A table of a client, within the limits, with columns renamed to those of the model.

    Parameters
    ----------
    table : Table
    limits : Limits
    names : mapping, optional
        Names in this table, by the names that the model uses.
    budget : ReadingBudget, optional
        None for a table in memory.
    """

    def __init__(
        self,
        table: Table,
        limits: Limits,
        names: Mapping[str, str] | None = None,
        *,
        budget: ReadingBudget | None = None,
    ) -> None:
        if len(table.columns) > limits.columns:
            raise too_many(table.name, len(table.columns), "columns", limits.columns)
        self.name = table.name
        self.total = table.total
        self._table = table
        self._limits = limits
        self._budget = budget
        self._names = dict(names or {})
        table.check_columns(self._names.values())
        # A column may serve under both names: as the model's, and as the one of its batches.
        others = [name for name in table.columns if name not in self._names]
        self.columns = (*self._names, *others)
        self.item_columns = table.item_columns

    def renamed(self, names: Mapping[str, str]) -> ClientTable:
        """The same table with other names for some columns."""
        return ClientTable(self._table, self._limits, names, budget=self._budget)

    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        inside = {name: self._names.get(name, name) for name in columns}
        seen = 0
        for chunk in self._within_budget(
            self._table.chunks(inside.values(), chunk_rows=chunk_rows)
        ):
            seen += len(chunk)
            if seen > self._limits.rows:
                raise too_many(self.name, seen, "rows", self._limits.rows)
            yield replace(chunk, columns={name: chunk[own] for name, own in inside.items()})

    def _within_budget(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        if self._budget is None:
            yield from chunks
            return
        decoded = 0
        while True:
            with memory_limit(self._budget.memory):
                chunk = next(chunks, None)
            if chunk is None:
                return
            size = sum(map(_decoded_size, chunk.columns.values()))
            decoded += size
            if decoded > self._budget.decoded:
                raise _grows(self.name, self._budget.decoded)
            if size > _LONGEST_CELL:
                _check_cells(chunk)
            yield from _divided(chunk, math.ceil(size / _CHUNK_LETTERS))


def _check_cells(chunk: Chunk) -> None:
    for name, cells in chunk.columns.items():
        for row, cell in enumerate(cells):
            if _cell_size(cell) > _LONGEST_CELL:
                raise Problem(
                    "too_large",
                    f"{chunk.place(row)}: the column {name!r} has a text of more than "
                    f"{_LONGEST_CELL:,} letters; divide it.",
                )


def _divided(chunk: Chunk, parts: int) -> Iterator[Chunk]:
    """The rows of a chunk in so many parts of equal length."""
    step = math.ceil(len(chunk) / max(parts, 1))
    for start in range(0, len(chunk), step):
        yield chunk.take(range(start, min(start + step, len(chunk))))


def _decoded_size(cells: Sequence[Any]) -> int:
    """Characters of texts, also in lists; any other value counts as 8."""
    if set(map(type, cells)) <= {str}:
        return sum(map(len, cells))
    return sum(map(_cell_size, cells))


def _cell_size(cell: Any) -> int:
    if isinstance(cell, str):
        return len(cell)
    return sum(map(_cell_size, cell)) if isinstance(cell, list | tuple) else 8


@contextmanager
def memory_limit(size: int) -> Iterator[None]:
    """Let the process allocate at most `size` more bytes in the body; then it raises MemoryError.

    Without effect where the system does not tell the memory in use (it needs ``/proc``).
    """
    try:
        used = int(Path("/proc/self/statm").read_text().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = used + size
    resource.setrlimit(
        resource.RLIMIT_DATA,
        (wanted if soft == resource.RLIM_INFINITY else min(wanted, soft), hard),
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def guessed_encoding(path: Path, name: str, limits: Limits) -> str | None:
    """An encoding to try for a text that is no UTF-8, else None."""
    plain = unpacked(path, name, _allowed(path, limits))
    with plain.open("rb") as file:
        start = file.read(_PIECE)
    if b"\0" in start or start.startswith((b"PK", b"PAR1", *_MARKS)):
        return None
    # Every byte means something in the last, so that any text can be looked at.
    found = next(name for name in ("utf-8", "cp1252", "iso-8859-15") if _decodes(plain, name))
    return None if found == "utf-8" else found


def _decodes(path: Path, encoding: str) -> bool:
    """Whether a file, as far as it is searched, is a text of this encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as file:
        try:
            for _ in range(_SEARCHED // _PIECE):
                decoder.decode(piece := file.read(_PIECE), final=not piece)
                if not piece:
                    break
        except UnicodeDecodeError:
            return False
    return True


def preview(table: Table) -> dict[str, Any]:
    """The columns with their kinds, and the first rows."""
    chunk = next(table.chunks(chunk_rows=_PREVIEWED), None)
    columns, cells = [], []
    for name in table.columns:
        values = [] if chunk is None else list(chunk[name])
        known = [_cut(value) for value in values if not is_missing(value)]
        listed = bool(known) and all(json_list(str(value)) is not None for value in known)
        kind = "tags" if listed else _kind(name, known)
        separator = separator_of(known) if kind == "tags" and not listed else None
        columns.append({"name": name, "kind": kind, "separator": separator})
        cells.append([_json_cell(value) for value in values[:_SHOWN]])
    return {
        "columns": columns,
        "rows": [list(row) for row in zip(*cells, strict=True)],
        "complete": chunk is None or len(chunk) < _PREVIEWED,
    }


def _cut(value: Any) -> Any:
    """The start of a text, which tells what it is; a text of a book takes seconds to look at."""
    return value[:_LOOKED_AT] if isinstance(value, str) else value


def _kind(name: str, known: Sequence[Any]) -> str:
    """The kind of a column: as `kind_of`, but identifiers and short texts are told apart."""
    kind = kind_of(known)
    if kind in ("number", "category") and is_identifier(name, known):
        return "id"
    if kind == "category" and _are_short_texts([str(value) for value in known]):
        return "text"
    return _KINDS.get(kind, kind)


def _are_short_texts(values: Sequence[str]) -> bool:
    """Whether most values differ and have several words: titles, or messages of a few words."""
    words = sum(len(value.split()) for value in values) / len(values)
    return len(set(values)) > max(_DIFFERENT * len(values), 1) and words >= _WORDS


def _json_cell(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)[:_CELL]
