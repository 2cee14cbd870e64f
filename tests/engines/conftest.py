"""Items, a model of them, and clusters that are started once."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from prevalens.model import Model

LABELS = ["a", "b", "c"]


def items(n_rows: int, seed: int) -> pd.DataFrame:
    """Four features of which labels depend, a column that no model reads, and two groupings."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    frame = pd.DataFrame(X, columns=["f0", "f1", "f2", "f3"])
    for number, label in enumerate(LABELS):
        frame[label] = (X[:, number] + rng.normal(size=n_rows) > 0.5).astype(int)
    frame["unread"] = "x" * 20
    frame["site"] = rng.choice(["north", "south", "west"], n_rows)
    frame["day"] = pd.Timestamp("2024-01-05") + pd.to_timedelta(rng.integers(0, 90, n_rows), "D")
    return frame


@pytest.fixture(scope="session")
def model() -> Model:
    train = items(400, 0)
    features = [f"f{number}" for number in range(4)]
    return Model.fit(train[features], train[LABELS], columns=features, method="lr+pacc")


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    return items(1200, 1)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as started:
        yield started


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql", reason="Spark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not installed")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    folder = tmp_path_factory.mktemp("spark")
    builder = sql.SparkSession.builder.master("local[2]").appName("prevalens")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder),
        "spark.local.dir": str(folder),
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def files(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("files")
    paths = [folder / f"{number}.csv" for number in range(4)]
    for number, path in enumerate(paths):
        frame.iloc[number::4].to_csv(path, index=False)
    return paths
