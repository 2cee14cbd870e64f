from __future__ import annotations

import asyncio
from typing import Any

import pytest

from prevalens.service.problems import Problem
from prevalens.service.workers import CLIENT, Pool, Turns


class Fake:
    """A worker without a process; the task says what it does."""

    made = 0

    def __init__(self) -> None:
        Fake.made += 1
        self.pid = Fake.made
        self.alive = True
        self.stopped = False

    async def run(self, task: dict[str, Any], progress: Any) -> dict[str, Any]:
        progress({"stage": "running"})
        await asyncio.sleep(task.get("seconds", 0))
        if task.get("die"):
            self.alive = False
        if "problem" in task:
            raise Problem(task["problem"], "No.")
        return {"pid": self.pid}

    async def stop(self) -> None:
        self.alive = False
        self.stopped = True


def _pool(size: int = 1, waiting: int = 5, pause: float = 0) -> Pool:
    async def start() -> Any:
        await asyncio.sleep(pause)
        return Fake()

    return Pool(start, size=size, waiting=waiting)


async def _run(pool: Pool, seconds: float = 5, **task: Any) -> dict[str, Any]:
    return await pool.run(task, seconds=seconds)


def test_a_worker_does_one_task_after_the_other() -> None:
    async def run() -> list[int]:
        pool = _pool()
        done = await asyncio.gather(*(_run(pool) for _ in range(4)))
        return [one["pid"] for one in done]

    assert len(set(asyncio.run(run()))) == 1


def test_tasks_run_side_by_side_up_to_the_size() -> None:
    async def run() -> tuple[int, int]:
        pool = _pool(size=2)
        tasks = [asyncio.create_task(_run(pool)) for _ in range(2)]
        waiting = [asyncio.create_task(pool.run({"seconds": 0.05}, seconds=5)) for _ in range(3)]
        await asyncio.sleep(0.01)
        busy = pool.tasks
        await asyncio.gather(*tasks, *waiting)
        return busy, len(pool.pids())

    busy, processes = asyncio.run(run())
    assert busy >= 3
    assert processes == 2


def test_a_slow_task_makes_way_for_quick_ones() -> None:
    async def run() -> tuple[bool, bool]:
        async def start() -> Any:
            return Fake()

        pool = Pool(start, size=1, waiting=5, patience=0.02)
        slow = [asyncio.create_task(pool.run({"seconds": 1}, seconds=5)) for _ in range(2)]
        await asyncio.sleep(0.1)
        # One slow task is in overtime; the other one has the only turn.
        quick = asyncio.create_task(_run(pool))
        await asyncio.sleep(0.1)
        blocked = not quick.done()
        slow[0].cancel()
        await asyncio.sleep(0.1)
        served = quick.done()
        slow[1].cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        await asyncio.wait_for(asyncio.gather(_run(pool), _run(pool)), 1)
        return blocked, served

    assert asyncio.run(run()) == (True, True)


async def _order(size: int, clients: str, *, running: int) -> str:
    """The clients in the order in which their tasks start; each ends when `running` of them run."""
    turns, order, release = Turns(size), [], asyncio.Event()

    async def take(client: str) -> None:
        async with turns.taken(client):
            order.append(client)
            if len(order) <= running:
                await release.wait()

    tasks = [asyncio.create_task(take(client)) for client in clients]
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(order) == running
    release.set()
    await asyncio.wait_for(asyncio.gather(*tasks), 1)
    return "".join(order)


@pytest.mark.parametrize(
    ("size", "clients", "running", "expected"),
    [
        # One client alone: in order, without extra turns.
        (2, "aaaaa", 2, "aaaaa"),
        # The first task of another client starts at once, its others take turns with the first's.
        (1, "aaabbb", 2, "ababab"),
        (2, "aaaab", 3, "aabaa"),
        # Extra turns are as few as the others; the third waits, but not behind all of the first's.
        (1, "aaabc", 2, "abcaa"),
    ],
)
def test_no_client_takes_all_turns(size: int, clients: str, running: int, expected: str) -> None:
    assert asyncio.run(_order(size, clients, running=running)) == expected


