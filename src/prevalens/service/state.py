"""Everything that lives as long as the server."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import Request

from prevalens.errors import InputError
from prevalens.service.jobs import Jobs
from prevalens.service.metrics import Metrics
from prevalens.service.models import Entry, Models, model_files
from prevalens.service.problems import Problem
from prevalens.service.settings import Settings
from prevalens.service.storage import Storage, Uploads
from prevalens.service.workers import Nursery, Pool, Progress, Worker

__all__ = ["State", "state_of"]

_EXPIRE_EVERY = 30.0


class State:
    """The parts of one server, and their common beginning and end.

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

    async def start(self) -> None:
        """Make the private folder and the nursery, read what the given models are."""
        if self._started:
            return
        self._started = True
        limits = self.limits
        self.storage = Storage()
        self.uploads = Uploads(self.storage, limits)
        self.jobs = Jobs(self.storage, limits, self.metrics)
        self.nursery = Nursery(self.storage.root)
        self.nursery.open()
        self.quantifying = Pool(self._worker, size=limits.workers, waiting=limits.waiting)
        self.training = Pool(self._worker, size=limits.trainings, waiting=limits.waiting)
        self._gauges()
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
        self.nursery.close()
        self.storage.close()

    async def quantify(
        self, task: dict[str, Any], progress: Progress | None = None
    ) -> dict[str, Any]:
        """A short task: reading, previewing, estimating."""
        return await self.quantifying.run(
            self._bounded(task), seconds=self.limits.quantify_seconds, progress=progress
        )

    async def train(self, task: dict[str, Any], progress: Progress | None = None) -> dict[str, Any]:
        """A long task, which must not stand in the way of the short ones."""
        return await self.training.run(
            self._bounded(task), seconds=self.limits.train_seconds, progress=progress
        )

    def _bounded(self, task: dict[str, Any]) -> dict[str, Any]:
        return {**task, "limits": asdict(self.limits)}

    async def _worker(self) -> Worker:
        self.metrics.add("prevalens_workers_started_total")
        return await Worker.start(self.nursery, self.limits.worker_bytes)

    async def _add_given(self, path: Path) -> None:
        try:
            about = await self.quantify({"task": "describe", "model": str(path.resolve())})
        except Problem as problem:
            raise InputError(problem.message) from problem
        self.models.add(Entry(path.stem, path.resolve(), "given", about))

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
    """Memory that is in use now, where the system tells; else 0."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def state_of(request: Request) -> State:
    """The state of the server that a request came to."""
    state: State = request.app.state.server
    return state
