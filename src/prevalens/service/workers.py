"""Where worker processes come from: a process that has loaded everything, and forks.

Starting Python and its libraries takes seconds; forking a process that has done so takes
milliseconds. So ending a worker in the middle of its task, which is how tasks are stopped, costs
next to nothing. The nursery itself never works on anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from prevalens.service.problems import Problem

__all__ = ["Nursery", "Pool", "Progress", "Worker", "tend"]

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
            [sys.executable, "-P", "-m", "prevalens.service.worker"],
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


Progress = Callable[[dict[str, Any]], None]

#: Longest line of an answer; tables travel in files, not in lines.
_LINE = 64 * 2**20
_ENDED = "The work ended before it was done, most likely for lack of memory; try a smaller file."


class Worker:
    """One process that does one task at a time.

    Parameters
    ----------
    nursery : Nursery
    pid : int
    reader, writer : asyncio streams
    """

    def __init__(
        self,
        nursery: Nursery,
        pid: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.pid = pid
        self.alive = True
        self._nursery = nursery
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls, nursery: Nursery, memory: int | None) -> Worker:
        """Get a process; `memory` bounds what it may take."""
        try:
            pid, line = await nursery.worker(memory)
            reader, writer = await asyncio.open_unix_connection(sock=line, limit=_LINE)
        except OSError as error:
            raise Problem("internal", "No worker process could be started.") from error
        return cls(nursery, pid, reader, writer)

    async def run(self, task: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Do a task; its refusals come back as `Problem`."""
        try:
            self._writer.write(json.dumps(task).encode() + b"\n")
            await self._writer.drain()
            while line := await self._reader.readline():
                kind, content = json.loads(line)
                if kind == "done":
                    return dict(content)
                if kind == "problem":
                    raise Problem(content["code"], content["message"])
                progress(content)
        except (ConnectionError, ValueError):
            pass
        self.alive = False
        raise Problem("internal", _ENDED)

    async def stop(self) -> None:
        """End the process and all it has started, now."""
        self.alive = False
        self._writer.close()
        await self._nursery.end(self.pid)


class Pool:
    """A bounded number of workers, and a bounded queue before them.

    Parameters
    ----------
    start : callable
        Makes a worker.
    size : int
        Tasks at one time.
    waiting : int
        Tasks that may wait.

    Attributes
    ----------
    tasks : int
        Tasks that run or wait.
    """

    def __init__(self, start: Callable[[], Awaitable[Worker]], *, size: int, waiting: int) -> None:
        self._start = start
        self._turn = asyncio.Semaphore(size)
        self._places = size + waiting
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self.tasks = 0

    def pids(self) -> list[int]:
        """The processes there are."""
        return [worker.pid for worker in (*self._idle, *self._busy)]

    def check_room(self) -> None:
        """Refuse if as many tasks wait as may wait."""
        if self.tasks >= self._places:
            raise Problem(
                "busy", "The server has enough to do; try again soon.", {"retry-after": "5"}
            )

    async def run(
        self, task: dict[str, Any], *, seconds: float, progress: Progress | None = None
    ) -> dict[str, Any]:
        """Do a task within a time; cancelling this call ends the task's process.

        Raises
        ------
        Problem
            If the queue is full, the time is up, or the task is refused.
        """
        self.check_room()
        self.tasks += 1
        try:
            async with self._turn:
                return await self._within(task, seconds, progress or _unheard)
        finally:
            self.tasks -= 1

    async def _within(
        self, task: dict[str, Any], seconds: float, progress: Progress
    ) -> dict[str, Any]:
        worker = self._idle.pop() if self._idle else await self._new()
        self._busy.add(worker)
        unharmed = False
        try:
            progress({"stage": "started"})
            async with asyncio.timeout(seconds):
                answer = await worker.run(task, progress)
        except Problem:
            unharmed = worker.alive
            raise
        except TimeoutError:
            raise Problem(
                "time_limit", f"The work took longer than the {seconds:g} s it may take."
            ) from None
        else:
            unharmed = True
            return answer
        finally:
            self._busy.discard(worker)
            if unharmed:
                self._idle.append(worker)
            else:
                # Shielded: a task that is cancelled once more must not leave its process behind.
                await asyncio.shield(worker.stop())

    async def _new(self) -> Worker:
        """A new worker; if nobody waits for it any more, the next task gets it."""
        starting = asyncio.ensure_future(self._start())
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(self._keep)
            raise

    def _keep(self, starting: asyncio.Future[Worker]) -> None:
        if not starting.cancelled() and starting.exception() is None:
            self._idle.append(starting.result())

    async def close(self) -> None:
        """End all processes."""
        workers = [*self._idle, *self._busy]
        self._idle.clear()
        await asyncio.gather(*(worker.stop() for worker in workers))


def _unheard(_: dict[str, Any]) -> None:
    """Nobody asks how far it is."""
