"""One function for all sources, and one answer of all engines."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import prevalens
from prevalens.engines import summarise, summarise_dask
from prevalens.engines.spark import summarise_batches
from prevalens.errors import InputError
from prevalens.model import Model
from prevalens.summary import Summary, add_up


def estimates(result: Any) -> np.ndarray[Any, Any]:
    rows = result.to_rows()
    return np.array([[row[name] for name in ("prevalence", "lower", "upper")] for row in rows])


def test_files_frames_streams_and_summaries_have_one_answer(
    model: Model, frame: pd.DataFrame, files: list[Path], tmp_path: Path
) -> None:
    model.save(tmp_path / "m.prevalens")
    expected = prevalens.quantify(tmp_path / "m.prevalens", files, by="site")
    summary = summarise(model, files, by="site")
    summary.save(tmp_path / "a.summary")
    sources: list[Any] = [frame, pa.Table.from_pandas(frame).to_reader(), list(map(str, files))]
    for source in sources:
        found = prevalens.quantify(model, source, by="site")
        assert found.batches == expected.batches == ("north", "south", "west")
        np.testing.assert_allclose(estimates(found), estimates(expected), atol=1e-12)
    for source in (summary, tmp_path / "a.summary", [tmp_path / "a.summary"]):
        found = prevalens.quantify(model, source)
        np.testing.assert_allclose(estimates(found), estimates(expected), atol=1e-12)
        with pytest.raises(InputError, match="by_time needs the items"):
            prevalens.quantify(model, source, by_time="day")


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
def test_dask_and_spark_frames(spark: Any, model: Model, frame: pd.DataFrame) -> None:
    dd = pytest.importorskip("dask.dataframe")
    expected = estimates(prevalens.quantify(model, frame, by_time="day"))
    for source in (
        dd.from_pandas(frame, npartitions=3),
        spark.createDataFrame(pa.Table.from_pandas(frame)).repartition(3),
    ):
        found = prevalens.quantify(model, source, by_time="day")
        assert found.batches == ("2024-01", "2024-02", "2024-03", "2024-04")
        np.testing.assert_allclose(estimates(found), expected, atol=1e-12)


def of_streams(model: Model, parts: list[pd.DataFrame]) -> Summary:
    return add_up(summarise(model, pa.Table.from_pandas(part), by="site") for part in parts)


def of_one_stream(model: Model, parts: list[pd.DataFrame]) -> Summary:
    batches = [
        batch
        for part in parts
        for batch in pa.Table.from_pandas(part, preserve_index=False).to_batches()
    ]
    return summarise(
        model, pa.RecordBatchReader.from_batches(batches[0].schema, batches), by="site"
    )


def of_dask(model: Model, parts: list[pd.DataFrame]) -> Summary:
    delayed = pytest.importorskip("dask").delayed
    return summarise_dask(model, [delayed(part) for part in parts], by="site")


def of_spark_partitions(model: Model, parts: list[pd.DataFrame]) -> Summary:
    how = {"by": "site", "by_time": None, "freq": None, "date_form": None}
    rows = [
        row
        for part in parts
        for row in summarise_batches(
            model, pa.Table.from_pandas(part).to_batches(), how, prevalens.__version__
        )
    ]
    return add_up(Summary.from_bytes(row["summary"][0].as_py()) for row in rows)


@pytest.mark.parametrize("engine", [of_streams, of_one_stream, of_dask, of_spark_partitions])
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cuts=st.lists(st.integers(1, 1199), max_size=6), data=st.data())
def test_any_partition_in_any_order_on_any_engine_gives_the_same_summary(
    model: Model,
    frame: pd.DataFrame,
    engine: Callable[[Model, list[pd.DataFrame]], Summary],
    cuts: list[int],
    data: Any,
) -> None:
    edges = [0, *sorted(set(cuts)), len(frame)]
    parts = [frame.iloc[start:stop] for start, stop in pairwise(edges)]
    found = engine(model, data.draw(st.permutations(parts)))
    expected = model.summarise(frame, frame["site"])
    found = found[np.argsort(found.names)]
    assert found.names == expected.names
    np.testing.assert_array_equal(found.sizes, expected.sizes)
    for statistic in model.quantifier.summed_statistics():
        np.testing.assert_allclose(found.mean(statistic), expected.mean(statistic), rtol=1e-12)
