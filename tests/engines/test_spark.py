"""Spark: only summaries come back, and they are those of the items."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import prevalens
from prevalens import __version__
from prevalens.batches import VALUES
from prevalens.engines import partial_summaries, summarise_spark
from prevalens.engines.spark import summarise_batches
from prevalens.errors import InputError
from prevalens.model import Model
from prevalens.summary import Summary

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")

SETTINGS = {"by": "site", "by_time": None, "freq": None, "date_form": None}


def test_partitions_give_the_summary_of_their_items(
    spark: Any, model: Model, frame: pd.DataFrame
) -> None:
    # More partitions than items in the last, so that some are empty.
    source = spark.createDataFrame(frame).repartition(5)
    for by, groups in (("site", frame["site"]), (None, None)):
        found = summarise_spark(model, source, by=by)
        expected = model.summarise(frame, groups)
        found = found[np.argsort(found.names)]
        assert found.names == (expected.names if by else ("items",))
        np.testing.assert_array_equal(found.sizes, expected.sizes)
        np.testing.assert_allclose(found.mean(VALUES), expected.mean(VALUES), rtol=1e-12)
    rows = partial_summaries(model, source, by="site").collect()
    assert len(rows) == 5
    assert max(len(row["summary"]) for row in rows) < 20_000


def test_errors_of_workers_are_one_sentence(spark: Any, model: Model, frame: pd.DataFrame) -> None:
    source = spark.createDataFrame(frame.head(20).assign(f2="many"))
    with pytest.raises(InputError, match=r"^items, row 1: the column 'f2' holds numbers"):
        summarise_spark(model, source)
    with pytest.raises(InputError, match=r"the Spark frame has no column 'stie'.*'site'"):
        summarise_spark(model, source, by="stie")


def test_a_partition_becomes_one_row(model: Model, frame: pd.DataFrame) -> None:
    batches = pa.Table.from_pandas(frame).to_batches(max_chunksize=100)
    (row,) = summarise_batches(model, iter(batches), SETTINGS, __version__)
    assert row.num_rows == 1
    assert Summary.from_bytes(row["summary"][0].as_py()).n_items == len(frame)
    assert list(summarise_batches(model, iter([]), SETTINGS, __version__)) == []
    assert list(summarise_batches(model, iter([batches[0].slice(0, 0)]), SETTINGS, "1")) == []


def test_workers_of_another_version_are_refused(model: Model, frame: pd.DataFrame) -> None:
    batches = pa.Table.from_pandas(frame).to_batches()
    (row,) = summarise_batches(model, iter(batches), SETTINGS, "99.0")
    assert "but the driver has 99.0; install the same" in row["error"][0].as_py()
    assert row["summary"][0].as_py() is None


@pytest.mark.slow
def test_the_code_of_the_documentation_runs(
    spark: Any, model: Model, frame: pd.DataFrame, tmp_path: Path
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n([^`]*summarise_spark[^`]*)```", page)
    (tmp_path / "tickets").mkdir()
    frame.assign(month="2026-01").to_parquet(tmp_path / "tickets" / "part.parquet")
    model.save(tmp_path / "model.prevalens")
    for name, own in (("s3://tickets/", "tickets"), ("model.prevalens", "model.prevalens")):
        code = code.replace(name, str(tmp_path / own))
    names: dict[str, Any] = {"spark": spark, "prevalens": prevalens}
    exec(code, names)
    assert names["summary"].n_items == len(frame)
