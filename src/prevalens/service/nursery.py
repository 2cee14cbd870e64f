"""Where worker processes come from: a process that has loaded everything, and forks.

Starting Python and its libraries takes seconds; forking a process that has done so takes
milliseconds. So ending a worker in the middle of its task, which is how tasks are stopped, costs
next to nothing. The nursery itself never works on anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["Nursery", "tend"]

_ENVIRONMENT = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Nursery:
    """The server's side of the nursery.

    Parameters
    ----------
    folder : Path
        Where workers stand.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = asyncio.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def open(self) -> socket.socket:
        """Start the process, unless it is there; it loads while the server goes on."""
        if self._control is not None and self._process is not None and self._process.poll() is None:
            return self._control
        self.close()
        self._control, theirs = socket.socketpair()
        self._control.setblocking(False)
        # A session of its own: Ctrl-C reaches the server alone, which then decides. -P: nothing in
        # the folder can be imported. One thread each: there are as many workers as cores.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "prevalens.service.work"],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            cwd=self._folder,
            env={**dict.fromkeys(_ENVIRONMENT, "1"), **os.environ},
            start_new_session=True,
        )
        theirs.close()
        return self._control

    async def worker(self, memory: int | None) -> tuple[int, socket.socket]:
        """A new worker: its process, and the line to it.

        Parameters
        ----------
        memory : int, optional
            What it may take, in bytes.
        """
        async with self._lock:
            for _ in range(2):
                control = self.open()
                ours, theirs = socket.socketpair()
                try:
                    with theirs:
                        socket.send_fds(control, [f"{memory or 0}\n".encode()], [theirs.fileno()])
                    answer = await asyncio.get_running_loop().sock_recv(control, 32)
                except OSError:
                    answer = b""
                if answer:
                    ours.setblocking(False)
                    return int(answer), ours
                ours.close()
                self.close()
        raise OSError("no worker process could be started")

    async def end(self, pid: int) -> None:
        """End a worker and all it has started, now."""
        async with self._lock:
            if self._control is None:
                return
            with contextlib.suppress(OSError):
                socket.send_fds(self._control, [f"{-pid}\n".encode()], [])
                await asyncio.get_running_loop().sock_recv(self._control, 32)

    def close(self) -> None:
        """End the nursery; workers that are left end when the server closes their lines."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def tend(control: socket.socket, work: Callable[[socket.socket, int], None]) -> None:
    """Fork a worker for every line that comes with a socket, end one for every line without.

    Parameters
    ----------
    control : socket
        The line to the server; when it closes, all ends.
    work : callable
        What a worker does, given its own line and the memory it may take.
    """
    workers: set[int] = set()
    # Objects that are never looked at by the collector stay in memory that all workers share.
    gc.collect()
    gc.freeze()
    while True:
        message, sockets, _, _ = socket.recv_fds(control, 32, 1)
        if not message:
            for pid in workers:
                _end(pid)
            os._exit(0)
        if sockets:
            pid = _fork(control, sockets[0], int(message), work)
            workers.add(pid)
            control.sendall(b"%d" % pid)
        else:
            _end(-int(message))
            workers.discard(-int(message))
            control.sendall(b"ended")


def _fork(
    control: socket.socket, line: int, memory: int, work: Callable[[socket.socket, int], None]
) -> int:
    pid = os.fork()
    if pid:
        os.close(line)
        # Both sides set it: whoever is first, a signal to the group finds it.
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        return pid
    try:
        os.setpgid(0, 0)
        control.close()
        work(socket.socket(fileno=line), memory)
    finally:
        os._exit(1)


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
