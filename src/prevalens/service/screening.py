"""A look at a client's file before anything reads it in earnest: how large it would become."""

from __future__ import annotations

import bz2
import gzip
import importlib
import lzma
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import chain
from pathlib import Path
from typing import IO, Any

from prevalens.errors import FormatError
from prevalens.service.problems import Problem
from prevalens.service.settings import Limits
from prevalens.tables.opening import open_table
from prevalens.tables.table import Chunk, Table

__all__ = ["ClientTable", "kind_of", "opened", "preview", "separator_of", "unpacked"]

_PACKED: tuple[tuple[bytes, Any], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ\x00", lzma.open),
)
_PIECE = 2**20
#: A workbook has a handful of members; an archive of thousands is something else.
_MEMBERS = 2000
#: Tables shrink to a tenth when packed; what grows this much, beyond some size, is a bomb.
_GROWTH = 300
_HARMLESS = 50 * 10**6
#: The names of the columns, in one line.
_HEAD = 4 * 10**6


def opened(path: Path, name: str, limits: Limits) -> ClientTable:
    """A client's file as a table, within the limits.

    Parameters
    ----------
    path : Path
        Where the file is.
    name : str
        What the client calls it, for sentences.
    limits : Limits
    """
    plain = unpacked(path, name, limits)
    with plain.open("rb") as file:
        start = file.read(4)
    if start.startswith(b"PK"):
        _check_workbook(plain, name, limits)
    elif start == b"PAR1":
        _check_parquet(plain, name, limits)
    else:
        _check_head(plain, name)
    return ClientTable(open_table(plain, name=name), limits)


def unpacked(path: Path, name: str, limits: Limits) -> Path:
    """The file without its compression; measured while it grows."""
    with path.open("rb") as file:
        start = file.read(6)
    opener = next((one for magic, one in _PACKED if start.startswith(magic)), None)
    if opener is None:
        return path
    target = path.with_name(f"plain-{path.name.removesuffix('.gz')}")
    if target.exists():
        return target
    try:
        with opener(path, "rb") as packed, target.open("xb") as plain:
            _copy(packed, plain, name, _allowed(path.stat().st_size, limits))
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        target.unlink(missing_ok=True)
        raise FormatError(f"{name}: the compressed data is damaged or cut off.") from error
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return target


def _allowed(size: int, limits: Limits) -> int:
    return min(limits.unpacked_bytes, max(_HARMLESS, _GROWTH * size))


def _copy(packed: IO[bytes], plain: IO[bytes], name: str, allowed: int) -> None:
    done = 0
    while piece := packed.read(_PIECE):
        done += len(piece)
        if done > allowed:
            raise _grows(name, allowed)
        plain.write(piece)


def _check_workbook(path: Path, name: str, limits: Limits) -> None:
    """Add up what the members of a workbook say they unpack to; readers stop at that size."""
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = [member.file_size for member in archive.infolist()]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise FormatError(f"{name}: this is no readable Excel workbook.") from error
    allowed = _allowed(path.stat().st_size, limits)
    if len(sizes) > _MEMBERS or sum(sizes) > allowed:
        raise _grows(name, allowed)


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


def too_many(name: str, found: int, what: str, allowed: int) -> Problem:
    """The refusal of a table that is too long or too wide."""
    return Problem(
        "too_large", f"{name} has {found:,} {what} or more; this server reads up to {allowed:,}."
    )


class ClientTable(Table):
    """A table of a client: not wider or longer than allowed, columns called as the model does.

    Parameters
    ----------
    table : Table
    limits : Limits
    names : mapping, optional
        For columns the model asks for: what this table calls them.
    """

    def __init__(
        self, table: Table, limits: Limits, names: Mapping[str, str] | None = None
    ) -> None:
        if len(table.columns) > limits.columns:
            raise too_many(table.name, len(table.columns), "columns", limits.columns)
        self.name = table.name
        self.total = table.total
        self._table = table
        self._limits = limits
        self._names = dict(names or {})
        table.check_columns(self._names.values())
        # A column may serve under both names: as the model's, and as the one of its batches.
        others = [name for name in table.columns if name not in self._names]
        self.columns = (*self._names, *others)

    def renamed(self, names: Mapping[str, str]) -> ClientTable:
        """The same table with other names for some columns."""
        return ClientTable(self._table, self._limits, names)

    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        inside = {name: self._names.get(name, name) for name in columns}
        seen = 0
        for chunk in self._table.chunks(inside.values(), chunk_rows=chunk_rows):
            seen += len(chunk)
            if seen > self._limits.rows:
                raise too_many(self.name, seen, "rows", self._limits.rows)
            cells = {name: chunk[own] for name, own in inside.items()}
            yield Chunk(cells, len(chunk), chunk.first, chunk.source, chunk.position, chunk.word)


_LOOKED_AT = 500
_SHOWN = 6
_CELL = 300
_SEPARATORS = (";", "|", ",")
_DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y-%m")


def preview(table: Table) -> dict[str, Any]:
    """Columns with their kinds, and the first rows."""
    chunk = next(table.chunks(chunk_rows=_LOOKED_AT), None)
    columns, cells = [], []
    for name in table.columns:
        values = [] if chunk is None else list(chunk[name])
        columns.append(_column(name, values))
        cells.append([_plain(value) for value in values[:_SHOWN]])
    rows = [list(row) for row in zip(*cells, strict=True)]
    return {
        "columns": columns,
        "rows": rows,
        "complete": chunk is None or len(chunk) < _LOOKED_AT,
    }


def _column(name: str, values: Sequence[Any]) -> dict[str, Any]:
    kind = kind_of(values)
    separator = separator_of(_filled(values)) if kind == "tags" else None
    return {"name": name, "kind": kind, "separator": separator}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)[:_CELL]


def _filled(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None and str(value).strip()]


def kind_of(values: Sequence[Any]) -> str:
    """What some values of a column are.

    Examples
    --------
    >>> kind_of(["0", "1", "1"]), kind_of(["1.5", ""]), kind_of(["2026-01-02"])
    ('binary', 'number', 'time')
    >>> kind_of(["a;b", "b", "a;b;c"]), kind_of(["the printer is on fire again"])
    ('tags', 'text')
    """
    filled = _filled(values)
    if not filled:
        return "empty"
    if all(
        str(value).strip().lower() in {"0", "1", "true", "false", "0.0", "1.0"} for value in filled
    ):
        return "binary"
    if all(_is_number(value) for value in filled):
        return "number"
    if all(_is_time(value) for value in filled):
        return "time"
    if separator_of(filled) is not None:
        return "tags"
    words = sum(len(str(value).split()) for value in filled)
    return "text" if words >= 3.5 * len(filled) else "category"


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _is_time(value: Any) -> bool:
    if isinstance(value, (datetime, date)):
        return True
    text = str(value).strip()
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return any(_fits(text, form) for form in _DATES)
    return True


def _fits(text: str, form: str) -> bool:
    try:
        datetime.strptime(text, form)
    except ValueError:
        return False
    return True


def separator_of(filled: Sequence[Any]) -> str | None:
    """What stands between tags; None if the values are no lists of tags.

    Tags are short and come again and again; sentences with commas are not and do not.
    """
    texts = [str(value) for value in filled]
    for mark in _SEPARATORS:
        if not any(mark in text for text in texts):
            continue
        tags = [tag.strip() for tag in chain.from_iterable(text.split(mark) for text in texts)]
        few_words = sum(len(tag.split()) for tag in tags) <= 2 * len(tags)
        if few_words and len(set(tags)) <= max(0.6 * len(tags), 3) and max(map(len, tags)) <= 60:
            return mark
    return None
