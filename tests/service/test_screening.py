from __future__ import annotations

import bz2
import gzip
import io
import lzma
import resource
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prevalens.errors import FormatError, InputError
from prevalens.service.problems import Problem
from prevalens.service.screening import ClientTable, opened
from prevalens.service.settings import Limits
from prevalens.tables.formats import as_table

LIMITS = Limits(rows=100, columns=20, unpacked_bytes=60 * 10**6)


def _read(path: Path, **more: Any) -> list[Any]:
    table = opened(path, "may.csv", replace(LIMITS, **more))
    return [cell for chunk in table.chunks(["a"]) for cell in chunk["a"]]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_proper_file_is_read(pack: Any, tmp_path: Path) -> None:
    path = tmp_path / "0.csv.gz"
    path.write_bytes(pack(b"a,b\n1,2\n3,4\n"))
    assert _read(path) == ["1", "3"]
    # A second look must not stumble over what the first unpacked.
    assert _read(path) == ["1", "3"]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_bomb_is_stopped_while_it_grows(pack: Any, tmp_path: Path) -> None:
    path = tmp_path / "0.csv.gz"
    path.write_bytes(pack(b"a" * 61_000_000))
    with pytest.raises(Problem, match="would unpack to more than") as refused:
        _read(path)
    assert refused.value.code == "too_large"
    assert [one.name for one in tmp_path.iterdir()] == ["0.csv.gz"]


@pytest.mark.parametrize(
    "content",
    # Without the time of day: all workers must name the same tests.
    [b"\x1f\x8b\x08trash", gzip.compress(b"a,b\n" * 99, mtime=0)[:-9]],
    ids=["trash", "cut-off"],
)
def test_damaged_packing_is_a_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "0.csv.gz"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"may\.csv: the compressed data is damaged"):
        _read(path)


def _workbook(path: Path, sizes: list[int]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, size in enumerate(sizes):
            archive.writestr(f"xl/sheet{number}.xml", b"0" * size)


@pytest.mark.parametrize("sizes", [[61_000_000], [1] * 2001])
def test_a_workbook_that_would_grow_is_refused(sizes: list[int], tmp_path: Path) -> None:
    path = tmp_path / "0.xlsx"
    _workbook(path, sizes)
    with pytest.raises(Problem, match="would unpack"):
        _read(path)


def test_a_broken_workbook_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "0.csv"
    path.write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(FormatError, match="no readable Excel workbook"):
        _read(path)


def test_entities_in_a_workbook_do_not_multiply(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book, plain = openpyxl.Workbook(), io.BytesIO()
    book.active.append(["a", "b"])
    book.active.append(["x", "y"])
    book.save(plain)
    laughs = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9))
    path = tmp_path / "0.xlsx"
    with zipfile.ZipFile(plain) as good, zipfile.ZipFile(path, "w") as bad:
        for one in good.namelist():
            content = good.read(one)
            if one == "xl/worksheets/sheet1.xml":
                head = f'<!DOCTYPE x [<!ENTITY l0 "lol">{laughs}]>'.encode()
                content = head + content.replace(b"<t>x</t>", b"<t>&l9;</t>")
                assert b"&l9;" in content
            bad.writestr(one, content)
    with pytest.raises(InputError):
        _read(path)


