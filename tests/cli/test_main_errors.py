"""Bad input at the command line: one sentence on standard error, exit code 2, nothing written."""

from __future__ import annotations

import contextlib
import csv
import errno
import gzip
import io
import json
import os
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from prevalens import __main__ as program
from prevalens.errors import PrevalensError

WORDS = {"hardware": "printer screen smoke", "account": "login password user"}


def rows(count: int) -> list[list[Any]]:
    """id, date, text, age, tags, hardware, account."""
    found = []
    for i in range(count):
        has = [i % 2, (i // 2) % 2]
        names = [name for name, one in zip(WORDS, has, strict=True) if one]
        text = "please help " + " ".join(WORDS[name].split()[i % 3] for name in names)
        found.append([i, f"2024-0{1 + i % 3}-15", text, 20 + i % 40, ",".join(names), *has])
    return found


HEADER = ["id", "date", "text", "age", "tags", "hardware", "account"]


def write(path: Path, body: list[list[Any]], header: list[str] | None = None, **how: Any) -> Path:
    with path.open("w", newline="", encoding=how.pop("encoding", "utf-8")) as file:
        writer = csv.writer(file, **how)
        writer.writerow(HEADER if header is None else header)
        writer.writerows(body)
    return path


def with_cell(column: str, row: int, value: Any) -> list[list[Any]]:
    """Rows with one other cell."""
    found = rows(40)
    found[row][HEADER.index(column)] = value
    return found


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    yield tmp_path
    unfinished = [one.name for one in set(tmp_path.iterdir()) - before if "unfinished" in one.name]
    assert unfinished == []


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("models")
    train = write(place / "train.csv", rows(40))
    texts, numbers = place / "texts.prevalens", place / "numbers.prevalens"
    tags = ["--tags", "tags", "--method", "lr+pcc"]
    for words in (
        ["fit", train, "-o", texts, "--text", "text", *tags],
        ["fit", train, "-o", numbers, "--features", "age", *tags],
    ):
        done = CliRunner().invoke(program.cli, list(map(str, words)), catch_exceptions=False)
        assert done.exit_code == 0, done.output
    return {"TEXTS": texts, "NUMBERS": numbers}


def refusal(*words: str | Path, models: dict[str, Path] | None = None) -> str:
    """The sentence with which a command refuses, as the user sees it."""
    known = {name: str(path) for name, path in (models or {}).items()}
    typed = ["prevalens", *(known.get(str(word), str(word)) for word in words)]
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(said):
        patch.setattr("sys.argv", typed)
        with pytest.raises(SystemExit) as stop:
            program.main()
    assert stop.value.code == program.REFUSED
    sentence = f"\n{said.getvalue()}".rpartition("\nprevalens: ")[2].removesuffix("\n")
    assert "\n" not in sentence
    assert sentence.endswith((".", ".?", "?", ")"))
    return sentence


FIT = ("fit", "train.csv", "--text", "text", "--tags", "tags", "--method", "lr+pcc")
LABELS = (
    "fit",
    "train.csv",
    "--text",
    "text",
    "--method",
    "lr+pcc",
    "--labels",
    "hardware,account",
)
NUMBERS = ("fit", "train.csv", "--features", "age", "--tags", "tags", "--method", "lr+pcc")
QUANTIFY = ("quantify", "TEXTS", "batch.csv")


@pytest.mark.parametrize(
    ("body", "words", "sentence"),
    [
        pytest.param(None, FIT, "There is no file train.csv", id="no training file"),
        pytest.param(rows(40), ("fit", "*.tsv", *FIT[2:]), "No file fits the pattern '*.tsv'",
                     id="pattern without files"),
        pytest.param(rows(40), ("fit", "train.csv", "--text", "txt", "--tags", "tags"),
                     "train.csv has no column 'txt'; it has 'id', 'date'", id="no such column"),
        pytest.param(rows(40), ("fit", "train.csv", "--text", "text"),
                     "No labels named: give either the columns of 0/1", id="no labels named"),
        pytest.param(rows(40), (*FIT, "--labels", "hardware"),
                     "Both label columns and a column of tags are named", id="labels and tags"),
        pytest.param(rows(40), (*FIT, "--embeddings", "no.npy"),
                     "There is no file no.npy", id="missing embeddings"),
        pytest.param(rows(40), ("fit", "train.csv", "--text", "tags", "--tags", "tags"),
                     "The column 'tags' cannot be a feature and a label at once",
                     id="label as text"),
        pytest.param(rows(40), (*FIT, "--delimiter", ";"),
                     "one column: name another delimiter with --delimiter",
                     id="wrong delimiter"),
        pytest.param(rows(40), (*FIT, "--delimiter", "ab"),
                     "A delimiter is one character; got 'ab'", id="long delimiter"),
        pytest.param(rows(40), (*FIT, "--encoding", "klingon"), "There is no encoding 'klingon'",
                     id="unknown encoding"),
        pytest.param(with_cell("text", 3, "café"), (*FIT, "--encoding", "ascii"),
                     "the byte 0xc3 is not ascii; name the encoding of the file with --encoding",
                     id="wrong encoding"),
        pytest.param(with_cell("hardware", 4, "2"), LABELS,
                     "train.csv, line 6: the label 'hardware' is '2'; a label column holds 0 or 1",
                     id="label not 0/1"),
        pytest.param(with_cell("hardware", 0, ""), LABELS, "line 2: the label 'hardware' is ''",
                     id="label missing"),
        pytest.param(with_cell("age", 8, "old"), (*NUMBERS[:3], "age,id", *NUMBERS[4:]),
                     "", id="mixed types become categories"),
        pytest.param([], FIT, "train.csv has a header but no rows", id="header only"),
        pytest.param(rows(2)[1:], (*FIT, "--min-positives", "0"),
                     "train.csv has 1 labelled item; at least 10 are needed", id="one item"),
        pytest.param([[*row[:2], "", *row[3:]] for row in rows(40)], FIT,
                     "No word occurs in 1 or more of the 40 texts", id="all texts empty"),
        pytest.param([[*row[:4], "", *row[5:]] for row in rows(40)], FIT,
                     "No item has a tag in the column 'tags'", id="no tags at all"),
        pytest.param([[*row[:5], 0, row[6]] for row in rows(40)], LABELS,
                     "In train.csv no item has the label 'hardware'", id="label never positive"),
        pytest.param([[*row[:5], 1, row[6]] for row in rows(40)], LABELS,
                     "In train.csv every item has the label 'hardware'",
                     id="label always positive"),
        pytest.param(rows(40), (*FIT, "--min-positives", "50"),
                     "No label has 50 positive items in train.csv", id="all labels rare"),
        pytest.param([*rows(20), ["short"]], FIT,
                     "train.csv, line 22: there is 1 value for 7 columns", id="short row"),
        pytest.param(rows(40), (*FIT, "--time-budget", "9s", "--fast"),
                     "leave out --fast or --time-budget", id="two budgets"),
        pytest.param(rows(40), (*FIT, "--time-budget", "soon"),
                     "A time is written as 90s, 10m or 1.5h; got 'soon'", id="bad time budget"),
        pytest.param(rows(40), (*FIT, "-o", "nowhere/m.prevalens"),
                     "nowhere/m.prevalens cannot be written: there is no folder nowhere",
                     id="no folder for the model"),
        pytest.param([[*row[:3], "same", *row[4:]] for row in rows(40)], NUMBERS,
                     "None of the columns can be used ('age': only one value, 'same')",
                     id="constant feature"),
    ],
)  # fmt: skip
def test_fit(body: list | None, words: tuple[str, ...], sentence: str, folder: Path) -> None:
    if body is not None:
        write(folder / "train.csv", body)
    if sentence:
        assert sentence in refusal(*words)
        assert not (folder / "model.prevalens").exists()
    else:
        done = CliRunner().invoke(program.cli, list(words), catch_exceptions=False)
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("body", "words", "sentence"),
    [
        pytest.param(None, QUANTIFY, "There is no file batch.csv", id="no batch"),
        pytest.param(rows(9), ("quantify", "nothing", "batch.csv"), "There is no file nothing",
                     id="no model"),
        pytest.param(rows(9), ("quantify", "batch.csv", "batch.csv"),
                     "batch.csv: this is no model file; `prevalens fit` writes one",
                     id="no model file"),
        pytest.param(rows(9), ("quantify", "TEXTS", "TEXTS"),
                     "this is a model that `prevalens fit` wrote, not a table",
                     id="model as batch"),
        pytest.param([], QUANTIFY, "There are no items to quantify", id="empty batch"),
        pytest.param(rows(9), (*QUANTIFY, "--by", "region"), "batch.csv has no column 'region'",
                     id="no column to group by"),
        pytest.param(rows(9), (*QUANTIFY, "--by", "id", "--by-time", "date"),
                     "Name one column to group by", id="two groupings"),
        pytest.param(rows(9), (*QUANTIFY, "--freq", "W"),
                     "--freq needs the column of the dates it is about, --by-time.",
                     id="frequency without dates"),
        pytest.param(with_cell("date", 6, "soon"), (*QUANTIFY, "--by-time", "date"),
                     "batch.csv, line 8: 'soon' in the column 'date' is no date that can be read",
                     id="no date"),
        pytest.param([[0, "03/04/2024", *row[2:]] for row in rows(9)],
                     (*QUANTIFY, "--by-time", "date"),
                     "In '03/04/2024' of the column 'date' day and month cannot be told apart; "
                     "give the form of the dates, --date-form %d/%m/%Y or --date-form %m/%d/%Y.",
                     id="ambiguous dates"),
        pytest.param(with_cell("age", 5, "old"), ("quantify", "NUMBERS", "batch.csv"),
                     "batch.csv, line 7: the column 'age' holds numbers, but here is 'old'",
                     id="a word among numbers"),
        pytest.param(with_cell("age", 5, "inf"), ("quantify", "NUMBERS", "batch.csv"),
                     "batch.csv, line 7: the column 'age' holds numbers, but here is 'inf'",
                     id="infinity"),
        pytest.param(rows(9), (*QUANTIFY, "--interval", "90"),
                     "--interval must lie strictly between 0 and 1; got 90; did you mean 0.9?",
                     id="interval in percent"),
        pytest.param(rows(9), (*QUANTIFY, "-o", "out.docx"),
                     ".csv, .tsv, .json, .jsonl, .parquet, .xlsx; 'out.docx' ends in none",
                     id="unknown ending"),
        pytest.param(rows(9), (*QUANTIFY, "--strict", "--interval", "0"),
                     "--strict needs the alarm, which needs intervals", id="strict, no intervals"),
        pytest.param(rows(9), (*QUANTIFY, "-o", "nowhere/out.csv"),
                     "nowhere/out.csv cannot be written: there is no folder nowhere",
                     id="no folder for results"),
        pytest.param(rows(9), (*QUANTIFY, "--html", "."), ". is a folder; name a file to write",
                     id="a folder for the report"),
        pytest.param(rows(9), (*QUANTIFY, "--sheet", "x", "--delimiter", "|"),
                     "batch.csv has no column 'text'", id="delimiter of another file"),
    ],
)  # fmt: skip
def test_quantify(
    body: list | None, words: tuple[str, ...], sentence: str, folder: Path, models: dict[str, Path]
) -> None:
    if body is not None:
        write(folder / "batch.csv", body)
    assert sentence in refusal(*words, models=models)
    assert [one.name for one in folder.iterdir() if one.name != "batch.csv"] == []


def test_features_of_the_model_missing_in_the_batch(folder: Path, models: dict[str, Path]) -> None:
    write(folder / "batch.csv", [["x", "y"]], ["body", "when"])
    assert "batch.csv has no column 'text'; it has 'body', 'when'" in refusal(
        *QUANTIFY, models=models
    )


def test_an_unknown_method_is_pointed_at_before_the_rows_are_read(folder: Path) -> None:
    (folder / "train.csv").write_text(",".join(HEADER) + "\nshort\n")
    with pytest.raises(PrevalensError, match="There is no aggregator called 'nosuch'") as error:
        CliRunner().invoke(program.cli, [*FIT[:-1], "lr+nosuch"], catch_exceptions=False)
    assert str(error.value).endswith("^ character 4")


@pytest.mark.parametrize("content", [b"", b"\n\n"], ids=["nothing", "blank lines"])
def test_empty_files(folder: Path, content: bytes, models: dict[str, Path]) -> None:
    (folder / "batch.csv").write_bytes(content)
    assert "batch.csv: the file is empty" in refusal(*QUANTIFY, models=models)


def test_latin_1(folder: Path, models: dict[str, Path]) -> None:
    write(folder / "batch.csv", with_cell("text", 2, "café"), encoding="cp1252")
    sentence = refusal(*QUANTIFY, models=models)
    assert "the byte 0xe9 is not utf-8; name the encoding of the file with --encoding" in sentence
    assert "for example --encoding cp1252 if it comes from Windows." in sentence
    words = [str(models.get(word, word)) for word in (*QUANTIFY, "--encoding", "cp1252")]
    assert CliRunner().invoke(program.cli, words).exit_code == 0


def test_a_quotation_mark_that_is_never_closed(folder: Path, models: dict[str, Path]) -> None:
    (folder / "batch.csv").write_text('id,text\n1,"no end\n2,x\n')
    assert "this is no proper CSV (unexpected end of data)" in refusal(*QUANTIFY, models=models)


def test_two_columns_of_one_name(folder: Path, models: dict[str, Path]) -> None:
    (folder / "batch.csv").write_text("text,text\na,b\n")
    assert "two columns are called 'text'" in refusal(*QUANTIFY, models=models)


def test_a_cut_gzip_file(folder: Path, models: dict[str, Path]) -> None:
    write(folder / "plain.csv", rows(400))
    packed = gzip.compress((folder / "plain.csv").read_bytes())
    (folder / "batch.csv.gz").write_bytes(packed[:-50])
    sentence = refusal("quantify", "TEXTS", "batch.csv.gz", models=models)
    assert "batch.csv.gz: the compressed data is damaged or cut off" in sentence


def test_a_line_that_is_not_json(folder: Path, models: dict[str, Path]) -> None:
    (folder / "batch.jsonl").write_text('{"text": "a"}\n{"text": \n')
    sentence = refusal("quantify", "TEXTS", "batch.jsonl", models=models)
    assert "batch.jsonl, line 2: this is not JSON" in sentence


def test_a_list_where_a_text_should_be(folder: Path, models: dict[str, Path]) -> None:
    (folder / "batch.jsonl").write_text('{"text": "a"}\n{"text": ["b"]}\n')
    sentence = refusal("quantify", "TEXTS", "batch.jsonl", models=models)
    assert "batch.jsonl, line 2: expected a text, but here is ['b']" in sentence


def test_a_folder_without_tables(folder: Path, models: dict[str, Path]) -> None:
    (folder / "empty").mkdir()
    assert "The folder empty holds no table" in refusal("quantify", "TEXTS", "empty", models=models)


def zipped(*names: str) -> bytes:
    """A zip archive with some members."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return content.getvalue()


def tarred() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("batch.csv"))
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        pytest.param(b"\x89PNG\r\n\x1a\n\0\0", "a PNG image", id="png"),
        pytest.param(b"\xff\xd8\xff\xe0\0\x10JFIF", "a JPEG image", id="jpeg"),
        pytest.param(b"GIF89a\x01\0", "a GIF image", id="gif"),
        pytest.param(b"II*\0\x08\0", "a TIFF image", id="tiff"),
        pytest.param(b"RIFF\x24\0\0\0WAVE", "an audio, video or image file", id="wav"),
        pytest.param(b"%PDF-1.7\n%\xe2\xe3", "a PDF document", id="pdf"),
        pytest.param(b"{\\rtf1\\ansi text}", "an RTF document", id="rtf"),
        pytest.param(b"\x7fELF\x02\x01\x01\0", "a program", id="elf"),
        pytest.param(b"MZ\x90\0\x03\0", "a program", id="exe"),
        pytest.param(b"SQLite format 3\0\x10", "an SQLite database", id="sqlite"),
        pytest.param(b"\x89HDF\r\n\x1a\n", "an HDF5 file", id="hdf5"),
        pytest.param(b"\x93NUMPY\x01\0v\0", "a NumPy array", id="npy"),
        pytest.param(b"ARROW1\0\0", "an Arrow or Feather file", id="feather"),
        pytest.param(b"\x80\x04\x95\x0b\0", "a Python pickle", id="pickle"),
        pytest.param(b"Rar!\x1a\x07\0", "a RAR archive", id="rar"),
        pytest.param(b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", id="7z"),
        pytest.param(b"\x28\xb5\x2f\xfd\x24", "a file compressed by zstd", id="zstd"),
        pytest.param(b"\xd0\xcf\x11\xe0\xa1\xb1", "an old Excel workbook", id="xls"),
        pytest.param(b'<?xml version="1.0"?><a/>', "an XML file", id="xml"),
        pytest.param(b'<svg xmlns="x">', "an SVG image", id="svg"),
        pytest.param(b"<!DOCTYPE html>\n<html>", "a web page", id="html"),
        pytest.param(zipped("batch.csv"), "a zip archive, not a table; unpack it", id="zip"),
        pytest.param(zipped("word/document.xml"), "a Word document", id="docx"),
        pytest.param(zipped("ppt/slides.xml"), "a PowerPoint presentation", id="pptx"),
        pytest.param(zipped("mimetype", "content.xml"), "an OpenDocument file", id="ods"),
        pytest.param(tarred(), "a tar archive, not a table; unpack it", id="tar.gz"),
    ],
)
def test_files_of_other_kinds_are_named(
    content: bytes, what: str, folder: Path, models: dict[str, Path]
) -> None:
    (folder / "batch.csv").write_bytes(content)
    sentence = refusal(*QUANTIFY, models=models)
    assert sentence.startswith(f"batch.csv: this is {what}")
    assert "cp1252" not in sentence
    (folder / "batch.csv").rename(folder / "train.csv")
    assert f"train.csv: this is {what}" in refusal(*FIT)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param("text\nhello\n".encode("utf-16-le"),
                     "this looks like utf-16-le; say so with --encoding utf-16-le", id="utf-16"),
        pytest.param("text\nhello\n".encode("utf-16-be"), "--encoding utf-16-be", id="utf-16-be"),
        pytest.param(b"text\nhel\0lo\n", "it holds NUL bytes, so it is no text", id="nul"),
        pytest.param(b"text\n" + b"hello\n" * 2000 + b"a\0b\n",
                     "line 2002: the column 'text' holds a NUL character", id="late nul"),
        pytest.param(b'[{"text": "a\\u0000b"}]', "row 1: the column 'text' holds a NUL character",
                     id="nul in json"),
        pytest.param(b'[{"text": "a"}, 7]', "item 2: expected an object, got '7'", id="no object"),
        pytest.param(b'[{"text": "a"', "this is not JSON", id="cut json"),
        pytest.param(b"[]", "expected a JSON array of objects with at least one item",
                     id="no items"),
        pytest.param(b'{"text": "a"}\n[1]\n', "line 2: expected a JSON object", id="no json line"),
        pytest.param(b"PAR1\x15\x04", "this is no readable Parquet file", id="cut parquet"),
        pytest.param(b"PK\x03\x04\x14", "this is no readable Excel workbook", id="cut excel"),
        pytest.param(b",,\n1,2,3\n", "the columns have no names", id="no header"),
        pytest.param(b'text\n{"a": 1}, x\n', "there are 2 values for 1 column;", id="wide row"),
    ],
)  # fmt: skip
def test_damaged_batches(
    content: bytes, sentence: str, folder: Path, models: dict[str, Path]
) -> None:
    (folder / "batch").write_bytes(content)
    assert sentence in refusal("quantify", "TEXTS", "batch", models=models)


@pytest.mark.parametrize(
    ("body", "words", "sentence"),
    [
        pytest.param(rows(40), (*FIT, "--min-positives", "-3"),
                     "--min-positives must be at least 0; got -3.", id="negative positives"),
        pytest.param(rows(40), (*FIT, "--min-positives", "50"), "lower --min-positives.",
                     id="too many positives"),
        pytest.param([[*row[:5], 0, row[6]] for row in rows(40)], LABELS,
                     "or let --min-positives 1 leave out what never occurs",
                     id="label never occurs"),
        pytest.param(rows(40), (*FIT, "--drift", "7"), "--drift must be a number from 0",
                     id="drift"),
        pytest.param(rows(40), (*FIT, "--date-form", "%Y"),
                     "--date-form needs the column of the dates it is about, --time.",
                     id="form without dates"),
        pytest.param(with_cell("date", 3, ""), (*FIT, "--time", "date"),
                     "line 5: the column 'date' has no time; fill it in, or leave the row out",
                     id="row without a time"),
        pytest.param(with_cell("date", 3, "soon"), (*FIT, "--time", "date"),
                     "or give their form with --date-form.", id="time that is no date"),
        pytest.param([[0, f"0{1 + i % 9}/0{1 + i % 7}/2024", *row[2:]] for i, row in
                      enumerate(rows(40))], (*FIT, "--time", "date"),
                     "--date-form %d/%m/%Y or --date-form %m/%d/%Y", id="ambiguous times"),
        pytest.param(rows(40), ("fit", "train.csv", "--text", "text"),
                     "the columns of 0/1 (--labels) or the column of tags (--tags)",
                     id="no labels"),
        pytest.param(with_cell("hardware", 4, "a,b"), LABELS,
                     "A column of tags is named with --tags.", id="tags as a label"),
        pytest.param(rows(40), (*FIT, "--sep", ""), "The separator of tags is empty",
                     id="empty separator"),
        pytest.param(rows(40), (*FIT, "--group", "author"), "train.csv has no column 'author'",
                     id="no group column"),
        pytest.param(rows(40), (*FIT, "--id", "idd"), "Did you mean 'id'?", id="no id column"),
        pytest.param(rows(40), (*NUMBERS, "--as", "age"), "--as is written COLUMN=KIND",
                     id="as without a kind"),
        pytest.param(rows(40), (*NUMBERS, "--as", "age=colour"), "got 'age=colour'",
                     id="as with another kind"),
        pytest.param(rows(40), (*NUMBERS, "--as", "aeg=number"), "Did you mean 'age'?",
                     id="as without a column"),
        pytest.param(rows(40), (*NUMBERS, "--as", "text=number"),
                     "The column 'text' is not among the features", id="as of another column"),
        pytest.param(rows(40), (*FIT, "--as", "age=number"),
                     "--as is about feature columns, and with --text there are none",
                     id="as with texts"),
        pytest.param([[*row[:3], "old" + "er" * (i % 3), *row[4:]] for i, row in
                      enumerate(rows(40))], (*NUMBERS, "--as", "age=number"),
                     "leave out --as age=number.", id="words as numbers"),
        pytest.param(rows(40), (*NUMBERS, "--as", "age=drop"),
                     "None of the columns can be used ('age': as asked for)", id="all dropped"),
        pytest.param([[*row[:3], "", *row[4:]] for row in rows(40)], NUMBERS,
                     "('age': all cells are empty)", id="empty feature"),
        pytest.param([[*row[:3], f"k{i}x", *row[4:]] for i, row in enumerate(rows(40))], NUMBERS,
                     "('age': another value in every row, such as 'k0x')", id="identifiers only"),
    ],
)  # fmt: skip
def test_fits_that_name_what_decides(
    body: list, words: tuple[str, ...], sentence: str, folder: Path
) -> None:
    write(folder / "train.csv", body)
    assert sentence in refusal(*words)
    assert not (folder / "model.prevalens").exists()


@pytest.mark.parametrize(
    ("body", "words", "sentence"),
    [
        pytest.param(rows(9), (*QUANTIFY, "--interval", "95"), "did you mean 0.95?", id="95"),
        pytest.param(rows(9), (*QUANTIFY, "--interval", "-1"), "between 0 and 1; got -1.", id="-1"),
        pytest.param(rows(9), (*QUANTIFY, "--interval", "1"), "between 0 and 1; got 1.", id="1"),
        pytest.param(rows(9), (*QUANTIFY, "--by", "id", "--by-time", "date"),
                     "either by value (--by) or by time (--by-time)", id="by and by-time"),
        pytest.param(with_cell("date", 6, "soon"), (*QUANTIFY, "--by-time", "date"),
                     "or give their form with --date-form.", id="no date"),
        pytest.param(with_cell("age", 5, "12..5"), ("quantify", "NUMBERS", "batch.csv"),
                     "line 7: the column 'age' holds numbers, but here is '12..5'; correct it, or "
                     "leave it empty", id="misspelt number"),
    ],
)  # fmt: skip
def test_batches_that_name_what_decides(
    body: list, words: tuple[str, ...], sentence: str, folder: Path, models: dict[str, Path]
) -> None:
    write(folder / "batch.csv", body)
    assert sentence in refusal(*words, models=models)


def notes(*words: str | Path) -> str:
    """What a command that succeeds prints on standard error."""
    done = CliRunner().invoke(program.cli, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stderr


def ages(*cells: str) -> list[list[Any]]:
    """Rows with these cells as ages, over and over."""
    return [[*row[:3], cells[i % len(cells)], *row[4:]] for i, row in enumerate(rows(60))]


@pytest.mark.parametrize(
    ("body", "words", "note"),
    [
        pytest.param(ages("999", "1,234", "7"), NUMBERS,
                     "'1,234' is read as 1234; if it means 1.234, say --as age=decimal-comma.",
                     id="thousands or decimals"),
        pytest.param(ages(*map(str, range(19)), "old"), NUMBERS,
                     "values of the column 'age' are no number ('old') and count as missing; "
                     "--as age=category makes every value a category.", id="a word among numbers"),
        pytest.param(ages("1", "2", "3", "old"), NUMBERS,
                     "75% of the values of the column 'age' are numbers, but not 'old', so every "
                     "value is a category; --as age=number", id="some numbers"),
        pytest.param(ages("03/04/2024", "05/06/2024"), NUMBERS,
                     "read as %d/%m/%Y. If the month comes first, say --date-form %m/%d/%Y.",
                     id="day or month"),
        pytest.param(rows(60), (*NUMBERS[:3], "age,id", *NUMBERS[4:]),
                     "1 column not used: 'id': identifier: another number in every row.",
                     id="identifier"),
        pytest.param(with_cell("text", 3, ""), FIT,
                     "1 of 40 items in train.csv have an empty text", id="row without a text"),
        pytest.param(with_cell("tags", 3, "rare"), FIT,
                     "1 label with fewer than 2 positive items left out, see --min-positives: "
                     "'rare'.", id="rare label"),
        pytest.param([[*row[:4], row[4].replace(",", ";"), *row[5:]] for row in rows(40)], FIT,
                     "if that divides the tags, say --sep ';'.", id="other separator"),
    ],
)  # fmt: skip
def test_notes_of_fits(body: list, words: tuple[str, ...], note: str, folder: Path) -> None:
    write(folder / "train.csv", body)
    assert note in " ".join(notes(*words).split())


def test_notes_of_batches(folder: Path, models: dict[str, Path]) -> None:
    body = rows(60)
    for i, cell in enumerate(["", "unknown", "?"]):
        body[i][HEADER.index("date")] = cell
    write(folder / "batch.csv", body)
    words = ("quantify", models["TEXTS"], "batch.csv", "--interval", "0")
    without = "without a date in the column 'date', part of the batch '(none)'."
    assert f"3 items {without}" in notes(*words, "--by-time", "date")
    body[3][HEADER.index("id")] = ""
    write(folder / "batch.csv", body)
    assert "1 item without a value in the column 'id'" in notes(*words, "--by", "id")
    write(folder / "batch.csv", [[*row[:2], "", *row[3:]] for row in rows(60)])
    assert "100% of the items of batch hold nothing the model knows." in notes(*words)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda path: path.read_bytes()[: path.stat().st_size // 2], "damaged or cut off"),
        (lambda path: with_version(path, 9), "newer prevalens (file version 9"),
        (lambda path: with_version(path, 1), "older prevalens (file version 1; this one reads 6)"),
        (lambda path: path.read_bytes()[:-40] + b"x" * 40, "m.prevalens: "),
    ],
    ids=["cut", "newer", "older", "end overwritten"],
)
def test_damaged_models(folder: Path, models: dict[str, Path], change: Any, sentence: str) -> None:
    write(folder / "batch.csv", rows(9))
    (folder / "m.prevalens").write_bytes(change(models["TEXTS"]))
    for words in (("quantify", "m.prevalens", "batch.csv"), ("inspect", "m.prevalens")):
        assert sentence in refusal(*words)


def with_version(path: Path, number: int) -> bytes:
    """The model with another number of the file format."""
    with zipfile.ZipFile(path) as archive:
        page = json.loads(archive.read("manifest.json")) | {"version": number}
    target = path.with_name("other.prevalens")
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("manifest.json", json.dumps(page))
    return target.read_bytes()


def test_no_permission(
    folder: Path, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "batch.csv", rows(9))
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    sentence = refusal(*QUANTIFY, "-o", "out.csv", models=models)
    assert "out.csv cannot be written: you have no permission" in sentence


def test_a_full_disk(
    folder: Path, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "batch.csv", rows(9))
    (folder / "out.csv").write_text("old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    sentence = refusal(*QUANTIFY, "-o", "out.csv", models=models)
    assert sentence == "out.csv cannot be written: the disk is full. Nothing was left there."
    assert (folder / "out.csv").read_text() == "old"
    assert sorted(one.name for one in folder.iterdir()) == ["batch.csv", "out.csv"]


@pytest.mark.parametrize("stage", ["prevalens.model.fit.Model.fit", "prevalens.model.file.dump"])
def test_an_interrupted_run_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    write(folder / "train.csv", rows(40))

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stage, interrupted)
    monkeypatch.setattr("sys.argv", ["prevalens", *FIT])
    with pytest.raises(SystemExit) as stop:
        program.main()
    assert stop.value.code == 130
    assert [one.name for one in folder.iterdir()] == ["train.csv"]


def test_one_label_only_and_one_item_are_answered(folder: Path) -> None:
    write(folder / "train.csv", rows(40))
    write(folder / "batch.csv", rows(1))
    words = ["fit", "train.csv", "--text", "text", "--labels", "hardware", "--method", "lr+pcc"]
    assert CliRunner().invoke(program.cli, words, catch_exceptions=False).exit_code == 0
    done = CliRunner().invoke(program.cli, ["quantify", "model.prevalens", "batch.csv"])
    assert done.exit_code == 0
    assert "batch: 1 item only; the estimates are rough" in done.stderr
    assert done.stdout.startswith("group,label,n_items,prevalence,lower,upper,")
    assert "\nbatch,hardware,1," in done.stdout
