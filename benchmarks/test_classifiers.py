"""Batched logistic regression against scikit-learn's one-vs-rest, and the agreement of both.

    PREVALENS_DATA=... pytest benchmarks/test_classifiers.py --benchmark-enable -p no:xdist

writes benchmarks/results/classifiers.md. Every solver of scikit-learn gets the loosest tolerance
with which it comes within 1e-4 of the least objective on each of some labels; the fastest of them
is the rival. For one setting the rival then trains all labels, in one process and in two; for the
grid its time on some labels is scaled to all. Ratios are of one and the same run: CPU seconds weigh
other load on the machine little, wall seconds show what two cores give. The rival's linear algebra
has one thread per process, with which its CPU seconds are least.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from threadpoolctl import threadpool_limits

from prevalens.collection import Collection
from prevalens.datasets import DataNotFoundError, load
from prevalens.solvers.logistic import fit_logistic, fit_logistic_path

RESULTS = Path(__file__).parent / "results" / "classifiers.md"
CS = (0.1, 1.0, 10.0, 100.0, 1000.0)
WEIGHTS = (None, "balanced")
#: The relative objective that counts as reached, and our tolerance that is sure to reach it.
REACHED = 1e-4
TOL = 3e-4
#: Dataset and how many times faster was asked for.
ONE_SETTING = [("mediamill_discretized", 10), ("delicious", 5), ("bibtex", 3), ("reuters21578", 3)]
GRID = [("mediamill_discretized", 15), ("delicious", 15)]
PARITY = ("emotions", "yeast", "scene", "medical", "enron")
TOLERANCES = (1e-4, 1e-5, 3e-6, 1e-6, 1e-7)

ONE_HEAD = """## One setting: C = 1, no class weights

Relative gap: the largest over {some} labels, to the least objective known, of ours and the rival's.

| dataset | items x features, labels | ours CPU s | ours wall s | rival | rival CPU s | \
two processes, wall s | gap ours | gap rival | CPU ratio | wall ratio | asked |
|---|---|---|---|---|---|---|---|---|---|---|---|
"""
SOLVERS_HEAD = """## Each solver of scikit-learn, CPU seconds scaled to all labels

"-" where no tolerance down to 1e-7 came within 1e-4 on all labels tried.

| dataset | ours | {solvers} |
|---|---|{lines}|
"""
GRID_HEAD = """## The grid: five C times two class weights

The rival's seconds are of {some} labels, for each setting with its fastest solver there, scaled to
all labels. Peak memory is that of a process that does nothing else.

| dataset | problems | ours CPU s | ours wall s | rival CPU s | CPU ratio | asked | peak GB | \
asked below |
|---|---|---|---|---|---|---|---|---|
"""
PARITY_HEAD = """## Posteriors of training and test items against scikit-learn's, ten settings

scikit-learn's newton-cholesky with tolerance 1e-9, on the features rotated to full rank where there
are more of them than items, which changes no posterior. Ours with its default tolerance.

