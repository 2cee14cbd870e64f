from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import joblib
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from prevalens.catalogue import load_parts, unregister
from prevalens.experiments import Cell, CellResult, Failure, ProtocolSpec
from prevalens.experiments import workers as module
from prevalens.experiments.workers import _take_next, check_jobs, compute
from prevalens.validation import InputError, PrevalensWarning

Make = Callable[..., Cell]
Wait = Callable[[Callable[[], Any]], Any]
#: Takes some seconds.
SLOW = ProtocolSpec("slow", "ml-app", {"more_than": 100_000})
TOO_LARGE = ProtocolSpec("too large", "ml-app", {"size": 10**6})

needs_proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="children are found in /proc")


def children(process: int) -> set[int]:
    lists = Path(f"/proc/{process}/task").glob("*/children")
    return {int(child) for file in lists for child in file.read_text().split()}


def workers(process: int) -> set[int]:
    """The processes of loky that compute, without its resource tracker."""
    loky = set()
    for child in children(process):
        command = Path(f"/proc/{child}/cmdline").read_bytes()
        if b"popen_loky_posix" in command:
            loky.add(child)
    return loky


def by_key(outcomes: list[CellResult | Failure]) -> dict[str, CellResult]:
    return {outcome.key: outcome for outcome in outcomes if isinstance(outcome, CellResult)}


def check_equal(left: list[CellResult | Failure], right: list[CellResult | Failure]) -> None:
    results, others = by_key(left), by_key(right)
    assert results.keys() == others.keys()
    for key, result in results.items():
        for name, values in result.columns.items():
            assert others[key].columns[name].tobytes() == values.tobytes()


@pytest.fixture
def groups(make_cell: Make) -> list[list[Cell]]:
    cells = [make_cell(), make_cell(expression="lr+acc"), make_cell(protocol=TOO_LARGE)]
    return [[cell] for cell in cells]


@pytest.fixture
def alone(groups: list[list[Cell]]) -> list[CellResult | Failure]:
    """What this process computes."""
    return list(compute(groups, 1))


def test_several_processes_find_what_one_finds(
    groups: list[list[Cell]], alone: list[CellResult | Failure], tmp_path: Path
) -> None:
    several = list(compute(groups, 2, cache_folder=tmp_path))
    for outcomes in (alone, several):
        (failure,) = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
        assert failure.cell == groups[2][0]
        assert "cannot be drawn" in failure.sentence
        assert "Traceback" in failure.trace
    assert len(by_key(alone)) == 2
    check_equal(alone, several)


@pytest.mark.parametrize("n_jobs", [None, 1])
def test_any_executor_finds_the_same(
    groups: list[list[Cell]], alone: list[CellResult | Failure], n_jobs: int | None
) -> None:
    with ThreadPoolExecutor(2) as threads:
        check_equal(alone, list(compute(groups, n_jobs, executor=threads)))
        # It is not shut down.
        assert threads.submit(int, "1").result() == 1


def test_processes_of_the_standard_library(
    groups: list[list[Cell]], alone: list[CellResult | Failure]
) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        check_equal(alone, list(compute(groups, executor=processes)))


class Breaking(Executor):
    """Computes one group, and then its processes die."""

    def __init__(self, *, cancels: bool = False) -> None:
        self.given = 0
        self.cancels = cancels

    def submit(self, task: Any, /, *args: Any, **named: Any) -> Future[Any]:
        self.given += 1
        if self.given > 2:
            raise BrokenProcessPool("dead")
        future: Future[Any] = Future()
        if self.given == 1:
            future.set_result(task(*args, **named))
        elif self.cancels:
            future.cancel()
            future.set_running_or_notify_cancel()
        else:
            future.set_exception(BrokenProcessPool("dead"))
        return future


@pytest.mark.parametrize(("n_jobs", "cancels"), [(None, False), (1, False), (2, False), (1, True)])
def test_an_executor_that_breaks_fails_what_it_has_not_finished(
    make_cell: Make, n_jobs: int | None, cancels: bool
) -> None:
    cells = [make_cell(expression=text) for text in ("lr+cc", "lr+pcc", "lr+acc", "lr(C=2)+cc")]
    outcomes = list(compute([[cell] for cell in cells], n_jobs, executor=Breaking(cancels=cancels)))
    results = [outcome for outcome in outcomes if isinstance(outcome, CellResult)]
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    assert [outcome.cell for outcome in results] == cells[:1]
    assert {str(outcome.cell) for outcome in failures} == set(map(str, cells[1:]))
    assert {outcome.sentence for outcome in failures} == {
        "The executor stopped before this cell was done; run the plan again to go on with it."
    }


