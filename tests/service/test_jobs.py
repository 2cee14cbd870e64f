from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prevalens.service.jobs import Job, Jobs
from prevalens.service.metrics import Metrics
from prevalens.service.problems import Problem
from prevalens.service.settings import Limits
from prevalens.service.storage import Storage


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    one = Storage(tmp_path)
    yield one
    one.close()


def _jobs(storage: Storage, **limits: Any) -> Jobs:
    return Jobs(storage, Limits(**limits), Metrics())


async def _quick(job: Job) -> dict[str, Any]:
    job.progress({"stage": "half", "share": 0.5})
    return {"answer": 42}


async def _endless(job: Job) -> dict[str, Any]:
    await asyncio.sleep(1000)
    return {}


async def _refused(job: Job) -> dict[str, Any]:
    raise Problem("bad_input", "No.")


async def _full(job: Job) -> dict[str, Any]:
    raise OSError(28, "No space left on device")


def _run(storage: Storage, work: Any) -> Job:
    async def run() -> Job:
        job = _jobs(storage).start("train", work, folder=storage.folder())
        assert job.task is not None
        await job.task
        return job

    return asyncio.run(run())


def test_a_job_ends_with_its_result(storage: Storage) -> None:
    shown = _run(storage, _quick).shown()
    assert (shown["state"], shown["result"], shown["error"]) == ("done", {"answer": 42}, None)
    assert (shown["stage"], shown["share"]) == ("half", 0.5)


@pytest.mark.parametrize(("work", "code"), [(_refused, "bad_input"), (_full, "storage")])
def test_a_refusal_is_kept(storage: Storage, work: Any, code: str) -> None:
    shown = _run(storage, work).shown()
    assert (shown["state"], shown["result"], shown["error"]["code"]) == ("failed", None, code)


@pytest.mark.parametrize("pause", [0, 0.01])
def test_cancelling_waits_for_the_end(storage: Storage, pause: float) -> None:
    async def run() -> Job:
        jobs = _jobs(storage)
        job = jobs.start("train", _endless, folder=storage.folder())
        if pause:
            await asyncio.sleep(pause)
        await jobs.cancel(job.id)
        job.progress({"stage": "late news"})
        return job

    job = asyncio.run(run())
    assert job.state == "cancelled"
    assert job.shown()["error"]["code"] == "cancelled"
    assert job.stage != "late news"


def test_an_unknown_job_is_not_found(storage: Storage) -> None:
    with pytest.raises(Problem, match="no such job"):
        _jobs(storage).get("x")


def test_old_jobs_make_room_and_their_files_go(storage: Storage) -> None:
    async def run() -> tuple[int, list[bool]]:
        jobs = _jobs(storage, kept_jobs=2)
        folders = [storage.folder() for _ in range(4)]
        for folder in folders:
            job = jobs.start("train", _quick, folder=folder)
            assert job.task is not None
            await job.task
        return len(jobs), [folder.exists() for folder in folders]

    assert asyncio.run(run()) == (2, [False, False, True, True])


def test_finished_jobs_expire_running_ones_do_not(storage: Storage) -> None:
    async def run() -> list[str]:
        jobs = _jobs(storage, kept_seconds=-1)
        running = jobs.start("train", _endless, folder=storage.folder())
        done = jobs.start("train", _quick, folder=storage.folder())
        assert done.task is not None
        await done.task
        jobs.expire()
        left = [job.id for job in jobs.all()]
        await jobs.cancel(running.id)
        return [running.id] if left == [running.id] else left

    assert len(asyncio.run(run())) == 1


def test_the_end_gives_time_and_then_cancels(storage: Storage) -> None:
    async def soon(job: Job) -> dict[str, Any]:
        await asyncio.sleep(0.02)
        return {}

    async def run() -> list[str]:
        jobs = _jobs(storage)
        started = [jobs.start("train", work, folder=storage.folder()) for work in (soon, _endless)]
        await jobs.close(0.2)
        with pytest.raises(Problem, match="stopping"):
            jobs.start("train", soon, folder=storage.folder())
        return [job.state for job in started]

    assert asyncio.run(run()) == ["done", "cancelled"]


def test_the_end_waits_until_it_is_hurried(storage: Storage) -> None:
    async def run() -> tuple[Job, float]:
        jobs = _jobs(storage)
        job = jobs.start("train", _endless, folder=None)
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.05, jobs.hurry)
        start = time.monotonic()
        await jobs.close(seconds=60)
        return job, time.monotonic() - start

    job, seconds = asyncio.run(run())
    assert job.state == "cancelled"
    assert 0.04 < seconds < 30
