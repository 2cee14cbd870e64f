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

from prevalens.datasets.formats.tables import Table, csv_table, jsonl_table, parquet_table
from prevalens.validation import FormatError, InputError, PrevalensWarning

CSV = "id,x,z,y0,y1\na,1.5,2,0,1\nb,-3,4e1,1,0\n"


def write(tmp_path: Path, content: str, name: str = "f.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode())
    return path


def test_label_and_feature_columns(tmp_path: Path) -> None:
    table = csv_table(write(tmp_path, CSV))
    found = table.collection(labels=["y1", "y0"], features=["z", "x"])
    assert found.labels == ("y1", "y0")
    assert found.features == ("z", "x")
    assert found.X.tolist() == [[2, 1.5], [40, -3]]
    assert found.Y.tolist() == [[1, 0], [0, 1]]


def test_pattern_of_labels_and_all_other_columns(tmp_path: Path) -> None:
    found = csv_table(write(tmp_path, CSV.replace("id,", ",")), delimiter=",")
    # A column without a name holds row numbers, not a feature.
    assert found.collection(labels="y*").features == ("x", "z")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters_are_read_from_the_header(tmp_path: Path, delimiter: str) -> None:
    content = CSV.replace(",", delimiter)
    assert list(csv_table(write(tmp_path, content)).columns) == ["id", "x", "z", "y0", "y1"]


def test_tab_separated_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b;c\ty\n1\t0\n", "f.tsv")
    assert csv_table(path).collection(labels=["y"]).features == ("a,b;c",)


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
def test_tags_in_texts(cells: list[str], sep: str | None) -> None:
    table = Table(Path("f"), {"t": cells, "text": ["x", "y", "z"]}, [2, 3, 4])
    found = table.collection(tags="t", text="text", sep=sep)
    assert found.labels == ("a", "b")
    assert found.Y.tolist() == [[1, 1], [0, 0], [0, 1]]
    assert found.X.tolist() == ["x", "y", "z"]


def test_codeframe_orders_and_limits_tags() -> None:
    table = Table(Path("f"), {"t": ["a;b", "c"], "text": ["x", "y"]}, [2, 3])
    with pytest.warns(PrevalensWarning, match="1 tags in column 't' of f .* such as 'c'"):
        found = table.collection(tags="t", text="text", labels=["b", "z", "a"])
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
    table = jsonl_table(path)
    assert table.collection(tags="tags", text="text").Y.tolist() == [[1, 1], [0, 0], [0, 0]]
    assert table.collection(labels=["y"], text="text").Y.tolist() == [[1], [0], [0]]


def test_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "f.parquet"
    columns = {"x": [1, 2], "tags": [["a"], []], "y": [True, False], "text": ["one", "two"]}
    parquet.write_table(pa.table(columns), path)
    table = parquet_table(path)
    assert table.collection(tags="tags", text="text").Y.tolist() == [[1], [0]]
    found = table.collection(labels=["y"], features=["x"])
    assert found.X.tolist() == [[1.0], [2.0]]
    assert found.Y.tolist() == [[1], [0]]
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(FormatError, match=r"f\.parquet: this is no readable Parquet file"):
        parquet_table(path)
    parquet.write_table(pa.table({"x": pa.array([], pa.float64())}), path)
    with pytest.raises(FormatError, match="there are no items"):
        parquet_table(path)


def test_arrow_is_never_given_a_python_file(tmp_path: Path, parquet_sources: list[object]) -> None:
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "f.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(pa.table({"x": [1.0]}), path)
    assert len(parquet_table(path).lines) == 1
    assert [isinstance(source, pa.NativeFile) for source in parquet_sources] == [True]


def test_parquet_without_pyarrow_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match=r'pip install "prevalens\[frames\]"'):
        parquet_table(write(tmp_path, "", "f.parquet"))


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
    for table in (csv_table(folder / "f.csv"), jsonl_table(folder / "f.jsonl")):
        found = table.collection(tags="tags", text="text")
        assert found.X.tolist() == [text for text, _ in rows]
        assert [set(np.array(found.labels)[row == 1]) for row in found.Y] == [t for _, t in rows]


def test_long_texts_are_read(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    path = write(tmp_path, f"text,y\n{'x' * 200_000},1\n")
    assert len(csv_table(path).collection(text="text", labels=["y"]).X[0]) == 200_000
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "expected a line of column names and at least one row"),
        ("a,b\n", "expected a line of column names"),
        ("a,a\n1,2\n", "line 1: two columns are called 'a'"),
        (",\n1,2\n", "line 1: the columns have no names"),
        ("x,y\n1,0\n1\n", "line 3: there are 1 values for 2 columns"),
        ('x,y\n"1,0\n', r"line \d: this is no proper CSV"),
        ('x,y\n"1"2,0\n', "line 2: this is no proper CSV"),
        ("x,y\n1,0\n1,2\n", "line 3: the label 'y' is '2'; expected 0 or 1"),
        ("x,y\n1,\n", "line 2: the label 'y' is ''"),
        ("x,y\n1,0\nhello,1\n", "line 3: the feature 'x' is 'hello', not a number"),
        ("x,y\nnan,0\n", "line 2: the feature 'x' is 'nan'"),
    ],
)
def test_bad_csv_is_one_sentence(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(FormatError, match=rf"f\.csv.*{words}"):
        csv_table(write(tmp_path, content)).collection(labels=["y"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "there are no items"),
        ('{"text": "a"}\n{"text": ', "line 2: this is not JSON"),
        ("[1, 2]\n", "line 1: expected a JSON object"),
        ("[" * 100_000, "line 1: this is not JSON"),
        ('{"text": 3, "tags": ["a"]}', "line 1: the text in column 'text' is 3"),
        ('{"text": "a", "tags": 3}', "line 1: the tags in column 'tags' are 3"),
        ('{"text": "a", "tags": "[1"}', r"line 1: the tags '\[1' are not a JSON list"),
        ('{"text": "a", "tags": []}', "no row has a tag"),
    ],
)
def test_bad_json_lines_are_one_sentence(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(FormatError, match=rf"f\.jsonl.*{words}"):
        jsonl_table(write(tmp_path, content, "f.jsonl")).collection(tags="tags", text="text")


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({}, r"Say which columns of f are labels .* it has 'x', 'y'"),
        ({"labels": ["z"]}, "f has no column 'z'; it has 'x', 'y'"),
        ({"labels": "z*"}, r"No column of f fits 'z\*'"),
        ({"labels": []}, "No label columns of f are named"),
        ({"labels": ["x", "y"]}, "f has no feature columns"),
        ({"labels": ["y"], "text": "z"}, "f has no column 'z'"),
        ({"labels": ["y"], "features": ["z"]}, "f has no column 'z'"),
    ],
)
def test_wrong_choices_are_one_sentence(choice: dict[str, object], words: str) -> None:
    table = Table(Path("f"), {"x": ["1"], "y": ["0"]}, [2])
    with pytest.raises(InputError, match=words):
        table.collection(**choice)  # type: ignore[arg-type]


def test_many_columns_are_not_all_listed() -> None:
    table = Table(Path("f"), {f"c{j}": ["0"] for j in range(30)}, [2])
    with pytest.raises(InputError, match=r"'c11', \.\.\. \(30 in all\)"):
        table.collection()
