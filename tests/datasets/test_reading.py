from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from prevalens.datasets.reading import read
from prevalens.validation import InputError

CSV = "text,x,y0,y1,tags\none,1,0,1,b\ntwo,2,1,1,a;b\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "f.csv"
    path.write_text(CSV)
    return path


def test_table_by_label_columns_or_tags(table: Path) -> None:
    assert read(table, labels="y*", features=["x"]).Y.tolist() == [[0, 1], [1, 1]]
    assert read(table, tags="tags", text="text").Y.tolist() == [[0, 1], [1, 1]]
    assert read(table, labels=["y0"], text="text").X.tolist() == ["one", "two"]


@pytest.mark.parametrize("name", ["f.csv.gz", "f.CSV", "f.backup.csv"])
def test_format_by_the_end_of_the_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    content = CSV.encode()
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert read(path, labels=["y1"], features=["x"]).n_items == 2


def test_format_by_argument(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text("0,2 1:1\n1 2:1\n")
    with pytest.raises(InputError, match=r"format of .*data\.txt is not known by its name; say it"):
        read(path)
    assert read(path, format="svmlight").labels == ("0", "1", "2")
    assert read(path, format="svmlight", labels=["a", "b", "c"]).labels == ("a", "b", "c")
    with pytest.raises(InputError, match="format must be one of 'arff', 'csv'"):
        read(path, format="xlsx")


def test_arguments_without_meaning_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.svm"
    path.write_text("0 1:1\n")
    with pytest.raises(InputError, match="tags= has no meaning for svmlight files"):
        read(path, tags="t")


def test_arff_finds_its_labels(tmp_path: Path, mulan_texts: dict[str, str]) -> None:
    path = tmp_path / "small-train.arff"
    path.write_text(mulan_texts["train"])
    with pytest.raises(InputError, match="Say which attributes of"):
        read(path)
    assert read(path, labels=["y1"]).labels == ("y1",)
    path.write_text(mulan_texts["train"].replace("@relation small", "@relation 'small: -C -2'"))
    assert read(path).labels == ("y0", "y1")
    other = tmp_path / "small.xml"
    other.write_text('<labels><label name="y1"/></labels>')
    # The XML file beside it says more than the relation name.
    assert read(path).labels == ("y1",)
    assert read(path, format="meka").labels == ("y0", "y1")
    other.rename(tmp_path / "names.xml")
    assert read(path, labels=tmp_path / "names.xml").labels == ("y1",)


def test_other_formats(tmp_path: Path, story: Callable[..., str]) -> None:
    scipy.io.savemat(tmp_path / "f.mat", {"data": np.eye(3), "target": np.ones((3, 1))})
    assert read(tmp_path / "f.mat").Y.tolist() == [[1], [1], [1]]
    (tmp_path / "f.sgm").write_text(story(1, "TRAIN", ["a"], "x") + story(2, "TEST", [], "y"))
    assert read(tmp_path / "f.sgm").Y.tolist() == [[1], [0]]
    (tmp_path / "f.jsonl").write_text('{"t": "x", "l": ["a"]}\n')
    assert read(tmp_path / "f.jsonl", text="t", tags="l").labels == ("a",)
    (tmp_path / "f.tsv").write_text("x\ty\n1\t1\n")
    assert read(tmp_path / "f.tsv", labels=["y"]).X.tolist() == [[1.0]]
    folder = tmp_path / "classes" / "C1"
    folder.mkdir(parents=True)
    (folder / "one").write_text("text")
    assert read(tmp_path / "classes").labels == ("C1",)


def test_parquet(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "f.parquet"
    pandas.DataFrame({"x": [1.5, 2.5], "y": [0, 1]}).to_parquet(path)
    found = read(path, labels=["y"])
    assert found.X.tolist() == [[1.5], [2.5]]
    assert found.Y.tolist() == [[0], [1]]


def test_same_collection_from_every_table(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"x": [1.0, -2.5], "z": [3, 4], "y": [1, 0]})
    frame.write_csv(tmp_path / "f.csv")
    frame.write_ndjson(tmp_path / "f.jsonl")
    frame.write_parquet(tmp_path / "f.parquet")
    for name in ("f.csv", "f.jsonl", "f.parquet"):
        found = read(tmp_path / name, labels=["y"])
        assert found.features == ("x", "z")
        assert found.X.tolist() == [[1.0, 3.0], [-2.5, 4.0]]
        assert found.Y.tolist() == [[1], [0]]
