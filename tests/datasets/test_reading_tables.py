from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.datasets import read
from prevalens.validation import FormatError, InputError, PrevalensWarning

CSV = "id,x,z,y0,y1\na,1.5,2,0,1\nb,-3,4e1,1,0\n"


def write(tmp_path: Path, content: str, name: str = "f.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode())
    return path


def test_label_and_feature_columns(tmp_path: Path) -> None:
    found = read(write(tmp_path, CSV), labels=["y1", "y0"], features=["z", "x"])
    assert found.labels == ("y1", "y0")
    assert found.features == ("z", "x")
    assert found.X.tolist() == [[2, 1.5], [40, -3]]
    assert found.Y.tolist() == [[1, 0], [0, 1]]


def test_pattern_of_labels_and_all_other_columns(tmp_path: Path) -> None:
    path = write(tmp_path, CSV.replace("id,", ","))
    # A column without a name holds row numbers, not a feature.
    assert read(path, labels="y*", delimiter=",").features == ("x", "z")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters_are_read_from_the_header(tmp_path: Path, delimiter: str) -> None:
    path = write(tmp_path, CSV.replace(",", delimiter))
    found = read(path, labels=["y0", "y1"], features=["x", "z"])
    assert found.X.tolist() == [[1.5, 2], [-3, 40]]


def test_tab_separated_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b;c\ty\n1\t0\n", "f.tsv")
    assert read(path, labels=["y"]).features == ("a,b;c",)


@pytest.mark.parametrize(
    ("cells", "sep"),
    [
        (["a;b", "", "b"], None),
        (["a, b", " ", "b,b"], None),
        (["a|b", "|", "b|"], None),
        (['["a", "b"]', "[]", '["b"]'], None),
        (["a / b", "", "b"], "/"),
    ],
)
def test_tags_in_texts(tmp_path: Path, cells: list[str], sep: str | None) -> None:
    path = tmp_path / "f.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("t", "text"), *zip(cells, "xyz", strict=True)])
    found = read(path, tags="t", text="text", sep=sep)
    assert found.labels == ("a", "b")
    assert found.Y.tolist() == [[1, 1], [0, 0], [0, 1]]
    assert found.X.tolist() == ["x", "y", "z"]


def test_codeframe_orders_and_limits_tags(tmp_path: Path) -> None:
    path = write(tmp_path, "t,text\na;b,x\nc,y\n")
    words = r"1 tags in column 't' of .*f\.csv .* such as 'c'"
    with pytest.warns(PrevalensWarning, match=words) as seen:
        found = read(path, tags="t", text="text", labels=["b", "z", "a"])
    assert seen[0].filename == __file__
    assert found.labels == ("b", "z", "a")
    assert found.Y.tolist() == [[1, 0, 1], [0, 0, 0]]


def test_json_lines(tmp_path: Path) -> None:
    rows = [
        {"text": "one", "tags": ["a", "b"], "y": True},
        {"text": "two", "tags": None, "y": 0},
        {"text": "three", "y": False},
    ]
    path = tmp_path / "f.jsonl"
    path.write_bytes(gzip.compress(("\n".join(map(json.dumps, rows)) + "\n\n").encode()))
    assert read(path, tags="tags", text="text").Y.tolist() == [[1, 1], [0, 0], [0, 0]]
    assert read(path, labels=["y"], text="text").Y.tolist() == [[1], [0], [0]]


def test_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "f.parquet"
    columns = {"x": [1, 2], "tags": [["a"], []], "y": [True, False], "text": ["one", "two"]}
    parquet.write_table(pa.table(columns), path)
    assert read(path, tags="tags", text="text").Y.tolist() == [[1], [0]]
    found = read(path, labels=["y"], features=["x"])
    assert found.X.tolist() == [[1.0], [2.0]]
    assert found.Y.tolist() == [[1], [0]]
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(FormatError, match=r"f\.parquet: this is no readable Parquet file"):
        read(path, labels=["y"])
    empty = pa.array([], pa.float64())
    parquet.write_table(pa.table({"x": empty, "y": empty}), path)
    with pytest.raises(FormatError, match="there are no items"):
        read(path, labels=["y"])


def test_parquet_without_pyarrow_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match=r'pip install "prevalens\[frames\]"'):
        read(write(tmp_path, "PAR1", "f.parquet"), labels=["y"])


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"))


