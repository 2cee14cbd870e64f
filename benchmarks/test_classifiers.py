"""Batched logistic regression beside scikit-learn's one-vs-rest loop, in one run.

scikit-learn trains some labels, evenly chosen from frequent to rare, with each of its solvers; its
time is scaled to all labels. A solver counts where its objective is within 1e-4 of ours or
better. CPU seconds, as the machine may have other things to do. Writes results/classifiers.md.
"""

from __future__ import annotations

import resource
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from prevalens import datasets
from prevalens.solvers.logistic import fit_logistic_path

RESULTS = Path(__file__).parent / "results" / "classifiers.md"
CS = (0.1, 1.0, 10.0, 100.0, 1000.0)
#: Dataset, settings, and how many times faster was asked for.
CASES = [
    ("mediamill_discretized", "one", 10),
    ("delicious", "one", 5),
    ("bibtex", "one", 3),
    ("reuters21578", "one", 3),
    ("mediamill_discretized", "grid", 15),
    ("delicious", "grid", 15),
]
N_LABELS = 6
HEAD = """# Classifiers

Written by `benchmarks/test_classifiers.py`: one logistic regression per label, ours for all
labels at once and scikit-learn's label by label. One setting is C = 1 without class weights; the
grid is five C times two class weights. scikit-learn's seconds are of its fastest solver that
reaches our objective within 1e-4 on every label tried, scaled from {tried} labels to all. CPU
seconds.

| dataset | settings | labels | ours s | scikit-learn s | its solver | ratio | asked | peak GB |
|---|---|---|---|---|---|---|---|---|
"""


def solvers(X: Any) -> tuple[str, ...]:
    return ("lbfgs", "newton-cg") if sp.issparse(X) else ("lbfgs", "newton-cg", "newton-cholesky")


def objective(X: Any, y: np.ndarray, w: np.ndarray, b: float, C: float, weight: Any) -> float:
    each = np.ones(len(y))
    if weight == "balanced":
        each = np.where(y > 0, len(y) / (2 * y.sum()), len(y) / (2 * (len(y) - y.sum())))
    margin = (2 * y - 1) * (np.asarray(X @ w).ravel() + b)
    return 0.5 * float(w @ w) + C * float(each @ np.logaddexp(0, -margin))


def theirs(
    X: Any, Y: np.ndarray, labels: Any, settings: Any, ours: np.ndarray
) -> tuple[float, str]:
    """Seconds of the fastest solver that gets there, and its name."""
    best, name = np.inf, "none gets there"
    for solver in solvers(X):
        start, reached = time.process_time(), True
        for number, (C, weight) in enumerate(settings):
            for place, label in enumerate(labels):
                model = LogisticRegression(C=C, class_weight=weight, solver=solver, max_iter=2000)
                y = Y[:, label]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model.fit(X, y)
                found = objective(X, y, model.coef_[0], model.intercept_[0], C, weight)
                reached &= found <= ours[number, place] * (1 + 1e-4)
        seconds = time.process_time() - start
        if reached and seconds < best:
            best, name = seconds, solver
    return best, name


@pytest.fixture(scope="module")
def table() -> Iterator[list[str]]:
    rows: list[str] = []
    yield rows
    if rows:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(HEAD.format(tried=N_LABELS) + "\n".join(rows) + "\n", encoding="utf-8")


@pytest.mark.data
@pytest.mark.parametrize(("name", "which", "asked"), CASES)
def test_against_scikit_learn(
    name: str, which: str, asked: int, table: list[str], benchmark: Any
) -> None:
    train = datasets.load(name).train
    Cs, weights = ((1.0,), (None,)) if which == "one" else (CS, (None, "balanced"))

    def ours() -> Any:
        return fit_logistic_path(train.X, train.Y, Cs=Cs, class_weights=weights)

    start = time.process_time()
    path = benchmark.pedantic(ours, rounds=1)
    seconds = time.process_time() - start
    order = np.argsort(-train.prevalence)
    labels = order[np.linspace(0, len(order) - 1, N_LABELS).astype(int)]
    found, solver = theirs(train.X, train.Y, labels, path.settings, path.objective[:, labels])
    scaled = found * train.n_labels / N_LABELS
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    table.append(
        f"| {name} | {which} | {train.n_labels} | {seconds:.2f} | {scaled:.1f} | {solver} | "
        f"**{scaled / seconds:.1f}** | {asked} | {peak:.2f} |"
    )
    assert path.converged.all()
