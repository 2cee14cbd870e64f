"""Files that are no tables."""

from __future__ import annotations

import io
import zipfile

import pytest

from prevalens.errors import FormatError
from prevalens.files import ByteSource
from prevalens.tables.signatures import check_readable


def check(content: bytes, *, encoded: bool = False) -> None:
    check_readable(ByteSource(io.BytesIO(content), "t.csv"), content, encoded=encoded)


def archive(name: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr(name, "x")
    return content.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"text,urgent\n",
        # Words that merely begin as some signature does.
        b"MZ,RIF\n",
        b"PDF,GIF\n",
        b'{"text": 1}',
        archive("xl/workbook.xml"),
        b"PAR1\0\0",
        "text\n".encode("utf-16"),
        # What cannot be opened is left to the reader of workbooks.
        b"PK\x03\x04cut",
    ],
)
def test_tables_pass(content: bytes) -> None:
    check(content)


def test_nul_bytes_pass_in_an_encoding_that_was_named() -> None:
    content = "text\n".encode("utf-16-le")
    check(content, encoded=True)
    with pytest.raises(FormatError, match="looks like utf-16-le; say so with `encoding='utf-16-le"):
        check(content)


def test_what_to_do_is_said() -> None:
    with pytest.raises(FormatError, match=r"t\.csv: this is a zip archive, .*; unpack it first\."):
        check(archive("table.csv"))
    with pytest.raises(FormatError, match="this is a PNG image, not a table; give a CSV, TSV"):
        check(b"\x89PNG\r\n")
    with pytest.raises(FormatError, match="this is a web page"):
        check(b"<!DOCTYPE HTML><p>")
