"""How many labelled items are needed: errors by number of labelled tickets, as in docs/guide.md.

    python examples/learning_curve.py            a minute
    python examples/learning_curve.py --quick    a few seconds, rougher

Trains on more and more labelled tickets and estimates eight months whose label mix drifts. Beside
the error stands the width of the 90 % intervals, which one has without knowing the truth.
"""

from __future__ import annotations

import sys

import numpy as np

from prevalens.datasets.tickets import month_names, tickets
from prevalens.model import Model

METHODS = ("naive", "lr(C=10)+cc", "lr(C=10)+pacc", "lr(C=10)+rq(pcc,ridge)")


def errors(n_train: int, method: str, seed: int) -> tuple[float, float, float]:
    """Mean absolute error, mean width of intervals and their coverage; shares, not points."""
    data = tickets(n_train, 300, seed=seed)
    model = Model.fit(data.train.X, data.train.Y, labels=data.train.labels, method=method)
    months = np.array(month_names(data.test_times))
    found = model.quantify(list(data.test.X), groups=months, interval=0.9)
    true = np.array([data.test.Y[months == month].mean(axis=0) for month in found.index])
    inside = (true >= found.lower) & (true <= found.upper)
    return (
        float(np.abs(found.point - true).mean()),
        float((found.upper - found.lower).mean()),
        float(inside.mean()),
    )


def main(quick: bool) -> None:
    sizes = (100, 400) if quick else (100, 200, 400, 800, 1600, 3200)
    seeds = range(1) if quick else range(3)
    print("| labelled tickets |", " | ".join(f"`{name}`" for name in METHODS), "| width | hold |")
    print("|---|" + "---|" * (len(METHODS) + 2))
    for n_train in sizes:
        means = [
            np.mean([errors(n_train, method, seed) for seed in seeds], axis=0) for method in METHODS
        ]
        cells = " | ".join(f"{100 * mean[0]:.1f}" for mean in means)
        print(f"| {n_train:,} | {cells} | {100 * means[-1][1]:.1f} | {100 * means[-1][2]:.0f} % |")


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
