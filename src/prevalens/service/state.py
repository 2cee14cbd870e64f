"""The state of a server: its storage, jobs, workers, models and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any

from fastapi import Request

from prevalens.errors import InputError
from prevalens.service.jobs import Jobs
from prevalens.service.metrics import Metrics
from prevalens.service.problems import Problem
from prevalens.service.settings import Settings
from prevalens.service.storage import ModelEntry, Models, Storage, Uploads, model_files
from prevalens.service.workers import Pool, Progress, Worker, start_fork_server

_EXPIRE_EVERY = 30.0


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
        self._gauges()

    async def start(self) -> None:
        """Make the private folder, start the fork server, and read the given models."""
        if self._started:
            return
        self._started = True
        limits = self.limits
        self.storage = Storage()
        self.uploads = Uploads(self.storage, limits)
        self.jobs = Jobs(self.storage, limits, self.metrics)
        start_fork_server()
        self.quantifying = Pool(self._worker, size=limits.workers, waiting=limits.waiting)
        self.training = Pool(self._worker, size=limits.trainings, waiting=limits.waiting)
        self._expiring = asyncio.create_task(self._expire())
        try:
            for path in model_files(self.settings.models):
                await self._add_given(path)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Finish or cancel jobs, end the workers, remove the private folder."""
        if not self._started:
            return
        self._started = False
        self._expiring.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._expiring
        await self.jobs.close(self.limits.grace_seconds)
        await asyncio.gather(self.quantifying.close(), self.training.close())
        self.storage.close()

    async def quantify(
        self, task: dict[str, Any], progress: Progress | None = None
    ) -> dict[str, Any]:
        """Do a short task: read, preview or estimate."""
        return await self.quantifying.run(
            {**task, "limits": self.limits},
            seconds=self.limits.quantify_seconds,
            progress=progress,
        )

    async def train(self, task: dict[str, Any], progress: Progress | None = None) -> dict[str, Any]:
        """Do a long task, in a pool of its own so that short tasks need not wait for it."""
        return await self.training.run(
            {**task, "limits": self.limits},
            seconds=self.limits.train_seconds,
            progress=progress,
        )

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

    def _gauges(self) -> None:
        add = self.metrics.gauge
        add("prevalens_models", "Models there are.", lambda: len(self.models))
        add("prevalens_uploads", "Uploads kept.", lambda: len(self.uploads))
        add("prevalens_upload_bytes", "Bytes of uploads kept.", lambda: self.uploads.size)
        add("prevalens_tasks", "Short tasks running or waiting.", lambda: self.quantifying.tasks)
        add("prevalens_trainings", "Trainings running or waiting.", lambda: self.training.tasks)
        add("prevalens_jobs_unfinished", "Jobs unfinished.", lambda: len(self.jobs.unfinished))
        add("process_resident_memory_bytes", "Memory of the server process.", _resident)


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
