"""Coverage of the automatic quantifier's intervals, and their width beside the bootstrap's.

    PREVALENS_DATA=... python benchmarks/measure_coverage.py emotions scene > coverage.md
    PREVALENS_DATA=... python benchmarks/measure_coverage.py --divisions 5 emotions scene

The bootstrap is that of the mean posterior of the same classifiers, stretched around its point by
the one factor that makes it cover as often as the intervals do: its width at equal coverage.

With --divisions, all items of a dataset are divided by chance, into parts as large as its own, and
the classifiers chosen on its own training part are trained on each. Coverage on one test part
depends on which items happen to be in it; the mean over divisions much less.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone

from measure_uncertainty import percentiles
from prevalens import Quantifier, datasets
from prevalens.aggregators import PCC
from prevalens.protocols import MLAPP, LabelsetWeights, LabelTilt, Natural

LEVEL = 0.9
N_SAMPLES = 1000
Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int8]


def protocols() -> dict[str, Any]:
    return {
        "ML-APP": MLAPP(100, more_than=N_SAMPLES - 1, max_samples=N_SAMPLES),
        "uniform": Natural(100, N_SAMPLES),
        "tilt": LabelTilt(100, N_SAMPLES),
        "label sets": LabelsetWeights(100, N_SAMPLES),
    }


def covers(lower: Floats, upper: Floats, truth: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray((lower <= truth + 1e-12) & (truth <= upper + 1e-12))


def stretched_width(
    found: tuple[Floats, Floats], point: Floats, truth: Floats, wanted: float
) -> float:
    """Mean width of the bootstrap's intervals when stretched to cover as often as asked."""

    def ends(factor: float) -> tuple[Floats, Floats]:
        lower = point - factor * (point - found[0])
        upper = point + factor * (found[1] - point)
        return np.clip(lower, 0, 1), np.clip(upper, 0, 1)

    low, high = 0.0, 200.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if covers(*ends(middle), truth).mean() < wanted else (low, middle)
        )
    lower, upper = ends(high)
    reached = covers(lower, upper, truth).mean()
    return float((upper - lower).mean()) if reached >= wanted - 0.005 else float("nan")


class Found(NamedTuple):
    samples: Any
    truth: Floats
    intervals: Any
    each: float
    together: float


def measured(quantifier: Quantifier, scores: Any, Y: Labels) -> Iterator[Found]:
    """What the intervals of some test items are worth, protocol by protocol."""
    for protocol in protocols().values():
        samples = protocol.draw(Y, 7)
        truth = samples.mean(Y)
        found = quantifier.aggregate(scores, samples, LEVEL)
        each = covers(found.lower, found.upper, truth).mean()
        together = covers(found.band_lower, found.band_upper, truth).all(axis=1).mean()
        yield Found(samples, truth, found, float(each), float(together))


def own_test_part(data: Any, quantifier: Quantifier) -> list[str]:
    scores = quantifier.score(data.test.X)
    counting = PCC().fit(scores, data.test.Y)
    cells = []
    for found in measured(quantifier, scores, data.test.Y):
        plain = percentiles(counting, scores, found.samples, 40)
        point = counting.aggregate(scores, found.samples)
        width = stretched_width(plain, point, found.truth, found.each)
        own = (found.intervals.upper - found.intervals.lower).mean()
        cells.append(f"{found.each:.2f} / {found.together:.2f} / {own:.3f} / {width:.3f}")
    return cells


def random_divisions(data: Any, quantifier: Quantifier, n_divisions: int) -> list[str]:
    parts = [data.train.X, data.test.X]
    X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.vstack(parts)
    Y = np.vstack([data.train.Y, data.test.Y])
    found = np.array(
        [_one_division(X, Y, data.train.n_items, quantifier, seed) for seed in range(n_divisions)]
    )
    cells = []
    for place in range(found.shape[1]):
        # Shape (n_divisions, 2): intervals and bands.
        part = found[:, place]
        cells.append(
            " / ".join(
                f"{mean:.2f} ({low:.2f} - {high:.2f})"
                for mean, low, high in zip(
                    part.mean(axis=0), part.min(axis=0), part.max(axis=0), strict=True
                )
            )
        )
    return cells


def _one_division(
    X: Any, Y: Labels, n_train: int, quantifier: Quantifier, seed: int
) -> list[tuple[float, float]]:
    rows = np.random.default_rng(seed).permutation(len(Y))
    train, test = rows[:n_train], rows[n_train:]
    again = Quantifier(clone(quantifier.classifier_), clone(quantifier.aggregator_))
    again.fit(X[train], Y[train])
    found = measured(again, again.score(X[test]), Y[test])
    return [(each.each, each.together) for each in found]


def head(n_divisions: int) -> str:
    items = f"{N_SAMPLES} samples of 100 test items each"
    if n_divisions:
        return (
            f"Written by `benchmarks/measure_coverage.py --divisions {n_divisions}`: level "
            f"{LEVEL}, {n_divisions} random divisions of all items, {items}.\n"
            "Each cell: intervals cover / bands cover all labels, mean (least - most)\n"
        )
    return (
        f"Written by `benchmarks/measure_coverage.py`: level {LEVEL}, {items}.\n"
        "Each cell: intervals cover / bands cover all labels / mean width / bootstrap's width at "
        "equal coverage\n"
    )


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--divisions", type=int, default=0)
    given = parser.parse_args()
    print("# Coverage of the automatic quantifier's intervals\n")
    print(head(given.divisions))
    print("| dataset | chosen | ML-APP | uniform | tilt | label sets |\n|---|---|---|---|---|---|")
    for name in given.datasets:
        data = datasets.load(name)
        quantifier = Quantifier().fit(data.train.X, data.train.Y)
        cells = (
            random_divisions(data, quantifier, given.divisions)
            if given.divisions
            else own_test_part(data, quantifier)
        )
        print(f"| {name} | `{quantifier.choice_.name}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
