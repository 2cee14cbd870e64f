"""The state of a server: its storage, jobs, workers, models and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import Request

from prevalens.errors import InputError, counted
from prevalens.service.jobs import Jobs
from prevalens.service.metrics import Metrics
from prevalens.service.problems import Problem
from prevalens.service.settings import Settings
from prevalens.service.storage import ModelEntry, Models, Storage, Uploads, model_files
from prevalens.service.workers import Pool, Progress, Worker, start_fork_server

_EXPIRE_EVERY = 30.0
#: What jobs are, in words.
_JOBS = {"train": "training", "demo": "training", "quantify": "estimate", "evaluate": "evaluation"}
#: Bytes of input up to which a request counts as small.
SMALL = 200_000
#: Seconds after which a small request that takes long makes way for others.
_PATIENCE = 0.5
#: Seconds that the preview of a file may take, and bytes for which it gets one more second.
_LOOK_SECONDS, _LOOK_RATE = 10.0, 10**6


class ServerState:
    """The parts of a server, started and closed together.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings.checked()
        self.limits = settings.limits
        self.metrics = Metrics()
        self.models = Models()
        self._started = False
        self._stops_at = math.inf
        self._gauges()

    async def start(self) -> None:
        """Make the private folder, start the fork server, and read the given models."""
        if self._started:
            return
        self._started = True
        limits = self.limits
        self.storage = Storage(limit=limits.stored_bytes)
        self.uploads = Uploads(self.storage, limits)
        self.jobs = Jobs(self.storage, limits, self.metrics)
        start_fork_server()
        pool = partial(Pool, self._worker, waiting=limits.waiting)
        # A few texts do not wait for files, and small files not for those that take minutes.
        self.small = pool(size=limits.workers, patience=_PATIENCE)
        self.small_files = pool(size=limits.workers, patience=_PATIENCE)
        self.quantifying = pool(size=limits.workers)
        self.training = pool(size=limits.trainings)
        self._expiring = asyncio.create_task(self._expire())
        try:
            for path in model_files(self.settings.models):
                await self._add_given(path)
        except BaseException:
            await self.close()
            raise

    def stop_soon(self) -> str:
        """Start the time that unfinished jobs still have, and name them; empty if none are."""
        self._stops_at = time.monotonic() + self.limits.grace_seconds
        kinds = Counter(_JOBS[job.kind] for job in self.jobs.unfinished)
        return " and ".join(counted(number, kind) for kind, number in kinds.items())

    async def close(self) -> None:
        """Finish or cancel jobs, end the workers, remove the private folder."""
        if not self._started:
            return
        self._started = False
        self._expiring.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._expiring
        rest = self._stops_at - time.monotonic()
        await self.jobs.close(max(0.0, min(rest, self.limits.grace_seconds)))
        await asyncio.gather(*(pool.close() for pool in self._pools()))
        self.storage.close()

    def _pools(self) -> tuple[Pool, ...]:
        return self.small, self.small_files, self.quantifying, self.training

    def pool_for_files(self, size: int) -> Pool:
        """The workers for a task about files of `size` bytes."""
        return self.small_files if size <= SMALL else self.quantifying

    async def quantify(
        self,
        task: dict[str, Any],
        progress: Progress | None = None,
        *,
        pool: Pool | None = None,
        seconds: float | None = None,
    ) -> dict[str, Any]:
        """Do a short task: read, preview or estimate; by default one without files of clients."""
        return await self._run(
            pool or self.small, task, seconds or self.limits.quantify_seconds, progress
        )

    async def preview(self, path: Path, name: str) -> dict[str, Any]:
        """Look at the start of a file; that takes no longer than its size explains."""
        size = path.stat().st_size
        seconds = min(self.limits.quantify_seconds, _LOOK_SECONDS + size / _LOOK_RATE)
        task = {"task": "preview", "path": str(path), "name": name}
        return await self.quantify(task, pool=self.pool_for_files(size), seconds=seconds)

    async def train(self, task: dict[str, Any], progress: Progress | None = None) -> dict[str, Any]:
        """Do a long task, in a pool of its own so that short tasks need not wait for it."""
        return await self._run(self.training, task, self.limits.train_seconds, progress)

    async def _run(
        self, pool: Pool, task: dict[str, Any], seconds: float, progress: Progress | None
    ) -> dict[str, Any]:
        # Unpacked copies count as stored: a task may not unpack more than there is room for.
        room = self.storage.room(self.limits.unpacked_bytes)
        limits = replace(self.limits, unpacked_bytes=room)
        return await pool.run({**task, "limits": limits}, seconds=seconds, progress=progress)

    async def _worker(self) -> Worker:
        self.metrics.add("prevalens_workers_started_total")
        return await Worker.start(self.storage.root, self.limits.worker_bytes)

    async def _add_given(self, path: Path) -> None:
        try:
            about = await self.quantify({"task": "describe", "model": str(path.resolve())})
        except Problem as problem:
            raise InputError(problem.message) from problem
        self.models.add(ModelEntry(path.stem, path.resolve(), "given", about))

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(_EXPIRE_EVERY)
            self.uploads.expire()
            self.jobs.expire()
            for entry in self.models.forget(time.time() - self.limits.kept_seconds):
                self.storage.remove(entry.path.parent)

    def _gauges(self) -> None:
        add = self.metrics.gauge
        add("prevalens_models", "Models there are.", lambda: len(self.models))
        add("prevalens_uploads", "Uploads kept.", lambda: len(self.uploads))
        add("prevalens_upload_bytes", "Bytes of files kept or arriving.", lambda: self.storage.used)
        add("prevalens_tasks", "Short tasks running or waiting.", self._short_tasks)
        add("prevalens_trainings", "Trainings running or waiting.", lambda: self.training.tasks)
        add("prevalens_jobs_unfinished", "Jobs unfinished.", lambda: len(self.jobs.unfinished))
        add("process_resident_memory_bytes", "Memory of the server process.", _resident)

    def _short_tasks(self) -> float:
        return self.small.tasks + self.small_files.tasks + self.quantifying.tasks


def _resident() -> float:
    """Bytes of memory that the process uses now; 0 if the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def state_of(request: Request) -> ServerState:
    """The state of the server that a request came to."""
    state: ServerState = request.app.state.server
    return state
