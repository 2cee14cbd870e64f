from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from prevalens.service.workers import Nursery

_ECHO = """
import os, socket
from prevalens.service.workers import tend

def echo(line, memory):
    line.sendall(b"%d %d\\n" % (os.getpid(), memory))
    while line.recv(1):
        pass

tend(socket.socket(fileno=0), echo)
"""


def _gone(pid: int) -> bool:
    until = time.monotonic() + 10
    while psutil.pid_exists(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not psutil.pid_exists(pid)


@pytest.fixture
def line() -> Iterator[socket.socket]:
    """The line to a nursery whose workers say who they are."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen([sys.executable, "-c", _ECHO], stdin=theirs)
    theirs.close()
    yield ours
    ours.close()
    assert process.wait(10) == 0


def _worker(line: socket.socket) -> tuple[int, socket.socket]:
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(line, [b"77\n"], [theirs.fileno()])
    return int(line.recv(32)), ours


def test_workers_are_forked_ended_and_forgotten(line: socket.socket) -> None:
    (first, to_first), (second, to_second) = _worker(line), _worker(line)
    assert to_first.recv(64) == b"%d 77\n" % first
    assert to_second.recv(64) == b"%d 77\n" % second
    line.sendall(b"%d\n" % -first)
    assert line.recv(32) == b"ended"
    assert _gone(first)
    assert psutil.pid_exists(second)
    # When the server goes, so do all.
    line.close()
    assert _gone(second)
    to_first.close()
    to_second.close()


def test_a_real_worker_answers_and_ends(tmp_path: Path) -> None:
    async def run() -> None:
        nursery = Nursery(tmp_path)
        nursery.open()
        pid, line = await nursery.worker(3 * 10**9)
        reader, writer = await asyncio.open_unix_connection(sock=line)
        writer.write(b'{"task": "describe", "model": "/no/such.prevalens", "limits": {}}\n')
        answers = [await reader.readline() for _ in range(2)]
        assert b"There is no file" in answers[-1]
        assert psutil.Process(pid).rlimit(psutil.RLIMIT_DATA) == (3 * 10**9, 3 * 10**9)
        # In the middle of nothing, in the middle of work: the process goes.
        await nursery.end(pid)
        assert _gone(pid)
        assert await reader.read() == b""
        writer.close()
        nursery.close()

    asyncio.run(run())
