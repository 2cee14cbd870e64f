"""Throughput and memory of summaries, by engine: ``python benchmarks/measure_scale.py``.

    stream   10 million items x 20 labels against a bare loop that scores and sums
    jobs     one process against two, over files
    dask     one worker against two, over the same files
    spark    local[2] over the same files, and the bytes that come back
    scores   5 million rows of 10 scores in CSV and Parquet against a bare read and sum by pyarrow
    csv      2,000,000 rows with --by 500 groups, against an older revision (--before REV)

Parts may be named; all run if none is. What is compared runs by turns in one run, on one BLAS
thread, with workers that have started; the table has the ratio of the medians and the range of the
ratios of single rounds, which is the noise. Writes ``benchmarks/results/scale.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "scale.md"
N_LABELS, ROUNDS = 20, 5
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
FEATURES = [f"f{number}" for number in range(N_LABELS)]
LABELS = [f"label {number}" for number in range(N_LABELS)]


def items(n_items: int, seed: int):
    """Features and labels; each label depends on one feature and noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, N_LABELS))
    return X, (X + rng.normal(size=X.shape) > 0.8).astype(int)


def peak_memory() -> float:
    """Largest resident memory of this process so far, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1000


def by_turns(tasks: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Seconds of each task in every round."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(ROUNDS):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(slow: list[float], fast: list[float]) -> str:
    """Ratio of the medians, and the range over the rounds."""
    each = np.divide(slow, fast)
    return f"{np.median(slow) / np.median(fast):.2f} ({each.min():.2f} to {each.max():.2f})"


# --- one process, generated scores -----------------------------------------------------------


def stream(n_items: int, chunk: int = 100_000) -> dict[str, str]:
    """Summarise generated chunks, and score and sum them by hand, by turns."""
    from prevalens import Quantifier
    from prevalens.aggregators import PACC
    from prevalens.classifiers import PerLabel

    quantifier = Quantifier(PerLabel(), PACC()).fit(*items(3000, 0))
    classifier = quantifier.classifier_
    seconds, sums, total = np.zeros((n_items // chunk, 2)), np.zeros(N_LABELS), None
    rng = np.random.default_rng(1)
    for number in range(len(seconds)):
        X = rng.normal(size=(chunk, N_LABELS))
        # CPU time: what others do on the machine counts less in it.
        marks = [time.process_time()]
        sums += classifier.predict_proba(X).sum(axis=0)
        marks.append(time.process_time())
        part = quantifier.summarise(X)
        total = part if total is None else total + part
        marks.append(time.process_time())
        seconds[number] = np.diff(marks)
    bare, own = np.median(seconds, axis=0)
    spread = np.quantile(seconds[:, 0] / seconds[:, 1], [0.1, 0.9])
    start = time.perf_counter()
    quantifier.estimate(total, 0.9)
    return {
        f"{total.n_items:,} items x {N_LABELS} labels: peak memory": f"{peak_memory():.0f} MB",
        "throughput over that of a bare loop that scores and sums": f"{bare / own:.2f} "
        f"({spread[0]:.2f} to {spread[1]:.2f} for 80 % of the chunks)",
        "items per second of CPU": f"{chunk / own:,.0f}",
        "time per item": f"{own / chunk * 1e9:.0f} ns",
        "size of the summary file": f"{len(total.to_bytes()) / 1000:.0f} kB",
        "estimates with intervals from it": f"{time.perf_counter() - start:.2f} s",
    }


# --- files ------------------------------------------------------------------------------------


def write_files(folder: Path, n_files: int, n_rows: int) -> tuple[Path, list[Path]]:
    """A model, and Parquet files of features."""
    import pandas as pd

    from prevalens.model import Model

    X, Y = items(3000, 0)
    train = pd.DataFrame(X, columns=FEATURES)
    labels = pd.DataFrame(Y, columns=LABELS)
    model = folder / "model.prevalens"
    Model.fit(train, labels, columns=FEATURES, method="lr+pacc").save(model)
    files = [folder / f"{number}.parquet" for number in range(n_files)]
    for number, path in enumerate(files):
        frame = pd.DataFrame(items(n_rows, number + 1)[0], columns=FEATURES)
        frame.assign(site=np.arange(n_rows) % 12).to_parquet(path)
    return model, files


def jobs(n_rows: int) -> dict[str, str]:
    from prevalens.model.summarise import summarise_files

    with tempfile.TemporaryDirectory() as name:
        model, files = write_files(Path(name), 8, n_rows)
        tasks = {
            f"{n_jobs}": lambda n_jobs=n_jobs: summarise_files(
                model, files, by="site", n_jobs=n_jobs
            )
            for n_jobs in (1, 2)
        }
        tasks["2"]()
        seconds = by_turns(tasks)
    rate = 8 * n_rows / np.median(seconds["1"])
    return {
        f"{8 * n_rows:,} rows in 8 Parquet files: rows per second, one process": f"{rate:,.0f}",
        "two processes over one": ratio(seconds["1"], seconds["2"]),
    }


def dask(n_rows: int) -> dict[str, str]:
    from distributed import LocalCluster

    from prevalens.engines import summarise_files_dask

    how = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50, "env": THREADS}
    with (
        tempfile.TemporaryDirectory() as name,
        LocalCluster(n_workers=1, **how) as one,
        LocalCluster(n_workers=2, **how) as two,
    ):
        model, files = write_files(Path(name), 8, n_rows)
        tasks = {
            f"{number}": lambda cluster=cluster: summarise_files_dask(
                model, files, cluster.scheduler_address, by="site"
            )
            for number, cluster in ((1, one), (2, two))
        }
        for task in tasks.values():
            task()
        seconds = by_turns(tasks)
    rate = 8 * n_rows / np.median(seconds["1"])
    return {
        "Dask, the same files: rows per second, one worker": f"{rate:,.0f}",
        "Dask, two workers over one": ratio(seconds["1"], seconds["2"]),
    }


def spark(n_rows: int) -> dict[str, str]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from prevalens.engines import partial_summaries, summarise_spark

    start = time.perf_counter()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.memory", "1g").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    started = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as name:
        model, files = write_files(Path(name), 8, n_rows)
        frame = session.read.parquet(*map(str, files))
        rows = partial_summaries(model, frame, by="site").collect()
        found = []
        for _ in range(3):
            start = time.perf_counter()
            summary = summarise_spark(model, frame, by="site")
            found.append(time.perf_counter() - start)
        read = sum(path.stat().st_size for path in files)
    session.stop()
    returned = sum(len(row["summary"]) for row in rows)
    rate = summary.n_items / np.median(found)
    return {
        "Spark local[2], the same files: rows per second": f"{rate:,.0f}",
        "Spark: start of the session": f"{started:.0f} s",
        f"Spark: bytes that return from {len(rows)} partitions": f"{returned:,} "
        f"(of {read:,} that are read)",
    }


# --- scores of a labeller ---------------------------------------------------------------------


def write_scores(folder: Path, n_rows: int) -> None:
    """Scores of three digits, as CSV and Parquet, and of all digits; labelled ones to train on."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    rng = np.random.default_rng(0)

    def scores(n_items: int, digits: int = 3):
        return {f"p_{j}": rng.beta(0.5, 2, n_items).round(digits) for j in range(10)}

    train = scores(600)
    labels = {f"y_{j}": (rng.random(600) < train[f"p_{j}"] ** 0.7).astype(int) for j in range(10)}
    arrow_csv.write_csv(pa.table(train | labels), folder / "train.csv")
    schema = pa.table(scores(1)).schema
    for name, rows in (("all", n_rows), ("half", n_rows // 2)):
        with (
            parquet.ParquetWriter(folder / f"{name}.parquet", schema) as columns,
            arrow_csv.CSVWriter(folder / f"{name}.csv", schema) as lines,
        ):
            for start in range(0, rows, 250_000):
                table = pa.table(scores(min(250_000, rows - start)))
                columns.write_table(table)
                lines.write_table(table)
    with parquet.ParquetWriter(folder / "precise.parquet", schema) as columns:
        for start in range(0, n_rows, 250_000):
            columns.write_table(pa.table(scores(min(250_000, n_rows - start), 17)))


def bare_means(path: Path) -> list[float]:
    """Read by pyarrow, with as many threads as it takes, and sum."""
    import pyarrow.compute as pc
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    stored = path.suffix == ".parquet"
    reader = parquet.ParquetFile(path).iter_batches(65_536) if stored else arrow_csv.open_csv(path)
    return np.sum([[pc.sum(part).as_py() for part in batch.columns] for batch in reader], axis=0)


def score_files(n_rows: int) -> dict[str, str]:
    """CPU and elapsed seconds of estimates with intervals, by turns with those of `bare_means`."""
    figures = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_scores(folder, n_rows)
        stored = folder / "model.prevalens"
        how = ("--scores", "p_*", "--labels", "y_*", "--seed", 0, "-o", stored)
        command(ROOT / "src", "fit", folder / "train.csv", *how)
        # Before this process grows: a command counts what it held when it was started.
        for ending in ("csv", "parquet"):
            whole, half = (
                command(ROOT / "src", "quantify", stored, folder / f"{name}.{ending}")[1]
                for name in ("all", "half")
            )
            what = f"{n_rows:,} rows x 10 scores, .{ending}: peak memory"
            figures[what] = f"{whole:.0f} MB ({half:.0f} MB with half of the rows)"
        from prevalens.model import Model, quantify_files

        model = Model.load(stored)
        names = {
            "all.csv": ".csv",
            "all.parquet": ".parquet",
            "precise.parquet": ".parquet with all digits",
        }
        tasks = {"bare": bare_means, "own": lambda path: quantify_files(model, path)}
        for file, shown in names.items():
            spent: dict[str, list[tuple[float, float]]] = {key: [] for key in tasks}
            for _ in range(1 + ROUNDS):
                for key, task in tasks.items():
                    start = time.process_time(), time.perf_counter()
                    task(folder / file)
                    taken = time.process_time() - start[0], time.perf_counter() - start[1]
                    spent[key].append(taken)
            # The first round compiles, and reads the file from the disk.
            bare, own = (np.array(spent[key][1:]) for key in ("bare", "own"))
            what = f"The same, {shown}: time of a bare read and sum over that of `quantify`"
            figures[what] = (
                f"elapsed {ratio(bare[:, 1], own[:, 1])}; CPU {ratio(bare[:, 0], own[:, 0])}; "
                f"{n_rows / np.median(own[:, 1]):,.0f} rows per second"
            )
    return figures


# --- the command line, against an older revision ----------------------------------------------


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """The sources of a revision."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(where), revision], check=True)
        try:
            yield where / "src"
        finally:
            subprocess.run([*git, "remove", "--force", str(where)], check=True)


def command(source: Path, *words: object) -> tuple[float, float]:
    """CPU seconds and peak memory in MB of a command of these sources."""
    process = subprocess.Popen(
        [sys.executable, "-m", "prevalens", *map(str, words)],
        env=os.environ | THREADS | {"PYTHONPATH": str(source)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"prevalens {words[0]} of {source} failed.")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def write_csv(path: Path, n_rows: int, seed: int, n_groups: int) -> None:
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        file.write("f0,f1,f2,site,a,b,c\n")
        for _ in range(0, n_rows, 100_000):
            n_chunk = min(n_rows, 100_000)
            X = rng.normal(size=(n_chunk, 3)).round(3)
            Y = (X + rng.normal(size=X.shape) > 0.8).astype(int)
            sites = rng.integers(0, n_groups, (n_chunk, 1))
            np.savetxt(file, np.hstack([X, sites, Y]), ["%.3f"] * 3 + ["%d"] * 4, delimiter=",")


def csv(n_rows: int, before: str, rounds: int = 2) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as name, checkout(before) as old:
        folder = Path(name)
        write_csv(folder / "train.csv", 2000, 0, 500)
        write_csv(folder / "all.csv", n_rows, 1, 500)
        write_csv(folder / "half.csv", n_rows // 2, 1, 500)
        used: dict[str, list[tuple[float, float]]] = {"old": [], "new": []}
        sources = {"old": old, "new": ROOT / "src"}
        columns = ("--labels", "a,b,c", "--features", "f0,f1,f2", "--method", "lr+pacc")
        for key, source in sources.items():
            fit = ("fit", folder / "train.csv", "-o", folder / f"{key}.prevalens", *columns)
            command(source, *fit)
        for _ in range(rounds):
            for key, source in sources.items():
                how = ("--by", "site", "--force", "-o", folder / "out.csv")
                model = folder / f"{key}.prevalens"
                used[key].append(command(source, "quantify", model, folder / "all.csv", *how))
        new = folder / "new.prevalens"
        _, half = command(ROOT / "src", "quantify", new, folder / "half.csv", *how)
    seconds = {key: [each[0] for each in pairs] for key, pairs in used.items()}
    memory = {key: max(each[1] for each in pairs) for key, pairs in used.items()}
    return {
        f"CSV of {n_rows:,} rows, --by 500 groups: peak memory": f"{memory['new']:.0f} MB "
        f"({half:.0f} MB with half of the rows; {memory['old']:.0f} MB before)",
        f"CPU time of {before} over that of this revision": ratio(seconds["old"], seconds["new"]),
    }


PARTS = ("stream", "jobs", "dask", "spark", "scores", "csv")


def run_part(part: str, options: argparse.Namespace) -> dict[str, str]:
    scale = options.scale
    if part == "stream":
        return stream(round(1e7 * scale))
    if part == "scores":
        return score_files(round(5e6 * scale))
    if part == "csv":
        return csv(round(2e6 * scale), options.before)
    return {"jobs": jobs, "dask": dask, "spark": spark}[part](round(60_000 * scale))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--before", default="5304bee", metavar="REV")
    parser.add_argument("--scale", type=float, default=1.0, help="Smaller for a quick look.")
    parser.add_argument("--json", action="store_true", help="Run one part and print its figures.")
    options = parser.parse_args()
    if options.json:
        print(json.dumps(run_part(options.parts[0], options)))
        return
    lines = ["| figure | value |", "|---|---|"]
    for part in options.parts or PARTS:
        # In a process of its own, so that peak memory is that of the part.
        words = [sys.executable, __file__, part, "--json", "--before", options.before]
        done = subprocess.run(
            [*words, "--scale", str(options.scale)],
            env=os.environ | THREADS,
            stdout=subprocess.PIPE,
            check=True,
        )
        figures = json.loads(done.stdout.decode().strip().splitlines()[-1])
        lines += [f"| {name} | {value} |" for name, value in figures.items()]
        print("\n".join(lines[-len(figures) :]), flush=True)
    if not options.parts and options.scale == 1:
        about = __doc__.split("\n\n")[2].replace("\n", " ").partition("all run if none is. ")[2]
        about = about.rpartition(" Writes")[0]
        RESULT.write_text(f"# Scale\n\n{about}\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
