"""The formats of tables: CSV, JSON lines, JSON, Parquet, Excel, and columns in memory."""

from __future__ import annotations

import contextlib
import csv
import importlib
import importlib.util
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import IO, Any, cast

import narwhals as nw
import numpy as np

from prevalens.errors import InputError, counted
from prevalens.files import ByteSource, damaged
from prevalens.tables.annotations import export_of
from prevalens.tables.plain_csv import CsvLayout, is_utf8, plain_blocks, skip_header
from prevalens.tables.table import Chunk, Table, check_header

_DELIMITERS = ",;\t|"
_QUOTED = re.compile(r'"[^"]*"')
#: A longer field means that a quotation mark is never closed.
_LONGEST_FIELD = 2**26
#: Numbers of a chunk that is read without Python objects, and of a row group that is read at once.
_SCORES, _ROW_GROUP = 2**21, 2**24


class _FileTable(Table):
    """A table in a file."""

    def __init__(self, source: ByteSource, encoding: str | None = None) -> None:
        self.source = source
        self.name = source.name
        self.encoding = encoding


class _CsvReader:
    """Rows of a CSV file, without blank lines.

    Attributes
    ----------
    rows : iterator of list of str
    number : int
        Of the first row after the header, counted from 1.
    """

    def __init__(self, text: Any, delimiter: str) -> None:
        csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
        self._reader = csv.reader(text, delimiter=delimiter, strict=True)
        self._before = 0
        self.rows = filter(None, self._reader)
        self.number = 1

    @property
    def line(self) -> int:
        """Lines of the file that have been read."""
        return int(self._reader.line_num) + self._before

    def go_on(self, n_rows: int) -> None:
        """Count on from so many rows, which were read before in another way, and the header."""
        self._before, self.number = n_rows + 1, n_rows + 1


