from __future__ import annotations

import json
import multiprocessing
import resource
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from prevalens.errors import InputError
from prevalens.service import server as module
from prevalens.service.server import _address, _listen, serve
from prevalens.service.settings import Limits, Settings


def test_a_port_that_is_taken_is_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"Cannot listen on 127.0.0.1 port {port}: "):
            serve(Settings(port=port), print)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "300.1.1.1"])
def test_an_address_that_is_none_is_a_sentence(host: str) -> None:
    with pytest.raises(InputError, match="Cannot listen on"):
        serve(Settings(host=host, token="x" * 20), print)


def test_a_system_without_fork_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    with pytest.raises(InputError, match="run it in WSL"):
        serve(Settings(port=0), print)


def test_a_damaged_model_is_a_sentence_before_anything_is_served(tmp_path: Path) -> None:
    path = tmp_path / "broken.prevalens"
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="no model file"):
        serve(Settings(port=0, models=(path,)), print)


def test_the_address_carries_the_token_where_servers_do_not_see_it() -> None:
    settings = Settings(host="127.0.0.1", port=0, token="a/b" * 8)
    with _listen(settings) as listening:
        address = _address(settings, listening)
    assert address.endswith("/#token=" + "a%2Fb" * 8)


def test_connections_are_limited(start: Callable[[Settings], Any]) -> None:
    running = start(Settings(limits=Limits(connections=3)))
    lines = [running.raw() for _ in range(3)]
    while len(running.server.server_state.connections) < 3:
        time.sleep(0.01)
    with running.raw() as one_more:
        answer = one_more.recv(4096)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]["code"] == "busy"
    for line in lines:
        line.close()
    until = time.monotonic() + 10
    while running.server.server_state.connections and time.monotonic() < until:
        time.sleep(0.01)
    with running.client() as client:
        assert client.get("/healthz").status_code == 200


def test_a_head_that_never_ends_is_given_up(
    start: Callable[[Settings], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_HEAD_SECONDS", 0.2)
    running = start(Settings())
    with running.raw(timeout=10) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: local")
        assert line.recv(100) == b""
    with running.raw(timeout=10) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert line.recv(4096).startswith(b"HTTP/1.1 200 ")
        line.sendall(b"GET /healthz HTT")
        while line.recv(4096):
            pass


def test_the_end_finishes_or_cancels_and_leaves_nothing(
    start: Callable[[Settings], Any], model_file: Path
) -> None:
    running = start(Settings(models=(model_file,), limits=Limits(grace_seconds=1.0)))
    root = running.state.storage.root
    place = "/v1/models/small/quantify"
    with running.client() as client:
        client.post(place, json={"texts": ["my parcel"]}).raise_for_status()
        pids = running.state.small.pids()
        for pid in pids:
            psutil.Process(pid).suspend()
        job = client.post(f"{place}?wait=false", json={"texts": ["my parcel"]}).json()
        kept = running.state.jobs.get(job["id"])
    running.stop()
    assert kept.state == "cancelled"
    assert not root.exists()
    assert pids
    assert not any(map(psutil.pid_exists, pids))
    with pytest.raises(httpx.TransportError):
        httpx.get(running.url, trust_env=False)


def test_a_request_is_waited_for_until_the_second_signal(start: Callable[[Settings], Any]) -> None:
    running = start(Settings())
    said: list[str] = []
    running.server._say = said.append
    with running.raw() as line:
        line.sendall(
            b"POST /v1/uploads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
            b"Content-Type: multipart/form-data; boundary=x\r\n\r\n"
        )
        while not running.server.server_state.tasks:
            time.sleep(0.01)
        running.server.handle_exit(signal.SIGTERM, None)
        # One more of these changes nothing: it comes from a supervisor, not from a person.
        running.server.handle_exit(signal.SIGTERM, None)
        time.sleep(0.3)
        assert running.thread.is_alive()
        running.server.handle_exit(signal.SIGINT, None)
        running.thread.join(8)
        assert not running.thread.is_alive()
    sentence = "Stopping: waiting up to 10 s for 1 request; press Ctrl-C again to end at once."
    assert said == [sentence]
    running.socket.close()


def test_with_a_token_only_the_page_is_open(start: Callable[[Settings], Any]) -> None:
    token = "quite-a-long-token"
    running = start(Settings(token=token))
    with running.client() as client:
        assert client.get("/").status_code == 200
        assert client.get("/healthz").status_code == 200
        assert client.get("/v1/models").status_code == 401
        assert client.post("/v1/demo", json={}).status_code == 401
    with running.client(headers={"authorization": f"Bearer {token}"}) as client:
        assert client.get("/v1/models").json() == {"models": []}


def test_a_low_limit_on_open_files_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: wanted.append(limit))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 100))
    with pytest.raises(InputError, match=r"open 100 files, .* `ulimit -n \d+`"):
        serve(Settings(), print)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 10_000))
    monkeypatch.setattr("prevalens.service.server._listen", _stop)
    with pytest.raises(InputError, match="stop here"):
        serve(Settings(), print)
    assert wanted[0][0] > Settings().limits.connections
    assert wanted[0][1] == 10_000


def _stop(settings: Settings) -> None:
    raise InputError("stop here")
