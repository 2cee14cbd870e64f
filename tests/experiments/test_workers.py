from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_info

from prevalens.experiments import Cell, CellResult, Failure, ProtocolSpec
from prevalens.experiments import workers as module
from prevalens.experiments.workers import _Schedule, compute

Make = Callable[..., Cell]
#: Takes some seconds.
SLOW = ProtocolSpec("slow", "ml-app", {"more_than": 100_000})
TOO_LARGE = ProtocolSpec("too large", "ml-app", {"size": 10**6})

needs_proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="children are found in /proc")


def children(process: int) -> list[int]:
    lists = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for one in lists for child in one.read_text().split()]


def wait_for(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise TimeoutError


def test_several_processes_find_what_one_finds(make_cell: Make, tmp_path: Path) -> None:
    cells = [make_cell(), make_cell(expression="lr+acc"), make_cell(protocol=TOO_LARGE)]
    groups = [[cell] for cell in cells]
    alone, several = list(compute(groups, 1, None)), list(compute(groups, 2, tmp_path))
    for found in (alone, several):
        (failure,) = [one for one in found if isinstance(one, Failure)]
        assert failure.cell == cells[2]
        assert "cannot be drawn" in failure.sentence
        assert "Traceback" in failure.trace
    left, right = (
        {one.key: one for one in found if isinstance(one, CellResult)} for found in (alone, several)
    )
    assert len(left) == 2
    assert left.keys() == right.keys()
    for key, one in left.items():
        for name, values in one.columns.items():
            assert right[key].columns[name].tobytes() == values.tobytes()


@needs_proc
def test_a_worker_that_dies_fails_its_cell_alone(make_cell: Make) -> None:
    slow, after = make_cell(protocol=SLOW), make_cell()
    before = set(children(os.getpid()))

    def kill() -> None:
        started = wait_for(lambda: set(children(os.getpid())) - before)
        os.kill(started.pop(), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    # One crew of one worker: the cell after the deadly one needs a new process.
    found = list(module._Crew([[slow, after]], 1, None).results())
    killer.join()
    assert [type(one) for one in found] == [Failure, CellResult]
    assert found[0].cell == slow
    assert found[0].sentence == "The process that computed it died (signal 9, Killed)."
    assert found[1].cell == after


@needs_proc
def test_stopping_early_leaves_no_process(make_cell: Make) -> None:
    before = set(children(os.getpid()))
    groups = [[make_cell()], [make_cell(protocol=SLOW)], [make_cell(protocol=SLOW, seed=1)]]
    results = compute(groups, 2, None)
    next(results)
    results.close()
    assert set(children(os.getpid())) == before


PARENT = """
from prevalens.experiments import *
from prevalens.experiments.workers import compute
protocol = ProtocolSpec("slow", "ml-app", {"more_than": 1_000_000})
cells = [Cell(Source("synthetic"), MethodSpec("a", "lr+pacc"), protocol, seed) for seed in (0, 1)]
list(compute([[cell] for cell in cells], 2, None))
"""


@needs_proc
def test_workers_end_when_their_parent_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT])
    workers = wait_for(lambda: len(found := children(parent.pid)) == 2 and found)
    parent.kill()
    parent.wait()
    wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


def test_a_cell_computed_here_has_one_thread_too(
    make_cell: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def look(cells: Any, cache: Any, parts: Any) -> Any:
        seen.extend(one["num_threads"] for one in threadpool_info())
        yield from ()

    monkeypatch.setattr(module, "run_cells", look)
    assert list(compute([[make_cell()]], 1, None)) == []
    assert set(seen) == {1}


def test_scores_are_not_computed_twice_at_the_same_time(make_cell: Make) -> None:
    names = ["lr+cc", "lr+pcc", "lr(C=2)+cc"]
    cc, pcc, other = groups = [[make_cell(expression=one)] for one in names]
    schedule = _Schedule(groups)
    assert schedule.next() == cc
    assert schedule.next() == other
    # Better twice than an idle processor.
    assert schedule.next() == pcc
    assert schedule.next() == []


def test_when_scores_are_there_the_order_is_that_of_the_plan(make_cell: Make) -> None:
    groups = [[make_cell(expression=one)] for one in ("lr+cc", "lr+pcc", "lr(C=2)+cc")]
    schedule = _Schedule(groups)
    first = schedule.next()
    schedule.finished(first)
    assert schedule.next() == groups[1]
    schedule.close()
    assert schedule.next() == []
