"""Dask: the summary is that of this process, also if a worker is killed in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from threadpoolctl import threadpool_limits

from prevalens.__main__ import cli
from prevalens.batches import VALUES
from prevalens.catalogue import parse
from prevalens.cluster import computing_on_cluster
from prevalens.engines import summarise_dask, summarise_files_dask
from prevalens.errors import InputError, PrevalensError
from prevalens.model import Model
from prevalens.model.progress import Step
from prevalens.model.summarise import summarise_files
from prevalens.summary import Summary

dask = pytest.importorskip("dask", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="Dask is not installed")


def check_same(found: Summary, expected: Summary) -> None:
    assert sorted(found.names) == sorted(expected.names)
    found = found[np.argsort(found.names)]
    expected = expected[np.argsort(expected.names)]
    np.testing.assert_array_equal(found.sizes, expected.sizes)
    np.testing.assert_allclose(found.mean(VALUES), expected.mean(VALUES), rtol=1e-12)


def test_files_on_a_cluster_give_the_summary_of_this_process(
    cluster: Any, model: Model, files: list[Path]
) -> None:
    address = cluster.scheduler_address
    found = summarise_files_dask(model, files, address, by="site")
    local = summarise_files(model, files, by="site")
    assert found.to_bytes() == local.to_bytes()
    assert summarise_files_dask(model, files, address).names == ("0", "1", "2", "3")


def test_frames_bags_and_delayed_parts(cluster: Any, model: Model, frame: pd.DataFrame) -> None:
    dd = pytest.importorskip("dask.dataframe")
    bag, delayed = pytest.importorskip("dask.bag"), pytest.importorskip("dask").delayed
    parts = [frame.iloc[:500], frame.iloc[500:501], frame.iloc[501:501], frame.iloc[501:]]
    sources = {
        "frame": dd.from_pandas(frame, npartitions=5),
        "bag": bag.from_sequence(frame.to_dict("records"), npartitions=3),
        "delayed": [delayed(part) for part in parts],
    }
    expected = model.summarise(frame, frame["site"])
    with distributed.Client(cluster) as client:
        for source in sources.values():
            check_same(summarise_dask(model, source, by="site", client=client), expected)
        whole = summarise_dask(model, sources["frame"])
        assert whole.names == ("items",)
    # Without a cluster, in threads of this process.
    check_same(summarise_dask(model, sources["delayed"], by="site"), expected)


def test_what_cannot_be_summarised_is_refused(
    cluster: Any, model: Model, frame: pd.DataFrame
) -> None:
    dd = pytest.importorskip("dask.dataframe")
    source = dd.from_pandas(frame, npartitions=2)
    with distributed.Client(cluster) as client:
        with pytest.raises(InputError, match=r"the Dask frame has no column 'stie'.*'site'"):
            summarise_dask(model, source, by="stie", client=client)
        broken = dd.from_pandas(frame.assign(f1="many"), npartitions=2)
        with pytest.raises(PrevalensError, match=r"partition 0, row 1.*'f1' holds numbers"):
            summarise_dask(model, broken, client=client)
    with pytest.raises(InputError, match="a bag or a list of delayed parts; got int"):
        summarise_dask(model, 3)
    with pytest.raises(InputError, match="cannot read the standard input"):
        summarise_files_dask(model, "-", cluster.scheduler_address)


@pytest.fixture(scope="module")
def mortal() -> Iterator[Any]:
    """A cluster whose workers may be killed; they are started again."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster:
        yield cluster


def processes(cluster: Any) -> list[int]:
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=30)
        return list(client.run(os.getpid).values())


def test_a_killed_worker_loses_nothing_and_counts_nothing_twice(
    mortal: Any, model: Model, frame: pd.DataFrame, tmp_path: Path
) -> None:
    files = [tmp_path / f"{number:02}.csv" for number in range(24)]
    for number, path in enumerate(files):
        frame.iloc[number::24].to_csv(path, index=False)
    killed: list[int] = []
    workers = processes(mortal)

    def kill_one(step: Step) -> None:
        # Some summaries are fetched; others are done, being made, or not begun.
        if step.done == 3 and not killed:
            os.kill(workers[0], signal.SIGKILL)
            killed.append(workers[0])
            # By default the client may try for 30 s to fetch a summary from the dead worker.
            assert dask.config.get("distributed.comm.timeouts.connect") == "5s"

    address = mortal.scheduler_address
    found = summarise_files_dask(model, files, address, by="site", progress=kill_one)
    assert killed
    assert found.to_bytes() == summarise_files(model, files, by="site").to_bytes()


