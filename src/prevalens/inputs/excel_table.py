"""Excel workbooks (.xlsx), row by row; needs openpyxl."""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from prevalens.errors import InputError
from prevalens.inputs.streams import Bytes
from prevalens.inputs.table import Chunk, Table, check_header, damaged

__all__ = ["ExcelTable"]


class ExcelTable(Table):
    """One sheet of a workbook whose first row names the columns.

    Parameters
    ----------
    source : Bytes
    sheet : str, optional
        The first sheet if left out.
    """

    def __init__(self, source: Bytes, sheet: str | None) -> None:
        self.source = source
        self.name = source.name
        self.sheet = sheet
        with self._rows() as rows:
            header = next(rows, None)
            if header is None:
                raise damaged(self.name, "the sheet is empty.")
        names = ["" if cell is None else str(cell).strip() for cell in header]
        self._positions = {name: j for j, name in enumerate(names) if name}
        self.columns = check_header(self.name, names)

    @contextmanager
    def _rows(self) -> Iterator[Iterator[tuple[Any, ...]]]:
        try:
            openpyxl = importlib.import_module("openpyxl")
        except ImportError:
            raise InputError(
                f'{self.name} needs openpyxl to be read: pip install "prevalens[excel]".'
            ) from None
        try:
            book = openpyxl.load_workbook(
                io.BytesIO(self.source.content()), read_only=True, data_only=True
            )
            try:
                yield self._chosen(book).iter_rows(values_only=True)
            finally:
                book.close()
        except InputError:
            raise
        # The parser answers a damaged file with errors of several kinds.
        except Exception as error:
            raise damaged(self.name, f"this is no readable Excel workbook ({error}).") from None

    def _chosen(self, book: Any) -> Any:
        if self.sheet is None:
            return book.worksheets[0]
        if self.sheet not in book.sheetnames:
            there = ", ".join(map(repr, book.sheetnames))
            raise InputError(f"{self.name} has no sheet {self.sheet!r}; it has {there}.")
        return book[self.sheet]

    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        with self._rows() as rows:
            next(rows, None)
            done = 0
            while block := list(islice(rows, chunk_rows)):
                # People see the header as row 1; empty rows at the end are formatting.
                filled = [row for row in block if any(cell is not None for cell in row)]
                cells = {
                    name: [_cell(row, self._positions[name]) for row in filled] for name in columns
                }
                if filled:
                    yield Chunk(cells, len(filled), done + 2, self.name, done + len(block))
                done += len(block)


def _cell(row: tuple[Any, ...], position: int) -> Any:
    return row[position] if position < len(row) else None
