"""Coverage of the automatic quantifier's intervals, and their width beside the bootstrap's.

    PREVALENS_DATA=... python benchmarks/measure_coverage.py emotions scene > coverage.md

The bootstrap is that of the mean posterior of the same classifiers, stretched around its point by
the one factor that makes it cover as often as the intervals do: its width at equal coverage.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens import datasets
from prevalens.aggregators import PCC, ScenarioMixture
from prevalens.auto import choose
from prevalens.classifiers.response import response
from prevalens.protocols import MLAPP, LabelTilt, Natural
from prevalens.uncertainty import Bootstrap, plain_intervals

LEVEL = 0.9
N_SAMPLES = 1000
Floats = npt.NDArray[np.float64]


def protocols() -> dict[str, Any]:
    return {
        "ML-APP": MLAPP(100, more_than=N_SAMPLES - 1, max_samples=N_SAMPLES),
        "uniform": Natural(100, N_SAMPLES),
        "tilt": LabelTilt(100, N_SAMPLES),
    }


def covers(lower: Floats, upper: Floats, truth: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray((lower <= truth + 1e-12) & (truth <= upper + 1e-12))


def stretched_width(found: Any, point: Floats, truth: Floats, wanted: float) -> float:
    """Mean width of the bootstrap's intervals when stretched to cover as often as asked."""

    def ends(factor: float) -> tuple[Floats, Floats]:
        lower = point - factor * (point - found.lower)
        upper = point + factor * (found.upper - point)
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


class _Counting:
    """Where counting is chosen: the intervals that `Quantifier()` prepares."""

    def __init__(self, choice: Any, Y: npt.NDArray[np.int8]) -> None:
        self._aggregator = choice.aggregator
        self._prepared = Bootstrap().fit(self._aggregator, choice.scores, Y, folds=choice.folds)

    def intervals(self, scores: Any, samples: Any, level: float) -> Any:
        return self._prepared.intervals(self._aggregator, scores, samples, level)


def main() -> None:
    warnings.simplefilter("ignore")
    print("# Coverage of the automatic quantifier's intervals\n")
    print(
        f"Written by `benchmarks/measure_coverage.py`: level {LEVEL}, {N_SAMPLES} samples of "
        "100 test items each."
    )
    print(
        "Each cell: intervals cover / bands cover all labels / mean width / bootstrap's width at "
        "equal coverage\n"
    )
    print("| dataset | chosen | ML-APP | uniform | tilt |\n|---|---|---|---|---|")
    for name in sys.argv[1:]:
        data = datasets.load(name)
        choice = choose(data.train.X, data.train.Y)
        scores = response(choice.classifier, data.test.X, "posteriors", data.test.n_labels)
        source = choice.aggregator
        if not isinstance(source, ScenarioMixture):
            source = _Counting(choice, data.train.Y)
        counting = PCC().fit(scores, data.test.Y)
        cells = []
        for protocol in protocols().values():
            samples = protocol.draw(data.test.Y, 7)
            truth = samples.mean(data.test.Y)
            found = source.intervals(scores, samples, LEVEL)
            each = covers(found.lower, found.upper, truth).mean()
            together = covers(found.band_lower, found.band_upper, truth).all(axis=1).mean()
            plain = plain_intervals(counting, scores, samples, LEVEL, resamples=40)
            width = stretched_width(plain, counting.aggregate(scores, samples), truth, each)
            cells.append(
                f"{each:.2f} / {together:.2f} / "
                f"{(found.upper - found.lower).mean():.3f} / {width:.3f}"
            )
        print(f"| {name} | `{choice.name}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
