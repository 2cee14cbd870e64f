"""Rows of results as the content of files: CSV, TSV, JSON, JSON lines, Parquet or Excel."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeAlias

from prevalens.errors import InputError

#: Cells by the names of their columns; all rows of a table have the same names.
Rows: TypeAlias = Sequence[Mapping[str, Any]]

#: Endings of the files that rows are written to.
ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx")
#: What a format needs beyond the package: a module, its extra, and what the file is called.
_NEEDS = {
    ".parquet": ("pyarrow", "frames", "A Parquet file"),
    ".xlsx": ("openpyxl", "excel", "An Excel workbook"),
}
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
#: A spreadsheet takes a text that starts with one of these for a formula, unless it is a number.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
#: Columns of a Parquet file that are no numbers, should all of their cells be empty.
_TYPES = {"alarm": "bool_"}
#: Limits of a sheet in Excel.
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384
#: Characters that an Excel workbook cannot hold.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
#: Excel has 15 digits; longer numbers, such as identifiers, are written as texts.
_LARGEST_INT = 10**15
#: Width of columns in a workbook, in characters.
_NARROWEST, _WIDEST = 9, 60


def rows_bytes(rows: Rows, ending: str) -> bytes:
    """Rows with the same keys as the content of a file with that ending."""
    check_ending(ending)
    if ending == ".json":
        return json_bytes(rows)
    if ending == ".jsonl":
        lines = (json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
        return "".join(lines).encode()
    if ending == ".parquet":
        return _parquet(rows)
    if ending == ".xlsx":
        return workbook_bytes({"rows": rows})
    return csv_bytes(rows, "\t" if ending == ".tsv" else ",")


def check_ending(name: str | Path) -> None:
    """Refuse a file name whose ending says no format that rows can be written in here."""
    ending = Path(f"x{name}" if str(name).startswith(".") else name).suffix.lower()
    if ending not in ENDINGS:
        raise InputError(
            f"Results are written as {', '.join(ENDINGS)}; {str(name)!r} ends in none of them."
        )
    if ending in _NEEDS:
        module, extra, what = _NEEDS[ending]
        if importlib.util.find_spec(module) is None:
            raise InputError(
                f'{what} needs {module} to be written: pip install "prevalens[{extra}]".'
            )


def json_bytes(content: Any) -> bytes:
    """A value as the content of a JSON file: a line per field and per row."""
    return (_json_text(content) + "\n").encode()


def _json_text(content: Any) -> str:
    # Only without an indent the encoder of the standard library is the fast one.
    encode = json.JSONEncoder(ensure_ascii=False, default=str).encode
    if isinstance(content, dict) and content:
        fields = (f" {encode(str(name))}: {_json_text(value)}" for name, value in content.items())
        return "{\n" + ",\n".join(fields) + "\n}"
    if isinstance(content, (list, tuple)) and content:
        return "[\n" + ",\n".join(f" {encode(row)}" for row in content) + "\n]"
    return encode(content)


def columns_of(rows: Rows) -> dict[str, list[Any]]:
    """The cells of each column."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def csv_bytes(rows: Rows, delimiter: str = ",") -> bytes:
    """Rows with the same keys as the content of a CSV file; see `safe_cell`.

    The names of the columns are written as they are, so that they are found again.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows(map(safe_cell, row.values()) for row in rows)
    return text.getvalue().encode()


def safe_cell(value: Any) -> Any:
    """A cell of a CSV file: no text that a spreadsheet would run as a formula.

    Examples
    --------
    >>> safe_cell("=1+1"), safe_cell("-5"), safe_cell(-0.5), safe_cell(None), safe_cell(True)
    ("'=1+1", '-5', -0.5, '', 'true')
    """
    if isinstance(value, str) and value.startswith(_FORMULA) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else value


def _parquet(rows: Rows) -> bytes:
    arrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    buffer = io.BytesIO()
    try:
        arrays = {}
        for name, cells in columns_of(rows).items():
            empty = all(cell is None for cell in cells)
            kind = getattr(arrow, _TYPES.get(name, "float64"))() if empty else None
            arrays[name] = arrow.array(cells, type=kind)
    except arrow.ArrowException as error:
        raise InputError(
            f"A Parquet file has one type per column ({error}); write .csv or .jsonl."
        ) from None
    parquet.write_table(arrow.table(arrays), buffer)
    return buffer.getvalue()


def workbook_bytes(sheets: Mapping[str, Rows]) -> bytes:
    """An Excel workbook with a sheet of rows for each name.

    Numbers stay numbers. Texts are stored as texts, so that Excel runs none as a formula;
    characters that a workbook cannot hold become a replacement character.
    """
    openpyxl = importlib.import_module("openpyxl")
    book = openpyxl.Workbook(write_only=True)
    for name, rows in sheets.items():
        n_columns = len(rows[0])
        if len(rows) >= _MOST_ROWS or n_columns > _MOST_COLUMNS:
            raise InputError(
                f"A sheet of Excel has at most {_MOST_ROWS:,} rows and {_MOST_COLUMNS:,} columns; "
                f"this one would have {len(rows) + 1:,} and {n_columns:,}. Write .csv or .parquet."
            )
        _fill(openpyxl, book.create_sheet(name), rows)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _fill(openpyxl: Any, sheet: Any, rows: Rows) -> None:
    """Write a heading and rows to an empty sheet; widths must be set before the first row."""
    sheet.freeze_panes = "A2"
    letter = openpyxl.utils.get_column_letter
    for number, (name, cells) in enumerate(columns_of(rows[:1000]).items(), start=1):
        longest = max(len(str(cell)) for cell in (name, *cells) if not isinstance(cell, float))
        width = min(max(longest + 2, _NARROWEST), _WIDEST)
        sheet.column_dimensions[letter(number)].width = width
    bold = openpyxl.styles.Font(bold=True)
    sheet.append(list(_cells(openpyxl, sheet, rows[0], font=bold)))
    for row in rows:
        sheet.append(list(_cells(openpyxl, sheet, row.values())))


def _cells(openpyxl: Any, sheet: Any, values: Iterable[Any], font: Any = None) -> Iterable[Any]:
    for value in values:
        if _is_plain(value):
            yield value
            continue
        cell = openpyxl.cell.WriteOnlyCell(sheet, _UNPRINTABLE.sub("\ufffd", str(value)))
        # Without this, a text that begins with "=" would be a formula.
        cell.data_type = "s"
        if font is not None:
            cell.font = font
        yield cell


def _is_plain(value: Any) -> bool:
    """Whether a workbook can hold a value as it is; others are written as texts."""
    if isinstance(value, Integral):
        return abs(int(value)) < _LARGEST_INT
    if isinstance(value, Real):
        return math.isfinite(value)
    return value is None or type(value) is date
