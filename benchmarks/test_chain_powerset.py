"""Chain and Powerset with the batched solvers against the same with scikit-learn's lbfgs.

    PREVALENS_DATA=... pytest benchmarks/test_chain_powerset.py --benchmark-enable -p no:xdist

writes benchmarks/results/chain_powerset.md. The rules are those of test_classifiers.py: C = 1, the
rival has the loosest tolerance with which it comes within 1e-4 of the least objective, all links
of a chain counted; CPU seconds of one and the same run on one thread.
"""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from prevalens.classifiers import BatchedLogistic, Chain, MultinomialLogistic, Powerset
from prevalens.classifiers.base import append_columns
from prevalens.datasets import DataNotFoundError, load

RESULTS = Path(__file__).parent / "results" / "chain_powerset.md"
DATASETS = {"chain": ("enron", "bibtex"), "powerset": ("yeast", "enron")}
TOL, REACHED = 1e-4, 1e-4
TOLERANCES = (1e-4, 1e-5, 3e-6, 1e-6, 1e-7)
HEAD = """
| classifier | dataset | items x features | regressions | ours CPU s | lbfgs tol | lbfgs CPU s \
| gap ours | gap lbfgs | CPU ratio |
|---|---|---|---|---|---|---|---|---|---|
"""


@pytest.fixture(scope="module")
def rows() -> Iterator[list[str]]:
    """Rows measured now; they replace those of the same classifier and dataset in the file."""
    found: list[str] = []
    yield found
    old = RESULTS.read_text(encoding="utf-8").partition(HEAD)[2] if RESULTS.exists() else ""
    kept = {tuple(row.split(" | ")[:2]): row for row in [*old.splitlines(), *found]}
    RESULTS.write_text(heading() + HEAD + "\n".join(kept.values()) + "\n", encoding="utf-8")


def heading() -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    return (
        "# Chains and label powersets\n\nWritten by `benchmarks/test_chain_powerset.py`. Python "
        f"{platform.python_version()}, {versions}; {os.cpu_count()} cores. Gap: the largest "
        "relative distance\nof a regression from the least objective known.\n"
    )


def items(name: str) -> tuple[Any, np.ndarray]:
    try:
        train = load(name).train
    except DataNotFoundError as error:
        pytest.skip(str(error))
    varying = train.Y.min(axis=0) < train.Y.max(axis=0)
    return train.X, train.Y[:, varying]


def seconds(action: Callable[[], Any]) -> tuple[Any, float]:
    """The result of an action in one thread, and its CPU seconds."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        start = time.process_time()
        result = action()
        return result, time.process_time() - start


def chain_objectives(model: Chain, X: Any, Y: np.ndarray) -> np.ndarray:
    """The minimised function of each link."""
    values = []
    for link, one in enumerate(model.classifiers_):
        inner: Any = getattr(one, "classifier_", one)
        margin = append_columns(X, Y[:, :link]) @ inner.coef_.ravel() + inner.intercept_[0]
        losses = np.logaddexp(0, (1 - 2.0 * Y[:, link]) * margin)
        values.append(0.5 * float(np.sum(inner.coef_**2)) + float(losses.sum()))
    return np.array(values)


def powerset_objective(model: Powerset, X: Any, Y: np.ndarray) -> np.ndarray:
    """The minimised function of the softmax over labelsets."""
    inner: Any = model.estimator_
    scores = X @ inner.coef_.T + inner.intercept_
    state = np.unique(Y, axis=0, return_inverse=True)[1].ravel()
    losses = logsumexp(scores, axis=1) - scores[np.arange(len(Y)), state]
    return np.array([0.5 * float(np.sum(inner.coef_**2)) + float(losses.sum())])


def rival(tol: float) -> LogisticRegression:
    return LogisticRegression(tol=tol, max_iter=5000)


def compare(
    make: Callable[[Any], Any], ours: Any, exact: Any, objectives: Callable[..., Any], name: str
) -> list[str]:
    """Cells of a row, from the items on."""
    X, Y = items(name)
    least = objectives(seconds(lambda: make(exact).fit(X, Y))[0], X, Y)
    model, before = seconds(lambda: make(ours).fit(X, Y))
    gap = float(np.max(objectives(model, X, Y) / least - 1))
    for tol in TOLERANCES:
        other, theirs = seconds(lambda tol=tol: make(rival(tol)).fit(X, Y))
        gap_theirs = float(np.max(objectives(other, X, Y) / least - 1))
        if gap_theirs <= REACHED:
            break
    cpu = np.mean([before, seconds(lambda: make(ours).fit(X, Y))[1]])
    assert gap <= REACHED
    return [
        *(f"{X.shape[0]} x {X.shape[1]}", str(len(least)), f"{cpu:.2f}", f"{tol:g}"),
        *(f"{theirs:.2f}", f"{gap:.0e}", f"{gap_theirs:.0e}", f"**{theirs / cpu:.1f}**"),
    ]


@pytest.mark.data
@pytest.mark.parametrize("name", DATASETS["chain"])
def test_chain(name: str, benchmark: Any, rows: list[str]) -> None:
    ours, exact = BatchedLogistic(tol=TOL), BatchedLogistic(tol=1e-12)
    cells = benchmark.pedantic(
        lambda: compare(Chain, ours, exact, chain_objectives, name), rounds=1
    )
    rows.append(f"| Chain | {name} | {' | '.join(cells)} |")


@pytest.mark.data
@pytest.mark.parametrize("name", DATASETS["powerset"])
def test_powerset(name: str, benchmark: Any, rows: list[str]) -> None:
    ours, exact = MultinomialLogistic(tol=TOL), MultinomialLogistic(tol=1e-12)
    cells = benchmark.pedantic(
        lambda: compare(Powerset, ours, exact, powerset_objective, name), rounds=1
    )
    rows.append(f"| Powerset | {name} | {' | '.join(cells)} |")
