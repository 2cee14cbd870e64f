"""Files larger than memory against the bare loop; start-up, loading and fitting in seconds.

    PREVALENS_DATA=... pytest benchmarks/test_workflow.py --benchmark-enable -p no:xdist

writes benchmarks/results/workflow.md. The bare loop reads the same CSV with the csv module, 8,192
rows at a time, has scikit-learn's TfidfVectorizer (with our terms and settings) make features of
the texts and asks the same classifier for posteriors, of which it keeps nothing: no groups, no
estimates, no intervals. Every run is a process of its own; ratios are of CPU seconds.
"""

from __future__ import annotations

import csv
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prevalens.datasets import load
from prevalens.datasets.tickets import tickets
from prevalens.model import Model
from prevalens.tables.text import TextPreparation

RESULTS = Path(__file__).parent / "results" / "workflow.md"
ROWS = int(os.environ.get("PREVALENS_BENCH_ROWS", "2000000"))
LABELS = 72
HEAD = "| what | measured | asked |\n|---|---|---|\n"
FIGURES: list[tuple[str, str, str]] = []

MEASURE = """
import json, resource, sys, time
start = time.perf_counter()
{body}
used = resource.getrusage(resource.RUSAGE_SELF)
# Of this program alone: the system counts the pages of the parent too, until the new one starts.
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({{"cpu": used.ru_utime + used.ru_stime, "peak": peak / 2**20,
                   "wall": time.perf_counter() - start, **found}}))
"""

OURS = """
from prevalens.model import quantify_files
result = quantify_files({model!r}, {batch!r}, by_time="date", freq="M", interval={interval})
found = {{"groups": len(result.batches), "rows": int(result.sizes.sum())}}
"""

BARE = """
import csv
from itertools import islice
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from prevalens.model import Model
from prevalens.tables.text import _WORD, _normal
model = Model.load({model!r})
ready = model.preparation
vectoriser = TfidfVectorizer(preprocessor=_normal, token_pattern=_WORD, ngram_range=(1, 2),
                             vocabulary=ready.terms_, sublinear_tf=True, dtype=np.float32)
vectoriser.idf_ = ready.idf_
rows = 0
with open({batch!r}, newline="", encoding="utf-8") as file:
    reader = csv.reader(file)
    place = next(reader).index("text")
    while chunk := list(islice(reader, 8192)):
        X = vectoriser.transform([row[place] for row in chunk])
        rows += len(model.quantifier.classifier_.predict_proba(X))
found = {{"groups": 0, "rows": rows}}
"""


