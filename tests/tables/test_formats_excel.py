"""Excel workbooks: sheets, empty rows, damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from prevalens.errors import FormatError, InputError
from prevalens.tables.opening import open_table

openpyxl = pytest.importorskip("openpyxl")


def written(path: Path) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "tickets"
    for row in (["text", "urgent"], ["printer on fire", 1], [None, None], ["no ink", None]):
        sheet.append(row)
    book.create_sheet("other").append(["x"])
    book.save(path)
    return path


def test_first_sheet_and_others(tmp_path: Path) -> None:
    table = open_table(written(tmp_path / "t.xlsx"))
    assert table.columns == ("text", "urgent")
    chunk = table.read()
    assert chunk["text"] == ["printer on fire", "no ink"]
    assert chunk["urgent"] == [1, None]
    assert open_table(tmp_path / "t.xlsx", sheet="other").columns == ("x",)
    with pytest.raises(InputError, match="has no sheet 'nope'; it has 'tickets', 'other'"):
        open_table(tmp_path / "t.xlsx", sheet="nope")


def test_damaged(tmp_path: Path) -> None:
    path = written(tmp_path / "t.xlsx")
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(FormatError, match="no readable Excel workbook"):
        open_table(path)
    path.write_bytes(b"\xd0\xcf\x11\xe0 old")
    with pytest.raises(
        FormatError, match=r"old Excel workbook or Word document, not a table; save it as \.xlsx"
    ):
        open_table(path)
    path.write_text("text\nhello\n")
    with pytest.raises(FormatError, match="no Excel workbook, though its name says so"):
        open_table(path)


def test_an_empty_sheet(tmp_path: Path) -> None:
    openpyxl.Workbook().save(tmp_path / "e.xlsx")
    with pytest.raises(FormatError, match=r"the sheet is empty|have no names"):
        open_table(tmp_path / "e.xlsx")


def test_without_openpyxl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "t.xlsx")

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("prevalens.tables.formats.importlib.import_module", missing)
    with pytest.raises(InputError, match=r'pip install "prevalens\[excel\]"'):
        open_table(path)
