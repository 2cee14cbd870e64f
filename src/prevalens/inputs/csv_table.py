"""CSV and TSV, row by row with the standard library."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from prevalens.errors import InputError
from prevalens.inputs.streams import Bytes, text_of
from prevalens.inputs.table import Chunk, Table, check_header, damaged

__all__ = ["CsvTable"]

_DELIMITERS = ",;\t|"
_QUOTED = re.compile(r'"[^"]*"')
#: A field longer than this is a quotation mark that is never closed.
_LONGEST_FIELD = 2**26


class CsvTable(Table):
    """A CSV file whose first line names the columns.

    Parameters
    ----------
    source : Bytes
    delimiter : str, optional
    encoding : str, optional
    """

    def __init__(self, source: Bytes, delimiter: str | None, encoding: str | None) -> None:
        if delimiter is not None and len(delimiter) != 1:
            raise InputError(f"A delimiter is one character; got {delimiter!r}.")
        self.source = source
        self.name = source.name
        self.total = source.size
        self.encoding = encoding
        self.delimiter = delimiter or self._guess_delimiter()
        with text_of(self.source, self.encoding) as (text, _):
            header = self._header(*self._reader(text))
        self._positions = {name: j for j, name in enumerate(header) if name}
        self._width = len(header)
        self.columns = check_header(self.name, header)

    def _guess_delimiter(self) -> str:
        with text_of(self.source, self.encoding) as (text, _):
            first = _QUOTED.sub("", text.readline(2**20))
        return max(_DELIMITERS, key=first.count)

    def _reader(self, text: Any) -> tuple[Any, Iterator[list[str]]]:
        """The reader, which counts lines, and its rows; a blank line is no row."""
        csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
        reader = csv.reader(text, delimiter=self.delimiter, strict=True)
        return reader, filter(None, reader)

    def _header(self, reader: Any, rows: Iterator[list[str]]) -> list[str]:
        first = self._next_rows(reader, rows, 1)
        if not first:
            raise damaged(self.name, "the file is empty.")
        return [name.strip() for name in first[0]]

    def _next_rows(self, reader: Any, rows: Iterator[list[str]], count: int) -> list[list[str]]:
        try:
            return list(islice(rows, count))
        except csv.Error as error:
            place = f"{self.name}, line {reader.line_num}"
            raise damaged(place, f"this is no proper CSV ({error}).") from None

    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        with text_of(self.source, self.encoding) as (text, raw):
            reader, lines = self._reader(text)
            self._header(reader, lines)
            number, line = 1, reader.line_num
            while rows := self._next_rows(reader, lines, chunk_rows):
                # Quoted line breaks and blank lines make rows and lines differ.
                in_step = reader.line_num - line == len(rows)
                first, word = (line + 1, "line") if in_step else (number, "row")
                chunk = Chunk({}, len(rows), first, self.name, raw.tell(), word)
                self._check_widths(rows, chunk)
                cells = {name: self._column(rows, name) for name in columns}
                yield Chunk(cells, len(rows), first, self.name, raw.tell(), word)
                number, line = number + len(rows), reader.line_num

    def _column(self, rows: list[list[str]], name: str) -> list[str]:
        position = self._positions[name]
        return [row[position] for row in rows]

    def _check_widths(self, rows: list[list[str]], chunk: Chunk) -> None:
        if set(map(len, rows)) == {self._width}:
            return
        bad = next(i for i, row in enumerate(rows) if len(row) != self._width)
        raise damaged(
            chunk.place(bad),
            f"there are {len(rows[bad])} values for {self._width} columns; quote texts that hold "
            f"{self.delimiter!r} or line breaks.",
        )
