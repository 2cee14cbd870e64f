"""Batched logistic regression against scikit-learn's one-vs-rest, and the agreement of both.

    PREVALENS_DATA=... pytest benchmarks/test_classifiers.py --benchmark-enable -p no:xdist

writes benchmarks/results/classifiers.md. Every solver of scikit-learn gets the loosest tolerance
with which it comes within 1e-4 of the least objective on each of some labels; the fastest of them
is the rival. Its time on these labels is scaled to all where all would take minutes. Ratios are of
CPU seconds in one and the same run, on which other load on the machine weighs little. Both have one
thread, with which CPU seconds are least; both can be spread over cores by labels.

Each test enters its row as soon as it is done and leaves the other rows of the file as they are, so
that ``-k delicious`` measures one dataset anew.
"""

from __future__ import annotations

import os
import platform
import resource
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from prevalens.collection import Collection
from prevalens.datasets import DataNotFoundError, load
from prevalens.solvers.logistic import fit_logistic, fit_logistic_path
from prevalens.solvers.path import LinearFit

RESULTS = Path(__file__).parent / "results" / "classifiers.md"
CS = (0.1, 1.0, 10.0, 100.0, 1000.0)
WEIGHTS = (None, "balanced")
#: The relative objective that counts as reached, and our tolerance that is sure to reach it.
REACHED = 1e-4
TOL = 1e-4
#: Dataset and how many times faster was asked for.
ONE_SETTING = [("mediamill_discretized", 10), ("delicious", 5), ("bibtex", 3), ("reuters21578", 3)]
GRID = [("mediamill_discretized", 15), ("delicious", 15)]
PARITY = ("emotions", "yeast", "scene", "medical", "enron")
ORDER = tuple(name for name, _ in ONE_SETTING) + PARITY
TOLERANCES = (1e-4, 1e-5, 3e-6, 1e-6, 1e-7)
#: Labels on which rivals are measured, for one setting and for each of the grid; and those on which
#: our objectives are held against the least ones.
SOME, FEW, CHECKED = 10, 4, 40
#: A solver may take this many times the seconds of the best before; the rival trains all labels if
#: that takes no more seconds than these.
PATIENCE = 3.0
MOST_SECONDS = 60.0

ONE_HEAD = """## One setting: C = 1, no class weights

Gap: the largest relative distance from the least objective known, of ours over 40 labels and of the
rival over 10, from rare to frequent. *: the rival's seconds on these 10, scaled to all.

| dataset | items x features, labels | ours CPU s | rival | rival CPU s | gap ours | gap rival | \
CPU ratio | asked |
|---|---|---|---|---|---|---|---|---|
"""
SOLVERS_HEAD = """## Each solver of scikit-learn, CPU seconds scaled to all labels

">" where a solver was stopped after three times the seconds of the best; "-" where no tolerance
down to 1e-7 came within 1e-4 on all labels tried. newton-cholesky factorises Hessians and is not
tried with more than 2,000 features.

| dataset | ours | newton-cholesky | liblinear | newton-cg | lbfgs |
|---|---|---|---|---|---|
"""
GRID_HEAD = """## The grid: five C times two class weights

The rival's seconds are of 4 labels, for each setting with its fastest solver there, scaled to
all labels. Gap: of ours, over 40 labels and all settings. Peak memory is that of the process that
runs both.

| dataset | problems | ours CPU s | ours wall s | rival CPU s | gap ours | CPU ratio | asked | \
peak GB | asked below |
|---|---|---|---|---|---|---|---|---|---|
"""
PARITY_HEAD = """## Posteriors of training and test items against scikit-learn's, ten settings

scikit-learn's newton-cholesky with tolerance 1e-9, started from our solution, on the features
rotated to full rank where there are more of them than items, which changes no posterior: the
minimum is one. Ours with its default tolerance. Labels that all training items have, or none, are
left out.

| dataset | labels | largest difference | asked | ours CPU s |
|---|---|---|---|---|
"""


class Solver(NamedTuple):
    """A solver of scikit-learn and its further arguments."""

    name: str
    arguments: dict[str, Any]


SOLVERS = (
    Solver("newton-cholesky", {}),
    # It penalises the intercept, the less the larger this scale.
    Solver("liblinear", {"intercept_scaling": 100.0}),
    Solver("newton-cg", {}),
    Solver("lbfgs", {}),
)


class Report:
    """The results file: sections of rows, each row led by the name of its dataset."""

    def __init__(self, heads: Sequence[str]) -> None:
        self._rows: dict[str, dict[str, str]] = {head: {} for head in heads}
        old = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
        for head, rows in self._rows.items():
            _, _, after = old.partition(head)
            lines = after.partition("\n\n")[0].splitlines()
            rows.update({line.split(" | ")[0].strip("| "): line for line in lines})

    def add(self, head: str, cells: Sequence[str]) -> None:
        """Enter a row in place of an older one of the same dataset, and write the file."""
        self._rows[head][cells[0]] = f"| {' | '.join(cells)} |"
        parts = [
            head + "\n".join(rows[name] for name in ORDER if name in rows) + "\n"
            for head, rows in self._rows.items()
            if rows
        ]
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(heading() + "\n".join(parts), encoding="utf-8")


