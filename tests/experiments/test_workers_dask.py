"""Cells on Dask clusters of real processes."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from prevalens.datasets.home import DataNotFoundError
from prevalens.datasets.registry import lookup
from prevalens.experiments import Plan, Store, dask_executor, run_plan
from prevalens.experiments import workers as module
from prevalens.validation import InputError

distributed = pytest.importorskip("distributed")

Wait = Callable[[Callable[[], Any]], Any]

#: Makes a process one without prevalens.
HIDE = """
class Hide:
    def find_spec(name, path=None, target=None):
        if name == "prevalens":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hide)
"""
#: A process of a cluster that runs some code before.
PROCESS = "import sys\n{before}\nfrom distributed.cli.dask_{kind} import main; main()"


def contents(store: Store) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (store.folder / "cells").glob("[!.]*")}


@contextmanager
def process(*arguments: Any, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process of Python that is killed at the end."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, *map(str, arguments)]
    running = subprocess.Popen(command, **quiet | options)
    try:
        yield running
    finally:
        running.kill()
        running.wait()


@contextmanager
def started_scheduler(folder: Path, wait_for: Wait, *, before: str = "") -> Iterator[str]:
    """A scheduler that runs some code before; yields its address."""
    file = folder / "scheduler.json"
    options = ("--host", "127.0.0.1", "--port", 0, "--no-dashboard", "--scheduler-file", file)
    code = PROCESS.format(before=before, kind="scheduler")
    with process("-c", code, *options, cwd=folder):
        wait_for(lambda: file.is_file() and file.stat().st_size)
        yield json.loads(file.read_text())["address"]


@pytest.fixture(scope="module")
def scheduler_address(tmp_path_factory: pytest.TempPathFactory, wait_for: Wait) -> Iterator[str]:
    with started_scheduler(tmp_path_factory.mktemp("scheduler"), wait_for) as address:
        yield address


@pytest.fixture
def scheduler(scheduler_address: str, wait_for: Wait) -> str:
    """The address of a scheduler without workers; it has noticed the end of former ones."""
    wait_for(lambda: workers(scheduler_address) == 0)
    return scheduler_address


@contextmanager
def worker(scheduler: str, folder: Path, *, before: str = "", **env: str) -> Iterator[int]:
    """A worker of the scheduler that runs some code before; yields the id of its process."""
    options = ("--nthreads", 1, "--no-nanny", "--no-dashboard", "--local-directory", folder)
    code, env = PROCESS.format(before=before, kind="worker"), {**os.environ, **env}
    with process("-c", code, scheduler, *options, env=env, cwd=folder) as running:
        yield running.pid


def workers(scheduler: str) -> int:
    with distributed.Client(scheduler, set_as_default=False) as client:
        return len(client.nthreads())


@pytest.fixture
def long_plan(content: dict[str, Any]) -> Plan:
    """Four cells that take a while, so that there is time to kill."""
    content["protocols"] = [{"name": "ml-app", "more_than": 8000}]
    content["methods"] = [{"expression": "lr+sld"}, {"expression": "lr+pacc"}]
    return Plan.from_dict(content | {"seeds": [0, 1]})


@pytest.mark.slow
def test_a_killed_worker_costs_no_result(
    long_plan: Plan, store: Store, tmp_path: Path, scheduler: str, wait_for: Wait
) -> None:
    expected = Store(tmp_path / "expected")
    run_plan(long_plan, expected, progress=False)
    with worker(scheduler, tmp_path) as killed, worker(scheduler, tmp_path):
        wait_for(lambda: workers(scheduler) == 2)
        done_before = []

        def kill() -> None:
            wait_for(lambda: len(store))
            os.kill(killed, signal.SIGKILL)
            done_before.append(len(store))

        killer = threading.Thread(target=kill)
        killer.start()
        with dask_executor(scheduler, cells=long_plan.cells()) as executor:
            summary = run_plan(long_plan, store, executor=executor, progress=False)
        killer.join()
    assert 1 <= done_before[0] < 4
    assert (summary.computed, summary.failed) == (4, ())
    assert contents(store) == contents(expected)


def test_a_local_cluster_computes_the_same_and_prints_nothing(
    plan: Plan, store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with dask_executor("local") as executor:
        executor.submit(print, "chatter", flush=True).result()
        run_plan(plan, store, executor=executor, progress=False)
    assert capfd.readouterr().out == ""
    expected = Store(tmp_path / "expected")
    run_plan(plan, expected, progress=False)
    assert contents(store) == contents(expected)


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        (HIDE, "has no prevalens; install prevalens"),
        ("import prevalens._version as v; v.__version__ = '0.0.9'", "has prevalens 0.0.9, but"),
        ("import platform; platform.python_version = lambda: '3.0'", "runs Python 3.0, but this "),
        ("", "has other data of 'emotions' than this process; copy the files, or set PREVALENS"),
    ],
)
def test_workers_that_would_compute_something_else_are_refused(
    before: str,
    sentence: str,
    content: dict[str, Any],
    scheduler: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for home in ("here", "there"):
        for file in lookup("emotions").layouts[0].files:
            path = tmp_path / home / lookup("emotions").folder / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(home)
    monkeypatch.setenv("PREVALENS_DATA", str(tmp_path / "here"))
    cells = Plan.from_dict(content | {"datasets": ["emotions"]}).cells()
    there = str(tmp_path / "there")
    with (
        worker(scheduler, tmp_path, before=before, PREVALENS_DATA=there),
        pytest.raises(InputError, match=f"The Dask worker at tcp://.* {re.escape(sentence)}"),
        dask_executor(scheduler, cells=cells),
    ):
        pass


def test_a_worker_that_cannot_read_the_data_is_refused() -> None:
    error = DataNotFoundError("The dataset 'emotions' is not in /there; get it.")
    with pytest.raises(InputError, match="The worker cannot compute the plan: The dataset 'emo"):
        module._check_state("The worker", error, ({}, {}))


def test_a_scheduler_without_the_package_is_refused(tmp_path: Path, wait_for: Wait) -> None:
    with (
        started_scheduler(tmp_path, wait_for, before=HIDE) as address,
        pytest.raises(InputError, match=f"The Dask scheduler at {address} has no prevalens; ins"),
        dask_executor(address),
    ):
        pass


def test_a_scheduler_without_workers_is_refused(
    scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prevalens.cluster._FIRST_WORKER", 0.2)
    with (
        pytest.raises(InputError, match=f"{scheduler} has no worker; start one: dask worker tcp"),
        dask_executor(scheduler),
    ):
        pass


@contextmanager
def listening(answer: bytes) -> Iterator[str]:
    """The address of a port where something else than Dask listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                connection, _ = server.accept()
                connection.sendall(answer)
                # Open until the other side gives up.
                connection.recv(10**6)
                connection.recv(10**6)
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_another_service_is_no_scheduler(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prevalens.cluster._ANSWER", 1)
    with (
        listening(answer) as address,
        pytest.raises(InputError, match=f"No Dask scheduler answers at '{address}' \\(.*; start"),
        dask_executor(address),
    ):
        pass


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        # Whichever limit ends first, ours or that of Dask.
        ("tcp://127.0.0.1:1", "(no answer within 1 seconds|Timed out)"),
        ("host", "missing port number in address 'host'"),
        ("ftp://host:1", "unknown address scheme 'ftp'"),
    ],
)
def test_wrong_addresses(address: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prevalens.cluster._ANSWER", 1)
    expected = re.escape(f"No Dask scheduler answers at '{address}' (") + reason
    with pytest.raises(InputError, match=expected), dask_executor(address):
        pass


def test_parts_of_a_script_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prevalens.experiments.workers.own_modules", lambda: ("__main__",))
    with (
        pytest.raises(InputError, match="cannot see parts that are registered in a script"),
        dask_executor("local"),
    ):
        pass


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(InputError, match=re.escape('pip install "prevalens[dask]"')),
        dask_executor("local"),
    ):
        pass


def test_dask_is_loaded_only_when_it_is_used() -> None:
    code = "import sys, prevalens.cli.bench; assert 'distributed' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
