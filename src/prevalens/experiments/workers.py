"""Worker processes: each computes one group of cells after the other, and none can hurt another.

A worker is a Python of its own that reads groups from its standard input and writes results to
its standard output. Its libraries are told their number of threads before they start. When
the parent process ends, in whatever way, its input ends too, and it ends at once.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

from threadpoolctl import threadpool_limits

from prevalens.catalogue import load_parts, own_modules
from prevalens.experiments.cache import ScoreCache
from prevalens.experiments.cells import Cell
from prevalens.experiments.run import CellResult, Failure, run_cells
from prevalens.experiments.specs import Parts

__all__ = ["compute", "serve"]

#: One thread in every cell, alone or not: another number could change the last digits.
_THREADS = "1"
_LIMITS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)
#: What a worker is told: modules with parts of one's own, where scores are kept, the plan's parts
#: (pickled by name, so that the worker imports their modules), the cells.
_Group: TypeAlias = tuple[tuple[str, ...], Path | None, Parts | None, list[Cell]]
_COMMAND = "from prevalens.experiments.workers import serve; serve()"


def compute(
    groups: Sequence[Sequence[Cell]],
    n_jobs: int,
    cache_folder: Path | None,
    parts: Parts | None = None,
) -> Generator[CellResult | Failure, None, None]:
    """Compute groups of cells, in this process or in several; results come as they are ready.

    Parameters
    ----------
    groups : list of lists of Cell
        The cells of a group share a fitted quantifier.
    n_jobs : int
        1 computes here; more start that many processes.
    cache_folder : Path or None
        Where scores are kept.
    parts : mapping of str to Entry, optional
        Parts that the methods may name beside those of the catalogue.
    """
    if n_jobs == 1:
        cache = _cache(cache_folder)
        with threadpool_limits(limits=1):
            for group in groups:
                yield from run_cells(group, cache, parts)
    else:
        yield from _Crew(groups, min(n_jobs, len(groups)), cache_folder, parts).results()


def _cache(folder: Path | None) -> ScoreCache | None:
    return None if folder is None else ScoreCache(folder)


class _Crew:
    """Threads that each look after one worker and hand it one group after the other."""

    def __init__(
        self,
        groups: Sequence[Sequence[Cell]],
        n_jobs: int,
        cache_folder: Path | None,
        parts: Parts | None = None,
    ) -> None:
        self._parts = parts
        self._cache_folder = cache_folder
        self._schedule = _Schedule(groups)
        self._found: queue.SimpleQueue[CellResult | Failure | BaseException | None]
        self._found = queue.SimpleQueue()
        self._workers: dict[int, _Worker] = {}
        self._threads = [
            threading.Thread(target=self._look_after, args=(number,), daemon=True)
            for number in range(n_jobs)
        ]

    def results(self) -> Iterator[CellResult | Failure]:
        for thread in self._threads:
            thread.start()
        try:
            busy = len(self._threads)
            while busy:
                found = self._found.get()
                if isinstance(found, BaseException):
                    raise found
                if found is None:
                    busy -= 1
                else:
                    yield found
        finally:
            self._stop()

    def _stop(self) -> None:
        self._schedule.close()
        for worker in list(self._workers.values()):
            worker.kill()
        for thread in self._threads:
            thread.join()

    def _look_after(self, number: int) -> None:
        try:
            while group := self._schedule.next():
                self._complete(number, group)
                self._schedule.finished(group)
            self._found.put(None)
        except BaseException as error:  # the main thread raises it
            self._found.put(error)
        finally:
            if number in self._workers:
                self._workers.pop(number).end()

    def _complete(self, number: int, group: Sequence[Cell]) -> None:
        """Have all cells of a group computed; if the worker dies over one, the next goes on."""
        left = list(group)
        while left and not self._schedule.closed:
            worker = self._workers.setdefault(number, _Worker(self._cache_folder, self._parts))
            try:
                for found in worker.run(left):
                    self._found.put(found)
                    left.pop(0)
            except (EOFError, BrokenPipeError, pickle.UnpicklingError):
                reason = self._workers.pop(number).end()
                if not self._schedule.closed:
                    sentence = f"The process that computed it died ({reason})."
                    self._found.put(Failure(left.pop(0), sentence, sentence))


class _Schedule:
    """Which group comes next: one whose scores nobody is computing, so that none are twice."""

    def __init__(self, groups: Sequence[Sequence[Cell]]) -> None:
        self._waiting = [list(group) for group in groups]
        self._running: list[str] = []
        self._lock = threading.Lock()
        self.closed = False

    def next(self) -> list[Cell]:
        """Take a group; empty if there is none left."""
        with self._lock:
            if self.closed or not self._waiting:
                return []
            keys = [group[0].scores_key() for group in self._waiting]
            free = (place for place, key in enumerate(keys) if key not in self._running)
            place = next(free, 0)
            self._running.append(keys[place])
            return self._waiting.pop(place)

    def finished(self, group: Sequence[Cell]) -> None:
        with self._lock:
            self._running.remove(group[0].scores_key())

    def close(self) -> None:
        self.closed = True


class _Worker:
    """A process that computes cells; started with the first of them."""

    def __init__(self, cache_folder: Path | None, parts: Parts | None) -> None:
        self._parts = parts
        self._cache_folder = cache_folder
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, cells: Sequence[Cell]) -> Iterator[CellResult | Failure]:
        """One answer per cell, in this order; EOFError if the process ends before."""
        if self._process is None:
            self._process = _start()
        to, answers = _pipes(self._process)
        _send(to, (own_modules(), self._cache_folder, self._parts, list(cells)))
        for _ in range(len(cells)):
            yield pickle.load(answers)

    def kill(self) -> None:
        """End it at once; whoever waits for an answer gets an EOFError."""
        if self._process is not None:
            self._process.kill()

    def end(self) -> str:
        """Let it end, which it does when its input ends, and say how it did."""
        if self._process is None:
            return "never started"
        for pipe in _pipes(self._process):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        code = self._process.wait()
        return f"signal {-code}, {signal.strsignal(-code)}" if code < 0 else f"exit code {code}"


def _start() -> subprocess.Popen[bytes]:
    environment = os.environ | dict.fromkeys(_LIMITS, _THREADS)
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, "-c", _COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    to, answers = process.stdin, process.stdout
    assert to is not None
    assert answers is not None
    return to, answers


def serve() -> None:
    """What a worker process does: answer each group of cells on standard input."""
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever a library prints must not get between the answers.
    os.dup2(2, 1)
    # Ctrl-C reaches every process of a terminal; the parent decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    groups: queue.SimpleQueue[_Group] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(groups,), daemon=True).start()
    while True:
        modules, folder, parts, cells = groups.get()
        for module in modules:
            load_parts(module)
        for found in run_cells(cells, _cache(folder), parts):
            _send(answers, found)


def _receive(groups: queue.SimpleQueue[_Group]) -> None:
    """Read in a thread of its own, so that the parent's end is noticed in the middle of a cell."""
    while True:
        try:
            groups.put(pickle.load(sys.stdin.buffer))
        except BaseException:  # whatever it is, nobody is there to be told
            os._exit(0)


def _send(stream: IO[bytes], value: Any) -> None:
    pickle.dump(value, stream)
    stream.flush()
