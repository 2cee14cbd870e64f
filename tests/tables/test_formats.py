"""CSV: delimiters, quotes, widths, places; whatever csv.writer writes is read back."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.errors import FormatError, InputError
from prevalens.tables.opening import open_table

CELLS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=12)


def opened(content: bytes | str, **how: str):
    data = content if isinstance(content, bytes) else content.encode()
    return open_table(io.BytesIO(data), name="t.csv", **how)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=20), st.sampled_from(",;\t|"))
def test_what_is_written_is_read(rows: list[tuple[str, str]], delimiter: str) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerows([("first", "second"), *rows])
    table = opened(text.getvalue())
    assert table.columns == ("first", "second")
    read = [
        row
        for chunk in table.chunks(chunk_rows=3)
        for row in zip(chunk["first"], chunk["second"], strict=True)
    ]
    assert read == rows


def test_only_wanted_columns_in_chunks_with_places() -> None:
    table = opened("a,b\n1,x\n2,y\n3,z\n")
    chunks = list(table.chunks(["b"], chunk_rows=2))
    assert [list(chunk.columns) for chunk in chunks] == [["b"], ["b"]]
    assert [len(chunk) for chunk in chunks] == [2, 1]
    assert chunks[1].place(0) == "t.csv, line 4"
    assert chunks[1].position == table.total


def test_rows_are_counted_where_lines_do_not_fit() -> None:
    chunk = opened('a\n"one\ntwo"\n\nthree\n').read()
    assert chunk["a"] == ["one\ntwo", "three"]
    assert chunk.place(1) == "t.csv, row 2"


def test_columns_without_a_name_are_left_out() -> None:
    table = opened(",text\n0,hello\n")
    assert table.columns == ("text",)
    assert table.read()["text"] == ["hello"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a,b\n1,2\n3\n", "t.csv, line 3: there is 1 value for 2 columns"),
        ('a,b\n"x,1\n', "t.csv, line 2: this is no proper CSV"),
        ('a,b\n"x"y,1\n', "this is no proper CSV"),
        ("a,a\n1,2\n", "two columns are called 'a'"),
        (",\n1,2\n", "the columns have no names"),
        (b"a,b\n\xe9,1\n", "the byte 0xe9 is not utf-8; name the encoding"),
        ("\n\n", "the file is empty"),
    ],
)
def test_damaged_files_get_a_sentence(content: str | bytes, sentence: str) -> None:
    with pytest.raises(FormatError) as error:
        opened(content).read()
    assert sentence in str(error.value)


def test_encodings() -> None:
    assert opened("a\né\n".encode("cp1252"), encoding="cp1252").read()["a"] == ["é"]
    assert opened("a\né\n".encode("utf-16")).read()["a"] == ["é"]
    assert opened("a\né\n".encode("utf-8-sig")).columns == ("a",)
    with pytest.raises(InputError, match="There is no encoding 'klingon'"):
        opened("a\n1\n", encoding="klingon")


def test_a_wrong_delimiter_is_told() -> None:
    with pytest.raises(InputError, match="All of it is one column: name another delimiter"):
        opened("alpha,beta\n1,2\n", delimiter=";").read(["zzz"])
    with pytest.raises(InputError, match="A delimiter is one character"):
        opened("a\n", delimiter="ab")


def test_nul_characters_are_refused_where_they_are(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"x,y\n" * 2000 + b"x,y\0\n")
    table = open_table(path)
    assert sum(map(len, table.chunks(["a"]))) == 2001
    with pytest.raises(FormatError, match="line 2002: the column 'b' holds a NUL character"):
        table.read()
    path.write_bytes(b"a\0,b\n1,2\n")
    with pytest.raises(FormatError, match="names of its columns hold NUL"):
        open_table(path, encoding="latin-1")
