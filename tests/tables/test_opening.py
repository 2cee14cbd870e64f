"""Which format a file is: by its first bytes, then by its name, then by its content."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from pathlib import Path

import pytest

from prevalens.errors import FormatError, InputError
from prevalens.tables.opening import open_table


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "a,b\n1,2\n"),
        ("t.tsv", "a\tb\n1\t2\n"),
        ("t.jsonl", '{"a": "1", "b": "2"}\n'),
        ("t.ndjson", '{"a": "1", "b": "2"}\n'),
        ("t.json", '[{"a": "1", "b": "2"}]'),
        ("t", "a;b\n1;2\n"),
        ("t", '{"a": "1", "b": "2"}\n'),
        ("t", '[{"a": "1", "b": "2"}]'),
    ],
)
@pytest.mark.parametrize("pack", [None, gzip, bz2, lzma], ids=["plain", "gz", "bz2", "xz"])
def test_formats_and_compressions(name: str, content: str, pack: object, tmp_path: Path) -> None:
    suffix = {None: "", gzip: ".gz", bz2: ".bz2", lzma: ".xz"}[pack]
    data = content.encode() if pack is None else pack.compress(content.encode())
    path = tmp_path / (name + suffix)
    path.write_bytes(data)
    table = open_table(path)
    assert table.columns == ("a", "b")
    assert table.read()["b"] == ["2"]
    assert next(iter(table.chunks(["a"])))["a"] == ["1"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b"a,b\n1,2\n")

    monkeypatch.setattr("sys.stdin", Stdin())
    table = open_table("-")
    assert table.name == "standard input"
    assert table.read()["a"] == ["1"]


def test_a_format_can_be_named() -> None:
    content = io.BytesIO(b'{"a": 1}\n')
    assert open_table(content, name="x.csv", format="jsonl").columns == ("a",)
    with pytest.raises(InputError, match="There is no format 'xml'"):
        open_table(content, name="x", format="xml")


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"There is no file .*nothing\.csv"):
        open_table(tmp_path / "nothing.csv")
    with pytest.raises(InputError, match="is a folder, not a file"):
        open_table(tmp_path)
    (tmp_path / "e.csv").write_bytes(b"")
    with pytest.raises(FormatError, match=r"e\.csv: the file is empty"):
        open_table(tmp_path / "e.csv")
