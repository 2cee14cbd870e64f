"""Worker processes: what takes time happens there, one task at a time, and can be stopped.

A worker reads tasks as lines of JSON and answers with lines of JSON (see `prevalens.service.work`).
Stopping a task means ending its process; the next task gets a new one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from prevalens.service.nursery import Nursery
from prevalens.service.problems import Problem

__all__ = ["Pool", "Progress", "Worker"]

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