class CsvTable(_FileTable):
    """A CSV file whose first line names the columns.

    Parameters
    ----------
    source : ByteSource
    delimiter : str, optional
    encoding : str, optional
    """

    def __init__(self, source: ByteSource, delimiter: str | None, encoding: str | None) -> None:
        if delimiter is not None and len(delimiter) != 1:
            raise InputError(f"A delimiter is one character; got {delimiter!r}.")
        super().__init__(source, encoding)
        self.total = source.size
        if delimiter is None:
            with source.text(encoding) as (text, _):
                first = _QUOTED.sub("", text.readline(2**20))
            delimiter = max(_DELIMITERS, key=first.count)
        self.delimiter = delimiter
        with source.text(encoding) as (text, _):
            reader = _CsvReader(text, delimiter)
            header = self._header(reader)
        self._header_lines = reader.line
        self._positions = {name: j for j, name in enumerate(header) if name}
        self._width = len(header)
        self.columns = check_header(self.name, header)

    def _header(self, reader: _CsvReader) -> list[str]:
        first = self._next_rows(reader, 1)
        if not first:
            raise damaged(self.name, "the file is empty.")
        if any("\0" in name for name in first[0]):
            what = "the names of its columns hold NUL characters, so it is no text file."
            raise damaged(self.name, what)
        return [name.strip() for name in first[0]]

    def _next_rows(self, reader: _CsvReader, count: int) -> list[list[str]]:
        try:
            return list(islice(reader.rows, count))
        except csv.Error as error:
            place = f"{self.name}, line {reader.line}"
            raise damaged(place, f"this is no proper CSV ({error}).") from None

    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        with self.source.text(self.encoding) as (text, raw):
            reader = _CsvReader(text, self.delimiter)
            self._header(reader)
            yield from self._read_on(reader, columns, chunk_rows, raw)

    def _read_on(
        self, reader: _CsvReader, columns: tuple[str, ...], chunk_rows: int, raw: IO[bytes]
    ) -> Iterator[Chunk]:
        """The rows that follow."""
        positions = {name: self._positions[name] for name in columns}
        number, line = reader.number, reader.line
        while rows := self._next_rows(reader, chunk_rows):
            # Quoted line breaks and blank lines make rows and lines differ.
            in_step = reader.line - line == len(rows)
            first, word = (line + 1, "line") if in_step else (number, "row")
            self._check_widths(rows, f"{self.name}, {word}", first)
            cells = {name: [row[j] for row in rows] for name, j in positions.items()}
            yield Chunk(cells, len(rows), first, self.name, raw.tell(), word)
            number, line = number + len(rows), reader.line

    def _score_chunks(
        self, columns: tuple[str, ...], scores: frozenset[str], chunk_rows: int
    ) -> Iterator[Chunk] | None:
        """See `Table`: by pyarrow, as long as all is plain; from there on as without it."""
        plain = self._header_lines == 1 and self.delimiter in _DELIMITERS
        if not plain or not _has_arrow():
            return None
        return self._fast_chunks(columns, scores, chunk_rows)

    def _fast_chunks(
        self, columns: tuple[str, ...], scores: frozenset[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        layout = CsvLayout(self.delimiter, self._width, self._positions, columns, scores)
        with self.source.text(self.encoding) as (text, raw):
            reader = _CsvReader(text, self.delimiter)
            stream = cast("IO[bytes]", text.buffer)
            if is_utf8(text.encoding) and skip_header(stream):
                done = 0
                for n_rows, cells in plain_blocks(stream, layout):
                    yield Chunk(cells, n_rows, done + 2, self.name, raw.tell(), "line")
                    done += n_rows
                reader.go_on(done)
            else:
                self._header(reader)
            yield from self._read_on(reader, columns, chunk_rows, raw)

    def _check_widths(self, rows: list[list[str]], place: str, first: int) -> None:
        if set(map(len, rows)) == {self._width}:
            return
        bad = next(i for i, row in enumerate(rows) if len(row) != self._width)
        verb = "is" if len(rows[bad]) == 1 else "are"
        raise damaged(
            f"{place} {first + bad}",
            f"there {verb} {counted(len(rows[bad]), 'value')} for "
            f"{counted(self._width, 'column')}; quote texts that hold "
            f"{self.delimiter!r} or line breaks.",
        )


#: Rows that are read to find the columns.
_LOOKED_AT = 1000


class JsonLinesTable(_FileTable):
    """One JSON object per line; the columns are the keys of the first thousand lines.

    The export of an annotation tool is read as plain columns; see `prevalens.tables.annotations`.

    Parameters
    ----------
    source : ByteSource
    encoding : str, optional
    """

    def __init__(self, source: ByteSource, encoding: str | None) -> None:
        super().__init__(source, encoding)
        self.total = source.size
        with source.text(encoding) as (text, _):
            numbered = list(islice(self._records(text), _LOOKED_AT))
        if not numbered:
            raise damaged(self.name, "there are no items.")
        records = [record for _, record in numbered]
        self._export = export_of(records, (self._place(number) for number, _ in numbered))
        self.columns = check_header(
            self.name, _names_of(records) if self._export is None else self._export.columns
        )
        if self._export is not None:
            self.item_columns = self._export.item_columns

    def _place(self, number: int) -> str:
        return f"{self.name}, line {number}"

    def _records(self, text: Any) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(text, start=1):
            if line.strip():
                place = self._place(number)
                record = _parsed(place, line)
                if not isinstance(record, dict):
                    raise damaged(place, f"expected a JSON object, got {line.strip()[:40]!r}.")
                yield number, record

    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        with self.source.text(self.encoding) as (text, raw):
            records, number = self._records(text), 1
            while rows := list(islice(records, chunk_rows)):
                in_step = rows[-1][0] - rows[0][0] == len(rows) - 1
                first, word = (rows[0][0], "line") if in_step else (number, "row")
                if self._export is not None:
                    rows = [(at, self._export.row(row, self._place(at))) for at, row in rows]
                cells = {name: [row.get(name) for _, row in rows] for name in columns}
                yield Chunk(cells, len(rows), first, self.name, raw.tell(), word)
                number += len(rows)


def _names_of(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keys of all records, in the order in which they first occur."""
    return list(dict.fromkeys(str(name) for record in records for name in record))


def _parsed(place: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged(place, f"this is not JSON ({error}).") from None


def json_table(source: ByteSource, encoding: str | None) -> Table:
    """A JSON array of objects; a file that starts with an object is read as JSON lines."""
    if source.start().lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return JsonLinesTable(source, encoding)
    with source.text(encoding) as (text, _):
        rows = _parsed(source.name, text.read())
    if not isinstance(rows, list) or not rows:
        raise damaged(source.name, "expected a JSON array of objects with at least one item.")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            place = f"{source.name}, item {number}"
            raise damaged(place, f"expected an object, got {str(row)[:40]!r}.")
    return _of_records(rows, source.name)


@contextmanager
def _parser(name: str, module: str, extra: str, what: str) -> Iterator[Any]:
    """A module that reads files; its errors become one sentence."""
    try:
        parser = importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise InputError(
            f'{name} needs {package} to be read: pip install "prevalens[{extra}]".'
        ) from None
    try:
        yield parser
    except (InputError, MemoryError):
        raise
    except Exception as error:
        raise damaged(name, f"this is no readable {what} ({error}).") from None


class ParquetTable(_FileTable):
    """A Parquet file.

    Parameters
    ----------
    source : ByteSource
    """

    def __init__(self, source: ByteSource) -> None:
        super().__init__(source)
        with source.opened() as (stream, stored), self._parquet() as parquet:
            plain = stream is stored and source.path is not None
            self._path = source.path if plain else None
            file = parquet.ParquetFile(_in_memory(_footer(stream) if plain else stream.read()))
            self.total = file.metadata.num_rows
            self.columns = check_header(self.name, file.schema_arrow.names)

    def _parquet(self) -> contextlib.AbstractContextManager[Any]:
        return _parser(self.name, "pyarrow.parquet", "frames", "Parquet file")

    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        return self._score_chunks(columns, frozenset(), chunk_rows)

    def _score_chunks(
        self, columns: tuple[str, ...], scores: frozenset[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        done = 0
        chunk_rows = max(chunk_rows, _SCORES // len(scores)) if scores else chunk_rows
        with self._parquet() as parquet:
            # By its path if possible: then only the columns asked for are read.
            file = parquet.ParquetFile(self._path or _in_memory(self.source.content()))
            read = _row_groups if _are_numbers(file, columns, scores) else _batches
            for batch in read(file, list(columns), chunk_rows):
                cells = {
                    name: (arrow_numbers if name in scores else _arrow_cells)(batch.column(name))
                    for name in columns
                }
                done += batch.num_rows
                yield Chunk(cells, batch.num_rows, done - batch.num_rows + 1, self.name, done)


def _batches(file: Any, columns: list[str], chunk_rows: int) -> Iterator[Any]:
    """The rows of a Parquet file in batches.

    Some row groups at a time: of all that are named, Arrow keeps the bytes until the last is read.
    """
    groups: list[int] = []
    n_rows, last = 0, file.num_row_groups - 1
    for group in range(file.num_row_groups):
        groups.append(group)
        n_rows += file.metadata.row_group(group).num_rows
        if n_rows >= chunk_rows or group == last:
            yield from file.iter_batches(chunk_rows, row_groups=groups, columns=columns)
            groups, n_rows = [], 0


def _are_numbers(file: Any, columns: Sequence[str], scores: frozenset[str]) -> bool:
    """Whether all columns are scores, and a row group of them is small enough to be read whole."""
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    return scores.issuperset(columns) and 0 < max(sizes, default=0) * len(columns) <= _ROW_GROUP


def _row_groups(file: Any, columns: list[str], chunk_rows: int) -> Iterator[Any]:
    """As `_batches`, column by column; while a row group is used, a thread reads the next.

    This takes two thirds of the time of batches that hold all columns.
    """
    table = importlib.import_module("pyarrow").table

    def read(group: int) -> Any:
        parts = (file.read_row_group(group, [name], use_threads=False) for name in columns)
        return table({name: part.column(0) for name, part in zip(columns, parts, strict=True)})

    with ThreadPoolExecutor(1) as reader:
        ahead = reader.submit(read, 0)
        for group in range(file.num_row_groups):
            numbers = ahead.result()
            if group + 1 < file.num_row_groups:
                ahead = reader.submit(read, group + 1)
            yield from numbers.to_batches(chunk_rows)


def arrow_numbers(column: Any) -> Any:
    """The cells of an Arrow array of numbers as an array, with NaN if missing; of others a list."""
    types = importlib.import_module("pyarrow").types
    kind = column.type
    whole = types.is_integer(kind) or types.is_boolean(kind)
    if types.is_floating(kind) or (whole and not column.null_count):
        return column.to_numpy(zero_copy_only=False)
    return column.to_pylist()


def _arrow_cells(column: Any) -> Any:
    """The cells of an Arrow array; vectors of one length are one array, with NaN if missing.

    O(numbers) without a Python object per number.
    """
    types = importlib.import_module("pyarrow").types
    kind = column.type
    fixed = types.is_fixed_size_list(kind)
    listed = fixed or types.is_list(kind) or types.is_large_list(kind)
    if not listed or not types.is_floating(kind.value_type) or column.null_count == len(column):
        return column.to_pylist()
    known = column.drop_null()
    lengths = known.value_lengths().to_numpy()
    if not lengths[0] or (lengths != lengths[0]).any():
        return column.to_pylist()
    flat = known.flatten().to_numpy(zero_copy_only=False)
    values = flat.astype(np.float32, copy=False).reshape(-1, lengths[0])
    if len(known) == len(column):
        return values
    vectors = np.full((len(column), lengths[0]), np.nan, dtype=np.float32)
    vectors[column.is_valid().to_numpy(zero_copy_only=False)] = values
    return vectors


def _footer(stream: IO[bytes]) -> bytes:
    """The end of a Parquet file, which contains its columns and number of rows."""
    stream.seek(-8, io.SEEK_END)
    size = int.from_bytes(stream.read(4), "little")
    stream.seek(-8 - size, io.SEEK_END)
    return stream.read()


def _in_memory(content: bytes) -> Any:
    # Never a Python file: Arrow's threads may release one only when Python is ending, and abort it.
    return importlib.import_module("pyarrow").BufferReader(content)


#: Columns without a name that a sheet may have, beyond ten for each with a name.
_MOST_UNNAMED = 1000
#: The last row of a sheet.
_EXCEL_ROWS = 2**20


class ExcelTable(_FileTable):
    """One sheet of a workbook whose first row names the columns.

    Parameters
    ----------
    source : ByteSource
    sheet : str, optional
        The first sheet if omitted.
    """

    def __init__(self, source: ByteSource, sheet: str | None) -> None:
        super().__init__(source)
        self.sheet = sheet
        with self._rows(None) as rows:
            header = next(rows, None)
            if header is None:
                raise damaged(self.name, "the sheet is empty.")
        names = ["" if cell is None else str(cell).strip() for cell in header]
        self._positions = {name: j for j, name in enumerate(names) if name}
        self.columns = check_header(self.name, names)
        self._width = max(self._positions.values()) + 1
        if self._width > _MOST_UNNAMED + 10 * len(self.columns):
            what = f"the first row names only {len(self.columns)} of {self._width:,} columns"
            raise damaged(self.name, f"{what}; delete the cells far to the right.")

    @contextmanager
    def _rows(self, width: int | None) -> Iterator[Iterator[tuple[Any, ...]]]:
        content = io.BytesIO(self.source.content())
        with _parser(self.name, "openpyxl", "excel", "Excel workbook") as openpyxl:
            book = openpyxl.load_workbook(content, read_only=True, data_only=True)
            with contextlib.closing(book):
                sheet = self._chosen(book)
                # What a sheet says of its size may be wrong; every row would be made that wide.
                sheet.reset_dimensions()
                yield sheet.iter_rows(max_col=width, values_only=True)

    def _chosen(self, book: Any) -> Any:
        if self.sheet is None:
            return book.worksheets[0]
        if self.sheet not in book.sheetnames:
            names = ", ".join(map(repr, book.sheetnames))
            raise InputError(f"{self.name} has no sheet {self.sheet!r}; it has {names}.")
        return book[self.sheet]

    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        positions = {name: self._positions[name] for name in columns}
        with self._rows(self._width) as rows:
            next(rows, None)
            done = 0
            while block := list(islice(rows, chunk_rows)):
                if done + len(block) >= _EXCEL_ROWS:
                    what = f"it has rows beyond {_EXCEL_ROWS:,}, the last that Excel knows."
                    raise damaged(self.name, what)
                # In Excel the header is row 1; empty rows at the end come from formatting.
                filled = [row for row in block if row.count(None) < len(row)]
                cells = {name: [row[j] for row in filled] for name, j in positions.items()}
                if filled:
                    yield Chunk(cells, len(filled), done + 2, self.name, done + len(block))
                done += len(block)


class FrameTable(Table):
    """Columns in memory.

    Parameters
    ----------
    columns : mapping of name to sequence
    name : str
        Name of the table in messages.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]], name: str) -> None:
        self.name = name
        self.columns = check_header(name, list(columns))
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise InputError(f"The columns of {name} differ in length: {sorted(lengths)}.")
        self._cells = columns
        self.total = lengths.pop()

    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        assert self.total is not None
        for start in range(0, self.total, chunk_rows):
            stop = min(start + chunk_rows, self.total)
            cells = {name: _listed(self._cells[name][start:stop]) for name in columns}
            yield Chunk(cells, stop - start, start + 1, self.name, stop)


