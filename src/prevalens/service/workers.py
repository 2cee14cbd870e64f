"""Worker processes: a standard fork server, the line to each worker, and a bounded pool of them.

Starting Python and its libraries takes seconds; forking a process that has loaded them takes
milliseconds. So ending a worker in the middle of its task, which is how tasks are stopped, costs
next to nothing. `multiprocessing` provides the fork server; the server process itself never loads
`prevalens.service.tasks`, and stays small.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import multiprocessing
import os
import re
import signal
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from prevalens.errors import PrevalensError
from prevalens.service.problems import Problem

try:
    import resource
except ImportError:  # pragma: no cover - only where there is no fork either.
    resource = None  # type: ignore[assignment]

#: Called in the server with the stage of a task and the share that is done.
Progress = Callable[[dict[str, Any]], None]
Message = tuple[str, dict[str, Any]]


class Report(Protocol):
    """Called in a worker to report the progress of its task."""

    def __call__(self, stage: str, share: float | None = None) -> None:
        """Take a stage, and the share of the work that is done, if known."""


#: The functions that workers run, by the name of the task. `prevalens.service.tasks` adds them when
#: it is loaded, which happens in the fork server only.
TASKS: dict[str, Callable[[dict[str, Any], Report], dict[str, Any]]] = {}

# With click, because multiprocessing runs the imports of the main script in every worker, and the
# script `prevalens` imports it.
_PRELOADED = ["prevalens.service.tasks", "click"]
# One thread each: there are as many workers as cores. Safe path: no file of the current folder is
# imported. Arrow's own allocator reserves a gigabyte, which limits on memory would not see.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "PYTHONSAFEPATH": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
#: The address of the client whose request this is about; jobs inherit it from their request.
CLIENT: ContextVar[str] = ContextVar("client", default="")
#: Clients that may fill their part of a queue at the same time.
_CLIENTS = 4
#: Reports of progress are sent at most this often, in seconds.
_PAUSE = 0.1
_FAILED = "The work failed; the server's log says more."
_MEMORY = "This needs more memory than the server allows; try a smaller file."
_NOT_STARTED = (
    "No worker process could be started; the system's limits on processes, memory or open files "
    "(`ulimit -a`) may be too low."
)
_ENDED = "The work ended before it was done, most likely for lack of memory; try a smaller file."


def start_fork_server() -> None:
    """Start the process that workers are forked from, unless it runs; it loads in the background.

    It ends with the process that called this.
    """
    added = {name: value for name, value in _ENVIRONMENT.items() if name not in os.environ}
    os.environ.update(added)
    # Before the signal is blocked, because starting the tracker unblocks it.
    resource_tracker.ensure_running()
    # The new process inherits that it is blocked: Ctrl-C reaches the server alone, which decides.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.set_forkserver_preload(_PRELOADED)
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        for name in added:
            del os.environ[name]


class Worker:
    """One process that does one task at a time.

    Its own code around `multiprocessing.Process` rather than `pebble.ProcessPool`, whose workers
    share one locked channel: there a worker that is killed while idle breaks the pool for good,
    and a cancelled task goes on for up to three seconds after `cancel` has returned.

    Parameters
    ----------
    folder : Path
        Working directory of the process.
    memory : int, optional
        Bytes of data that the process may allocate; None for no limit.
    """

    def __init__(self, folder: Path, memory: int | None) -> None:
        context = multiprocessing.get_context("forkserver")
        self._line, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, folder, memory), daemon=True)
        self._thread = ThreadPoolExecutor(1)
        self.alive = True
        try:
            start_fork_server()
            self._process.start()
        except (OSError, EOFError) as error:
            raise Problem("internal", _NOT_STARTED) from error
        finally:
            theirs.close()

    @classmethod
    async def start(cls, folder: Path, memory: int | None) -> Worker:
        """Make a worker; until the fork server has loaded everything, this takes seconds.

        It happens in a daemon thread, for which a server that is stopped meanwhile does not wait.
        """
        future: Future[Worker] = Future()
        future.set_running_or_notify_cancel()

        def start() -> None:
            try:
                future.set_result(cls(folder, memory))
            except Exception as error:
                future.set_exception(error)

        threading.Thread(target=start, daemon=True).start()
        return await asyncio.wrap_future(future)

    @property
    def pid(self) -> int:
        """The identifier of the process."""
        return self._process.pid or 0

    async def run(self, task: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Do a task; a refusal is raised as `Problem`."""
        loop = asyncio.get_running_loop()

        def report(content: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(progress, content)

        return await loop.run_in_executor(self._thread, self._converse, task, report)

    def _converse(self, task: dict[str, Any], progress: Progress) -> dict[str, Any]:
        try:
            self._line.send(task)
            kind, content = self._line.recv()
            while kind == "progress":
                progress(content)
                kind, content = self._line.recv()
        except (EOFError, OSError):
            self.alive = False
            raise Problem("internal", _ENDED) from None
        if kind == "problem":
            raise Problem(**content)
        return dict(content)

    async def stop(self) -> None:
        """Kill the process; it has ended when this returns."""
        self.alive = False
        self._process.kill()
        # In the thread of the conversation, which ends when the process does.
        await asyncio.get_running_loop().run_in_executor(self._thread, self._end)
        self._thread.shutdown(wait=False)

    def _end(self) -> None:
        self._process.join()
        self._line.close()


@dataclass(eq=False)
class _Turn:
    """A task's place in the queue; it starts when `ready` is done, on an extra worker or not."""

    client: str
    ready: asyncio.Future[None]
    extra: bool = False


class Turns:
    """Says when tasks may start: few at a time, and no client can take all turns for long.

    The next task is one of the client that has the fewest tasks running, and among these of the one
    whose last task started first. When all turns are taken, there are as many extra ones, for two
    kinds of tasks: the first of a client that has none running, so that nobody waits for the long
    tasks of somebody else; and those that have run for longer than `patience`, so that quick tasks
    need not wait for slow ones.

    Parameters
    ----------
    size : int
        Tasks at one time, extra ones not counted.
    patience : float, optional
        Seconds; never if omitted.
    """

    def __init__(self, size: int, patience: float | None = None) -> None:
        self._size = size
        self._patience = patience
        self._queue: list[_Turn] = []
        self._running: list[_Turn] = []
        self._slow: list[_Turn] = []
        self._started: dict[str, float] = {}

    @contextlib.asynccontextmanager
    async def taken(self, client: str) -> AsyncIterator[None]:
        """Wait for a turn of a client, and hold it in the body."""
        loop = asyncio.get_running_loop()
        turn = _Turn(client, loop.create_future())
        self._queue.append(turn)
        self._hand_out()
        timer = None
        try:
            await turn.ready
            if self._patience is not None:
                timer = loop.call_later(self._patience, self._make_way, turn)
            yield
        finally:
            if timer is not None:
                timer.cancel()
            for turns in (self._queue, self._running, self._slow):
                if turn in turns:
                    turns.remove(turn)
            self._hand_out()

    def _make_way(self, turn: _Turn) -> None:
        if not turn.extra:
            self._slow.append(turn)
            self._hand_out()

    def _hand_out(self) -> None:
        """Give all turns that are free. O(tasks) per turn."""
        # Without those that were cancelled while they waited.
        self._queue = [turn for turn in self._queue if not turn.ready.done()]
        while self._slow and self._free(extra=True):
            self._slow.pop(0).extra = True
        held = Counter(turn.client for turn in self._running)
        while self._queue:
            started = self._started
            turn = min(self._queue, key=lambda t: (held[t.client], started.get(t.client, 0)))
            if not self._free(extra=False):
                turn.extra = not held[turn.client] and self._free(extra=True) > 0
                if not turn.extra:
                    return
            self._start(turn)
            held[turn.client] += 1

    def _free(self, *, extra: bool) -> int:
        return self._size - sum(turn.extra == extra for turn in self._running)

    def _start(self, turn: _Turn) -> None:
        self._queue.remove(turn)
        self._running.append(turn)
        turn.ready.set_result(None)
        present = {other.client for other in (*self._queue, *self._running)}
        self._started = {name: at for name, at in self._started.items() if name in present}
        self._started[turn.client] = time.monotonic()


class Pool:
    """A bounded number of workers, and a bounded queue before them that is fair to every client.

    Parameters
    ----------
    start : callable
        Makes a worker.
    size : int
        Tasks at one time.
    waiting : int
        Tasks of one client that may wait; of all clients together four times as many.
    patience : float, optional
        See `Turns`.
    """

    def __init__(
        self,
        start: Callable[[], Awaitable[Worker]],
        *,
        size: int,
        waiting: int,
        patience: float | None = None,
    ) -> None:
        self._start = start
        self._turns = Turns(size, patience)
        self._places = size + waiting
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._tasks: Counter[str] = Counter()

    @property
    def tasks(self) -> int:
        """Tasks that run or wait."""
        return self._tasks.total()

    def pids(self) -> list[int]:
        """The identifiers of all worker processes."""
        return [worker.pid for worker in (*self._idle, *self._busy)]

    def check_room(self) -> None:
        """Refuse if as many tasks wait as may wait."""
        own = self._tasks[CLIENT.get()]
        if own >= self._places or self.tasks >= _CLIENTS * self._places:
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
        client = CLIENT.get()
        self._tasks[client] += 1
        try:
            async with self._turns.taken(client):
                return await self._within(task, seconds, progress or (lambda _: None))
        finally:
            # In this form clients without tasks are dropped.
            self._tasks -= Counter([client])

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
        """A new worker; if its task is cancelled meanwhile, the next task gets it."""
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


def _work(line: Connection, folder: Path, memory: int | None) -> None:
    """Do tasks, in a process of its own, until the server kills it or ends."""
    # A session of its own, so that signals to the server's terminal do not reach it.
    os.setsid()
    try:
        os.chdir(folder)
    except FileNotFoundError:
        # The server was stopped while this process was started.
        return
    # Objects that the collector never visits stay in memory that all workers share.
    gc.freeze()
    # The server passes on the warnings that matter; standard error is for failures.
    warnings.simplefilter("ignore")
    if memory is not None and resource is not None:
        # An allocation fails before the machine runs out of memory.
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    threading.Thread(target=_end_with_server, daemon=True).start()
    with contextlib.suppress(EOFError):
        while True:
            task = line.recv()
            begun = time.monotonic()
            perform(task, line.send)
            # Long tasks may leave much behind; of a single text it would be a quarter of the work.
            if time.monotonic() - begun > _PAUSE:
                gc.collect()


def _end_with_server() -> None:
    """End this process, in the middle of a task if need be, as soon as the server has ended."""
    server = multiprocessing.parent_process()
    assert server is not None
    server.join()
    os._exit(0)


def perform(task: dict[str, Any], send: Callable[[Message], None]) -> None:
    """Do one task; its answer or its failure is the last message sent."""
    try:
        answer = TASKS[task["task"]](task, _throttled(send))
    except Problem as problem:
        send(("problem", {"code": problem.code, "message": problem.message}))
    except PrevalensError as error:
        send(("problem", {"code": "bad_input", "message": _without_paths(str(error), task)}))
    except MemoryError:
        send(("problem", {"code": "too_large", "message": _MEMORY}))
    except Exception:
        # Unforeseen: the log gets all of it, the client a sentence.
        traceback.print_exc()
        send(("problem", {"code": "internal", "message": _FAILED}))
    else:
        send(("done", answer))


def _without_paths(message: str, task: dict[str, Any]) -> str:
    """The message without the names of folders on the server."""
    if "model" in task:
        message = message.replace(task["model"], Path(task["model"]).name)
    # Workers are in the private folder, where all files of clients are.
    return re.sub(rf"{re.escape(str(Path.cwd()))}[/\w.-]*", "a file of the server", message)


def _throttled(send: Callable[[Message], None]) -> Report:
    """A report that sends every new stage, and shares of one stage only now and then."""
    last, before = 0.0, ""

    def report(stage: str, share: float | None = None) -> None:
        nonlocal last, before
        now, word = time.monotonic(), stage.partition(" ")[0]
        # Steps of unknown length are few, and the next may be long in coming.
        if word != before or share is None or now - last >= _PAUSE:
            last, before = now, word
            send(("progress", {"stage": stage, "share": share}))

    return report
