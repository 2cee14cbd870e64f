"""Logistic regression on words beside posteriors: the mixed design against dense and sparse ones.

The second layer of a stacked classifier sees sparse items and, beside them, a full column per
label. All three designs solve the same problems, in turn, in one run; their objectives must agree.

Run: ``python benchmarks/measure_mixed.py medical tmc2007_500 bibtex corel5k delicious``, with the
public datasets in the folder PREVALENS_DATA.
"""

from __future__ import annotations

import sys
import time
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp

from prevalens.classifiers import PerLabel
from prevalens.datasets import load
from prevalens.solvers import design
from prevalens.solvers.logistic import LogisticPath, fit_logistic_path

N_LABELS, TOL = 64, 1e-4
CS = (0.1, 1.0, 10.0)


def stacked_items(name: str) -> tuple[Any, np.ndarray]:
    """Items beside the posteriors of all labels, and some of the labels."""
    train = load(name).train
    posteriors = PerLabel(tol=TOL).fit(train.X, train.Y).predict_proba(train.X)
    chosen = np.random.default_rng(0).permutation(train.Y.shape[1])[:N_LABELS]
    return sp.hstack([train.X, posteriors], format="csr"), np.asarray(train.Y)[:, chosen]


def timed(X: Any, Y: np.ndarray, **constants: Any) -> tuple[float, LogisticPath]:
    """Seconds and solution, with other thresholds of the choice of a design."""
    with mock.patch.dict(vars(design), constants):
        start = time.perf_counter()
        path = fit_logistic_path(X, Y, Cs=CS, tol=TOL)
        return time.perf_counter() - start, path


def compare(name: str) -> str:
    """A row of the table."""
    X, Y = stacked_items(name)
    fit_logistic_path(X, Y[:, :2], Cs=[0.1], tol=TOL)  # compiles what is compiled
    mixed, found = timed(X, Y, _FEW_PARAMETERS=0, _LEAST_CELLS=0)
    dense, by_dense = timed(X.toarray(), Y)
    sparse, by_sparse = timed(X, Y, _LEAST_FULL=10**9)
    for other in (by_dense, by_sparse):
        np.testing.assert_allclose(found.objective, other.objective, rtol=20 * TOL)
    return (
        f"| {name} | {X.shape[1]:,} | {X.nnz / np.prod(X.shape):.0%} | "
        f"{dense / mixed:.1f} | {sparse / mixed:.1f} |"
    )


if __name__ == "__main__":
    print("| items beside posteriors of | columns | filled | dense / mixed | sparse / mixed |")
    print("|---|---:|---:|---:|---:|")
    for name in sys.argv[1:]:
        print(compare(name), flush=True)