| dataset | labels | largest difference | asked | ours CPU s | rival CPU s |
|---|---|---|---|---|---|
"""


class Solver(NamedTuple):
    """A solver of scikit-learn and its further arguments."""

    name: str
    arguments: dict[str, Any]


SOLVERS = (
    Solver("lbfgs", {}),
    Solver("newton-cg", {}),
    # It penalises the intercept, the less the larger this scale.
    Solver("liblinear", {"intercept_scaling": 100.0}),
    Solver("newton-cholesky", {}),
)


@dataclass
class Report:
    """The lines of the results file, written when the module is done."""

    one: list[str] = field(default_factory=list)
    solvers: list[str] = field(default_factory=list)
    grid: list[str] = field(default_factory=list)
    parity: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Reach:
    """How a solver got within reach of the least objective."""

    solver: Solver
    tol: float
    seconds: float
    gap: float


@pytest.fixture(scope="module")
def report() -> Iterator[Report]:
    lines = Report()
    yield lines
    parts = [
        (ONE_HEAD.format(some=len(some_labels(983, 20))), lines.one),
        (
            SOLVERS_HEAD.format(
                solvers=" | ".join(solver.name for solver in SOLVERS), lines="---|" * len(SOLVERS)
            ).replace("||\n", "|\n"),
            lines.solvers,
        ),
        (GRID_HEAD.format(some=4), lines.grid),
        (PARITY_HEAD, lines.parity),
    ]
    if any(rows for _, rows in parts):
        RESULTS.parent.mkdir(exist_ok=True)
        text = heading() + "\n".join(head + "\n".join(rows) + "\n" for head, rows in parts if rows)
        RESULTS.write_text(text, encoding="utf-8")


def heading() -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    load_average = " / ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        "# Logistic regression of all labels\n\nWritten by `benchmarks/test_classifiers.py`. "
        f"Python {platform.python_version()}, {versions}; {os.cpu_count()} cores, load "
        f"{load_average} at the end.\n\n"
    )


def train_part(name: str) -> Collection:
    try:
        return load(name).train
    except DataNotFoundError as error:
        pytest.skip(str(error))


def timed(action: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result of an action, its CPU seconds and its wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = action()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def some_labels(n_labels: int, n_some: int) -> np.ndarray:
    """Labels evenly chosen from a list."""
    return np.unique(np.linspace(0, n_labels - 1, n_some).astype(int))


def chosen(train: Collection, n_some: int) -> np.ndarray:
    """Labels evenly chosen from the rarest to the most frequent."""
    return np.argsort(train.prevalence)[some_labels(train.n_labels, n_some)]


def objective(X: Any, y: np.ndarray, coef: np.ndarray, b: float, C: float, weight: Any) -> float:
    each = np.ones(len(y))
    if weight == "balanced":
        each = np.where(y > 0, len(y) / (2 * y.sum()), len(y) / (2 * (len(y) - y.sum())))
    margin = (2.0 * y - 1) * (np.asarray(X @ coef).ravel() + b)
    return 0.5 * float(coef @ coef) + C * float(each @ np.logaddexp(0, -margin))


def gaps(X: Any, Y: np.ndarray, fitted: Sequence[Any], least: np.ndarray, C: float, w: Any) -> Any:
    """Relative distances to the least objectives; `fitted` has a (coef, intercept) per label."""
    found = [objective(X, y, coef, b, C, w) for y, (coef, b) in zip(Y.T, fitted, strict=True)]
    return np.array(found) / least - 1


def estimator(solver: Solver, tol: float, C: float, weight: Any) -> LogisticRegression:
    return LogisticRegression(
        C=C, class_weight=weight, solver=solver.name, tol=tol, max_iter=3000, **solver.arguments
    )


def loop(X: Any, Y: np.ndarray, solver: Solver, tol: float, C: float, weight: Any) -> list[Any]:
    """scikit-learn, label by label."""
    fitted = []
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for y in Y.T:
            one = estimator(solver, tol, C, weight).fit(X, y)
            fitted.append((one.coef_[0], one.intercept_[0]))
    return fitted


def reach(
    X: Any, Y: np.ndarray, solver: Solver, least: np.ndarray, C: float, weight: Any
) -> Reach | None:
    """The loosest tolerance with which a solver gets there, or None."""
    if sp.issparse(X) and solver.name == "newton-cholesky":
        return None
    for tol in TOLERANCES:
        fitted, seconds, _ = timed(lambda tol=tol: loop(X, Y, solver, tol, C, weight))
        gap = float(np.max(gaps(X, Y, fitted, least, C, weight)))
        if gap <= REACHED:
            return Reach(solver, tol, seconds, gap)
    return None


def fastest(reached: Sequence[Reach | None]) -> Reach:
    return min((one for one in reached if one is not None), key=lambda one: one.seconds)


@pytest.mark.data
@pytest.mark.parametrize(("name", "asked"), ONE_SETTING)
def test_one_setting(name: str, asked: int, benchmark: Any, report: Report) -> None:
    train = train_part(name)
    X, Y = train.X, train.Y
    some = chosen(train, 20)
    least = fit_logistic(X, Y[:, some], tol=1e-12).objective
    ours, cpu, wall = timed(lambda: fit_logistic(X, Y, tol=TOL))
    again = [timed(lambda: fit_logistic(X, Y, tol=TOL))[1:] for _ in range(2)]
    cpu, wall = min(cpu, *(c for c, _ in again)), min(wall, *(w for _, w in again))
    benchmark.pedantic(lambda: fit_logistic(X, Y, tol=TOL), rounds=1)
    gap = np.max(
        gaps(X, Y[:, some], [(ours.coef[j], ours.intercept[j]) for j in some], least, 1.0, None)
    )
    reached = [reach(X, Y[:, some], solver, least, 1.0, None) for solver in SOLVERS]
    best = fastest(reached)
    _, rival_cpu, rival_wall = timed(lambda: loop(X, Y, best.solver, best.tol, 1.0, None))
    two = OneVsRestClassifier(estimator(best.solver, best.tol, 1.0, None), n_jobs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        two_wall = min(rival_wall, timed(lambda: two.fit(X, Y))[2])
    report.one.append(
        f"| {name} | {X.shape[0]} x {X.shape[1]}, {train.n_labels} | {cpu:.2f} | {wall:.2f} | "
        f"{best.solver.name}, tol {best.tol:g} | {rival_cpu:.1f} | {two_wall:.1f} | {gap:.0e} | "
        f"{best.gap:.0e} | **{rival_cpu / cpu:.1f}** | **{two_wall / wall:.1f}** | {asked} |"
    )
    scale = train.n_labels / len(some)
    each = ["-" if one is None else f"{one.seconds * scale:.1f}" for one in reached]
    report.solvers.append(f"| {name} | {cpu:.2f} | {' | '.join(each)} |")
    assert gap <= REACHED
    assert ours.converged.all()


@pytest.mark.data
@pytest.mark.parametrize(("name", "asked"), GRID)
def test_grid(name: str, asked: int, benchmark: Any, report: Report) -> None:
    train = train_part(name)
    X, Y = train.X, train.Y
    some = chosen(train, 4)
    least = fit_logistic_path(X, Y[:, some], Cs=CS, class_weights=WEIGHTS, tol=1e-12)
    seconds = 0.0
    for number, (C, weight) in enumerate(least.settings):
        values = least.objective[number]
        reached = [reach(X, Y[:, some], solver, values, C, weight) for solver in SOLVERS]
        seconds += fastest(reached).seconds
    path, cpu, wall = timed(
        lambda: benchmark.pedantic(
            lambda: fit_logistic_path(X, Y, Cs=CS, class_weights=WEIGHTS, tol=TOL), rounds=1
        )
    )
    rival = seconds * train.n_labels / len(some)
    report.grid.append(
        f"| {name} | {path.objective.size} | {cpu:.1f} | {wall:.1f} | {rival:.0f} | "
        f"**{rival / cpu:.1f}** | {asked} | {peak_memory(name):.2f} | 4 |"
    )
    worst = np.max(path.objective[:, some] / least.objective - 1)
    assert worst <= REACHED


def peak_memory(name: str) -> float:
    """Gigabytes of a process that solves the grid."""
    code = (
        "import resource, sys\n"
        "from prevalens.datasets import load\n"
        "from prevalens.solvers.logistic import fit_logistic_path\n"
        "train = load(sys.argv[1]).train\n"
        "fit_logistic_path(train.X, train.Y, tol=float(sys.argv[2]))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    command = [sys.executable, "-c", code, name, str(TOL)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(answer.stdout) / 2**20


def rotated(X: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Features in the span of the items, and the map of other items to them."""
    if X.shape[1] <= X.shape[0]:
        return X, lambda other: other
    _, singular, directions = np.linalg.svd(X, full_matrices=False)
    basis = directions[singular > 1e-10 * singular[0]].T
    return X @ basis, lambda other: other @ basis


