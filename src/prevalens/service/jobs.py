"""Jobs: work that goes on while its client asks for its progress."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from prevalens.service.metrics import Metrics
from prevalens.service.problems import Problem
from prevalens.service.settings import Limits
from prevalens.service.storage import Registry, Storage, new_id

JobState = Literal["waiting", "running", "done", "failed", "cancelled"]


@dataclass
class Job:
    """One piece of work.

    Attributes
    ----------
    kind : str
        "train", "quantify", "evaluate" or "demo".
    folder : Path or None
        Folder of its files, which is removed with it.
    state : str
    stage : str
        Description of the current stage, for people.
    share : float or None
        Share of the work that is done, if known.
    result : dict
        The answer, once it is done.
    content : bytes
        The answer of a job without files.
    problem : Problem or None
        Reason of its failure.
    """

    kind: str
    folder: Path | None
    id: str = field(default_factory=new_id)
    state: JobState = "waiting"
    stage: str = "waiting for a worker"
    share: float | None = None
    result: dict[str, Any] = field(default_factory=dict)
    content: bytes = b""
    problem: Problem | None = None
    started: float = field(default_factory=time.time)
    ended: float | None = None
    task: asyncio.Task[None] | None = None

    @property
    def over(self) -> bool:
        """Whether the job has ended, in any way."""
        return self.state not in ("waiting", "running")

    def progress(self, report: dict[str, Any]) -> None:
        """Note the stage and the share of the work that its worker reports."""
        if self.over:
            return
        self.state = "running"
        self.stage = str(report.get("stage", self.stage))
        self.share = report.get("share")

    def shown(self) -> dict[str, Any]:
        """The form in which clients see it."""
        until = time.time() if self.ended is None else self.ended
        return {
            "id": self.id,
            "kind": self.kind,
            "state": self.state,
            "stage": self.stage,
            "share": self.share,
            "seconds": round(until - self.started, 3),
            "result": self.result if self.state == "done" else None,
            "error": None if self.problem is None else self.problem.error(),
        }


Work = Callable[[Job], Coroutine[Any, Any, dict[str, Any]]]


class Jobs(Registry[Job]):
    """All jobs; finished ones are kept for a while.

    Parameters
    ----------
    storage : Storage
    limits : Limits
    metrics : Metrics
    """

    missing = "There is no such job; finished jobs are kept for a while."

    def __init__(self, storage: Storage, limits: Limits, metrics: Metrics) -> None:
        super().__init__()
        self._storage = storage
        self._limits = limits
        self._metrics = metrics
        self._closed = False
        self._hurry = asyncio.Event()

    @property
    def unfinished(self) -> list[Job]:
        """Jobs that wait or run."""
        return [job for job in self.all() if not job.over]

    def start(self, kind: str, work: Work, *, folder: Path | None) -> Job:
        """Start a job; `work` is called with the job and returns its result."""
        if self._closed:
            raise Problem("busy", "The server is stopping.", {"retry-after": "30"})
        self._make_room()
        job = Job(kind, folder)
        self._entries[job.id] = job
        job.task = asyncio.create_task(self._run(job, work))
        return job

    async def _run(self, job: Job, work: Work) -> None:
        try:
            job.result = await work(job)
            job.state = "done"
            if job.folder is not None:
                self._storage.measure(job.folder)
        except asyncio.CancelledError:
            # On purpose, by its client or by the end of the server: not to be raised again.
            job.state = "cancelled"
            job.problem = Problem("cancelled", "The job was cancelled.")
        except Problem as problem:
            job.state, job.problem = "failed", problem
        except OSError as error:
            job.state = "failed"
            job.problem = Problem("storage", f"The server's disk failed: {error.strerror}.")
        finally:
            job.ended = time.time()
            self._metrics.add("prevalens_jobs_total", kind=job.kind, state=job.state)

    async def cancel(self, key: str) -> Job:
        """Stop a job; when this returns, its process has ended."""
        job = self.get(key)
        if job.task is not None and not job.task.done():
            job.task.cancel()
            await asyncio.wait([job.task])
        if not job.over:
            # Cancelled before its first step.
            job.state, job.ended = "cancelled", time.time()
            job.problem = Problem("cancelled", "The job was cancelled.")
        return job

    def forget(self, job: Job) -> None:
        """Drop a job and its files."""
        self._entries.pop(job.id, None)
        self._storage.remove(job.folder)

    def expire(self) -> None:
        """Drop jobs that ended long ago."""
        oldest = time.time() - self._limits.kept_seconds
        for job in self.all():
            if job.over and (job.ended or job.started) < oldest:
                self.forget(job)

    def _make_room(self) -> None:
        over = [job for job in self.all() if job.over]
        for job in over[: max(0, len(self) - self._limits.kept_jobs + 1)]:
            self.forget(job)

    def hurry(self) -> None:
        """Let `close` wait no longer."""
        self._hurry.set()

    async def close(self, seconds: float) -> None:
        """Accept no more jobs; let running ones go on for some seconds, then cancel them."""
        self._closed = True
        tasks = [job.task for job in self.unfinished if job.task is not None]
        hurry = asyncio.create_task(self._hurry.wait())
        ends: set[asyncio.Future[Any]] = {hurry, asyncio.gather(*tasks, return_exceptions=True)}
        await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        await asyncio.gather(*(self.cancel(job.id) for job in self.unfinished))
