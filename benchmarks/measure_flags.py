"""How often the flags "clearly moved" and the intervals of differences are right.

    python benchmarks/measure_flags.py > benchmarks/results/flags.md

Generated files with known truth: months of texts whose label mix moves, groups of different sizes
whose label mixes differ, and months of a table whose items also change their looks (drift), a
little or much. A flag is what `BatchResult.moved` marks. Less than five minutes on one core.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import warnings
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from prevalens.datasets import synthetic
from prevalens.datasets.tickets import month_names, tickets
from prevalens.model.model import Model
from prevalens.model.quantify import quantify_files
from prevalens.model.result import BatchResult
from prevalens.reports.headline import headline
from prevalens.samples import Samples

#: Seeds of the published figures; others are for trying things out.
SEEDS = (10, 11, 12, 20, 21, 22)
METHODS = ("lr+mixture", "lr+rq(pcc,ridge)", "auto")
_BUDGET = 4.0
_N_TRAIN, _POOL = 800, 12_000
#: How strongly the items of tables depend on their labels.
_SIGNAL = 1.5

Floats = npt.NDArray[np.float64]


class Case(NamedTuple):
    """Training data, and a file of batches with its true prevalences."""

    items: Any
    Y: npt.NDArray[np.int8]
    labels: tuple[str, ...]
    columns: dict[str, Any]
    batch: list[str]
    labelled: npt.NDArray[np.int8]
    how: dict[str, Any]


def months(seed: int) -> Case:
    """Texts of eight months whose label mix moves."""
    data = tickets(_N_TRAIN, 200, random_state=seed)
    names = month_names(data.test_times)
    columns = {"text": list(data.test.X), "date": [f"{name}-15" for name in names]}
    train = {"text": list(data.train.X)}
    how = {"by_time": "date"}
    return Case(train, data.train.Y, data.train.labels, columns, names, data.test.Y, how)


def groups(seed: int) -> Case:
    """A table of 14 groups of 5 to 800 items; in half of them the label mix is as in training."""
    rng = np.random.default_rng([seed, 1])
    data = synthetic(_N_TRAIN, _POOL, n_labels=10, signal=_SIGNAL, random_state=seed)
    sizes = np.exp(rng.uniform(np.log(5), np.log(800), 14)).astype(int)
    tilts = rng.normal(0, 1, (14, 10)) * (np.arange(14) % 2)[:, np.newaxis]
    rows = [_drawn(data.test.Y, size, tilt, rng) for size, tilt in zip(sizes, tilts, strict=True)]
    names = [f"group{i:02}" for i, own in enumerate(rows) for _ in own]
    return _tabular(data, np.concatenate(rows), names, {"by": "batch"})


def drifted(seed: int, strength: float, *, growing: bool = True) -> Case:
    """A table of ten months in which items of half of the labels look different.

    The drift grows from nothing in the first month, or is there from the first month on. Its
    strength is the standard deviation of the move of each feature, in deviations of the noise.
    """
    rng = np.random.default_rng([seed, 2])
    data = synthetic(_N_TRAIN, _POOL, n_labels=10, signal=_SIGNAL, random_state=seed)
    trend = rng.normal(0, 1, 10)
    rows = [_drawn(data.test.Y, 300, trend * month / 9, rng) for month in range(10)]
    names = [f"2026-{month + 1:02}" for month in range(10) for _ in range(300)]
    case = _tabular(data, np.concatenate(rows), names, {"by_time": "date"})
    passed = np.repeat(np.arange(10) / 9 if growing else np.ones(10), 300)[:, np.newaxis]
    looks = rng.normal(0, strength, (10, data.train.X.shape[1])) * (np.arange(10) % 2)[:, None]
    moved = case.labelled @ looks * passed + rng.normal(0, strength / 2, looks.shape[1]) * passed
    columns = {
        name: np.asarray(case.columns[name]) + moved[:, j]
        for j, name in enumerate(_features(data.train.X.shape[1]))
    }
    return case._replace(columns=case.columns | columns)


def _drawn(Y: Any, size: int, tilt: Floats, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    weights = np.exp(Y @ tilt)
    return rng.choice(len(Y), size=size, replace=False, p=weights / weights.sum())


def _features(n: int) -> list[str]:
    return [f"x{j}" for j in range(n)]


def _tabular(data: Any, rows: Any, names: list[str], how: dict[str, str]) -> Case:
    features = _features(data.train.X.shape[1])
    columns = {name: data.test.X[rows, j] for j, name in enumerate(features)}
    columns |= {"batch": names, "date": [f"{name}-15" for name in names]}
    items = {name: data.train.X[:, j] for j, name in enumerate(features)}
    return Case(items, data.train.Y, data.train.labels, columns, names, data.test.Y[rows], how)


CASES: dict[str, Callable[[int], Case]] = {
    "months of texts": months,
    "groups of a table": groups,
    "table, little drift": lambda seed: drifted(seed, 0.1),
    "table, growing drift": lambda seed: drifted(seed, 0.4),
    "table, strong drift": lambda seed: drifted(seed, 0.8, growing=False),
}


def estimated(case: Case, method: str, seed: int, folder: Path) -> tuple[BatchResult, Floats]:
    """The result of a written file, and the truth in the order of its batches."""
    budget = {"time_budget": _BUDGET} if method == "auto" else {}
    read = {"text": "text"} if "text" in case.items else {"columns": list(case.items)}
    model = Model.fit(
        case.items, case.Y, labels=case.labels, method=method, random_state=seed, **read, **budget
    )
    path = folder / "batches.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(case.columns)
        writer.writerows(zip(*case.columns.values(), strict=True))
    result = quantify_files(model, path, **case.how)
    samples, names = Samples.by_group(case.batch)
    true = samples.mean(case.labelled)
    return result, true[[list(names).index(name) for name in result.batches]]


class Counts(NamedTuple):
    """What is counted for one result."""

    batches: int
    alarms: int
    moved: int
    right: int
    hold: int
    bands_hold: int
    differences: int
    differences_hold: int
    bands_of_differences: int
    pairs: int
    claimed: int
    claimed_right: int
    headline_is_alarm: int


def counted(result: BatchResult, true: Floats) -> Counts:
    assert result.lower is not None
    assert result.upper is not None
    moved, change = result.moved, true - result.training
    flagged = moved != 0
    hold = covers(result.lower, result.upper, true)
    band = covers(result.band_lower, result.band_upper, true)
    pairs = np.zeros(6, dtype=int)
    for i, j in _pairs(result):
        pairs += _difference(result, true, i, j)
    return Counts(
        len(result.batches),
        int(result.alarms.sum()),
        int(flagged.sum()),
        int((np.sign(change) == moved)[flagged].sum()),
        int(hold[flagged].sum()),
        int(band[flagged].sum()),
        *pairs.tolist(),
        int(headline(result).is_alarm),
    )


def covers(lower: Any, upper: Any, true: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray((lower <= true + 1e-9) & (true <= upper + 1e-9))


def _pairs(result: BatchResult) -> Iterator[tuple[int, int]]:
    return combinations(np.flatnonzero(result.judged).tolist(), 2)


def _difference(result: BatchResult, true: Floats, i: int, j: int) -> list[int]:
    found = result.difference(result.batches[i], result.batches[j])
    change = true[j] - true[i]
    supported = found.supported
    right = np.sign(change) == supported
    return [
        len(change),
        int(covers(found.lower, found.upper, change).sum()),
        int(covers(found.band_lower, found.band_upper, change).all()),
        1,
        int((supported != 0).sum()),
        int(right[supported != 0].sum()),
    ]


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    given = parser.parse_args()
    print(HEAD.format(seeds=len(given.seeds)))
    total: dict[str, Any] = {}
    for name, make in CASES.items():
        for method in given.methods:
            with tempfile.TemporaryDirectory() as folder:
                counts = [
                    counted(*estimated(make(seed), method, seed, Path(folder)))
                    for seed in given.seeds
                ]
            sums = np.sum(counts, axis=0)
            total[name] = total.get(name, 0) + sums
            print(row(name, method, Counts(*sums), len(counts)), flush=True)
    everything = Counts(*np.sum(list(total.values()), axis=0))
    print(row("**all**", "", everything, len(given.seeds) * len(given.methods) * len(CASES)))


HEAD = """\
# Flags and differences on generated files with known truth

Written by `benchmarks/measure_flags.py`: level 0.9, {seeds} seeds. Flags: labels that are marked
as clearly moved (the band over all labels of the batch excludes the training prevalence; none in
batches that get no verdict). Right: the flag points in the direction of the truth. Hold: the
interval, and the band that headlines quote, of a flagged label hold its truth. Differences: of all
pairs of batches with a verdict.

| file | method | batches | alarms | headline is the alarm | flags | right | intervals hold | \
bands hold | differences | intervals hold | bands hold all labels | supported | right |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


def row(name: str, method: str, counts: Counts, n_files: int) -> str:
    def share(part: int, whole: int) -> str:
        return f"{100 * part / whole:.1f} %" if whole else "-"

    cells = (
        name,
        method and f"`{method}`",
        counts.batches,
        counts.alarms,
        f"{counts.headline_is_alarm} of {n_files}",
        counts.moved,
        share(counts.right, counts.moved),
        share(counts.hold, counts.moved),
        share(counts.bands_hold, counts.moved),
        counts.differences,
        share(counts.differences_hold, counts.differences),
        share(counts.bands_of_differences, counts.pairs),
        counts.claimed,
        share(counts.claimed_right, counts.claimed),
    )
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
