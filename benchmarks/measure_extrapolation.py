"""Logistic regressions along a path of weights, with and without extrapolation between weights.

The second layer of a stack, as the paper's grid has it: features beside the out-of-fold
posteriors of all labels, as they are and scaled, five values of C, some of the labels and of the
items. Both ways solve the same problems, in turn, in one run, to the same tolerance.

Run: ``python benchmarks/measure_extrapolation.py yeast enron delicious``, with the public datasets
in the folder PREVALENS_DATA.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from prevalens.classifiers import PerLabel
from prevalens.crossfit import CrossFit
from prevalens.datasets import load
from prevalens.solvers import newton
from prevalens.solvers.logistic import LogisticPath, fit_logistic_path
from prevalens.solvers.newton import NewtonSystems

N_ITEMS, N_LABELS, TOL, QUICK = 4_000, 24, 1e-4, 10.0
CS = (0.1, 1.0, 10.0, 100.0, 1000.0)
WEIGHTS = (None, "balanced")


def seen_by_stack(name: str) -> tuple[sp.csr_matrix, np.ndarray]:
    """Features beside posteriors, and labels: some of both where there are many."""
    train = load(name).train
    posteriors = CrossFit(5).fit(PerLabel(tol=1e-4), train.X, train.Y).scores.values
    chosen = np.random.default_rng(0).permutation(train.n_labels)[:N_LABELS]
    inputs = sp.hstack([sp.csr_matrix(train.X), posteriors], format="csr")
    return inputs[:N_ITEMS], np.asarray(train.Y)[:N_ITEMS, chosen]


@contextmanager
def counted() -> Iterator[list[int]]:
    """Products with Hessians of single columns, in a list of one number."""
    spent, iterate = [0], NewtonSystems.iterate

    def count(self: NewtonSystems, loss: Any) -> None:
        spent[0] += int(self.open.sum())
        iterate(self, loss)

    with mock.patch.object(NewtonSystems, "iterate", count):
        yield spent


def solve(X: Any, Y: np.ndarray) -> tuple[float, int, LogisticPath]:
    """CPU seconds, products and solutions."""
    with counted() as spent:
        start = time.process_time()
        path = fit_logistic_path(X, Y, Cs=CS, class_weights=WEIGHTS, tol=TOL)
        return time.process_time() - start, spent[0], path


def both(X: Any, Y: np.ndarray) -> tuple[Any, Any]:
    """What `solve` gives with extrapolation, and without."""
    extrapolated = solve(X, Y)
    with mock.patch.object(newton._Columns, "_extrapolate", return_value=None):
        return extrapolated, solve(X, Y)


def compare(name: str, X: Any, Y: np.ndarray, scaled: str) -> str:
    """A row of the table."""
    solve(X, Y[:, :1])  # compiles
    (extrapolated, few, found), (plain, many, other) = both(X, Y)
    # Where problems are so quick that chance decides, the least of some runs counts.
    for _ in range(3 if plain < QUICK else 0):
        again = both(X, Y)
        extrapolated, plain = min(extrapolated, again[0][0]), min(plain, again[1][0])
    np.testing.assert_allclose(found.objective, other.objective, rtol=10 * TOL)
    shape = f"{X.shape[0]:,} x {X.shape[1]:,}"
    each = found.objective.size
    return (
        f"| {name}, {scaled} | {shape} | {many / each:.0f} | {few / each:.0f} "
        f"| {plain / extrapolated:.1f} |"
    )


if __name__ == "__main__":
    print(
        "| dataset, inputs | design | products without | with extrapolation | time without / with |"
    )
    print("|---|---:|---:|---:|---:|")
    for name in sys.argv[1:]:
        X, Y = seen_by_stack(name)
        print(compare(name, X, Y, "as they are"), flush=True)
        scaled = StandardScaler(with_mean=False).fit_transform(X)
        print(compare(name, scaled, Y, "scaled"), flush=True)
