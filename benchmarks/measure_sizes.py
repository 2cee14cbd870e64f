"""Coverage of the automatic quantifier's intervals by batch size, and the price of the allowance.

    PREVALENS_DATA=... python benchmarks/measure_sizes.py tmc2007_500 scene > sizes.md

Models are trained on at most 3,000 items of the public training part; 200 samples of each size are
drawn from the test part, without shift and under three families of shift. A cell reads: coverage of
90 % intervals / of bands / width of the intervals over that without the allowance for drift /
share of samples that alarm.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from prevalens import Quantifier, datasets
from prevalens.protocols.families import draw_family

LEVEL, N_SAMPLES, MOST_ITEMS = 0.9, 200, 3000
SIZES = (20, 100, 500, 2000)
FAMILIES = ("natural", "label-tilt", "labelset-weights", "ml-app")


def cell(quantifier: Quantifier, scores, Y, family: str, size: int, rng) -> str:
    samples = draw_family(family, Y, size, N_SAMPLES, rng) if 2 * size <= len(Y) else None
    if samples is None:
        return "-"
    true, own = samples.mean(Y), quantifier.drift_
    quantifier.drift_ = 0.0
    without = quantifier.aggregate(scores, samples, LEVEL)
    quantifier.drift_ = own
    found = quantifier.aggregate(scores, samples, LEVEL)
    inside = (true >= found.lower - 1e-9) & (true <= found.upper + 1e-9)
    band = (true >= found.band_lower - 1e-9) & (true <= found.band_upper + 1e-9)
    price = np.mean(found.upper - found.lower) / np.mean(without.upper - without.lower)
    alarms = np.mean(found.p_value < 0.01) if found.p_value is not None else np.nan
    return f"{inside.mean():.2f} / {band.all(axis=1).mean():.2f} / {price:.2f} / {alarms:.3f}"


def rows(name: str, seed: int) -> list[str]:
    data = datasets.load(name)
    keep = np.random.default_rng(seed).permutation(len(data.train.Y))[:MOST_ITEMS]
    train = data.train.take(np.sort(keep))
    start = time.process_time()
    quantifier = Quantifier().fit(train.X, train.Y, labels=train.labels)
    print(f"{name}: {quantifier.choice_.name}, {time.process_time() - start:.0f} s CPU")
    scores, rng = quantifier.score(data.test.X), np.random.default_rng(seed)
    lines = []
    for family in FAMILIES:
        cells = [cell(quantifier, scores, data.test.Y, family, size, rng) for size in SIZES]
        lines.append(f"| {name} | {family} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("# Coverage by batch size\n")
    table = [line for name in options.datasets for line in rows(name, options.seed)]
    print("\n| dataset | shift | " + " | ".join(f"{size} items" for size in SIZES) + " |")
    print("| --- | --- | " + " | ".join("---" for _ in SIZES) + " |")
    print("\n".join(table))


if __name__ == "__main__":
    main()
