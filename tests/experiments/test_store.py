from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prevalens.experiments import CellResult, Failure, Store
from prevalens.experiments import store as module
from prevalens.validation import FormatError, InputError

Make = Callable[..., CellResult]


def result_path(store: Store, result: CellResult) -> Path:
    return store.folder / "cells" / f"{result.key}.parquet"


@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_written_is_read_back(store: Store, make_result: Make, seed: int) -> None:
    result = make_result(seed)
    assert (result.validation_loss is None) == (seed == 0)
    store.write(result)
    stored = store.read(result.key)
    for name in ("cell", "key", "data_sha", "versions", "chosen", "labels", "usage"):
        assert getattr(stored, name) == getattr(result, name)
    assert stored.result().validation_loss == result.validation_loss
    assert list(stored.columns) == list(result.columns)
    for name, values in result.columns.items():
        assert stored.columns[name].dtype == values.dtype
        np.testing.assert_array_equal(stored.columns[name], values)


def test_arrow_is_never_given_a_python_file(
    store: Store, make_result: Make, parquet_sources: list[object]
) -> None:
    store.write(make_result())
    assert len(list(store.results())) == 1
    assert [isinstance(source, pa.NativeFile) for source in parquet_sources] == [True]


def test_keys_are_those_of_finished_cells(store: Store, make_result: Make) -> None:
    assert store.keys() == []
    results = [make_result(seed) for seed in range(3)]
    for result in results:
        store.write(result)
    assert store.keys() == sorted(result.key for result in results)
    assert len(store) == 3
    assert results[0].key in store
    assert make_result(7).key not in store


def test_equal_results_are_equal_bytes_whatever_they_cost(
    tmp_path: Path, make_result: Make
) -> None:
    stores = [Store(tmp_path / name) for name in "ab"]
    for number, place in enumerate(stores):
        result = make_result()
        object.__setattr__(result.usage, "seconds", float(number))
        place.write(result)
    left, right = (result_path(place, make_result()).read_bytes() for place in stores)
    assert left == right
    assert stores[0].usage(make_result().key) != stores[1].usage(make_result().key)


def test_other_programs_can_read_the_file(store: Store, make_result: Make) -> None:
    store.write(make_result())
    table = pq.read_table(result_path(store, make_result()))
    assert table.num_rows == 12
    assert json.loads(table.schema.metadata[b"prevalens"])["cell"]["seed"] == 0


def test_files_are_small(store: Store, make_result: Make) -> None:
    store.write(make_result(n_samples=10_000))
    raw = sum(values.nbytes for values in make_result(n_samples=10_000).columns.values())
    assert result_path(store, make_result()).stat().st_size < raw


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_cut_off_file_is_named(store: Store, make_result: Make, share: float) -> None:
    store.write(make_result())
    path = result_path(store, make_result())
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(FormatError, match=rf"^The result .*{path.name} cannot be read; delete it"):
        store.read(path.stem)


def test_every_changed_byte_of_the_data_is_noticed(store: Store, make_result: Make) -> None:
    store.write(make_result())
    path = result_path(store, make_result())
    content = path.read_bytes()
    table = pq.read_table(path)
    expected = {name: table[name].to_numpy() for name in table.column_names}
    noticed = 0
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        try:
            stored = store.read(path.stem)
        except FormatError:
            noticed += 1
        else:
            # Parts of the format that carry no information; the figures are what they were.
            for name, values in expected.items():
                np.testing.assert_array_equal(stored.columns[name], values)
    assert noticed > 100


