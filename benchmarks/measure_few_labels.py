"""What a few labels of the batch are worth: under drawn shift, and on timelines.

    PREVALENS_DATA=... python benchmarks/measure_few_labels.py > benchmarks/results/few_labels.md
    python benchmarks/measure_few_labels.py FILE TEXT,... LABELS SEP SIZE

The tables of docs/uncertainty.md. With a FILE of dated items (CSV with a column `date`): train on
3,000 items before 30, 50 and 70 % of the timeline, estimate twenty batches of SIZE items
after it; TEXT names the columns of the texts, LABELS that of the labels, of which the sixteen most
frequent count. About three minutes on one core, or one per timeline.
"""

from __future__ import annotations

import csv
import gzip
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens import datasets, parse
from prevalens.estimate import PrevalenceEstimate
from prevalens.model.draw import draw_items
from prevalens.protocols import MLAPP, LabelTilt, Natural
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.tables.text import TextPreparation
from prevalens.uncertainty import with_labels
from prevalens.uncertainty.drift import mean_times

DATASETS = ("emotions", "scene", "yeast", "enron")
METHODS = ("lr+pcc", "lr+pacc", "lr+sld", "stack+rq", "lr+mixture")
LABELLED = (5, 10, 20, 50)
LEVEL = 0.9
CUTS = (0.3, 0.5, 0.7)

Floats = npt.NDArray[np.float64]
#: Quantifier, labelled items, both: absolute errors; then intervals and bands of both that hold,
#: width, and the error and the intervals of both with a stratified draw.
Figures = Floats


def covered(lower: Any, upper: Any, truth: Floats) -> npt.NDArray[np.bool_]:
    # Shares of k items as floats: an end that equals the truth may differ in the last digit.
    return np.asarray((lower <= truth + 1e-12) & (truth <= upper + 1e-12))


def figures(
    estimate: PrevalenceEstimate, scores: Scores, Y: npt.NDArray[Any], n: int, seed: int
) -> Figures:
    truth, whole = Y.mean(axis=0), Samples.whole(len(Y))
    uniform = draw_items(whole, n, random_state=seed)
    values = np.asarray(scores.values)
    both = with_labels(estimate, values, (uniform.rows, Y[uniform.rows]))
    guesses = (estimate.point, Y[uniform.rows].mean(axis=0), both.point)
    holds = covered(both.lower, both.upper, truth).mean()
    together = covered(both.band_lower, both.band_upper, truth).all()
    width = np.subtract(both.upper, both.lower).mean()  # type: ignore[arg-type]
    errors = [np.abs(guess - truth).mean() for guess in guesses]
    if scores.kind != "posteriors":
        return np.array([*errors, holds, together, width, np.nan, np.nan])
    drawn = draw_items(whole, n, scores=scores, random_state=seed)
    other = with_labels(estimate, values, (drawn.rows, Y[drawn.rows], drawn.weights))
    hold = covered(other.lower, other.upper, truth).mean()
    return np.array([*errors, holds, together, width, np.abs(other.point - truth).mean(), hold])


def measured(
    quantifier: Any, scores: Scores, Y: npt.NDArray[Any], samples: Samples, time: Any = None
) -> dict[int, list[Figures]]:
    estimates = quantifier.aggregate(scores, samples, LEVEL, time=time)
    return {
        n: [
            figures(estimates.sample(i), scores.take(rows), Y[rows], n, 100 * n + i)
            for i, rows in enumerate(samples)
        ]
        for n in LABELLED
    }


def cells(found: dict[int, list[Figures]]) -> list[str]:
    means = {n: np.mean(rows, axis=0) for n, rows in found.items()}
    alone = f"{means[LABELLED[0]][0]:.4f}"
    texts = [
        f"{own[1]:.4f} / **{own[2]:.4f}** / {own[3]:.2f} / {own[4]:.2f}" for own in means.values()
    ]
    last = means[LABELLED[-1]]
    stratified = "-" if np.isnan(last[6]) else f"{last[6]:.4f} / {last[7]:.2f}"
    return [alone, *texts, f"{last[5]:.4f}", stratified]


def fitted(method: str, X: Any, Y: npt.NDArray[Any], time: Any = None) -> Any:
    return parse(method).fit(X, Y, time=time)


def drawn_shift() -> Iterator[list[str]]:
    for name in DATASETS:
        data = datasets.load(name)
        size, Y = 200 if len(data.test.Y) >= 400 else 100, data.test.Y
        protocols = (
            MLAPP(size, more_than=39, max_samples=40),
            Natural(size, 40),
            LabelTilt(size, 40),
        )
        samples = Samples.concat([protocol.draw(Y, 5) for protocol in protocols])
        for method in METHODS:
            quantifier = fitted(method, data.train.X, data.train.Y)
            found = measured(quantifier, quantifier.score(data.test.X), Y, samples)
            yield [name, method, str(size), *cells(found)]


def timeline(path: Path, texts: list[str], labels: str, sep: str, size: int) -> Iterator[list[str]]:
    csv.field_size_limit(10**8)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["date"])
    items = [" ".join(row[name] for name in texts) for row in rows]
    sets = [set(filter(None, row[labels].split(sep))) for row in rows]
    frequent = Counter(name for names in sets for name in names).most_common(16)
    Y = np.array([[name in names for name, _ in frequent] for names in sets], dtype=np.int8)
    dates = np.array([row["date"] for row in rows], dtype="datetime64[D]")
    for cut in CUTS:
        end = int(cut * len(items))
        first = max(0, end - 3000)
        preparation = TextPreparation()
        X = preparation.fit_transform(items[first:end])
        starts = np.linspace(0, len(items) - end - size, 20).astype(int)
        # Five draws of labelled items from each.
        bags = [np.arange(start, start + size) for start in starts] * 5
        samples = Samples.from_indices(bags, n_items=len(items) - end)
        for method in ("lr+pcc", "lr+mixture", "auto, time"):
            # A method with times estimates the batches at theirs.
            name, timed, _ = method.partition(", time")
            quantifier = fitted(name, X, Y[first:end], dates[first:end] if timed else None)
            scores = quantifier.score(preparation.transform(items[end:]))
            at = mean_times(samples, dates[end:]) if timed else None
            found = measured(quantifier, scores, Y[end:], samples, at)
            yield [f"{path.name.split('.')[0]}, {cut:.0%}", method, str(size), *cells(found)]


def main() -> None:
    warnings.simplefilter("ignore")
    amounts = [f"{n} labelled" for n in LABELLED]
    head = ["data", "method", "batch", "quantifier alone", *amounts, "width", "stratified"]
    print("| " + " | ".join(head) + " |\n| " + " | ".join(["---"] * len(head)) + " |")
    if len(sys.argv) > 1:
        path, texts, labels, sep, size = sys.argv[1:]
        rows = timeline(Path(path), texts.split(","), labels, sep, int(size))
    else:
        rows = drawn_shift()
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
