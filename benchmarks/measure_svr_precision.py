"""Support vector regression of many targets: the first phase in single against double precision.

Mean posteriors and prevalences of samples of a dataset, as RQ sees them, some of the labels as
targets. Both solve the same problems, in turn, in one run; both prove the same duality gap.

Run: ``python benchmarks/measure_svr_precision.py bibtex corel5k delicious``, with the public
datasets in the folder PREVALENS_DATA.
"""

from __future__ import annotations

import sys
import time
from unittest import mock

import numpy as np

from prevalens.classifiers import PerLabel
from prevalens.datasets import load
from prevalens.protocols import MLAPP
from prevalens.solvers import svr
from prevalens.solvers.svr import LinearSVRSolution, linear_svr_path

N_TARGETS, TOL = 48, 1e-3
CS = (0.1, 1.0, 10.0)


def seen_by_rq(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean posteriors of samples, and the prevalences of some labels."""
    train = load(name).train
    posteriors = PerLabel(tol=1e-4).fit(train.X, train.Y).predict_proba(train.X)
    samples = MLAPP(100, more_than=10_000, max_samples=10_000).draw(train.Y, 0)
    chosen = np.random.default_rng(0).permutation(train.n_labels)[:N_TARGETS]
    return samples.mean(posteriors), samples.mean(np.asarray(train.Y)[:, chosen])


def timed(X: np.ndarray, Y: np.ndarray, large: int) -> tuple[float, list[LinearSVRSolution]]:
    """Seconds and solutions, with another size from which single precision is taken."""
    with mock.patch.object(svr, "_LARGE", large):
        start = time.perf_counter()
        path = linear_svr_path(X, Y, Cs=CS, tol=TOL)
        return time.perf_counter() - start, path


def compare(name: str) -> str:
    """A row of the table."""
    X, Y = seen_by_rq(name)
    single, found = timed(X, Y, 0)
    double, other = timed(X, Y, 10**12)
    for one, two in zip(found, other, strict=True):
        np.testing.assert_allclose(one.objective, two.objective, rtol=2 * TOL)
    worst = max(float(one.gap.max()) for one in found)
    return f"| {name} | {X.shape[0]:,} x {X.shape[1]} | {double / single:.1f} | {worst:.0e} |"


if __name__ == "__main__":
    print("| dataset | design | double / single | largest gap in single |")
    print("|---|---:|---:|---:|")
    for name in sys.argv[1:]:
        print(compare(name), flush=True)