def _listed(cells: Any) -> Sequence[Any]:
    return _cells(cells) if isinstance(cells, nw.Series) else cells


def as_table(data: Any, *, name: str = "the data") -> Table:
    """A table of data in memory.

    Parameters
    ----------
    data : data frame, mapping of columns, list of records, or list of texts
        Frames of pandas, polars and others that narwhals supports. A list of texts becomes a table
        with one column, ``text``. A Table is returned as it is.
    name : str
        Name of the table in messages.

    Examples
    --------
    >>> as_table([{"text": "printer on fire", "urgent": 1}]).columns
    ('text', 'urgent')
    """
    if isinstance(data, Table):
        return data
    frame = nw.from_native(data, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(frame, nw.Series):
        return FrameTable({frame.name or "text": _cells(frame)}, name)
    if isinstance(frame, nw.DataFrame):
        # Cells become objects of Python chunk by chunk, and only in the columns that are read.
        cells: Any = {str(column): frame.get_column(column) for column in frame.columns}
        return FrameTable(cells, name)
    if isinstance(data, Mapping):
        return FrameTable({str(column): list(cells) for column, cells in data.items()}, name)
    return _from_list(data, name)


def _cells(column: nw.Series[Any]) -> Any:
    """The cells of a frame's column; missing ones, such as NaT and NA of pandas, are None."""
    if isinstance(column.dtype, (nw.Array, nw.List)) and _has_arrow():
        native = column.to_native()
        if hasattr(native, "to_arrow"):
            return _arrow_cells(native.to_arrow())
        if hasattr(native, "combine_chunks"):
            return _arrow_cells(native.combine_chunks())
    cells = column.to_list()
    if not column.null_count():
        return cells
    return [None if null else cell for cell, null in zip(cells, column.is_null(), strict=True)]


def _has_arrow() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


def _from_list(data: Any, name: str) -> Table:
    rows = list(data) if isinstance(data, Sequence) and not isinstance(data, str) else []
    if not rows:
        raise InputError(
            f"A table is a data frame, columns, or a list of records or texts with at least one "
            f"item; got {type(data).__name__}."
        )
    if all(isinstance(row, str) for row in rows):
        return FrameTable({"text": rows}, name)
    if all(isinstance(row, Mapping) for row in rows):
        return _of_records(rows, name)
    raise InputError(f"{name} must hold records (dicts) only or texts only.")


class _RecordTable(Table):
    """Records in memory; a key that a record lacks is a missing cell.

    Columns are made chunk by chunk: thousands of keys that occur once each need no dense table.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]], name: str) -> None:
        self.name = name
        self.columns = check_header(name, _names_of(rows))
        self.total = len(rows)
        self._records = rows

    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        for start in range(0, len(self._records), chunk_rows):
            rows = self._records[start : start + chunk_rows]
            cells = {name: [row.get(name) for row in rows] for name in columns}
            yield Chunk(cells, len(rows), start + 1, self.name, start + len(rows))


def _of_records(rows: Sequence[Mapping[str, Any]], name: str) -> Table:
    places = [f"{name}, item {number}" for number in range(1, len(rows) + 1)]
    export = export_of(rows, places)
    if export is None:
        return _RecordTable(rows, name)
    plain = [export.row(row, place) for row, place in zip(rows, places, strict=True)]
    table = FrameTable({key: [row.get(key) for row in plain] for key in export.columns}, name)
    table.item_columns = export.item_columns
    return table
