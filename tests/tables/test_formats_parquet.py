"""Parquet, whole and in chunks, plain and compressed."""

from __future__ import annotations

import gzip
import threading
from pathlib import Path

import numpy as np
import pytest

from prevalens.errors import FormatError, InputError
from prevalens.tables.opening import open_table

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def written(path: Path) -> Path:
    cells = {
        "text": [f"item {i}" for i in range(10)],
        "vector": [[float(i), 1.0] for i in range(10)],
    }
    parquet.write_table(arrow.table(cells), path)
    return path


def test_chunks(tmp_path: Path) -> None:
    table = open_table(written(tmp_path / "t.parquet"))
    assert table.columns == ("text", "vector")
    assert table.total == 10
    chunks = list(table.chunks(["vector"], chunk_rows=4))
    assert [len(chunk) for chunk in chunks] == [4, 4, 2]
    assert np.asarray(chunks[2]["vector"]).tolist() == [[8.0, 1.0], [9.0, 1.0]]
    assert chunks[1].place(0).endswith("t.parquet, row 5")


def test_row_groups_follow_each_other_in_little_memory(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).random(1_000_000)
    parquet.write_table(arrow.table({"p": numbers}), tmp_path / "t.parquet", row_group_size=20_000)
    table, held = open_table(tmp_path / "t.parquet"), []
    before, read = arrow.total_allocated_bytes(), []
    for chunk in table.chunks(chunk_rows=30_000):
        held.append(arrow.total_allocated_bytes() - before)
        read.append(chunk["p"])
    assert np.array_equal(np.concatenate(read), numbers)
    # Arrow would hold what it has read of all row groups that it was asked for at once.
    assert max(held) < numbers.nbytes / 4


def test_numbers_are_arrays_and_the_rest_are_lists(tmp_path: Path) -> None:
    cells = {
        "share": [0.5, None, 1.0],
        "vote": [1, 0, 1],
        "missing": arrow.array([1, None, 0]),
        "flag": [True, False, True],
        "text": ["0.5", "yes", None],
    }
    parquet.write_table(arrow.table(cells), tmp_path / "t.parquet")
    chunk = next(open_table(tmp_path / "t.parquet").chunks(scores=list(cells)))
    arrays = {name for name in cells if isinstance(chunk[name], np.ndarray)}
    assert arrays == {"share", "vote", "flag"}
    np.testing.assert_array_equal(chunk["share"], [0.5, np.nan, 1.0])
    assert chunk["missing"] == [1, None, 0]
    assert chunk["text"] == ["0.5", "yes", None]


@pytest.mark.parametrize("row_group_size", [900, 4000, 10_000])
def test_scores_of_all_row_groups_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row_group_size: int
) -> None:
    # Chunks of 700 rows, and row groups of 10,000 rows are too large to be read at once.
    monkeypatch.setattr("prevalens.tables.formats._SCORES", 1400)
    monkeypatch.setattr("prevalens.tables.formats._ROW_GROUP", 8000)
    numbers = np.random.default_rng(0).random((10_000, 2))
    table = arrow.table({"p": numbers[:, 0], "q": numbers[:, 1]})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=row_group_size)
    chunks = open_table(tmp_path / "t.parquet").chunks(chunk_rows=10, scores=["p", "q"])
    first, *others = chunks
    assert len(first) == 700
    assert [chunk.first for chunk in others] == np.cumsum([701, *map(len, others[:-1])]).tolist()
    for j, name in enumerate("pq"):
        read = np.concatenate([chunk[name] for chunk in (first, *others)])
        np.testing.assert_array_equal(read, numbers[:, j])


def test_the_thread_that_reads_ahead_ends_with_the_reading(tmp_path: Path) -> None:
    table = arrow.table({"p": np.linspace(0, 1, 5000)})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=1000)
    before = threading.active_count()
    chunks = open_table(tmp_path / "t.parquet").chunks(scores=["p"])
    next(chunks)
    assert threading.active_count() == before + 1
    del chunks
    assert threading.active_count() == before


def test_compressed_as_a_whole_and_under_another_name(tmp_path: Path) -> None:
    plain = written(tmp_path / "t.parquet")
    packed = tmp_path / "t.parquet.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert open_table(packed).read(["text"])["text"][3] == "item 3"
    other = plain.rename(tmp_path / "t.csv")
    assert open_table(other).total == 10


def test_arrow_is_never_given_a_python_file(tmp_path: Path, parquet_sources: list[object]) -> None:
    plain = written(tmp_path / "t.parquet")
    packed = tmp_path / "t.parquet.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    for path in (plain, packed):
        open_table(path).read(["text"])
    assert len(parquet_sources) == 4
    assert all(isinstance(source, Path | arrow.NativeFile) for source in parquet_sources)


def test_damaged(tmp_path: Path) -> None:
    plain = written(tmp_path / "t.parquet")
    plain.write_bytes(plain.read_bytes()[:-20])
    with pytest.raises(FormatError, match="no readable Parquet file"):
        open_table(plain)
    plain.write_text("text\nhello\n")
    with pytest.raises(FormatError, match="no Parquet file, though its name says so"):
        open_table(plain)


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "t.parquet")

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("prevalens.tables.formats.importlib.import_module", missing)
    with pytest.raises(InputError, match=r'pip install "prevalens\[frames\]"'):
        open_table(path)