def test_a_figure_that_was_changed_is_noticed(store: Store, make_result: Make) -> None:
    store.write(make_result())
    path = result_path(store, make_result())
    table = pq.read_table(path)
    better = table.set_column(0, "ae", [np.zeros(12, dtype=np.float32)])
    pq.write_table(better.replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(FormatError, match="has been changed since it was written"):
        store.read(path.stem)


def test_a_file_under_a_wrong_name_is_noticed(store: Store, make_result: Make) -> None:
    store.write(make_result())
    path = result_path(store, make_result())
    path.rename(path.with_stem("f" * 32))
    with pytest.raises(FormatError, match=r"f{32}.parquet has been changed"):
        store.read("f" * 32)


def test_an_unknown_result_is_refused(store: Store) -> None:
    with pytest.raises(InputError, match="has no result abc"):
        store.read("abc")


def test_a_failure_is_not_a_result(store: Store, make_result: Make) -> None:
    result = make_result()
    log = store.write_failure(result.key, Failure(result.cell, "Odd.", "Traceback: Odd."))
    assert result.key not in store
    assert "Traceback: Odd." in log.read_text()
    assert str(result.cell) in log.read_text()
    store.write(result)
    assert not log.exists()


def test_crash_before_renaming_leaves_no_result(
    store: Store, make_result: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(make_result(0))

    def crash(*_: object) -> None:
        raise SystemExit

    monkeypatch.setattr(Path, "replace", crash)
    with pytest.raises(SystemExit):
        store.write(make_result(1))
    assert store.keys() == [make_result(0).key]


def test_half_written_files_are_neither_results_nor_kept(store: Store, make_result: Make) -> None:
    store.write(make_result())
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    name = f".abc.parquet.{module.sweep.__globals__['_host']()}.{process.pid}.ff.unfinished"
    (store.folder / "cells" / name).write_bytes(b"PAR1")
    assert store.keys() == [make_result().key]
    assert store.clean() == 1
    assert len(list((store.folder / "cells").iterdir())) == 1


def test_two_processes_on_one_store_do_not_harm_each_other(store: Store, make_result: Make) -> None:
    results = [make_result(seed) for seed in range(3)]
    writers = []
    for _ in range(2):
        writer = os.fork()
        if writer == 0:
            for _ in range(5):
                for result in results:
                    store.write(result)
            os._exit(0)
        writers.append(writer)
    ended: dict[int, int] = {}
    while len(ended) < 2:
        store.clean()
        for key in store:
            store.read(key)
        for writer in set(writers) - ended.keys():
            process, status = os.waitpid(writer, os.WNOHANG)
            if process:
                ended[writer] = status
        time.sleep(0.01)
    assert set(ended.values()) == {0}
    assert store.keys() == sorted(result.key for result in results)
    assert [path.suffix for path in (store.folder / "cells").iterdir()] == [".parquet"] * 3


def test_records_are_means_by_regime(store: Store, make_result: Make) -> None:
    result = make_result()
    store.write(result)
    records = {(record.metric, record.shift): record for record in store.records()}
    assert len(records) == 8
    errors = result.columns["ae"].astype(np.float64)
    assert records["ae", "all"].value == pytest.approx(errors.mean(), rel=1e-12)
    assert records["ae", "mid"].value == pytest.approx(errors[4:8].mean(), rel=1e-12)
    assert records["ae", "mid"].n_samples == 4
    assert records["rae", "low"].method == "lr+pcc"
    assert records["rae", "low"].data_sha == result.data_sha


def test_without_pyarrow_the_way_out_is_named(
    store: Store, make_result: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "pa", None)
    with pytest.raises(InputError, match=r'pip install "prevalens\[frames\]"'):
        store.write(make_result())


def test_usage_that_is_missing_or_damaged_is_not_needed(store: Store, make_result: Make) -> None:
    result = make_result()
    store.write(result)
    path = store.folder / "usage" / f"{result.key}.json"
    path.write_text("{")
    assert store.read(result.key).usage is None
    path.unlink()
    assert store.read(result.key).usage is None


def test_a_store_that_could_keep_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    for folder in (file, file / "results"):
        with pytest.raises(InputError, match=r"cannot be kept in .*: .*notes.txt is a file"):
            Store(folder).check()
    new = tmp_path / "a" / "b"
    Store(new).check()
    assert not new.parent.exists()
    monkeypatch.setattr("prevalens.experiments.store.os.access", lambda *_: False)
    with pytest.raises(InputError, match="no right to write there"):
        Store(new).check()
