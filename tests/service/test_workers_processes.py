"""Real worker processes: they answer, obey their limits, and end when they should."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from prevalens.service.problems import Problem
from prevalens.service.settings import Limits
from prevalens.service.workers import Pool, Worker

MEMORY = 3 * 10**9
#: A server in a folder with a file of the name of a library. It is killed before it can clean up,
#: with one worker that has done a task and one that has just been started.
_KILLED = """
import sys
sys.path.remove("")
import asyncio, multiprocessing, os, signal
from pathlib import Path
from prevalens.service.problems import Problem
from prevalens.service.workers import Worker

worker = Worker(Path.cwd(), None)
try:
    asyncio.run(worker.run({"task": "describe", "model": "/no"}, print))
except Problem as problem:
    print(problem)
other = Worker(Path.cwd(), None)
fork_server = multiprocessing.forkserver._forkserver._forkserver_pid
print(worker.pid, other.pid, fork_server, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def _gone(pid: int) -> bool:
    until = time.monotonic() + 30
    while psutil.pid_exists(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not psutil.pid_exists(pid)


async def _describe(worker: Worker, progress: Any = lambda content: None) -> dict[str, Any]:
    task = {"task": "describe", "model": "/no/such.prevalens", "limits": Limits()}
    return await worker.run(task, progress)


def test_a_worker_reports_answers_and_is_killed(tmp_path: Path) -> None:
    async def run() -> None:
        worker = await Worker.start(tmp_path, MEMORY)
        stages: list[Any] = []
        for _ in range(2):
            with pytest.raises(Problem, match="There is no file") as refused:
                await _describe(worker, stages.append)
            assert refused.value.code == "bad_input"
        assert stages == [{"stage": "reading the model", "share": None}] * 2
        process = psutil.Process(worker.pid)
        assert process.rlimit(psutil.RLIMIT_DATA) == (MEMORY, MEMORY)
        assert Path(process.cwd()) == tmp_path
        # Ctrl-C in the server's terminal does not reach it.
        assert os.getsid(worker.pid) == worker.pid
        # It would not react to a request to end.
        process.suspend()
        await worker.stop()
        assert not psutil.pid_exists(worker.pid)

    asyncio.run(run())


def test_a_worker_that_is_killed_is_told_and_replaced(tmp_path: Path) -> None:
    async def run() -> None:
        pool = Pool(lambda: Worker.start(tmp_path, MEMORY), size=1, waiting=1)
        task = {"task": "describe", "model": "/no/such.prevalens", "limits": Limits()}
        with pytest.raises(Problem, match="There is no file"):
            await pool.run(task, seconds=60)
        (first,) = pool.pids()
        # While it is idle, as the system may do for lack of memory.
        os.kill(first, signal.SIGKILL)
        assert _gone(first)
        with pytest.raises(Problem, match="most likely for lack of memory"):
            await pool.run(task, seconds=60)
        with pytest.raises(Problem, match="There is no file"):
            await pool.run(task, seconds=60)
        assert first not in pool.pids()
        await pool.close()

    asyncio.run(run())


def test_no_file_of_the_current_folder_is_imported_and_all_ends_with_a_server_that_is_killed(
    tmp_path: Path,
) -> None:
    (tmp_path / "sklearn.py").write_text("raise SystemExit('imported')")
    done = subprocess.run(
        [sys.executable, "-c", _KILLED], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    *said, pids = done.stdout.splitlines()
    assert "There is no file" in said[-1], done.stderr
    assert len(pids.split()) == 3
    for pid in map(int, pids.split()):
        assert _gone(pid)


def test_nobody_waits_for_a_worker_at_the_end(tmp_path: Path) -> None:
    # A module that takes long to load stands for the libraries on a slow machine.
    (tmp_path / "slow.py").write_text("import time; time.sleep(60)")
    code = """
import asyncio
from pathlib import Path
from prevalens.service import workers

async def run():
    await asyncio.wait_for(workers.Worker.start(Path.cwd(), None), 0.5)

workers._PRELOADED[:] = ["slow"]
asyncio.run(run())
"""
    path = filter(None, (os.environ.get("PYTHONPATH"), str(tmp_path)))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, stderr=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 1
    assert time.monotonic() - start < 30