@dataclass(frozen=True)
class Reach:
    """How a solver got within reach of the least objective, or did not."""

    solver: Solver
    tol: float
    seconds: float
    gap: float
    stopped: bool = False

    @property
    def there(self) -> bool:
        return not self.stopped and self.gap <= REACHED

    def scaled(self, scale: float) -> str:
        """Seconds for all labels, as a cell."""
        if not self.there and not self.stopped:
            return "-"
        return f"{'> ' if self.stopped else ''}{self.seconds * scale:.1f}"


@pytest.fixture(scope="module")
def report() -> Report:
    return Report((ONE_HEAD, SOLVERS_HEAD, GRID_HEAD, PARITY_HEAD))


def heading() -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    load_average = " / ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        "# Logistic regression of all labels\n\nWritten by `benchmarks/test_classifiers.py`. "
        f"Python {platform.python_version()}, {versions}; {os.cpu_count()} cores, load "
        f"{load_average} at the end of the last test.\n\n"
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


def alone(fit: Callable[..., Any], X: Any, Y: np.ndarray, **arguments: Any) -> Any:
    """Ours in one thread."""
    with threadpool_limits(1):
        return fit(X, Y, **arguments)


def chosen(train: Collection, n_some: int) -> np.ndarray:
    """Labels evenly chosen from the rarest to the most frequent."""
    even = np.unique(np.linspace(0, train.n_labels - 1, n_some).astype(int))
    return np.argsort(train.prevalence)[even]


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


def own_gap(
    X: Any, Y: np.ndarray, ours: LinearFit, checked: Any, least: Any, C: float, weight: Any
) -> float:
    """Our largest gap on some labels."""
    found = [(ours.coef[j], ours.intercept[j]) for j in checked]
    return float(np.max(gaps(X, Y[:, checked], found, least, C, weight)))


def estimator(solver: Solver, tol: float, C: float, weight: Any) -> LogisticRegression:
    return LogisticRegression(
        C=C, class_weight=weight, solver=solver.name, tol=tol, max_iter=3000, **solver.arguments
    )


def loop(
    X: Any, Y: np.ndarray, solver: Solver, tol: float, C: float, weight: Any, budget: float = np.inf
) -> list[Any]:
    """scikit-learn, label by label; fewer labels when `budget` CPU seconds have passed."""
    fitted: list[Any] = []
    end = time.process_time() + budget
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for y in Y.T:
            if time.process_time() > end:
                break
            one = estimator(solver, tol, C, weight).fit(X, y)
            fitted.append((one.coef_[0], one.intercept_[0]))
    return fitted


def reach(
    X: Any,
    Y: np.ndarray,
    solver: Solver,
    least: np.ndarray,
    C: float,
    weight: Any,
    *,
    budget: float,
) -> Reach:
    """The loosest tolerance with which a solver gets there, unless it is stopped on the way."""
    if X.shape[1] > 2000 and solver.name == "newton-cholesky":
        return Reach(solver, 0.0, np.inf, np.inf)
    for tol in TOLERANCES:
        run = partial(loop, X, Y, solver, tol, C, weight, budget)
        fitted, seconds, _ = timed(run)
        if len(fitted) < Y.shape[1]:
            return Reach(solver, tol, budget, np.inf, stopped=True)
        gap = float(np.max(gaps(X, Y, fitted, least, C, weight)))
        if gap <= REACHED:
            break
    return Reach(solver, tol, seconds, gap)


def reaches(
    X: Any, Y: np.ndarray, least: np.ndarray, C: float, weight: Any, *, patience: float
) -> dict[str, Reach]:
    """How each solver fares within `patience` times the seconds of the best before it."""
    found: dict[str, Reach] = {}
    budget = np.inf
    # The order matters only for the time that the search itself takes.
    for solver in sorted(SOLVERS, key=lambda one: sp.issparse(X) == (one is SOLVERS[0])):
        found[solver.name] = reach(X, Y, solver, least, C, weight, budget=budget)
        if found[solver.name].there:
            budget = min(budget, patience * found[solver.name].seconds)
    return found


def fastest(reached: dict[str, Reach]) -> Reach:
    return min((one for one in reached.values() if one.there), key=lambda one: one.seconds)