@needs_proc
def test_a_worker_that_is_killed_costs_no_result(make_cell: Make, wait_for: Wait) -> None:
    slow, after = make_cell(protocol=SLOW), make_cell()
    other = make_cell(expression="lr+cc")

    def kill() -> None:
        started = wait_for(lambda: workers(os.getpid()))
        time.sleep(1)
        os.kill(started.pop(), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.warns(PrevalensWarning, match="A worker process died; 2 cells .* one at a time"):
        # One worker: the cells of its group are lost, the other group waits for a new one.
        outcomes = list(module._in_processes(_task(), [[slow, after], [other]], 1))
    killer.join()
    assert [outcome.cell for outcome in outcomes if isinstance(outcome, CellResult)] == [
        slow,
        after,
        other,
    ]
    assert not workers(os.getpid())


def _task() -> module.Task:
    return module.partial(module._run_group, (), None, None)


DEADLY = """
import os, signal
from prevalens import register
from prevalens.classifiers import PerLabel

@register(code="deadly", role="classifier")
class Deadly(PerLabel):
    def fit(self, X, Y):
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def _deadly(tmp_path: Path) -> Iterator[None]:
    path = tmp_path / "deadly_part.py"
    path.write_text(DEADLY)
    before = list(sys.path)
    load_parts(str(path))
    yield
    unregister("deadly")
    sys.path[:] = before


@pytest.mark.usefixtures("_deadly")
def test_a_deadly_cell_fails_alone(make_cell: Make) -> None:
    deadly = make_cell(expression="deadly+pcc")
    others = [make_cell(seed=seed) for seed in range(2)]
    groups = [[cell] for cell in (others[0], deadly, *others[1:])]
    with pytest.warns(PrevalensWarning, match="A worker process died"):
        outcomes = list(compute(groups, 2))
    (failure,) = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    assert failure.cell == deadly
    assert failure.sentence == "The process that computed it died (SIGKILL(-9))."
    check_equal(
        [outcome for outcome in outcomes if outcome is not failure],
        list(compute(groups[:1], 1))
        + [outcome for group in groups[2:] for outcome in compute([group], 1)],
    )


@needs_proc
def test_stopping_early_leaves_no_process(make_cell: Make) -> None:
    groups = [[make_cell()], [make_cell(protocol=SLOW)], [make_cell(protocol=SLOW, seed=1)]]
    results = compute(groups, 2)
    next(results)
    assert workers(os.getpid())
    results.close()
    assert not workers(os.getpid())


PARENT = """
from prevalens.experiments import *
from prevalens.experiments.workers import compute
protocol = ProtocolSpec("slow", "ml-app", {"more_than": 1_000_000})
source, method = DataSource("synthetic"), MethodSpec("a", "lr+pacc")
cells = [Cell(source, method, protocol, seed) for seed in (0, 1)]
list(compute([[cell] for cell in cells], 2))
"""


@needs_proc
def test_workers_end_when_their_parent_is_killed(wait_for: Wait) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT])
    started = wait_for(lambda: len(outcomes := workers(parent.pid)) == 2 and outcomes)
    time.sleep(3)
    parent.kill()
    parent.wait()
    wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in started))


def test_a_cell_computed_here_has_one_thread_too(
    make_cell: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def look(*_: Any) -> Any:
        seen.extend(outcome["num_threads"] for outcome in threadpool_info())
        yield from ()

    monkeypatch.setattr(module, "run_cells", look)
    assert list(compute([[make_cell()]], 1)) == []
    assert set(seen) == {1}


def test_the_limit_of_threads_lasts_until_the_last_thread_is_done() -> None:
    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info()}

    with threadpool_limits(limits=2):
        before = threads()
        with ExitStack() as first, ExitStack() as second:
            first.enter_context(module._one_thread)
            second.enter_context(module._one_thread)
            first.close()
            assert threads() == {1}
        assert threads() == before


def test_where_the_folder_of_scores_is_missing_none_are_kept(
    make_cell: Make, tmp_path: Path
) -> None:
    """As on another machine."""
    (outcome,) = module._run_group((), tmp_path / "elsewhere", None, [make_cell()])
    assert isinstance(outcome, CellResult)
    assert not (tmp_path / "elsewhere").exists()


def test_scores_are_not_computed_twice_at_the_same_time(make_cell: Make) -> None:
    names = ["lr+cc", "lr+pcc", "lr(C=2)+cc"]
    cc, pcc, other = waiting = [[make_cell(expression=outcome)] for outcome in names]
    waiting = list(waiting)
    assert _take_next(waiting, []) is cc
    assert _take_next(waiting, [cc]) is other
    # Better twice than an idle processor.
    assert _take_next(waiting, [cc, other]) is pcc


def test_when_scores_are_there_the_order_is_that_of_the_plan(make_cell: Make) -> None:
    waiting = [[make_cell(expression=outcome)] for outcome in ("lr+cc", "lr+pcc", "lr(C=2)+cc")]
    first, second = waiting[:2]
    assert _take_next(waiting, []) is first
    assert _take_next(waiting, []) is second


def test_no_more_processes_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joblib, "cpu_count", lambda: 2)
    assert check_jobs(-1) == 2
    assert check_jobs(1) == 1
    with pytest.warns(PrevalensWarning, match="3 processes were asked for, but there are 2 cores"):
        assert check_jobs(3) == 2
    with pytest.raises(InputError, match="n_jobs must be at least 1; got 0"):
        check_jobs(0)
