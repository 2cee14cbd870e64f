"""Load on the service: 8 clients, 200 requests of 1,000 short texts, then of one, on loopback.

Run it with ``python benchmarks/measure_service.py``; it writes ``benchmarks/results/service.md``.
The server is the command itself in a process of its own; clients are threads of this one.
"""

from __future__ import annotations

import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil

from prevalens.datasets.tickets import SEPARATOR, tickets, write_tickets
from prevalens.model.fit import fit_files

CLIENTS, REQUESTS, TEXTS = 8, 200, 1000
SINGLE = 20
ONE_TEXT = 1000
METHOD = "lr+pacc"
RESULTS = Path(__file__).parent / "results" / "service.md"
START = "from prevalens.__main__ import main; main()"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = tickets(n_train=1200, n_per_month=TEXTS, months=CLIENTS)
        write_tickets(data, folder)
        fit_files(
            folder / "train.csv", text="text", tags="tags", sep=SEPARATOR, method=METHOD
        ).save(folder / "tickets.prevalens")
        batches = [list(data.test.X[i * TEXTS : (i + 1) * TEXTS]) for i in range(CLIENTS)]
        figures = _measure(folder / "tickets.prevalens", batches)
        figures["letters"] = statistics.mean(map(len, data.test.X))
    RESULTS.write_text(_page(figures), encoding="utf-8")
    sys.stdout.write(_page(figures))


@contextmanager
def running_server(model: Path) -> Iterator[tuple[str, psutil.Process]]:
    """The command `prevalens serve` in a process of its own: its address and the process."""
    command = [sys.executable, "-c", START, "serve", str(model), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        found = re.search(r"http://\S+", server.stderr.readline())
        assert found
        try:
            yield found[0], psutil.Process(server.pid)
        finally:
            server.terminate()


def _measure(model: Path, batches: list[list[str]]) -> dict[str, Any]:
    with running_server(model) as (url, server):
        return _load(url, server, batches)


def _load(url: str, server: psutil.Process, batches: list[list[str]]) -> dict[str, Any]:
    place = f"{url}v1/models/tickets/quantify"
    with httpx.Client(timeout=300, trust_env=False) as client:

        def ask(number: int) -> tuple[float, Any]:
            start = time.perf_counter()
            answer = client.post(place, json={"texts": batches[number % CLIENTS]})
            return time.perf_counter() - start, answer

        with ThreadPoolExecutor(CLIENTS) as clients:
            # Every worker has the model before anything is measured.
            list(clients.map(ask, range(4 * CLIENTS)))
            memory, cpu = [_memory(server)], [_cpu(server)]
            alone = [ask(number) for number in range(SINGLE)]
            memory.append(_memory(server))
            start = time.perf_counter()
            found = list(clients.map(ask, range(REQUESTS)))
            wall = time.perf_counter() - start
        time.sleep(1)
        memory.append(_memory(server))
        cpu.append(_cpu(server))
        with ThreadPoolExecutor(CLIENTS) as clients:
            list(clients.map(ask, range(REQUESTS)))
        time.sleep(1)
        memory.append(_memory(server))

        def ask_one(number: int) -> None:
            text = batches[number % CLIENTS][:1]
            client.post(place, json={"texts": text}).raise_for_status()

        with ThreadPoolExecutor(CLIENTS) as clients:
            start = time.perf_counter()
            list(clients.map(ask_one, range(ONE_TEXT)))
            one_text = time.perf_counter() - start
    expected = [_numbers(answer) for _, answer in alone[:CLIENTS]]
    good = [_numbers(one) == expected[number % CLIENTS] for number, (_, one) in enumerate(found)]
    times = sorted(seconds for seconds, _ in found)
    single = sorted(seconds for seconds, _ in alone)
    return {
        "answers": len(found),
        "right": sum(good),
        "single": statistics.median(single),
        "single_p95": _at(single, 0.95),
        "median": statistics.median(times),
        "p95": _at(times, 0.95),
        "largest": times[-1],
        "wall": wall,
        "cpu": cpu[1] - cpu[0],
        "memory": memory,
        "one_text": ONE_TEXT / one_text,
    }


def _numbers(answer: Any) -> list[tuple[str, float, float, float]]:
    answer.raise_for_status()
    rows = answer.json()["rows"]
    return [(row["label"], row["prevalence"], row["lower"], row["upper"]) for row in rows]


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _family(server: psutil.Process) -> list[psutil.Process]:
    return [server, *server.children(recursive=True)]


def _memory(server: psutil.Process) -> float:
    """Proportional memory of the server, its fork server and its workers, in MB."""
    return sum(one.memory_full_info().pss for one in _family(server)) / 1e6


def _cpu(server: psutil.Process) -> float:
    return sum(sum(one.cpu_times()[:2]) for one in _family(server))


def _page(found: dict[str, Any]) -> str:
    load = " / ".join(f"{one:.1f}" for one in os.getloadavg())
    rows = [
        ("answers", f"{found['answers']} of {REQUESTS}", "all"),
        ("answers equal to those a client alone gets", f"{found['right']} of {REQUESTS}", "all"),
        ("one client: median", f"{found['single']:.3f} s", ""),
        ("one client: p95", f"{found['single_p95']:.3f} s", ""),
        (f"{CLIENTS} clients: median", f"{found['median']:.3f} s", ""),
        (f"{CLIENTS} clients: p95", f"**{found['p95']:.3f} s**", _allowed(found["single"])),
        (f"{CLIENTS} clients: largest", f"{found['largest']:.3f} s", ""),
        ("texts per second", f"{REQUESTS * TEXTS / found['wall']:,.0f}", ""),
        ("requests of one text per second", f"{found['one_text']:.0f}", "100"),
        ("CPU of the server per request", f"{found['cpu'] / (REQUESTS + SINGLE):.3f} s", ""),
        ("memory after warming up", f"{found['memory'][0]:.0f} MB", ""),
        (f"memory after {REQUESTS} requests", f"{found['memory'][2]:.0f} MB", "its level before"),
        (f"memory after {2 * REQUESTS}", f"{found['memory'][3]:.0f} MB", "its level before"),
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"""# Service

Written by `benchmarks/measure_service.py`. Python {platform.python_version()}; \
{os.cpu_count()} cores, load {load} at the end.

{REQUESTS} requests of {TEXTS:,} texts ({found["letters"]:.0f} letters each) from {CLIENTS} clients
at a time, on loopback; {METHOD} trained on 900 tickets with 9 labels; intervals of 90 %; 2 workers.

| figure | value | asked |
|---|---|---|
{table}

Memory is the proportional set size of the server, its fork server and its workers together.
"""


def _allowed(single: float) -> str:
    return f"3 x {single:.3f} s x 4 = {12 * single:.2f} s"


if __name__ == "__main__":
    main()
