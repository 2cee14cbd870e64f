"""Embeddings beside a table, and vectors in Arrow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from prevalens.errors import FormatError, InputError
from prevalens.tables.embeddings import embeddings_path
from prevalens.tables.formats import as_table
from prevalens.tables.opening import Reading


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "may.csv"
    path.write_text("text,n\n" + "".join(f"item {row},{row}\n" for row in range(10)))
    return path


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_rows_of_the_array_are_those_of_the_table(table: Path, dtype: type) -> None:
    array = np.arange(30).reshape(10, 3).astype(dtype)
    np.save(table.with_suffix(".npy"), array)
    opened = Reading(embeddings=str(table.parent / "*.npy")).open(table)
    assert opened.columns == ("text", "n", "embeddings")
    chunks = list(opened.chunks(["embeddings"], chunk_rows=4))
    assert [set(chunk.columns) for chunk in chunks] == [{"embeddings"}] * 3
    whole = opened.read(["n", "embeddings"])
    np.testing.assert_array_equal(whole["embeddings"], array)
    assert np.asarray(whole["embeddings"]).dtype == np.float32
    assert list(whole["n"]) == list(map(str, range(10)))


@pytest.mark.parametrize("rows", [9, 11])
def test_other_numbers_of_rows_are_refused(table: Path, rows: int) -> None:
    path = table.with_suffix(".npy")
    np.save(path, np.zeros((rows, 2)))
    with pytest.raises(InputError, match=f"may.npy has {rows} rows, but .*may.csv has"):
        Reading(embeddings=str(path)).open(table).read()


def test_files_that_are_no_matrix(table: Path) -> None:
    path = table.with_suffix(".npy")
    with pytest.raises(InputError, match=r"There is no file .*may.npy"):
        Reading(embeddings=str(path)).open(table)
    path.write_text("0.1,0.2")
    with pytest.raises(FormatError, match="no array of numbers"):
        Reading(embeddings=str(path)).open(table)
    for array in (np.zeros(10), np.array([["a"]] * 10), np.zeros((10, 2), dtype=complex)):
        np.save(path, array)
        with pytest.raises(FormatError, match="one row per item"):
            Reading(embeddings=str(path)).open(table)


def test_a_column_of_the_same_name(table: Path) -> None:
    table.write_text("embeddings\nx\n")
    np.save(table.with_suffix(".npy"), np.zeros((1, 2)))
    with pytest.raises(InputError, match="column 'embeddings' of its own"):
        Reading(embeddings=str(table.with_suffix(".npy"))).open(table)


def test_the_star_is_the_name_without_its_ending() -> None:
    assert embeddings_path("v/*.npy", "a/2024.05.CSV.gz") == Path("v/2024.05.npy")
    assert embeddings_path("all.npy", "a.csv") == Path("all.npy")


@pytest.mark.parametrize("fixed", [True, False])
def test_vectors_of_arrow_are_one_array(tmp_path: Path, fixed: bool) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    cells = [[1.0, 2.0], None, [3.0, 4.0]]
    kind = arrow.list_(arrow.float32(), 2) if fixed else arrow.list_(arrow.float64())
    frame = arrow.table({"v": arrow.array(cells, type=kind), "tags": [["a"], [], ["b"]]})
    parquet.write_table(frame, tmp_path / "t.parquet")
    for table in (as_table(frame), Reading().open(tmp_path / "t.parquet")):
        chunk = table.read()
        expected = np.array([[1, 2], [np.nan, np.nan], [3, 4]], dtype=np.float32)
        assert np.asarray(chunk["v"]).dtype == np.float32
        np.testing.assert_array_equal(chunk["v"], expected)
        assert list(chunk["tags"]) == [["a"], [], ["b"]]


def test_vectors_of_several_lengths_stay_lists() -> None:
    arrow = pytest.importorskip("pyarrow")
    cells = [[1.0, 2.0], [3.0]]
    assert list(as_table(arrow.table({"v": cells})).read()["v"]) == cells
