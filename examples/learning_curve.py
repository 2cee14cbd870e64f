"""How many labelled items are needed: errors by number of labelled tickets, as in docs/guide.md.

    python examples/learning_curve.py            a minute
    python examples/learning_curve.py --quick    a few seconds, rougher

Trains on more and more labelled tickets and estimates eight months whose label mix drifts. Beside
the error stands the width of the 90 % intervals, which one has without knowing the truth.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from prevalens import parse
from prevalens.datasets.tickets import month_names, tickets
from prevalens.errors import PrevalensWarning
from prevalens.model import Model

RIVALS = ("naive", "lr(C=10)+cc", "lr(C=10)+pacc")
METHOD = "lr(C=10)+rq(pcc,ridge)"


def figures(n_train: int, seed: int) -> list[float]:
    """Mean absolute errors of all methods, then width and coverage of the last one's intervals."""
    data = tickets(n_train, 300, random_state=seed)
    months = np.array(month_names(data.test_times))
    true = np.array([data.test.Y[months == month].mean(axis=0) for month in np.unique(months)])
    model = Model.fit(data.train.X, data.train.Y, labels=data.train.labels, method=METHOD)
    X, Z = (model.preparation.transform(list(part.X)) for part in (data.train, data.test))
    rivals = [parse(name).fit(X, data.train.Y).quantify_many(Z, months) for name in RIVALS]
    found = model.quantify(list(data.test.X), groups=months, interval=0.9)
    inside = (true >= found.lower) & (true <= found.upper)
    errors = [float(np.abs(one.point - true).mean()) for one in (*rivals, found)]
    return [*errors, float((found.upper - found.lower).mean()), float(inside.mean())]


def main(quick: bool) -> None:
    """Print the table of the guide."""
    sizes = (100, 400) if quick else (100, 200, 400, 800, 1600, 3200)
    seeds = range(1) if quick else range(3)
    names = (*RIVALS, METHOD)
    print("| labelled tickets |", " | ".join(f"`{name}`" for name in names), "| width | hold |")
    print("|---|" + "---|" * (len(names) + 2), flush=True)
    for n_train in sizes:
        *points, share = 100 * np.mean([figures(n_train, seed) for seed in seeds], axis=0)
        cells = " | ".join(f"{value:.1f}" for value in points)
        print(f"| {n_train:,} | {cells} | {share:.0f} % |", flush=True)


if __name__ == "__main__":
    # Small training sets make for doubtful fits, which is what the table shows.
    warnings.simplefilter("ignore", PrevalensWarning)
    main("--quick" in sys.argv[1:])
