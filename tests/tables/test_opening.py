"""Which format a file is: by its first bytes, then by its name, then by its content."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sys
from pathlib import Path

import pytest

from prevalens.errors import FormatError, InputError
from prevalens.model.model import Model
from prevalens.model.quantify import quantify_files
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


class _Opened:
    """Counts how often Python opens a file while it is watched."""

    def __init__(self) -> None:
        self.path: str | None = None
        self.count = 0
        # A hook cannot be removed; without a path it does nothing.
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and self.path is not None and str(arguments[0]) == self.path:
            self.count += 1


@pytest.fixture(scope="module")
def opened() -> _Opened:
    return _Opened()


@pytest.fixture(scope="module")
def model() -> Model:
    texts = ["the printer is on fire", "the invoice is wrong", "printer and invoice"] * 20
    Y = [[1, 0], [0, 1], [1, 1]] * 20
    return Model.fit(texts, Y, labels=["printer", "invoice"], method="lr+pcc")


def _as_excel(texts: list[str]) -> bytes:
    book = pytest.importorskip("openpyxl").Workbook()
    for row in (["text"], *([text] for text in texts)):
        book.active.append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


TEXTS = [f"the printer is on fire, said {number}" for number in range(40)]
CSV = ("text\n" + "".join(f'"{text}"\n' for text in TEXTS)).encode()
OPENED = {
    "t.csv": CSV,
    "t.csv.gz": gzip.compress(CSV),
    "t.csv.xz": lzma.compress(CSV),
    "t.txt": CSV.decode().encode("utf-16"),
    "t.jsonl": "".join(json.dumps({"text": text}) + "\n" for text in TEXTS).encode(),
    "t.json": json.dumps([{"text": text} for text in TEXTS]).encode(),
    "t.xlsx": None,
}


@pytest.mark.parametrize("name", OPENED)
def test_a_file_is_opened_at_most_twice(
    name: str, model: Model, opened: _Opened, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(OPENED[name] or _as_excel(TEXTS))
    opened.path, opened.count = str(path), 0
    result = quantify_files(model, path, interval=None)
    opened.path = None
    assert result.sizes.tolist() == [len(TEXTS)]
    assert 1 <= opened.count <= 2


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
