from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from click.testing import CliRunner

from prevalens.__main__ import cli
from prevalens.errors import InputError
from prevalens.service import command as module

_NEEDS_FORK = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="the service needs a system with fork"
)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The settings that the command would serve with."""
    found: list[Any] = []
    monkeypatch.setattr(module, "serve", lambda settings, *_: found.append(settings))
    return found


def _run(*words: str) -> Any:
    done = CliRunner().invoke(cli, ["serve", *words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_it_listens_on_loopback_without_a_token(given: list[Any]) -> None:
    assert _run().exit_code == 0
    (settings,) = given
    assert (settings.host, settings.port, settings.token) == ("127.0.0.1", 8321, None)


def test_options_become_settings(given: list[Any], tmp_path: Path) -> None:
    words = ["m.prevalens", "--port", "0", "--host", "0.0.0.0", "--token", "x" * 16]
    words += ["--allow-host", "stats.intra", "--keep", str(tmp_path), "--max-upload", "2GB"]
    words += ["--max-rows", "10", "--max-columns", "20", "--max-seconds", "30", "--workers", "3"]
    assert _run(*words, "--max-training", "40").exit_code == 0
    (settings,) = given
    assert settings.models == (Path("m.prevalens"),)
    assert (settings.host, settings.port, settings.token) == ("0.0.0.0", 0, "x" * 16)
    assert (settings.hosts, settings.keep) == (("stats.intra",), tmp_path)
    limits = settings.limits
    assert (limits.upload_bytes, limits.rows, limits.columns) == (2 * 10**9, 10, 20)
    assert (limits.quantify_seconds, limits.train_seconds, limits.workers) == (30, 40, 3)


def test_the_token_may_come_from_the_environment(
    given: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREVALENS_TOKEN", "y" * 20)
    _run()
    assert given[0].token == "y" * 20


@pytest.mark.parametrize("words", [["--port", "70000"], ["--keep", "/no/such"], ["--workers", "0"]])
def test_bad_options_are_refused(words: list[str]) -> None:
    assert _run(*words).exit_code == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["/no/such.prevalens", "--port", "0"], "no model file and no folder"),
        (["--token", "short"], "at least 16 characters"),
        (["--max-upload", "lots"], "is not a size"),
    ],
)
def test_what_cannot_be_served_is_a_sentence(words: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        _run(*words)


@pytest.mark.parametrize("name", ["fastapi", "uvicorn", "prometheus_client"])
def test_a_missing_extra_is_named(name: str) -> None:
    start = f"import sys; sys.modules[{name!r}] = None; from prevalens.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", start, "serve"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"prevalens: The page needs {name}, which is not installed: "
        'pip install "prevalens[serve]".\n'
    )


@contextmanager
def _served(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and its address."""
    start = "from prevalens.__main__ import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", start, "serve", "--host", "127.0.0.1", "--port", "0", *words],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
        start_new_session=True,
    )
    with process:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert address, line + process.stderr.read()
        try:
            yield process, address[0]
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def _unfinished_upload(address: str) -> Iterator[None]:
    """A client whose request has arrived in part."""
    head = "POST /v1/uploads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
    kind = "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    with socket.create_connection(("127.0.0.1", httpx.URL(address).port)) as line:
        line.sendall((head + kind).encode())
        # Until it has been taken up; its body never comes.
        time.sleep(0.5)
        yield


@_NEEDS_FORK
def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    with _served(tmp_path) as (process, address):
        assert process.stderr is not None
        assert httpx.get(f"{address}healthz", trust_env=False, timeout=30).status_code == 200
        assert len(list(tmp_path.glob("prevalens-serve-*"))) == 1
        helpers = psutil.Process(process.pid).children(recursive=True)
        assert helpers
        # As Ctrl-C does in a terminal: every process of the group gets it.
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == 0
        # Nothing was unfinished, so there is nothing to wait for.
        assert process.stderr.read() == "Stop it with Ctrl-C.\n"
    assert list(tmp_path.glob("prevalens-serve-*")) == []
    # The fork server notices the end of the command after it has loaded its modules: three seconds
    # of work, which take long where many processes share the cores.
    _, alive = psutil.wait_procs(helpers, timeout=120)
    assert alive == []


@_NEEDS_FORK
def test_it_says_what_it_waits_for_and_ends_at_the_second_interrupt(
    model_file: Path, tmp_path: Path
) -> None:
    with _served(tmp_path, str(model_file)) as (process, address):
        assert process.stderr is not None
        place = f"{address}v1/models/small/quantify"
        with httpx.Client(trust_env=False, timeout=60) as client:
            client.post(place, json={"texts": ["my parcel"]}).raise_for_status()
            # A stopped worker: the estimate does not end by itself.
            for helper in psutil.Process(process.pid).children():
                for worker in helper.children():
                    worker.suspend()
            client.post(f"{place}?wait=false", json={"texts": ["x"]}).raise_for_status()
        assert process.stderr.readline() == "Stop it with Ctrl-C.\n"
        # A request that has not been answered must not delay the end either.
        with _unfinished_upload(address):
            process.send_signal(signal.SIGINT)
            assert process.stderr.readline() == (
                "Stopping: waiting up to 10 s for 1 estimate; press Ctrl-C again to end at once.\n"
            )
            assert process.poll() is None
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
            assert time.monotonic() - start < 5
        assert "Traceback" not in process.stderr.read()
    assert list(tmp_path.glob("prevalens-serve-*")) == []