@given(rows=st.lists(st.tuples(TEXTS, st.sets(st.sampled_from("abc"))), min_size=1, max_size=6))
def test_round_trip_of_texts_and_tags(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, set[str]]]
) -> None:
    rows = [*rows, ("all", {"a", "b", "c"})]
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(["text", "tags"])
    writer.writerows([(text, ";".join(sorted(tags))) for text, tags in rows])
    folder = tmp_path_factory.mktemp("tables")
    (folder / "f.csv").write_bytes(stream.getvalue().encode())
    lines = [json.dumps({"text": text, "tags": sorted(tags)}) for text, tags in rows]
    (folder / "f.jsonl").write_text("\n".join(lines))
    for name in ("f.csv", "f.jsonl"):
        found = read(folder / name, tags="tags", text="text")
        assert found.X.tolist() == [text for text, _ in rows]
        assert [set(np.array(found.labels)[row == 1]) for row in found.Y] == [t for _, t in rows]


def test_long_texts_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, f"text,y\n{'x' * 200_000},1\n")
    assert len(read(path, text="text", labels=["y"]).X[0]) == 200_000


def test_text_that_is_not_utf8_is_latin1(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_bytes("text,y\ncafé,1\n".encode("latin-1"))
    assert read(path, text="text", labels=["y"]).X.tolist() == ["café"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "the file is empty"),
        ("x,y\n", "there are no items"),
        ("a,a\n1,2\n", "two columns are called 'a'"),
        (",\n1,2\n", "the columns have no names"),
        ("x,y\n1,0\n1\n", "line 3: there is 1 value for 2 columns"),
        ('x,y\n"1,0\n', r"line \d: this is no proper CSV"),
        ('x,y\n"1"2,0\n', "line 2: this is no proper CSV"),
        ("x,y\n1,0\n1,2\n", "line 3: the label 'y' is '2'; a label column holds 0 or 1"),
        ("x,y\n1,\n", "line 2: the label 'y' is ''"),
        ("x,y\n1,0\nhello,1\n", "line 3: the feature 'x' is 'hello', not a number"),
        ("x,y\nnan,0\n", "line 2: the feature 'x' is 'nan'"),
    ],
)
def test_bad_csv_is_one_sentence(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(FormatError, match=rf"f\.csv.*{words}"):
        read(write(tmp_path, content), labels=["y"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("\n", "there are no items"),
        ('{"text": "a"}\n{"text": ', "line 2: this is not JSON"),
        ("[1, 2]\n", "line 1: expected a JSON object"),
        ("[" * 100_000, "line 1: this is not JSON"),
        ('{"text": 3, "tags": ["a"]}', "line 1: the text in column 'text' is 3"),
        ('{"text": "a", "tags": {"b": 3}}', r"line 1: the tags 'tags' are \{'b': 3\}"),
        ('{"text": "a", "tags": "[1"}', r"line 1: the tags '\[1' are not a JSON list"),
        ('{"text": "a", "tags": []}', "no row has a tag"),
    ],
)
def test_bad_json_lines_are_one_sentence(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(FormatError, match=rf"f\.jsonl.*{words}"):
        read(write(tmp_path, content, "f.jsonl"), tags="tags", text="text")


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({}, r"Say which columns of .*f\.csv are labels .* it has 'x', 'y'"),
        ({"labels": ["z"]}, r"f\.csv has no column 'z'; it has 'x', 'y'"),
        ({"labels": "z*"}, r"f\.csv has no column 'z\*'"),
        ({"labels": []}, r"No label columns of .*f\.csv are named"),
        ({"labels": ["x", "y"]}, r"f\.csv has no feature columns"),
        ({"labels": ["y"], "text": "z"}, r"f\.csv has no column 'z'"),
        ({"labels": ["y"], "features": ["z"]}, r"f\.csv has no column 'z'"),
    ],
)
def test_wrong_choices_are_one_sentence(
    tmp_path: Path, choice: dict[str, object], words: str
) -> None:
    path = write(tmp_path, "x,y\n1,0\n")
    with pytest.raises(InputError, match=words):
        read(path, **choice)  # type: ignore[arg-type]


def test_many_columns_are_not_all_listed(tmp_path: Path) -> None:
    path = write(tmp_path, ",".join(f"c{j}" for j in range(30)) + "\n")
    with pytest.raises(InputError, match=r"'c11', \.\.\. \(30 in all\)"):
        read(path)