def test_parquet_is_judged_by_what_it_says_of_itself(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "0.parquet"
    parquet.write_table(arrow.table({"a": ["x"] * 50, "b": [1] * 50}), path)
    assert _read(path) == ["x"] * 50
    for name, limit in (("rows", 49), ("columns", 1)):
        with pytest.raises(Problem, match=f"{name} or more"):
            _read(path, **{name: limit})
    with pytest.raises(Problem, match="would unpack"):
        _read(path, unpacked_bytes=50)


def test_too_many_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "0.csv"
    path.write_text(",".join(f"c{i}" for i in range(21)) + "\n")
    with pytest.raises(Problem, match="21 columns or more; this server reads up to 20"):
        _read(path)


def test_a_first_line_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "0.csv"
    path.write_bytes(b"a," * 2_500_000)
    with pytest.raises(Problem, match="has no end"):
        _read(path)


def test_too_many_rows_are_refused_while_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "0.csv"
    path.write_text("a\n" + "1\n" * 101)
    with pytest.raises(Problem, match="rows or more; this server reads up to 100"):
        _read(path)


def test_columns_are_called_as_the_model_calls_them() -> None:
    table = ClientTable(as_table([{"message": "hi", "day": "1"}]), LIMITS).renamed(
        {"text": "message"}
    )
    chunk = next(table.chunks(["text", "message", "day"]))
    assert (chunk["text"], chunk["message"], chunk["day"]) == (["hi"], ["hi"], ["1"])
    with pytest.raises(InputError, match="no column 'subject'"):
        table.renamed({"text": "subject"})


@pytest.mark.parametrize("outer", [gzip.compress, bz2.compress, lzma.compress])
def test_compression_inside_compression_is_refused(outer: Any, tmp_path: Path) -> None:
    path = tmp_path / "0.csv.gz"
    path.write_bytes(outer(gzip.compress(b"a\n" + b"1\n" * 10**6)))
    with pytest.raises(Problem, match=r"may\.csv is compressed twice"):
        _read(path)
    assert [file.name for file in tmp_path.iterdir()] == ["0.csv.gz"]


def _dictionary(path: Path, letters: int, rows: int, *, nested: bool = False) -> None:
    """A Parquet file that stores one text once, and refers to it in every row."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    cell: Any = ["x" * letters] if nested else "x" * letters
    parquet.write_table(
        arrow.table({"a": [cell] * rows}),
        path,
        compression="zstd",
        dictionary_pagesize_limit=10**9,
    )
    assert path.stat().st_size < 10_000


@pytest.mark.parametrize("nested", [False, True])
def test_dictionaries_are_bounded_by_what_they_decode_to(nested: bool, tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    _dictionary(path, 1000, 90, nested=nested)
    assert len(_read(path)) == 90
    _dictionary(path, 1_000_000, 90, nested=nested)
    with pytest.raises(Problem, match="would unpack to more than the 50 MB"):
        _read(path)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory in use is not told")
def test_decoding_stops_when_it_takes_too_much_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prevalens.service.screening._HEADROOM", 20 * 10**6)
    path = tmp_path / "0.parquet"
    _dictionary(path, 1_000_000, 90)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(MemoryError):
        _read(path)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def _shared_strings(path: Path, strings: bytes, rows: int = 1) -> None:
    """A workbook whose rows all refer to the first shared string."""
    openpyxl = pytest.importorskip("openpyxl")
    plain = io.BytesIO()
    openpyxl.Workbook().save(plain)
    space = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    head = b'<row><c t="inlineStr"><is><t>a</t></is></c></row>'
    cells = head + b'<row><c t="s"><v>0</v></c></row>' * rows
    kind = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    entry = b'<Override PartName="/xl/sharedStrings.xml" ContentType="%s"/></Types>' % kind
    with (
        zipfile.ZipFile(plain) as good,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bad,
    ):
        for name in good.namelist():
            if "sheet1" not in name and "sharedStrings" not in name:
                bad.writestr(name, good.read(name).replace(b"</Types>", entry))
        sheet = b"<worksheet %s><sheetData>%s</sheetData></worksheet>" % (space, cells)
        bad.writestr("xl/worksheets/sheet1.xml", sheet)
        bad.writestr("xl/sharedStrings.xml", b"<sst %s>%s</sst>" % (space, strings))


def test_shared_strings_that_are_packed_to_nothing_are_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "0.xlsx"
    _shared_strings(path, b"<si><t>x</t></si>" * 3, rows=2)
    assert _read(path) == ["x", "x"]
    _shared_strings(path, b"<si/>" * 2_000_000)
    assert path.stat().st_size < 20_000
    with pytest.raises(Problem, match="2,000,002 tags") as refused:
        _read(path)
    assert refused.value.code == "too_large"


def test_a_damaged_member_of_a_workbook_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "0.xlsx"
    _shared_strings(path, b"<si><t>x</t></si>")
    content = bytearray(path.read_bytes())
    at = content.index(b"xl/worksheets/sheet1.xml") + 30
    content[at : at + 20] = bytes(20)
    path.write_bytes(content)
    with pytest.raises(FormatError, match="no readable Excel workbook"):
        _read(path)


def test_too_many_rows_are_refused_before_any_is_estimated(tmp_path: Path) -> None:
    path = tmp_path / "0.csv"
    path.write_text("a\n" + "1\n" * 101)
    with pytest.raises(Problem, match=r"101 rows or more; .* up to 100 \(--max-rows\)"):
        opened(path, "may.csv", LIMITS)
    # Line breaks in quotes and blank lines are no rows.
    path.write_text("a\n" + '"1\n2"\n\n' * 100)
    assert len(_read(path)) == 100


def test_a_text_of_ten_million_letters_is_read_and_a_longer_one_refused(tmp_path: Path) -> None:
    path = tmp_path / "0.csv"
    path.write_bytes(b"a\nshort\n" + b"x" * 10**7 + b"\n")
    assert list(map(len, _read(path))) == [5, 10**7]
    path.write_bytes(b"a\nshort\n" + b"x" * (10**7 + 1) + b"\n")
    with pytest.raises(Problem, match=r"may\.csv, line 3: the column 'a' has a text of more than"):
        _read(path)


def test_rows_of_long_texts_come_in_small_chunks_at_their_places(tmp_path: Path) -> None:
    path = tmp_path / "0.csv"
    texts = [f"{n}{'x' * 10**6}" for n in range(33)]
    path.write_text("a\n" + "\n".join(texts) + "\n")
    chunks = list(opened(path, "may.csv", LIMITS).chunks(["a"]))
    assert [cell for chunk in chunks for cell in chunk["a"]] == texts
    assert max(sum(map(len, chunk["a"])) for chunk in chunks) <= 10_100_000
    places = [chunk.place(row) for chunk in chunks for row in range(len(chunk))]
    assert places == [f"may.csv, line {n + 2}" for n in range(33)]
