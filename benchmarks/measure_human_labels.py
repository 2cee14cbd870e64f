"""Errors of annotators, plans and known error rates, on generated data with known truth.

    python benchmarks/measure_human_labels.py [adjust] [noise] [plan]

Prints Markdown tables. Takes about twenty minutes on one core.
"""

from __future__ import annotations

import csv
import itertools
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from prevalens import Samples, parse
from prevalens.datasets import synthetic
from prevalens.model import plan_files
from prevalens.protocols.families import FAMILIES
from prevalens.uncertainty import LabelNoise, Rate, adjust_prevalence

#: Sensitivity of annotators under each assumption.
_KINDS = {"balanced": 0.8, "symmetric": 0.93, "misses": 0.7}
_SHIFTS = {"natural": {"n_samples": 60}, "ml-app": {}, "label-tilt": {"n_samples": 60}}


def row(*cells: object) -> None:
    """Print a row of a table."""
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def adjust(n_studies: int = 4000) -> None:
    """Coverage of 95 % intervals with rates from studies, and with exact rates."""
    rng = np.random.default_rng(0)
    found: dict[str, list[float]] = {"measured": [], "exact": []}
    rates = ((0.7, 0.9), (0.9, 0.95), (0.85, 0.99))
    for n, (se, sp), m, p in itertools.product(
        (40, 200, 1000), rates, (30, 100, 300), (0.005, 0.05, 0.2, 0.5)
    ):
        tests = rng.binomial(n, p * se + (1 - p) * (1 - sp), n_studies)
        pair = [rng.binomial(m, rate, n_studies) for rate in (se, sp)]
        usable = pair[0] + pair[1] > m
        studies = [[Rate(k / m, m) for k in own[usable].tolist()] for own in pair]
        given: list[tuple[str, Any, Any]] = [("measured", tests[usable], studies)]
        if m == 30:
            given.append(("exact", tests, (se, sp)))
        for name, counts, own in given:
            ends = adjust_prevalence(counts, np.full(len(counts), n), *own)
            found[name].append(
                float(np.mean((ends.lower <= p + 1e-12) & (ends.upper >= p - 1e-12)))
            )
    row("rates", "settings", "mean", "least", "most")
    row(*["---"] * 5)
    for name, shares in found.items():
        row(name, len(shares), *(f"{100 * f(shares):.1f} %" for f in (np.mean, min, max)))


def answers(truth: Any, hit: Any, alarm: Any, rng: np.random.Generator) -> Any:
    """What an annotator says."""
    return (rng.random(truth.shape) < np.where(truth == 1, hit, alarm)).astype(np.int8)


def trials(method: str, kind: Any, n: int, signal: float) -> Iterator[tuple[str, Any]]:
    """Errors, coverages and widths of fits to given, corrected and true labels, by shift."""
    rng = np.random.default_rng(1)
    for seed in range(3):
        data = synthetic(n_train=n, n_test=6000, n_labels=6, signal=signal, random_state=seed)
        truth, test = np.asarray(data.train.Y), np.asarray(data.test.Y)
        p, hit = truth.mean(axis=0), _KINDS[kind]
        alarm = {"balanced": p * (1 - hit) / (1 - p), "symmetric": 1 - hit, "misses": 0}[kind]
        first, second = (answers(truth, hit, alarm, rng) for _ in range(2))
        twice = np.where(rng.random((n, 1)) < 0.3, second, np.nan)
        noise = LabelNoise.from_second(first, twice, errors=kind)
        fits = [(first, None), (first, noise), (truth, None)]
        fitted = [parse(method).fit(data.train.X, Y, noise=own) for Y, own in fits]
        scores = [each.score(data.test.X) for each in fitted]
        for shift, settings in _SHIFTS.items():
            samples = FAMILIES[shift](size=400, **settings).draw(test, seed)
            true = samples.mean(test)
            found = []
            for each, own in zip(fitted, scores, strict=True):
                estimate = each.aggregate(own, samples, 0.9)
                (low, high), _ = estimate.ends
                held = (low <= true) & (true <= high)
                found.append(
                    [np.abs(estimate.point - true).mean(), held.mean(), (high - low).mean()]
                )
            yield shift, found


def noise() -> None:
    """Fits to labels with errors, to corrected labels, and to true ones."""
    row("method", "items", "errors", "shift", "as given", "corrected", "true labels")
    row(*["---"] * 7)
    for (n, signal), method, kind in itertools.product(
        ((1000, 1.5), (400, 1.0)), ("lr+pacc", "lr+mixture"), _KINDS
    ):
        by_shift: dict[str, list[Any]] = {}
        for shift, found in trials(method, kind, n, signal):
            by_shift.setdefault(shift, []).append(found)
        for shift, all_ in by_shift.items():
            means = np.mean(all_, axis=0)
            cells = [f"{a:.3f} / {100 * c:.0f} % / {w:.2f}" for a, c, w in means]
            row(method, n, kind, shift, *cells)


def plan() -> None:
    """Widths that a plan forecasts from 300 items, and those that more items then give."""
    row("seed", "items", "forecast / reached, per label")
    row(*["---"] * 3)
    ratios = []
    for seed in range(3):
        data = synthetic(
            n_train=2000, n_test=2000, n_labels=5, n_features=20, signal=1.5, random_state=seed
        )
        X, Y = np.asarray(data.train.X), np.asarray(data.train.Y)
        names = [*(f"x{k}" for k in range(X.shape[1])), *(f"y{k}" for k in range(5))]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pilot.csv"
            with path.open("w", newline="") as file:
                rows = np.hstack([X[:300], Y[:300]]).tolist()
                csv.writer(file).writerows([names, *rows])
            forecast, model = plan_files(path, labels=["y*"], batch_size=500)
        for n in (800, 2000):
            fitted = parse(model.summary.method).fit(X[:n], Y[:n])
            bags = np.random.default_rng(1).integers(0, 2000, (5, 500))
            samples = Samples.from_indices(bags, n_items=2000)
            (low, high), _ = fitted.aggregate(fitted.score(data.test.X), samples, 0.9).ends
            ratio = forecast.width(n) / (high - low).mean(axis=0)
            ratios.append(ratio)
            row(seed, n, ", ".join(f"{value:.2f}" for value in ratio))
    print(f"\nMean {np.mean(ratios):.2f}, from {np.min(ratios):.2f} to {np.max(ratios):.2f}.")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parts = {"adjust": adjust, "noise": noise, "plan": plan}
    for name in sys.argv[1:] or parts:
        print(f"\n## {name}\n")
        parts[name]()
