"""Coverage of intervals, false alarms, and what a few labels are worth.

    PREVALENS_DATA=... python benchmarks/measure_uncertainty.py > benchmarks/results/uncertainty.md

The tables of docs/uncertainty.md. About ten minutes on one core.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens import datasets, parse
from prevalens.estimate import PrevalenceEstimate
from prevalens.protocols import MLAPP, LabelTilt, Natural
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.uncertainty import Bootstrap, plain_estimate, with_labels

DATASETS = ("emotions", "scene", "yeast", "enron")
METHODS = ("lr+pcc", "lr+pacc", "lr+sld", "stack+rq")
LABELLED = (5, 10, 20, 50)
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


def coverage(quantifier: Any, pool: Any, scores: Scores) -> list[str]:
    cells = []
    for protocol in families(100, 1000).values():
        samples = protocol.draw(pool.Y, 5)
        truth = samples.mean(pool.Y)
        fitted = quantifier.aggregator_
        _, intervals = quantifier.uncertainty_.estimate(fitted, scores, samples, LEVEL)
        _, plain = plain_estimate(fitted, scores, samples, LEVEL, resamples=50)
        each = covered(intervals.lower, intervals.upper, truth).mean()
        together = covered(intervals.band_lower, intervals.band_upper, truth).all(axis=1).mean()
        width = (intervals.upper - intervals.lower).mean()
        bare = covered(plain.lower, plain.upper, truth).mean()
        alarms = np.mean(intervals.p_value < 0.01)
        cells.append(f"{each:.2f} / {together:.2f} / {width:.3f} / {bare:.2f} / {alarms:.3f}")
    return cells


def alarms_under_noise(quantifier: Any, pool: Any) -> str:
    """Share of samples warned of when noise of one standard deviation is on every feature."""
    X = pool.X.toarray() if sp.issparse(pool.X) else np.asarray(pool.X, dtype=float)
    X = X + np.random.default_rng(0).normal(size=X.shape) * X.std(axis=0)
    samples = families(100, 200)["ML-APP"].draw(pool.Y, 6)
    p_value = quantifier.uncertainty_.misfit_.p_value(quantifier.score(X).values, samples)
    return f"{np.mean(p_value < 0.01):.2f}"


def batches(
    quantifier: Any, pool: Any, scores: Scores, size: int
) -> Iterator[tuple[PrevalenceEstimate, npt.NDArray[Any]]]:
    for protocol in families(size, 40).values():
        samples: Samples = protocol.draw(pool.Y, 5)
        fitted = quantifier.aggregator_
        points, intervals = quantifier.uncertainty_.estimate(fitted, scores, samples, LEVEL)
        for i in range(len(samples)):
            ends = {name: getattr(intervals, name)[i] for name in ("lower", "upper")}
            yield PrevalenceEstimate(points[i], pool.labels, level=LEVEL, **ends), samples[i]


def few_labels(quantifier: Any, pool: Any, scores: Scores) -> list[str]:
    size = 200 if len(pool.Y) >= 400 else 100
    rng = np.random.default_rng(1)
    errors: dict[int, list[list[float]]] = {n: [] for n in LABELLED}
    for estimate, rows in batches(quantifier, pool, scores, size):
        Y = pool.Y[rows]
        truth = Y.mean(axis=0)
        for n in LABELLED:
            known = rng.choice(size, n, replace=False)
            both = with_labels(estimate, scores.values[rows], (known, Y[known]))
            guesses = (estimate.point, Y[known].mean(axis=0), both.point)
            hit = covered(np.asarray(both.lower), np.asarray(both.upper), truth).mean()
            errors[n].append([*(np.abs(guess - truth).mean() for guess in guesses), hit])
    means = {n: np.mean(rows, axis=0) for n, rows in errors.items()}
    cells = [f"{alone:.4f} / **{both:.4f}** / {hit:.2f}" for _, alone, both, hit in means.values()]
    return [str(size), f"{means[LABELLED[0]][0]:.4f}", *cells]


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    warnings.simplefilter("ignore")
    covers, gains = [], []
    for name in DATASETS:
        data = datasets.load(name)
        for method in METHODS:
            quantifier = parse(method).set_params(uncertainty=Bootstrap())
            quantifier.fit(data.train.X, data.train.Y)
            scores = quantifier.score(data.test.X)
            noisy = alarms_under_noise(quantifier, data.test)
            covers.append([name, method, *coverage(quantifier, data.test, scores), noisy])
            gains.append([name, method, *few_labels(quantifier, data.test, scores)])
            print(*covers[-1], *gains[-1], sep=" | ", file=sys.stderr, flush=True)
    print(table(["dataset", "method", "ML-APP", "uniform", "tilt", "noisy features"], covers))
    print()
    amounts = [f"{n} labelled" for n in LABELLED]
    print(table(["dataset", "method", "batch", "quantifier alone", *amounts], gains))


if __name__ == "__main__":
    main()
