"""What the wheel must do with ``[all]``: a test per extra, run by ``release/try_wheel.py``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import matplotlib as mpl
import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pytest

import prevalens
from prevalens import parse
from prevalens.datasets.tickets import tickets
from prevalens.engines import summarise_files_dask
from prevalens.model import Model, quantify_files
from prevalens.solvers import compiled

DATA = tickets(400, 80, months=1)
TEXTS = list(DATA.test.X)


@pytest.fixture(scope="module")
def model() -> Model:
    train = DATA.train
    return Model.fit(train.X, train.Y, labels=train.labels, method="lr(C=10)+pacc")


def test_fast() -> None:
    assert compiled.available()
    assert hasattr(compiled._add_product, "nopython_signatures")


def test_frames(model: Model, tmp_path: Path) -> None:
    expected = np.asarray(model.quantify(TEXTS).point)
    frames = {"pandas": pd.DataFrame({"text": TEXTS}), "polars": pl.DataFrame({"text": TEXTS})}
    for kind, frame in frames.items():
        estimate = prevalens.quantify(model, frame)
        np.testing.assert_allclose(np.squeeze(estimate.point), expected, atol=1e-9)
        assert type(model.quantify(TEXTS).to_frame(kind)).__module__.startswith(kind)
    path = tmp_path / "batch.parquet"
    frames["pandas"].to_parquet(path)
    np.testing.assert_allclose(quantify_files(model, [path]).point[0], expected, atol=1e-9)


def test_excel(model: Model, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in ["text", *TEXTS]:
        book.active.append([row])
    book.save(tmp_path / "batch.xlsx")
    found = quantify_files(model, [tmp_path / "batch.xlsx"])
    np.testing.assert_allclose(found.point[0], model.quantify(TEXTS).point, atol=1e-9)


def test_plot(model: Model, tmp_path: Path) -> None:
    mpl.use("Agg")
    estimate = model.quantify(TEXTS)
    estimate.plot(reference=model.prevalence).figure.savefig(tmp_path / "chart.png")
    assert estimate.plot(backend="altair").to_dict()


@pytest.mark.parametrize("method", ["lr+quapy:HDy", "lr+pav(solver=qp)"])
def test_quapy_and_qp(method: str) -> None:
    data = prevalens.datasets.synthetic(n_train=300, n_test=100, n_labels=3, random_state=0)
    quantifier = parse(method).set_params(uncertainty=None).fit(data.train.X, data.train.Y)
    assert np.abs(quantifier.quantify(data.test.X) - data.test.Y.mean(axis=0)).max() < 0.25


def test_dask(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "batch.csv"
    pd.DataFrame({"text": TEXTS}).to_csv(path, index=False)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        summary = summarise_files_dask(model, [path], cluster.scheduler_address)
    assert summary.sizes.tolist() == [len(TEXTS)]


@pytest.fixture
def server(model: Model, tmp_path: Path) -> Iterator[str]:
    model.save(tmp_path / "tickets.prevalens")
    words = [sys.executable, "-u", "-m", "prevalens", "serve", "tickets.prevalens", "--port", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=tmp_path, stderr=pipe, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if address := re.search(r"http://[\w.]+:\d+", line):
                yield address[0]
                break
        else:
            pytest.fail("the server told no address")
        process.terminate()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the service needs processes that can fork")
def test_serve(server: str) -> None:
    with urllib.request.urlopen(f"{server}/healthz", timeout=30) as answer:
        assert answer.status == 200
    request = urllib.request.Request(
        f"{server}/v1/models/tickets/quantify",
        data=json.dumps({"texts": TEXTS[:20]}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    assert found["labels"] == list(DATA.train.labels)