@pytest.mark.data
@pytest.mark.parametrize(("name", "asked"), ONE_SETTING)
def test_one_setting(name: str, asked: int, benchmark: Any, report: Report) -> None:
    train = train_part(name)
    X, Y = train.X, train.Y
    checked, some = chosen(train, CHECKED), chosen(train, SOME)
    least = fit_logistic(X, Y[:, checked], tol=1e-12).objective
    benchmark.pedantic(lambda: fit_logistic(X, Y, tol=TOL), rounds=1)
    ours, before, _ = timed(lambda: alone(fit_logistic, X, Y, tol=TOL))
    least_some = fit_logistic(X, Y[:, some], tol=1e-12).objective
    reached = reaches(X, Y[:, some], least_some, 1.0, None, patience=PATIENCE)
    best, scale = fastest(reached), train.n_labels / len(some)
    rival, mark = best.seconds * scale, " *"
    if rival <= MOST_SECONDS:
        rival, mark = timed(lambda: loop(X, Y, best.solver, best.tol, 1.0, None))[1], ""
    cpu = np.mean([before, timed(lambda: alone(fit_logistic, X, Y, tol=TOL))[1]])
    gap = own_gap(X, Y, ours, checked, least, 1.0, None)
    report.add(
        ONE_HEAD,
        [
            name,
            f"{X.shape[0]} x {X.shape[1]}, {train.n_labels}",
            *(f"{cpu:.2f}", f"{best.solver.name}, tol {best.tol:g}"),
            *(f"{rival:.1f}{mark}", f"{gap:.0e}", f"{best.gap:.0e}"),
            *(f"**{rival / cpu:.1f}**", str(asked)),
        ],
    )
    each = [reached[solver.name].scaled(scale) for solver in SOLVERS]
    report.add(SOLVERS_HEAD, [name, f"{cpu:.2f}", *each])
    assert gap <= REACHED
    assert ours.converged.all()


@pytest.mark.data
@pytest.mark.parametrize(("name", "asked"), GRID)
def test_grid(name: str, asked: int, benchmark: Any, report: Report) -> None:
    train = train_part(name)
    X, Y = train.X, train.Y
    grid: dict[str, Any] = {"Cs": CS, "class_weights": WEIGHTS}
    path, cpu, wall = timed(
        lambda: benchmark.pedantic(
            lambda: alone(fit_logistic_path, X, Y, tol=TOL, **grid), rounds=1
        )
    )
    some = chosen(train, FEW)
    least = fit_logistic_path(X, Y[:, some], tol=1e-12, **grid)
    seconds = 0.0
    for number, (C, weight) in enumerate(least.settings):
        reached = reaches(X, Y[:, some], least.objective[number], C, weight, patience=1.0)
        seconds += fastest(reached).seconds
    rival = seconds * train.n_labels / len(some)
    checked = chosen(train, CHECKED)
    bound = fit_logistic_path(X, Y[:, checked], tol=1e-12, **grid).objective
    gap = max(
        own_gap(X, Y, path[number], checked, bound[number], C, weight)
        for number, (C, weight) in enumerate(path.settings)
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    report.add(
        GRID_HEAD,
        [
            *(name, str(path.objective.size), f"{cpu:.1f}", f"{wall:.1f}", f"{rival:.0f}"),
            *(f"{gap:.0e}", f"**{rival / cpu:.1f}**", str(asked), f"{peak:.2f}", "4"),
        ],
    )
    assert gap <= REACHED
    assert peak < 4


def span(X: np.ndarray) -> np.ndarray:
    """Orthonormal directions of the features that hold all items, as columns."""
    if X.shape[1] <= X.shape[0]:
        return np.eye(X.shape[1])
    _, singular, directions = np.linalg.svd(X, full_matrices=False)
    return np.asarray(directions[singular > 1e-10 * singular[0]].T)


def polished(X: np.ndarray, Y: np.ndarray, start: LinearFit, C: float, weight: Any) -> Any:
    """scikit-learn's minimum for each label, found from a start."""
    coef, intercept = np.empty_like(start.coef), np.empty_like(start.intercept)
    for j, y in enumerate(Y.T):
        one = estimator(SOLVERS[0], 1e-9, C, weight).set_params(warm_start=True)
        one.coef_, one.intercept_ = start.coef[[j]], start.intercept[[j]]
        with warnings.catch_warnings():
            # Its line search says so where rounding leaves nothing to gain.
            warnings.simplefilter("ignore")
            one.fit(X, y)
        coef[j], intercept[j] = one.coef_[0], one.intercept_[0]
    return coef, intercept


@pytest.mark.data
@pytest.mark.parametrize("name", PARITY)
def test_posteriors(name: str, benchmark: Any, report: Report) -> None:
    data = load(name)
    X, varying = data.train.X, data.train.Y.min(axis=0) < data.train.Y.max(axis=0)
    Y = data.train.Y[:, varying]
    path, cpu, _ = timed(lambda: benchmark.pedantic(lambda: fit_logistic_path(X, Y), rounds=1))
    dense = [sp.csr_matrix(part.X).toarray() for part in (data.train, data.test)]
    basis = span(dense[0])
    turned = [part @ basis for part in dense]
    worst = 0.0
    for number, (C, weight) in enumerate(path.settings):
        ours = path[number]
        start = replace(ours, coef=ours.coef @ basis)
        coef, intercept = polished(turned[0], Y, start, C, weight)
        for part, part_turned in zip(dense, turned, strict=True):
            theirs = expit(part_turned @ coef.T + intercept)
            mine = expit(part @ ours.coef.T + ours.intercept)
            worst = max(worst, float(np.abs(mine - theirs).max()))
    report.add(PARITY_HEAD, [name, str(Y.shape[1]), f"{worst:.0e}", "1e-3", f"{cpu:.2f}"])
    assert worst <= 1e-3
