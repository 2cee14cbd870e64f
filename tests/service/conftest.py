"""A real server on loopback, a small model, and files to ask it about."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from prevalens.datasets.tickets import tickets, write_tickets
from prevalens.model.fit import fit_files
from prevalens.service import workers
from prevalens.service.server import server_for
from prevalens.service.settings import Limits, Settings
from prevalens.service.state import ServerState

# Every worker runs the imports of the main script, which here is pytest: its fork server has them.
workers._PRELOADED.append("pytest")


class Running:
    """A server in a thread of its own."""

    def __init__(self, settings: Settings) -> None:
        self.state = ServerState(settings)
        self.server = server_for(self.state)
        self.socket = socket.create_server(("127.0.0.1", 0))
        # As the command does: without it the body of an answer waits 40 ms.
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
            assert self.thread.is_alive(), "the server did not start"

    def _run(self) -> None:
        asyncio.run(self.server.serve(sockets=[self.socket]))

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(60)
        self.socket.close()
        assert not self.thread.is_alive()

    def client(self, **more: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=120, trust_env=False, **more)

    def raw(self, timeout: float = 60) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)


@pytest.fixture(scope="session")
def tickets_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train.csv, labelled.csv, months/2026-01.csv to 2026-03.csv."""
    folder = tmp_path_factory.mktemp("tickets")
    write_tickets(tickets(n_train=400, n_per_month=60, months=3), folder)
    return folder


@pytest.fixture(scope="session")
def model_file(tickets_folder: Path) -> Path:
    """A model of the tickets."""
    path = tickets_folder / "small.prevalens"
    train = tickets_folder / "train.csv"
    fit_files(train, text="text", tags="tags", sep=";", method="lr+pacc").save(path)
    return path


@pytest.fixture(scope="session")
def server(model_file: Path) -> Iterator[Running]:
    """One server for all tests that leave it as it was."""
    limits = Limits(
        columns=500,
        rows=5000,
        upload_bytes=3 * 10**6,
        unpacked_bytes=60 * 10**6,
        stall_seconds=1.0,
        grace_seconds=1.0,
        quantify_seconds=60,
    )
    running = Running(Settings(models=(model_file,), limits=limits))
    yield running
    running.stop()


@pytest.fixture
def client(server: Running) -> Iterator[httpx.Client]:
    with server.client() as one:
        yield one


@pytest.fixture
def start() -> Iterator[Callable[[Settings], Running]]:
    """Start a server with settings of its own; it is stopped after the test."""
    started: list[Running] = []

    def begin(settings: Settings) -> Running:
        started.append(Running(settings))
        return started[-1]

    yield begin
    for one in started:
        if one.thread.is_alive():
            one.stop()


@pytest.fixture
def paused(server: Running, client: httpx.Client) -> Iterator[list[int]]:
    """The server's workers stand still: what is started now does not end by itself."""
    client.post("/v1/models/small/quantify", json={"texts": ["my parcel"]}).raise_for_status()
    pids = server.state.small.pids()
    for pid in pids:
        psutil.Process(pid).suspend()
    yield pids
    for pid in filter(psutil.pid_exists, pids):
        psutil.Process(pid).resume()


@pytest.fixture
def finished() -> Callable[..., dict[str, Any]]:
    """Wait for a job."""

    def wait(client: httpx.Client, job: dict[str, Any], seconds: float = 120) -> dict[str, Any]:
        until = time.monotonic() + seconds
        while job["state"] in ("waiting", "running"):
            assert time.monotonic() < until, job
            time.sleep(0.05)
            job = client.get(f"/v1/jobs/{job['id']}").json()
        return job

    return wait


@pytest.fixture
def uploaded(client: httpx.Client) -> Iterator[Callable[..., list[dict[str, Any]]]]:
    """Upload files; they are removed after the test."""
    kept: list[str] = []

    def send(*paths: Path) -> list[dict[str, Any]]:
        files = [("file", (path.name, path.read_bytes())) for path in paths]
        answer = client.post("/v1/uploads", files=files)
        assert answer.status_code == 201, answer.text
        kept.extend(one["id"] for one in answer.json()["uploads"])
        return list(answer.json()["uploads"])

    yield send
    for key in kept:
        client.delete(f"/v1/uploads/{key}")


@pytest.fixture
def visit(open_tab: Callable[..., Any], server: Any) -> Iterator[Callable[..., Any]]:
    """Open the page; what it asks of others and what goes wrong in it is looked at in the end."""
    asked: list[str] = []
    wrong: list[str] = []

    def go(address: str = "", expected: int = 0, **settings: Any) -> Any:
        settings.setdefault("viewport", {"width": 1100, "height": 800})
        page = open_tab(f"{server.url}/healthz", **settings)
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: _note(said, wrong, expected))
        page.set_default_timeout(20_000)
        page.goto(address or server.url)
        # While it loads, its parts move, and a click may miss.
        page.wait_for_selector("#main[aria-busy]", state="detached")
        return page

    yield go
    assert asked
    assert [url for url in asked if not url.startswith(("http://127.0.0.1:", "blob:"))] == []
    assert wrong == []


def _note(said: Any, wrong: list[str], expected: int) -> None:
    """Refused requests are told by the browser too; those a test provokes are fine."""
    refused = expected and f"status of {expected}" in said.text
    if said.type in ("error", "warning") and not refused:
        wrong.append(said.text)