def test_a_task_cancelled_while_it_waits_leaves_its_turn_to_others() -> None:
    async def run() -> None:
        turns, release = Turns(1), asyncio.Event()

        async def take() -> None:
            async with turns.taken("a"):
                await release.wait()

        first, second, third = (asyncio.create_task(take()) for _ in range(3))
        await asyncio.sleep(0)
        # Cancelled in the same step in which the first gives its turn back.
        second.cancel()
        first.cancel()
        release.set()
        await asyncio.wait_for(third, 1)
        await asyncio.gather(first, second, return_exceptions=True)
        await asyncio.wait_for(take(), 1)

    asyncio.run(run())


def test_a_full_queue_of_one_client_is_not_full_for_another() -> None:
    async def run() -> None:
        pool = _pool(size=1, waiting=1)
        tasks = [asyncio.create_task(pool.run({"seconds": 0.05}, seconds=5)) for _ in range(2)]
        await asyncio.sleep(0)
        CLIENT.set("another")
        await asyncio.gather(_run(pool), *tasks)
        assert pool.tasks == 0

    asyncio.run(run())


def test_a_full_queue_refuses() -> None:
    async def run() -> None:
        pool = _pool(size=1, waiting=1)
        tasks = [asyncio.create_task(pool.run({"seconds": 0.05}, seconds=5)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Problem, match="enough to do") as refused:
            await _run(pool)
        assert refused.value.headers == {"retry-after": "5"}
        await asyncio.gather(*tasks)
        assert pool.tasks == 0
        await _run(pool)

    asyncio.run(run())


def test_a_refused_task_leaves_the_worker_for_the_next() -> None:
    async def run() -> tuple[list[int], list[int]]:
        pool = _pool()
        with pytest.raises(Problem, match="No"):
            await _run(pool, problem="bad_input")
        before = pool.pids()
        await _run(pool)
        return before, pool.pids()

    before, after = asyncio.run(run())
    assert before == after
    assert len(before) == 1


def test_a_task_beyond_its_time_ends_with_its_process() -> None:
    async def run() -> tuple[int, list[int]]:
        pool = _pool()
        first = (await _run(pool))["pid"]
        with pytest.raises(Problem, match=r"longer than the 0\.02 s") as refused:
            await pool.run({"seconds": 5}, seconds=0.02)
        assert refused.value.status == 504
        assert pool.pids() == []
        return first, [(await _run(pool))["pid"]]

    first, later = asyncio.run(run())
    assert first not in later


def test_a_worker_that_dies_is_replaced() -> None:
    async def run() -> list[int]:
        pool = _pool()
        with pytest.raises(Problem):
            await _run(pool, die=True, problem="internal")
        assert pool.pids() == []
        await _run(pool)
        return pool.pids()

    assert len(asyncio.run(run())) == 1


def test_cancelling_a_task_ends_its_process() -> None:
    async def run() -> list[int]:
        pool = _pool()
        task = asyncio.create_task(pool.run({"seconds": 5}, seconds=60))
        await asyncio.sleep(0.01)
        assert len(pool.pids()) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert pool.tasks == 0
        return pool.pids()

    assert asyncio.run(run()) == []


def test_a_worker_nobody_waits_for_any_more_serves_the_next() -> None:
    async def run() -> tuple[list[int], int]:
        pool = _pool(pause=0.05)
        task = asyncio.create_task(_run(pool))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.sleep(0.1)
        return pool.pids(), (await _run(pool))["pid"]

    kept, used = asyncio.run(run())
    assert kept == [used]


def test_the_end_stops_all() -> None:
    async def run() -> list[int]:
        pool = _pool(size=2)
        await asyncio.gather(*(pool.run({"seconds": 0.01}, seconds=5) for _ in range(2)))
        await pool.close()
        return pool.pids()

    assert asyncio.run(run()) == []
