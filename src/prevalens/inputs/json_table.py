"""JSON lines, line by line; a JSON array of objects, read whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from prevalens.inputs.streams import Bytes, text_of
from prevalens.inputs.table import Chunk, Table, check_header, damaged

__all__ = ["JsonLinesTable", "JsonTable", "names_of"]

#: Rows that are looked at to learn the columns.
_LOOKED_AT = 1000


class JsonLinesTable(Table):
    """One JSON object per line; the columns are the keys of the first thousand lines.

    Parameters
    ----------
    source : Bytes
    encoding : str, optional
    """

    def __init__(self, source: Bytes, encoding: str | None) -> None:
        self.source = source
        self.name = source.name
        self.total = source.size
        self.encoding = encoding
        with text_of(source, encoding) as (text, _):
            records = [record for _, record in islice(self._records(text), _LOOKED_AT)]
        if not records:
            raise damaged(self.name, "there are no items.")
        self.columns = check_header(self.name, names_of(records))

    def _records(self, text: Any) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(text, start=1):
            if line.strip():
                yield number, json_object(f"{self.name}, line {number}", line)

    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        with text_of(self.source, self.encoding) as (text, raw):
            records, number = self._records(text), 1
            while rows := list(islice(records, chunk_rows)):
                in_step = rows[-1][0] - rows[0][0] == len(rows) - 1
                first, word = (rows[0][0], "line") if in_step else (number, "row")
                cells = {name: [row.get(name) for _, row in rows] for name in columns}
                yield Chunk(cells, len(rows), first, self.name, raw.tell(), word)
                number += len(rows)


class JsonTable(Table):
    """A JSON array of objects; also JSON lines under another name.

    Parameters
    ----------
    source : Bytes
    encoding : str, optional
    """

    def __new__(cls, source: Bytes, encoding: str | None) -> Any:
        """One object per line is read as such, whatever the file's ending."""
        if source.start().lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            return JsonLinesTable(source, encoding)
        return super().__new__(cls)

    def __init__(self, source: Bytes, encoding: str | None) -> None:
        self.name = source.name
        with text_of(source, encoding) as (text, _):
            self._rows = _json_rows(self.name, text.read())
        self.total = len(self._rows)
        self.columns = check_header(self.name, names_of(self._rows))

    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        for start in range(0, len(self._rows), chunk_rows):
            rows = self._rows[start : start + chunk_rows]
            cells = {name: [row.get(name) for row in rows] for name in columns}
            yield Chunk(cells, len(rows), start + 1, self.name, start + len(rows))


def names_of(records: Sequence[dict[str, Any]]) -> list[str]:
    """The keys of all records, in the order in which they first occur."""
    return list(dict.fromkeys(str(name) for record in records for name in record))


def json_object(place: str, text: str) -> dict[str, Any]:
    """One JSON object, or a sentence that says where there is none."""
    value = _parsed(place, text)
    if not isinstance(value, dict):
        raise damaged(place, f"expected a JSON object, got {text.strip()[:40]!r}.")
    return value


def _parsed(place: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged(place, f"this is not JSON ({error}).") from None


def _json_rows(name: str, text: str) -> list[dict[str, Any]]:
    value = _parsed(name, text)
    if not isinstance(value, list) or not value:
        raise damaged(name, "expected a JSON array of objects with at least one item.")
    for number, row in enumerate(value, start=1):
        if not isinstance(row, dict):
            raise damaged(f"{name}, item {number}", f"expected an object, got {str(row)[:40]!r}.")
    return value