@pytest.mark.data
@pytest.mark.parametrize("name", PARITY)
def test_posteriors(name: str, benchmark: Any, report: Report) -> None:
    data = load(name)
    X, Y = data.train.X, data.train.Y
    dense, dense_test = (
        part.X.toarray() if sp.issparse(part.X) else part.X for part in (data.train, data.test)
    )
    path, cpu, _ = timed(lambda: benchmark.pedantic(lambda: fit_logistic_path(X, Y), rounds=1))
    items, onto = rotated(dense)
    items_test = onto(dense_test)
    worst, rival = 0.0, 0.0
    for number, (C, weight) in enumerate(path.settings):
        fitted, seconds, _ = timed(
            lambda C=C, weight=weight: loop(items, Y, SOLVERS[-1], 1e-9, C, weight)
        )
        rival += seconds
        coef, intercept = np.array([w for w, _ in fitted]), np.array([b for _, b in fitted])
        ours = path[number]
        for part, turned in ((dense, items), (dense_test, items_test)):
            theirs = expit(turned @ coef.T + intercept)
            mine = expit(part @ ours.coef.T + ours.intercept)
            worst = max(worst, float(np.abs(mine - theirs).max()))
    report.parity.append(
        f"| {name} | {data.train.n_labels} | {worst:.0e} | 1e-3 | {cpu:.2f} | {rival:.1f} |"
    )
    assert worst <= 1e-3
