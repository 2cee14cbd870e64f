"""Clusters that cannot take part are refused in a sentence, and soon."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prevalens import cluster
from prevalens.cluster import connected
from prevalens.errors import InputError

distributed = pytest.importorskip("distributed", reason="Dask is not installed")


@pytest.mark.parametrize("kind", ["closed", "silent"])
def test_a_scheduler_that_does_not_answer_is_refused_within_ten_seconds(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cluster._ANSWER <= 5
    monkeypatch.setattr(cluster, "_ANSWER", 1)
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        if kind == "silent":
            port.listen()
        address = f"tcp://127.0.0.1:{port.getsockname()[1]}"
        start = time.monotonic()
        with (
            pytest.raises(InputError, match=f"No Dask scheduler answers at '{address}'"),
            connected(address),
        ):
            pass
        # One second and what starting takes, instead of five and as much.
        assert time.monotonic() - start < 6


def test_a_cluster_without_workers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_FIRST_WORKER", 0.2)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as started,
        pytest.raises(InputError, match="has no worker; start one"),
        connected(started.scheduler_address),
    ):
        pass


def test_a_worker_without_the_package_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "prevalens"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('it is not installed here')\n")
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as started:
        address = started.scheduler_address
        command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-dashboard"]
        worker = subprocess.Popen(
            [*command, "--no-nanny", "--local-directory", str(tmp_path)],
            env=os.environ | {"PYTHONPATH": str(tmp_path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        monkeypatch.setattr(cluster, "_FIRST_WORKER", 30)
        try:
            with (
                pytest.raises(InputError, match=r"The Dask worker at .* has no prevalens; install"),
                connected(address),
            ):
                pass
            monkeypatch.setattr(cluster, "__version__", "99.0")
            with (
                pytest.raises(InputError, match=r"but this process has 99\.0; install the same"),
                connected(address),
            ):
                pass
        finally:
            worker.terminate()
            worker.wait()
