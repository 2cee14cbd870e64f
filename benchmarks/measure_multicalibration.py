"""Multicalibrated PCC beside PCC, PAV and a single shift per label, under changes of the features.

Datasets are measured in test samples of 100 items: uniform ones, and with features tilted once and
twice as strongly; timelines in the periods after a cut, with the periods before it as groups or
without groups. Nothing is chosen here: `MulticalibratedPCC` chooses the number of its groups on the
training items.

Run: ``python benchmarks/measure_multicalibration.py emotions scene un@1985 arxiv@2025-06-01``, with
the datasets in the folder PREVALENS_DATA.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from prevalens.aggregators import PAV, PCC, Aggregator, MulticalibratedPCC
from prevalens.classifiers import CrossFit, PerLabel
from prevalens.datasets import Dataset, load
from prevalens.metrics import ae
from prevalens.protocols import CovariateTilt, Natural, Periods
from prevalens.response import response
from prevalens.samples import Samples

SIZE, N_SAMPLES, MAX_TRAIN, MAX_TEST = 100, 2000, 4000, 10_000


def shifted(data: Dataset) -> dict[str, Samples]:
    """Test samples by the kind of change."""
    test = data.test
    protocols = {
        "none": Natural(size=SIZE, n_samples=N_SAMPLES),
        "covariate-tilt": CovariateTilt(test.X, SIZE, n_samples=N_SAMPLES),
        "covariate-tilt, scale 2": CovariateTilt(test.X, SIZE, n_samples=N_SAMPLES, scale=2.0),
    }
    return {name: each.draw(test.Y, np.random.default_rng(0)) for name, each in protocols.items()}


def rows(data: Dataset, samples: dict[str, Samples], groups: Any, case: str) -> list[str]:
    """A row of the table per kind of change."""
    train, test = data.train, data.test
    labelled = CrossFit(5).fit(PerLabel(), train.X, train.Y, groups=groups)
    scores = response(labelled.classifier, test.X, "posteriors", train.n_labels)
    methods: list[Aggregator] = [PCC(), PAV(), MulticalibratedPCC(1), MulticalibratedPCC()]
    fitted = [each.fit(labelled.scores, train.Y, groups=groups) for each in methods]
    found = []
    for change, drawn in samples.items():
        true = drawn.mean(test.Y)
        errors = [ae(true, each.aggregate(scores, drawn)).mean() for each in fitted]
        cells = " | ".join(f"{error:.4f}" for error in errors)
        change_by = 100 * (errors[-1] / errors[0] - 1)
        leaves = fitted[-1].leaves_
        found.append(f"| {case} | {change} | {cells} | {change_by:+.1f} % | {leaves} |")
    return found


def measured(name: str) -> list[str]:
    """The rows of one dataset or timeline."""
    base, _, cut = name.partition("@")
    if not cut:
        data = load(base)
        return rows(data, shifted(data), None, name)
    unit = "Y" if base == "un" else "W"
    data = load(base, cut=cut, max_train=MAX_TRAIN, max_test=MAX_TEST)
    assert data.train.times is not None
    periods = np.asarray(data.train.times, dtype=f"datetime64[{unit}]").astype(str)
    later = {"later periods": Periods(data.test.times, unit, min_size=30).draw(data.test.Y, 0)}
    without = rows(data, later, None, name)
    return without + rows(data, later, periods, f"{name}, periods as groups")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print("| items | change | `pcc` | `pav` | `mcpcc(1)` | `mcpcc` | by `pcc` | groups |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for each in sys.argv[1:]:
        print("\n".join(measured(each)), flush=True)
