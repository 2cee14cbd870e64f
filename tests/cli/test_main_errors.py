"""Bad input at the command line: one sentence on standard error, exit code 2, nothing written."""

from __future__ import annotations

import csv
import errno
import gzip
import json
import os
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
    """The sentence with which a command refuses."""
    known = {name: str(path) for name, path in (models or {}).items()}
    with pytest.raises(PrevalensError) as error:
        CliRunner().invoke(
            program.cli, [known.get(str(word), str(word)) for word in words], catch_exceptions=False
        )
    sentence = str(error.value)
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
        pytest.param(rows(40), (*FIT, "--features", "age"),
                     "Name either a column of texts or columns of features",
                     id="text and features"),
        pytest.param(rows(40), ("fit", "train.csv", "--text", "tags", "--tags", "tags"),
                     "The column 'tags' cannot be a feature and a label at once",
                     id="label as text"),
        pytest.param(rows(40), (*FIT, "--delimiter", ";"), "name another delimiter",
                     id="wrong delimiter"),
        pytest.param(rows(40), (*FIT, "--delimiter", "ab"),
                     "A delimiter is one character; got 'ab'", id="long delimiter"),
        pytest.param(rows(40), (*FIT, "--encoding", "klingon"), "There is no encoding 'klingon'",
                     id="unknown encoding"),
        pytest.param(with_cell("text", 3, "café"), (*FIT, "--encoding", "ascii"),
                     "the byte 0xc3 is not ascii; name the encoding", id="wrong encoding"),
        pytest.param(with_cell("hardware", 4, "2"), LABELS,
                     "train.csv, line 6: the label 'hardware' is '2'; a label column holds 0 or 1",
                     id="label not 0/1"),
        pytest.param(with_cell("hardware", 0, ""), LABELS, "line 2: the label 'hardware' is ''",
                     id="label missing"),
        pytest.param(with_cell("age", 8, "old"), (*NUMBERS[:3], "age,id", *NUMBERS[4:]),
                     "", id="mixed types become categories"),
        pytest.param([], FIT, "train.csv has a header but no rows", id="header only"),
        pytest.param(rows(2)[1:], (*FIT, "--min-positives", "0"),
                     "train.csv has 1 labelled items; at least 10 are needed", id="one item"),
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
                     "train.csv, line 22: there are 1 values for 7 columns", id="short row"),
        pytest.param(rows(40), (*FIT, "--time-budget", "9s", "--fast"),
                     "leave out --fast or --time-budget", id="two budgets"),
        pytest.param(rows(40), (*FIT, "--time-budget", "soon"),
                     "A time is written as 90s, 10m or 1.5h; got 'soon'", id="bad time budget"),
        pytest.param(rows(40), (*FIT, "-o", "nowhere/m.prevalens"),
                     "nowhere/m.prevalens cannot be written: there is no folder nowhere",
                     id="no folder for the model"),
        pytest.param([[*row[:3], "same", *row[4:]] for row in rows(40)], NUMBERS,
                     "None of the columns 'age' can be used", id="constant feature"),
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
        pytest.param(rows(9), ("quantify", "TEXTS", "TEXTS"), "no readable Excel workbook",
                     id="model as batch"),
        pytest.param([], QUANTIFY, "There are no items to quantify", id="empty batch"),
        pytest.param(rows(9), (*QUANTIFY, "--by", "region"), "batch.csv has no column 'region'",
                     id="no column to group by"),
        pytest.param(rows(9), (*QUANTIFY, "--by", "id", "--by-time", "date"),
                     "Name one column to group by", id="two groupings"),
        pytest.param(rows(9), (*QUANTIFY, "--freq", "W"),
                     "A frequency needs the column of the dates", id="frequency without dates"),
        pytest.param(with_cell("date", 6, "soon"), (*QUANTIFY, "--by-time", "date"),
                     "batch.csv, line 8: 'soon' in the column 'date' is no date that can be read",
                     id="no date"),
        pytest.param([[0, "03/04/2024", *row[2:]] for row in rows(9)],
                     (*QUANTIFY, "--by-time", "date"),
                     "In '03/04/2024' of the column 'date' day and month cannot be told apart",
                     id="ambiguous dates"),
        pytest.param(with_cell("age", 5, "old"), ("quantify", "NUMBERS", "batch.csv"),
                     "batch.csv, line 7: the column 'age' holds numbers, but here is 'old'",
                     id="a word among numbers"),
        pytest.param(with_cell("age", 5, "inf"), ("quantify", "NUMBERS", "batch.csv"),
                     "batch.csv, line 7: the column 'age' holds numbers, but here is 'inf'",
                     id="infinity"),
        pytest.param(rows(9), (*QUANTIFY, "--interval", "90"),
                     "interval must lie strictly between 0 and 1; got 90",
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


def test_an_unknown_method_is_pointed_at_before_anything_is_read(folder: Path) -> None:
    with pytest.raises(PrevalensError, match="There is no aggregator called 'nosuch'") as error:
        CliRunner().invoke(program.cli, [*FIT[:-1], "lr+nosuch"], catch_exceptions=False)
    assert str(error.value).endswith("^ character 4")


@pytest.mark.parametrize("content", [b"", b"\n\n"], ids=["nothing", "blank lines"])
def test_empty_files(folder: Path, content: bytes, models: dict[str, Path]) -> None:
    (folder / "batch.csv").write_bytes(content)
    assert "batch.csv: the file is empty" in refusal(*QUANTIFY, models=models)


def test_latin_1(folder: Path, models: dict[str, Path]) -> None:
    write(folder / "batch.csv", with_cell("text", 2, "café"), encoding="cp1252")
    assert "the byte 0xe9 is not utf-8; name the encoding of the file, for example cp1252" in (
        refusal(*QUANTIFY, models=models)
    )
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


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda path: path.read_bytes()[: path.stat().st_size // 2], "damaged or cut off"),
        (lambda path: with_version(path, 9), "newer prevalens (file version 9"),
        (lambda path: with_version(path, 1), "older prevalens (file version 1; this one reads 4)"),
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