def measured(body: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE.format(body=body)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    return json.loads(done.stdout)


def command(*words: str) -> tuple[float, str]:
    """Wall seconds and output of a command, start-up included."""
    start = time.perf_counter()
    code = "from prevalens.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    return time.perf_counter() - start, done.stdout


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    yield
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    load_now = " / ".join(f"{one:.1f}" for one in os.getloadavg())
    rows = [line for line in _kept() if line.split(" | ")[0] not in {f"| {f[0]}" for f in FIGURES}]
    rows += [f"| {' | '.join(one)} |" for one in FIGURES]
    RESULTS.write_text(
        f"# From files to prevalences\n\nWritten by `benchmarks/test_workflow.py`. Python "
        f"{platform.python_version()}, {libraries}; {os.cpu_count()} cores, load {load_now} at the "
        f"end of the last test.\n\n{HEAD}" + "\n".join(rows) + "\n"
    )


def _kept() -> list[str]:
    if not RESULTS.exists():
        return []
    lines = RESULTS.read_text().splitlines()
    return [line for line in lines if re.match(r"\| (?!what|-)", line)]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model of 72 labels, and a batch of many rows: tickets of a year, over and over."""
    given = os.environ.get("PREVALENS_BENCH_FOLDER")
    folder = Path(given) if given else tmp_path_factory.mktemp("large")
    if (folder / "batch.csv").exists():
        return folder / "model.prevalens", folder / "batch.csv"
    data = tickets(5000, 2500, months=8)
    often = _words(data.train.X)
    words = np.array([[f" {word} " in f" {text} " for word in often] for text in data.train.X])
    Y = np.hstack([data.train.Y, words[:, : LABELS - data.train.n_labels]]).astype(np.int8)
    names = [f"label {j}" for j in range(Y.shape[1])]
    table = {"text": list(data.train.X)}
    Model.fit(table, Y, labels=names, text="text", method="lr+pacc").save(
        folder / "model.prevalens"
    )
    days = [str(day)[:10] for day in data.test_times]
    with (folder / "batch.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "date", "text"])
        for row in range(ROWS):
            place = row % data.test.n_items
            writer.writerow([row, days[place], data.test.X[place]])
    return folder / "model.prevalens", folder / "batch.csv"


def _words(texts: Any) -> list[str]:
    counts: dict[str, int] = {}
    for text in texts:
        for word in set(text.split()):
            counts[word] = counts.get(word, 0) + 1
    usable = [word for word, count in counts.items() if 100 < count < 2000]
    return sorted(usable, key=lambda word: (-counts[word], word))[:LABELS]


def what(large: tuple[Path, Path]) -> str:
    size = large[1].stat().st_size / 2**20
    return f"{ROWS:,} rows of CSV ({size:,.0f} MB), {LABELS} labels"


def test_bare_loop(large: tuple[Path, Path]) -> None:
    model, batch = map(str, large)
    bare = measured(BARE.format(model=model, batch=batch))
    assert bare["rows"] == ROWS
    FIGURES.append(
        (f"bare loop, {what(large)}", f"{bare['cpu']:.0f} CPU s, {bare['wall']:.0f} s", "")
    )


def bare_seconds(large: tuple[Path, Path]) -> float:
    """CPU seconds of the bare loop, as measured last."""
    rows = [f"| {' | '.join(one)} |" for one in FIGURES] + _kept()
    row = next(line for line in rows if line.startswith(f"| bare loop, {what(large)}"))
    return float(re.search(r"\| (\d+) CPU s", row).group(1))  # type: ignore[union-attr]


@pytest.mark.parametrize("interval", [None, 0.9])
def test_large_csv(interval: float | None, large: tuple[Path, Path], benchmark: Any) -> None:
    model, batch = map(str, large)
    body = OURS.format(model=model, batch=batch, interval=interval)
    ours = benchmark.pedantic(measured, (body,), rounds=1)
    assert ours["rows"] == ROWS
    ratio = ours["cpu"] / bare_seconds(large)
    name = "with intervals" if interval else "without intervals"
    FIGURES.append(
        (
            f"quantify by month {name}, {what(large)}",
            f"{ours['cpu']:.0f} CPU s, {ours['wall']:.0f} s, {ratio:.2f} times the bare loop; "
            f"peak memory {ours['peak']:.2f} GB",
            "at most 2 times; below 1.5 GB",
        )
    )
    assert ratio <= 2
    assert ours["peak"] < 1.5


def test_help() -> None:
    command("--help")
    seconds, _ = command("--help")
    FIGURES.append(("prevalens --help", f"{seconds:.2f} s", "below 0.5 s"))
    assert seconds < 0.5


def test_loading(tmp_path: Path) -> None:
    """A text model with 50,000 terms and 72 labels, in a fresh process."""
    rng = np.random.default_rng(0)
    letters = "abcdefghijklmnopqrst"
    words = ["".join(letters[(number // 20**i) % 20] for i in range(4)) for number in range(60_000)]
    texts = [" ".join(rng.choice(words, 60)) for _ in range(2000)]
    Y = (rng.random((2000, LABELS)) < 0.2).astype(np.int8)
    preparation = TextPreparation(min_df=1, max_terms=50_000, pairs=False)
    model = Model.fit(texts, Y, method="lr+pacc", preparation=preparation)
    assert model.summary.n_features == 50_000
    model.save(tmp_path / "m.prevalens")
    body = (
        "from prevalens.model import Model\n"
        "before = time.perf_counter()\n"
        f"model = Model.load({str(tmp_path / 'm.prevalens')!r})\n"
        "lazy = time.perf_counter() - before\n"
        "model.preparation.transform(['aaaa baaa'])\n"
        "found = {'lazy': lazy, 'whole': time.perf_counter() - before}"
    )
    found = measured(body)
    megabytes = (tmp_path / "m.prevalens").stat().st_size / 2**20
    FIGURES.append(
        (
            "load a text model of 50,000 terms",
            f"{found['lazy']:.2f} s, {found['whole']:.2f} s until the first text is prepared "
            f"({megabytes:.0f} MB)",
            "below 1 s",
        )
    )
    assert found["whole"] < 1


@pytest.mark.data
def test_reuters(tmp_path: Path) -> None:
    """Fit with the automatic choice on 9,603 texts; quantify 3,299, start-up included."""
    data = load("reuters21578", text=True)
    names = np.array(data.train.labels, dtype=object)
    for name, part in (("train", data.train), ("later", data.test)):
        with (tmp_path / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "topics"])
            writer.writerows(
                [text, " ".join(names[row == 1])] for text, row in zip(part.X, part.Y, strict=True)
            )
    train, later, model = (str(tmp_path / one) for one in ("train.csv", "later.csv", "m.prevalens"))
    budget = int(os.environ.get("PREVALENS_BENCH_BUDGET", "600"))
    fitted, _ = command(
        "fit", train, "-o", model, "--text", "text", "--tags", "topics", "--sep", " ",
        "--time-budget", f"{budget}s",
    )  # fmt: skip
    seconds, out = command("quantify", model, later, "--json")
    found = json.loads(out)
    method = found["provenance"]["method"]
    point = np.array([row["prevalence"] for row in found["rows"]])
    order = [data.test.labels.index(row["label"]) for row in found["rows"]]
    error = np.abs(point - data.test.prevalence[order]).mean()
    FIGURES.append(
        (
            "fit reuters21578: 9,603 texts, 72 labels, auto",
            f"{fitted:.0f} s, chose {method}",
            f"within its budget of {budget} s",
        )
    )
    FIGURES.append(
        (
            "quantify 3,299 texts, start-up included",
            f"{seconds:.1f} s, mean absolute error {error:.4f}",
            "below 10 s",
        )
    )
    assert fitted <= budget
    assert seconds < 10
