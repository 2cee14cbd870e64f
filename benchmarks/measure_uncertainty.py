"""Coverage of intervals, and false alarms.

    PREVALENS_DATA=... python benchmarks/measure_uncertainty.py > benchmarks/results/uncertainty.md

The first table of docs/uncertainty.md.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens import datasets, parse
from prevalens.batches import ScoredSamples
from prevalens.protocols import MLAPP, LabelTilt, Natural
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.uncertainty.bootstrap import redrawn

DATASETS = ("emotions", "scene", "yeast", "enron")
METHODS = ("lr+pcc", "lr+pacc", "lr+sld", "stack+rq")
LEVEL = 0.9

Floats = npt.NDArray[np.float64]


def families(size: int, n_samples: int) -> dict[str, Any]:
    return {
        "ML-APP": MLAPP(size, more_than=n_samples - 1, max_samples=n_samples),
        "uniform": Natural(size, n_samples),
        "tilt": LabelTilt(size, n_samples),
    }


def covered(lower: Floats, upper: Floats, truth: Floats) -> npt.NDArray[np.bool_]:
    # Shares of k items as floats: an end that equals the truth may differ in the last digit.
    return np.asarray((lower <= truth + 1e-12) & (truth <= upper + 1e-12))


def percentiles(
    aggregator: Any, scores: Scores, samples: Samples, resamples: int
) -> tuple[Floats, Floats]:
    """Lower and upper percentiles of estimates of resampled items: the plain bootstrap."""
    point, tail = aggregator.aggregate(scores, samples), (1 - LEVEL) / 2
    lower, upper = point.copy(), point.copy()
    rng = np.random.default_rng(0)
    for rows, drawn in redrawn(
        aggregator, ScoredSamples(scores, samples), times=resamples, rng=rng
    ):
        ends = np.quantile(drawn, [tail, 1 - tail], axis=1)
        lower[rows], upper[rows] = (
            np.minimum(ends[0], point[rows]),
            np.maximum(ends[1], point[rows]),
        )
    return lower, upper


def coverage(quantifier: Any, pool: Any, scores: Scores) -> list[str]:
    cells = []
    for protocol in families(100, 1000).values():
        samples = protocol.draw(pool.Y, 5)
        truth = samples.mean(pool.Y)
        intervals = quantifier.aggregate(scores, samples, LEVEL)
        plain = percentiles(quantifier.aggregator_, scores, samples, 50)
        each = covered(intervals.lower, intervals.upper, truth).mean()
        together = covered(intervals.band_lower, intervals.band_upper, truth).all(axis=1).mean()
        width = (intervals.upper - intervals.lower).mean()
        bare = covered(*plain, truth).mean()
        alarms = np.mean(intervals.p_value < 0.01)
        cells.append(f"{each:.2f} / {together:.2f} / {width:.3f} / {bare:.2f} / {alarms:.3f}")
    return cells


def alarms_under_noise(quantifier: Any, pool: Any) -> str:
    """Share of samples warned of when noise of one standard deviation is on every feature."""
    X = pool.X.toarray() if sp.issparse(pool.X) else np.asarray(pool.X, dtype=float)
    X = X + np.random.default_rng(0).normal(size=X.shape) * X.std(axis=0)
    samples = families(100, 200)["ML-APP"].draw(pool.Y, 6)
    p_value = quantifier.aggregate(quantifier.score(X), samples, LEVEL).p_value
    return f"{np.mean(p_value < 0.01):.2f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    warnings.simplefilter("ignore")
    covers = []
    for name in DATASETS:
        data = datasets.load(name)
        for method in METHODS:
            quantifier = parse(method).fit(data.train.X, data.train.Y)
            scores = quantifier.score(data.test.X)
            noisy = alarms_under_noise(quantifier, data.test)
            covers.append([name, method, *coverage(quantifier, data.test, scores), noisy])
            print(*covers[-1], sep=" | ", file=sys.stderr, flush=True)
    print(table(["dataset", "method", "ML-APP", "uniform", "tilt", "noisy features"], covers))


if __name__ == "__main__":
    main()
