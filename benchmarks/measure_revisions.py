"""Time this checkout against an older revision, both in one run: ``measure_revisions.py REV``.

Each revision runs in processes of its own, by turns, on one thread. What counts is the least CPU
time of a task over all rounds; the ratio is old over new, so 1 or more means no slower. The tasks
use public names only. Writes ``benchmarks/results/revisions.md``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "revisions.md"
REPEATS = 3


def tasks(folder: Path) -> dict[str, Callable[[], object]]:
    """The pieces of work, by name; what they need is made here and not timed."""
    from click.testing import CliRunner

    from prevalens import Quantifier, evaluate, parse
    from prevalens.datasets import synthetic
    from prevalens.protocols import MLAPP, Natural
    from prevalens.splits import stratified_folds

    data = synthetic(n_train=3000, n_test=3000, n_labels=20)
    texts = synthetic(n_train=2000, n_test=1000, n_labels=8)
    samples = MLAPP(size=100, more_than=2000).draw(data.test.Y, np.random.default_rng(0))
    fitted = {
        name: parse(name).fit(data.train.X, data.train.Y)
        for name in ("lr+pacc", "lr+sld", "lr+hdy", "lr+rq(pcc,ridge)", "lr+mixture", "forest+pcc")
    }
    scores = {name: quantifier.score(data.test.X) for name, quantifier in fitted.items()}
    cli = _command_line()
    runner = CliRunner()
    runner.invoke(cli, ["demo", "--files", str(folder / "tickets")], catch_exceptions=False)
    model = str(folder / "model.prevalens")
    columns = ["--text", "text", "--tags", "tags", "--sep", ";"]
    fit = ["fit", str(folder / "tickets" / "train.csv"), "-o", model, *columns, "--method"]
    runner.invoke(cli, [*fit, "lr+pacc"], catch_exceptions=False)
    quantify = ["quantify", model, str(folder / "tickets" / "months"), "--by-time", "date"]

    def train(name: str) -> Callable[[], object]:
        return lambda: parse(name).fit(data.train.X, data.train.Y)

    def aggregate(name: str) -> Callable[[], object]:
        aggregator = fitted[name].aggregator_
        return lambda: aggregator.aggregate(scores[name], samples)

    return {
        **{
            f"train {name}": train(name)
            for name in (
                "lr+pcc",
                "lr+pacc",
                "stack(lr)+pcc",
                "chain+pcc",
                "mlknn+pcc",
                "forest+pcc",
                "lr+rq(pcc,svr)",
                "lr+rq(pcc,ridge)",
                "lr+lpq(pcc)",
                "lr+mixture",
            )
        },
        **{f"2,000 samples, {name}": aggregate(name) for name in fitted},
        "score 3,000 items, forest": lambda: fitted["forest+pcc"].score(data.test.X),
        "one batch with intervals, mixture": lambda: fitted["lr+mixture"].quantify(
            data.test.X, interval=0.9
        ),
        "draw ML-APP": lambda: MLAPP(size=100, more_than=10_000).draw(
            data.test.Y, np.random.default_rng(0)
        ),
        "evaluate lr+pacc": lambda: evaluate(
            fitted["lr+pacc"], data.test, Natural(size=100, n_samples=2000)
        ),
        "five folds": lambda: stratified_folds(data.train.Y, 5),
        "automatic choice": lambda: Quantifier().fit(texts.train.X[:300], texts.train.Y[:300]),
        "prevalens quantify": lambda: runner.invoke(cli, quantify, catch_exceptions=False),
        "prevalens quantify --html": lambda: runner.invoke(
            cli, [*quantify, "--html", str(folder / "report.html")], catch_exceptions=False
        ),
    }


def _command_line() -> object:
    try:
        return importlib.import_module("prevalens.__main__").cli
    except ModuleNotFoundError:
        return importlib.import_module("prevalens.cli").cli


def measure() -> dict[str, float]:
    """Least CPU seconds of every task in this process."""
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, work in tasks(Path(folder)).items():
            times = []
            for _ in range(REPEATS):
                start = time.process_time()
                work()
                times.append(time.process_time() - start)
            seconds[name] = min(times)
    return seconds


def started(source: Path, code: str) -> float:
    """Least CPU seconds of a new Python process that runs some code, of ten."""
    times = []
    for _ in range(10):
        before = os.times()
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            env=_environment(source),
            stdout=subprocess.DEVNULL,
        )
        after = os.times()
        times.append(sum(after[2:4]) - sum(before[2:4]))
    return min(times)


def _environment(source: Path) -> dict[str, str]:
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "NUMBA")}
    return {**os.environ, **threads, "PYTHONPATH": str(source)}


def compare(revision: str, rounds: int) -> None:
    """Measure both revisions by turns and write the table."""
    best: dict[str, dict[str, float]] = {"old": {}, "new": {}}
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "old"
        subprocess.run(
            ["git", "-C", str(ROOT), "worktree", "add", "-q", "--detach", str(old), revision],
            check=True,
        )
        try:
            sources = {"old": old / "src", "new": ROOT / "src"}
            for _ in range(rounds):
                for side, source in sources.items():
                    done = subprocess.run(
                        [sys.executable, __file__, "--measure"],
                        check=True,
                        stdout=subprocess.PIPE,
                        text=True,
                        env=_environment(source),
                    )
                    found = json.loads(done.stdout.splitlines()[-1])
                    found["import prevalens"] = started(source, "import prevalens")
                    for task, seconds in found.items():
                        best[side][task] = min(seconds, best[side].get(task, np.inf))
        finally:
            subprocess.run(
                ["git", "-C", str(ROOT), "worktree", "remove", "--force", str(old)], check=True
            )
    write(revision, rounds, best)


def write(revision: str, rounds: int, best: dict[str, dict[str, float]]) -> None:
    """The table as Markdown."""
    lines = [
        "# This checkout against an older revision",
        "",
        f"`python benchmarks/measure_revisions.py {revision} --rounds {rounds}`: least CPU seconds",
        f"of {rounds} rounds by turns, {REPEATS} repeats each, one thread. Ratio: old over new.",
        "",
        "| task | old | new | ratio |",
        "|---|---|---|---|",
    ]
    for task, old in best["old"].items():
        new = best["new"][task]
        lines.append(f"| {task} | {old:.4f} | {new:.4f} | {old / new:.2f} |")
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def main() -> None:
    """Compare with a revision; with ``--measure``, only measure what is importable."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure()))
    else:
        compare(given.revision, given.rounds)


if __name__ == "__main__":
    main()
