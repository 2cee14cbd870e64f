"""The automatic choice of this checkout against an older revision: ``measure_choice.py REV``.

CPU seconds of ``Quantifier().fit`` on one thread, and the mean absolute error on samples of the
datasets' test parts under five families of shift. Each fit runs in a process of its own; the two
revisions take turns. Needs the public datasets (``PREVALENS_DATA``). Writes
``benchmarks/results/choice.md``.

The test parts are for this comparison only: no constant of the choice was set by them. Constants
were set by validation losses on training parts, by halves of training parts, and by reasoning.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "choice.md"
FAMILIES = ("ml-app", "natural", "labelset-weights", "label-tilt", "covariate-tilt")
SIZE, N_SAMPLES = 100, 500
#: Datasets whose training part is fitted and whose test part gives errors.
WHOLE = ("emotions", "birds", "scene", "yeast", "medical", "enron")
#: Parts of training parts by dataset, number of items and of labels, the most frequent ones; of
#: these only the time counts.
PARTS = (("birds", 153, 17), ("corel5k", 334, 161), ("bibtex", 1107, 114))


def part(name: str, n_items: int, n_labels: int) -> tuple[Any, Any]:
    """Some training items, drawn with a fixed seed, and their most frequent labels."""
    from prevalens import datasets

    train = datasets.load(name).train
    rows = np.sort(np.random.default_rng(0).permutation(len(train.Y))[:n_items])
    Y = np.asarray(train.Y)[rows]
    labels = np.sort(np.argsort(-Y.sum(axis=0), kind="stable")[:n_labels])
    return train.X[rows], Y[:, labels]


def measure(key: str) -> dict[str, Any]:
    """Seconds, the chosen method, and errors by family, of what is importable."""
    from prevalens import Quantifier, datasets

    warnings.simplefilter("ignore")
    name, *shape = key.split(":")
    X, Y = part(name, *map(int, shape)) if shape else _train(datasets.load(name))
    start = time.process_time()
    quantifier = Quantifier().fit(X, Y)
    seconds = time.process_time() - start
    errors = {} if shape else _errors(quantifier, datasets.load(name).test)
    return {"seconds": seconds, "method": quantifier.choice_.name, "errors": errors}


def _train(dataset: Any) -> tuple[Any, Any]:
    return dataset.train.X, dataset.train.Y


def _errors(quantifier: Any, test: Any) -> dict[str, float]:
    from prevalens.protocols import CovariateTilt
    from prevalens.protocols.families import family_protocol

    errors = {}
    for family in FAMILIES:
        protocol = family_protocol(family, SIZE, N_SAMPLES)
        if isinstance(protocol, CovariateTilt):
            protocol = protocol.with_items(test.X)
        samples = protocol.draw(test.Y, np.random.default_rng(0))
        estimated = quantifier.quantify_many(test.X, samples).point
        errors[family] = float(np.abs(estimated - samples.mean(test.Y)).mean())
    return errors


def compare(revision: str, keys: list[str]) -> dict[str, dict[str, Any]]:
    """Measure both revisions by turns."""
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "old"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(old), revision], check=True)
        try:
            for key in keys:
                found[key] = {
                    "old": _measured(old / "src", key),
                    "new": _measured(ROOT / "src", key),
                }
                print(key, json.dumps(found[key]), flush=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(old)], check=True)
    return found


def _measured(source: Path, key: str) -> dict[str, Any]:
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "NUMBA")}
    done = subprocess.run(
        [sys.executable, __file__, "--measure", key],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **threads, "PYTHONPATH": str(source)},
    )
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def table(revision: str, found: dict[str, dict[str, Any]]) -> str:
    """The results as Markdown."""
    lines = [
        "# The automatic choice against an older revision",
        "",
        f"`python benchmarks/measure_choice.py {revision}`: CPU seconds of `Quantifier().fit`, one",
        "thread, both revisions by turns. `birds:153:17` is a part of the training items of birds",
        "with 153 items and 17 labels.",
        "",
        "| items | old | new | old / new | old choice | new choice |",
        "|---|---|---|---|---|---|",
    ]
    for key, sides in found.items():
        old, new = sides["old"], sides["new"]
        ratio = old["seconds"] / new["seconds"]
        lines.append(
            f"| {key} | {old['seconds']:.1f} | {new['seconds']:.1f} | {ratio:.1f} | "
            f"`{old['method']}` | `{new['method']}` |"
        )
    lines += [
        "",
        f"Mean absolute error on {N_SAMPLES} samples of {SIZE} test items per family, in",
        "percentage points, old / new. No constant of the choice was set by these errors. They",
        "were looked at three times while it was made faster; changes in between were for time.",
        "",
        "| dataset | " + " | ".join(FAMILIES) + " |",
        "|---|" + "---|" * len(FAMILIES),
    ]
    logs = []
    for key, sides in found.items():
        old, new = sides["old"]["errors"], sides["new"]["errors"]
        if old:
            cells = [f"{100 * old[name]:.2f} / {100 * new[name]:.2f}" for name in FAMILIES]
            lines.append(f"| {key} | " + " | ".join(cells) + " |")
            logs.append([np.log(new[name] / old[name]) for name in FAMILIES])
    if logs:
        means = [f"{value:.3f}" for value in np.exp(np.mean(logs, axis=0))]
        lines.append("| new / old, geometric mean | " + " | ".join(means) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compare with a revision; with ``--measure``, only measure what is importable."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", nargs="?")
    parser.add_argument("--only", help="names from the table, with commas")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure)))
        return
    keys = [*(":".join(map(str, each)) for each in PARTS), *WHOLE]
    if given.only:
        keys = given.only.split(",")
    text = table(given.revision, compare(given.revision, keys))
    if not given.only:
        RESULT.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
