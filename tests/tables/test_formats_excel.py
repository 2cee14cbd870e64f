"""Excel workbooks: sheets, empty rows, damage."""

from __future__ import annotations

import zipfile
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


def _with_sheet(path: Path, xml: str) -> Path:
    """A workbook whose sheet has this XML."""
    with zipfile.ZipFile(written(path)) as book:
        members = {name: book.read(name) for name in book.namelist()}
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    members["xl/worksheets/sheet1.xml"] = f'<worksheet xmlns="{space}">{xml}</worksheet>'.encode()
    with zipfile.ZipFile(path, "w") as book:
        for name, content in members.items():
            book.writestr(name, content)
    return path


def _cell(place: str, text: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


_HEAD = f'<row r="1">{_cell("A1", "text")}</row>'


@pytest.mark.parametrize("size", ["A1", "A1:XFD1048576"])
def test_a_sheet_that_tells_a_wrong_size(size: str, tmp_path: Path) -> None:
    rows = f"{_HEAD}<row r='2'>{_cell('A2', 'no ink')}</row>"
    xml = f'<dimension ref="{size}"/><sheetData>{rows}</sheetData>'
    assert open_table(_with_sheet(tmp_path / "t.xlsx", xml)).read()["text"] == ["no ink"]


def test_a_cell_in_the_last_row_and_one_beyond(tmp_path: Path) -> None:
    for last, known in ((2**20, True), (2**20 + 1, False), (9 * 10**9, False)):
        row = f'<row r="{last}">{_cell(f"A{last}", "no ink")}</row>'
        table = open_table(_with_sheet(tmp_path / "t.xlsx", f"<sheetData>{_HEAD}{row}</sheetData>"))
        if known:
            assert table.read()["text"] == ["no ink"]
        else:
            with pytest.raises(FormatError, match="rows beyond 1,048,576"):
                table.read()


def test_a_name_far_to_the_right(tmp_path: Path) -> None:
    xml = f'<sheetData><row r="1">{_cell("A1", "text")}{_cell("XFD1", "x")}</row></sheetData>'
    with pytest.raises(FormatError, match="names only 2 of 16,384 columns"):
        open_table(_with_sheet(tmp_path / "t.xlsx", xml))


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