def test_commands_on_a_cluster(
    cluster: Any, model: Model, files: list[Path], tmp_path: Path
) -> None:
    model.save(tmp_path / "m.prevalens")
    batches = list(map(str, files))
    where = ("--scheduler", cluster.scheduler_address)
    run("summarise", tmp_path / "m.prevalens", *batches, *where, "-o", tmp_path / "a.summary")
    assert Summary.load(tmp_path / "a.summary").n_items == 1200
    by = ("--by-time", "day")
    run("quantify", tmp_path / "m.prevalens", *batches, *by, *where, "-o", tmp_path / "d.csv")
    run("quantify", tmp_path / "m.prevalens", *batches, *by, "-o", tmp_path / "here.csv")
    # The notes on items, such as unusual words, need the items.
    tables = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("d", "here"))
    found, expected = (table.drop(columns="notes") for table in tables)
    pd.testing.assert_frame_equal(found, expected, rtol=1e-12)
    for options, sentence in (
        (("--labelled", files[0]), "--labelled needs the items"),
        (("--jobs", 2, "-o", tmp_path / "b.summary"), "--jobs 2 starts processes"),
    ):
        command = "quantify" if "--labelled" in options else "summarise"
        with pytest.raises(PrevalensError, match=sentence):
            run(command, tmp_path / "m.prevalens", *batches, *where, *options)


def test_a_killed_client_leaves_nothing_half_written(
    cluster: Any, model: Model, files: list[Path], tmp_path: Path
) -> None:
    model.save(tmp_path / "m.prevalens")
    output, clients = tmp_path / "a.summary", set(cluster.scheduler.clients)
    words = ("summarise", tmp_path / "m.prevalens", *files, "--by", "site", "-o", output)
    where = ("--scheduler", cluster.scheduler_address)
    process = subprocess.Popen(
        [sys.executable, "-m", "prevalens", *map(str, (*words, *where))],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + 60
    while not set(cluster.scheduler.clients) - clients and time.monotonic() < end:
        time.sleep(0.01)
    assert process.poll() is None
    process.kill()
    process.wait()
    assert [path.name for path in tmp_path.iterdir()] == ["m.prevalens"]
    run(*words, *where)
    assert Summary.load(output).to_bytes() == summarise_files(model, files, by="site").to_bytes()


def labelled(n_items: int = 240) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_items, 5))
    return X, (X[:, :3] + rng.normal(size=(n_items, 3)) > 0.5).astype(int)


@pytest.mark.parametrize("method", ["lr+pacc", "auto(time_budget=5)"])
def test_a_fit_on_a_cluster_is_that_of_this_process(cluster: Any, method: str) -> None:
    X, Y = labelled()
    with threadpool_limits(1):
        expected = parse(method).fit(X, Y)
    with computing_on_cluster(cluster.scheduler_address):
        found = parse(method).fit(X, Y)
    assert found.fingerprint_ == expected.fingerprint_
    np.testing.assert_array_equal(
        found.quantify(X, interval=0.9).upper, expected.quantify(X, interval=0.9).upper
    )


def test_a_fit_goes_on_after_the_death_of_a_worker(mortal: Any) -> None:
    X, Y = labelled()
    workers, killed = processes(mortal), []

    def kill_one() -> None:
        if not killed:
            killed.append(workers[0])
            os.kill(workers[0], signal.SIGKILL)

    with computing_on_cluster(mortal.scheduler_address, waiting=kill_one):
        found = parse("stack(lr)+pacc").fit(X, Y)
    assert killed
    with threadpool_limits(1):
        assert found.fingerprint_ == parse("stack(lr)+pacc").fit(X, Y).fingerprint_


def test_fit_and_compare_take_a_scheduler(cluster: Any, tmp_path: Path) -> None:
    X, Y = labelled(200)
    table = pd.DataFrame(np.hstack([X, Y]), columns=[*"vwxyz", *"abc"])
    table.astype(dict.fromkeys("abc", int)).to_csv(tmp_path / "t.csv", index=False)
    words = (tmp_path / "t.csv", "--labels", "a,b,c")
    models, boards = [], []
    for name, where in (("here", ()), ("there", ("--scheduler", cluster.scheduler_address))):
        output = tmp_path / f"{name}.prevalens"
        with threadpool_limits(1):
            run("fit", *words, "--method", "lr+pacc", "-o", output, *where)
            models.append(Model.load(output))
            board = tmp_path / f"{name}.csv"
            methods = ("--methods", "naive;lr+pcc;lr+pacc;mlknn+lpq;forest+cc", "--folds", 2)
            run("compare", *words, *methods, "--samples", 30, "-o", board, *where)
            boards.append(pd.read_csv(board).drop(columns="seconds"))
    assert models[0].quantifier.fingerprint_ == models[1].quantifier.fingerprint_
    pd.testing.assert_frame_equal(*boards, check_exact=True)


def run(*words: object) -> None:
    done = CliRunner().invoke(cli, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
