"""Arrow streams: every source gives the summary of its items, and only needed columns are read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import psutil
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from prevalens import Quantifier
from prevalens.aggregators import PCC
from prevalens.batches import VALUES
from prevalens.engines import summarise_stream
from prevalens.engines.arrow import ArrowTable
from prevalens.errors import InputError
from prevalens.model import Model


def duckdb_relation(frame: pd.DataFrame) -> Any:
    return pytest.importorskip("duckdb").sql("select * from frame")


def table(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame)


SOURCES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "polars, lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": table,
    "reader": lambda frame: table(frame).to_reader(max_chunksize=100),
    "dataset": lambda frame: ds.dataset(table(frame)),
    "scanner": lambda frame: ds.dataset(table(frame)).scanner(),
    "DuckDB": duckdb_relation,
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("grouping", [{"by": "site"}, {"by_time": "day"}, {}])
def test_every_source_gives_the_summary_of_its_items(
    model: Model, frame: pd.DataFrame, name: str, grouping: dict[str, str]
) -> None:
    found = summarise_stream(model, SOURCES[name](frame), **grouping)
    groups = {"site": frame["site"], "day": frame["day"].dt.strftime("%Y-%m")}
    column = next(iter(grouping.values()), None)
    expected = model.summarise(frame, None if column is None else groups[column])
    assert found.names == expected.names if grouping else found.names == ("items",)
    np.testing.assert_array_equal(found.sizes, expected.sizes)
    np.testing.assert_allclose(found.mean(VALUES), expected.mean(VALUES), rtol=1e-12)


def test_columns_that_are_not_needed_are_not_read(model: Model, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    query = "select 0.5 f0, 0.1 f1, 0.2 f2, 0.3 f3, error('it was read') as unread from range(20)"
    assert summarise_stream(model, duckdb.sql(query)).n_items == 20
    lazy = pl.LazyFrame({f"f{number}": [0.5] * 20 for number in range(4)}).with_columns(
        unread=pl.lit("x").str.to_integer()
    )
    assert summarise_stream(model, lazy).n_items == 20


def test_a_stream_is_read_one_batch_at_a_time(model: Model) -> None:
    """Batches that would take 400 MB together do not grow the process by more than a few."""
    rows = 50_000
    schema = pa.schema([(f"f{number}", pa.float64()) for number in range(4)])
    schema = schema.append(pa.field("unread", pa.string()))
    process, held = psutil.Process(), []

    def batches() -> Any:
        numbers = np.random.default_rng(0).normal(size=rows)
        for _ in range(8):
            held.append(process.memory_info().rss)
            yield pa.record_batch([*[pa.array(numbers)] * 4, pa.array(["x" * 1000] * rows)], schema)

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    assert summarise_stream(model, reader).n_items == 8 * rows
    assert max(held[3:]) - held[2] < 150e6


def test_what_is_no_stream_is_refused(model: Model) -> None:
    with pytest.raises(InputError, match=r"Items come from files, data frames.*got int"):
        summarise_stream(model, 3)
    with pytest.raises(InputError, match="items has no column 'f1'"):
        summarise_stream(model, pa.table({"f0": [1.0]}).to_reader())
    empty = pa.table({f"f{number}": pa.array([], pa.float64()) for number in range(4)})
    with pytest.raises(InputError, match="There are no items"):
        summarise_stream(model, empty.to_reader())


def test_cells_that_are_no_numbers_are_named_by_their_row(model: Model) -> None:
    columns: dict[str, Any] = {f"f{number}": [1.0, 2.0] for number in range(4)}
    columns["f2"] = ["1", "many"]
    with pytest.raises(InputError, match=r"items, row 2.*'f2' holds numbers.*'many'"):
        summarise_stream(model, pa.table(columns).to_reader())


def test_large_batches_are_cut_into_chunks() -> None:
    chunks = list(ArrowTable(pa.table({"a": range(10)}).to_reader()).chunks(chunk_rows=4))
    assert [(chunk.first, len(chunk)) for chunk in chunks] == [(1, 4), (5, 4), (9, 2)]


class _Broken(OneVsRestClassifier):
    def predict_proba(self, X: Any) -> Any:
        return np.where(X[:, :1] > 100, np.nan, super().predict_proba(X))


def test_scores_that_are_no_numbers_are_refused_in_a_sentence() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["x", "y"])
    method = Quantifier(_Broken(LogisticRegression()), PCC(), uncertainty=None)
    model = Model.fit(frame, (frame > 0).astype(int), columns=["x", "y"], method=method)
    frame.loc[3, "x"] = 1e6
    table = pa.Table.from_pandas(frame)
    with pytest.raises(InputError, match="Posteriors must lie between 0 and 1; got nan for item 3"):
        summarise_stream(model, table)
