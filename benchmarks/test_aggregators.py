"""The binary aggregators against QuaPy's, and at the scale of Delicious.

    PREVALENS_DATA=... pytest benchmarks/test_aggregators.py --benchmark-enable -p no:xdist

writes benchmarks/results/aggregators.md. QuaPy gets the scores ready-made, as ours do: what is
compared is the aggregation of 2,000 samples, one call per label and sample there, one
call here. Ratios are of CPU seconds of one and the same run, so that other load on the machine
weighs little; threads count in full.
"""

from __future__ import annotations

import os
import platform
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from prevalens.aggregators.adjusted import ACC, PACC
from prevalens.aggregators.base import Aggregator
from prevalens.aggregators.bayes import PQ, BayesianCC
from prevalens.aggregators.calibrated import PAV
from prevalens.aggregators.counting import CC, PCC
from prevalens.aggregators.energy import EDy
from prevalens.aggregators.kernel_density import KDEyHD, KDEyML
from prevalens.aggregators.label_shift import RLLS
from prevalens.aggregators.matching import DyS, HDy
from prevalens.aggregators.sld import SLD
from prevalens.aggregators.thresholds import (
    T50,
    Friedman,
    MaxThreshold,
    MedianSweep,
    MedianSweep2,
    XThreshold,
)
from prevalens.datasets import DataNotFoundError, load
from prevalens.protocols import MLAPP
from prevalens.samples import Samples
from prevalens.scores import Scores

THRESHOLDS = ("MAX", "X", "T50", "MS", "MS2")
RESULTS = Path(__file__).parent / "results" / "aggregators.md"
N_SAMPLES = 2000


class Labelled(NamedTuple):
    """Labelled scores, their truth, the scores of a pool, and samples of the pool."""

    posteriors: np.ndarray
    Y: np.ndarray
    pool: np.ndarray
    samples: Samples

    def scores(self, kind: str) -> tuple[Scores, Scores]:
        if kind == "votes":
            return Scores(self.posteriors > 0.5, kind), Scores(self.pool > 0.5, kind)
        return Scores(self.posteriors, kind), Scores(self.pool, kind)


class Cost(NamedTuple):
    """Seconds on the wall, and of all threads together."""

    wall: float
    cpu: float


@dataclass
class Report:
    """The lines of the results file, written when the module is done; what QuaPy needed once."""

    quapy: list[str] = field(default_factory=list)
    scale: list[str] = field(default_factory=list)
    rivals: dict[str, tuple[np.ndarray, Cost]] = field(default_factory=dict)


class Echo(ClassifierMixin, BaseEstimator):
    """A binary classifier whose one feature is its posterior."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Echo:
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.column_stack([1 - X[:, 0], X[:, 0]])

    def predict(self, X: np.ndarray) -> np.ndarray:
        return (X[:, 0] > 0.5).astype(int)


def dataset(name: str) -> Any:
    try:
        return load(name)
    except DataNotFoundError as error:
        pytest.skip(str(error))


def timed(action: Callable[[], Any], rounds: int = 1) -> tuple[Any, Cost]:
    """The result and the median cost of an action."""
    costs = []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        result = action()
        costs.append((time.perf_counter() - wall, time.process_time() - cpu))
    return result, Cost(*np.median(costs, axis=0))


@pytest.fixture(scope="module")
def report() -> Iterator[Report]:
    lines = Report()
    yield lines
    if lines.quapy and lines.scale:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(render(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def yeast() -> Labelled:
    """Out-of-fold posteriors of one logistic regression per label, and 2,000 ML-APP samples."""
    data = dataset("yeast")
    X, Y, fresh = np.asarray(data.train.X), data.train.Y, np.asarray(data.test.X)
    posteriors, pool = np.empty(Y.shape), np.empty(data.test.Y.shape)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for j in range(Y.shape[1]):
        model = LogisticRegression(max_iter=500)
        held_out = cross_val_predict(model, X, Y[:, j], cv=folds, method="predict_proba")
        posteriors[:, j] = held_out[:, 1]
        pool[:, j] = model.fit(X, Y[:, j]).predict_proba(fresh)[:, 1]
    drawn = MLAPP(size=100, grid=101, repeats=2).draw(data.test.Y, np.random.default_rng(0))
    chosen = np.random.default_rng(0).choice(len(drawn), N_SAMPLES, replace=False)
    return Labelled(posteriors, Y, pool, drawn[np.sort(chosen)])


@pytest.fixture(scope="module")
def delicious() -> Labelled:
    """Scores in float32 of a linear probability model, and 10,000 samples of 100 items."""
    data = dataset("delicious")
    X, Y = data.train.X, data.train.Y
    half = len(Y) // 2
    model = Ridge(alpha=10.0).fit(X[:half], Y[:half].astype(np.float64))
    labelled, pool = (
        np.clip(model.predict(part), 0.001, 0.999).astype(np.float32)
        for part in (X[half:], data.test.X)
    )
    rng = np.random.default_rng(0)
    bags = np.stack([rng.choice(len(pool), 100, replace=False) for _ in range(10_000)])
    return Labelled(labelled, Y[half:], pool, Samples.from_indices(bags, n_items=len(pool)))


def quapy_estimates(name: str, data: Labelled, options: dict) -> tuple[np.ndarray, Cost]:
    """One QuaPy quantifier per label; classified before, aggregated sample by sample."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = getattr(pytest.importorskip("quapy.method.aggregative"), name)
        n_labels = data.Y.shape[1]
        quantifiers, predictions = [], []
        for j in range(n_labels):
            quantifier = method(Echo().fit(data.pool, data.Y), fit_classifier=False, **options)
            if name in THRESHOLDS:
                # These read decision scores; the classifier is not asked for them.
                quantifier.classify = lambda X: X[:, 0]
                quantifier.classifier_fit_predict = lambda X, y: (X[:, 0], y)
            quantifiers.append(quantifier.fit(data.posteriors[:, [j]], data.Y[:, j]))
            predictions.append(quantifier.classify(data.pool[:, [j]]))
        bags = list(data.samples)

        def aggregate() -> np.ndarray:
            estimates = np.empty((len(bags), n_labels))
            for j in range(n_labels):
                for i, bag in enumerate(bags):
                    estimates[i, j] = quantifiers[j].aggregate(predictions[j][bag])[1]
            return estimates

        return timed(aggregate)


RIVALS = [
    pytest.param(CC(), "CC", {}, None, 1e-9, id="cc"),
    pytest.param(PCC(), "PCC", {}, 25, 1e-9, id="pcc"),
    pytest.param(ACC(guard=None), "ACC", {"val_split": None}, 1000, None, id="acc"),
    pytest.param(
        ACC(guard=None), "ACC", {"val_split": None, "solver": "exact-cc"}, None, 1e-9, id="acc-x"
    ),
    pytest.param(PACC(guard=None), "PACC", {"val_split": None}, 1000, None, id="pacc"),
    pytest.param(
        PACC(guard=None), "PACC", {"val_split": None, "solver": "exact-cc"}, None, 1e-9, id="pacc-x"
    ),
    pytest.param(SLD(method="em"), "EMQ", {}, 100, 1e-6, id="sld-em"),
    # EMQ stops on the way to where the exact method ends: the difference is EMQ's.
    pytest.param(SLD(), "EMQ", {}, 100, None, id="sld"),
]


@pytest.mark.parametrize(("ours", "name", "options", "asked", "equal"), RIVALS)
def test_yeast_against_quapy(
    benchmark: Any,
    report: Report,
    yeast: Labelled,
    ours: Aggregator,
    name: str,
    options: dict,
    asked: int | None,
    equal: float | None,
) -> None:
    key = f"{name} {options.get('solver', '')}"
    if key not in report.rivals:
        report.rivals[key] = quapy_estimates(name, yeast, options)
    theirs, slow = report.rivals[key]
    labelled, pool = yeast.scores(ours.consumes)
    ours.fit(labelled, yeast.Y).aggregate(pool, yeast.samples)
    estimates, fast = timed(lambda: ours.aggregate(pool, yeast.samples), rounds=7)
    benchmark.pedantic(ours.aggregate, (pool, yeast.samples), rounds=3)
    gap = np.abs(estimates - theirs)
    report.quapy.append(
        f"| {ours!r} | {key} | {slow.cpu:.3f} | {fast.cpu:.4f} | {slow.wall:.3f} | "
        f"{fast.wall:.4f} | **{slow.cpu / fast.cpu:,.0f}** | {asked or ''} | {gap.max():.0e} | "
        f"{np.median(gap):.0e} |"
    )
    # The default solver of QuaPy is a numerical minimiser that answers 0.5 where the classes
    # do not separate; its exact solver is the one to agree with.
    if equal is not None:
        assert gap.max() < equal
    assert asked is None or slow.cpu / fast.cpu >= asked


def test_yeast_hdy_against_quapy(benchmark: Any, report: Report, yeast: Labelled) -> None:
    few = yeast._replace(samples=yeast.samples[:: N_SAMPLES // 100])
    theirs, slow = quapy_estimates("HDy", few, {"val_split": None})
    labelled, pool = few.scores("posteriors")
    hdy = HDy(range(10, 111, 10), grid=100).fit(labelled, few.Y)
    estimates, fast = timed(lambda: hdy.aggregate(pool, few.samples), rounds=3)
    benchmark.pedantic(hdy.aggregate, (pool, few.samples), rounds=1)
    gap = np.abs(estimates - theirs)
    report.quapy.append(
        f"| {hdy!r}, {len(few.samples)} samples | HDy | {slow.cpu:.3f} | {fast.cpu:.4f} | "
        f"{slow.wall:.3f} | {fast.wall:.4f} | **{slow.cpu / fast.cpu:,.0f}** | | {gap.max():.0e} | "
        f"{np.median(gap):.0e} |"
    )
    assert gap.max() < 1e-9


def test_yeast_without_numba(
    benchmark: Any, report: Report, yeast: Labelled, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelled, pool = yeast.scores("posteriors")
    sld = SLD().fit(labelled, yeast.Y)
    compiled = sld.aggregate(pool, yeast.samples)
    monkeypatch.setattr("prevalens.aggregators.sld_compiled.numba", None)
    estimates, cost = timed(lambda: sld.aggregate(pool, yeast.samples), rounds=3)
    benchmark.pedantic(sld.aggregate, (pool, yeast.samples), rounds=1)
    gap = np.abs(estimates - compiled)
    report.quapy.append(
        f"| {sld!r} without numba | compiled | | {cost.cpu:.4f} | | {cost.wall:.4f} | | | "
        f"{gap.max():.0e} | {np.median(gap):.0e} |"
    )
    assert gap.max() < 1e-9


#: QuaPy's method, samples of the 2,000 that it gets, the ratio asked for, and by how much the
#: median estimate may differ: its searches stop early, or choose among equal thresholds.
SLOWER = [
    pytest.param(KDEyML(), "KDEyML", {}, 40, 20, 0.01, id="kdey"),
    pytest.param(KDEyHD(), "KDEyHD", {"random_state": 0}, 4, 20, 0.02, id="kdey-hd"),
    pytest.param(DyS(8, "hellinger"), "DyS", {}, 40, 50, 1e-4, id="dys-hd"),
    pytest.param(DyS(8), "DyS", {"divergence": "topsoe"}, 40, 50, 1e-4, id="dys"),
    pytest.param(EDy(guard=None), "EDy", {}, 40, 50, 1e-6, id="edy"),
    pytest.param(MaxThreshold(guard=None), "MAX", {}, 200, 50, 0.02, id="max"),
    pytest.param(XThreshold(guard=None), "X", {}, 200, 50, 0.02, id="x"),
    pytest.param(T50(guard=None), "T50", {}, 200, 50, 0.1, id="t50"),
    # All thresholds, as there; and a hundred, the default.
    pytest.param(MedianSweep(10_000), "MS", {}, 100, 50, 1e-9, id="ms-all"),
    pytest.param(MedianSweep(), "MS", {}, 100, 50, 0.02, id="ms"),
    pytest.param(MedianSweep2(10_000), "MS2", {}, 100, 50, 1e-9, id="ms2-all"),
    pytest.param(MedianSweep2(), "MS2", {}, 100, 50, 0.02, id="ms2"),
    pytest.param(PACC(guard=None), "BBSEsoft", {}, 40, 50, 1e-2, id="bbse-soft"),
]


@pytest.mark.parametrize(("ours", "name", "options", "n_samples", "asked", "equal"), SLOWER)
def test_yeast_against_slower_methods(
    benchmark: Any,
    report: Report,
    yeast: Labelled,
    ours: Aggregator,
    name: str,
    options: dict,
    n_samples: int,
    asked: int,
    equal: float,
) -> None:
    """QuaPy on some of the samples, ours on all; what is compared is the time per sample."""
    if name == "EDy":
        pytest.importorskip("quadprog")
    chosen = np.arange(0, N_SAMPLES, N_SAMPLES // n_samples)
    few = yeast._replace(samples=yeast.samples[chosen])
    theirs, slow = quapy_estimates(name, few, options | {"val_split": None})
    labelled, pool = yeast.scores(ours.consumes)
    ours.fit(labelled, yeast.Y).aggregate(pool, yeast.samples)
    estimates, fast = timed(lambda: ours.aggregate(pool, yeast.samples), rounds=3)
    benchmark.pedantic(ours.aggregate, (pool, few.samples), rounds=1)
    # Where a label cannot be told apart ours is the mean posterior.
    matched = getattr(ours, "matched_", np.full(yeast.Y.shape[1], True))
    gap, more = np.abs(estimates[chosen] - theirs)[:, matched], N_SAMPLES / len(chosen)
    ratio = more * slow.cpu / fast.cpu
    report.quapy.append(
        f"| {ours!r} | {name}, {len(chosen)} samples x {more:.0f} | {more * slow.cpu:.3f} | "
        f"{fast.cpu:.4f} | {more * slow.wall:.3f} | {fast.wall:.4f} | **{ratio:,.0f}** | {asked} | "
        f"{gap.max():.0e} | {np.median(gap):.0e} |"
    )
    assert np.median(gap) < equal
    assert ratio >= asked


ALONE = [HDy(), DyS(distance="probsymm"), Friedman(), RLLS(), BayesianCC(), PQ(), PAV()]


@pytest.mark.parametrize("aggregator", [*ALONE, SLD("platt")], ids=str)
def test_yeast_alone(
    benchmark: Any, report: Report, yeast: Labelled, aggregator: Aggregator
) -> None:
    labelled, pool = yeast.scores(aggregator.consumes)
    aggregator.fit(labelled, yeast.Y).aggregate(pool, yeast.samples)
    estimates, cost = timed(lambda: aggregator.aggregate(pool, yeast.samples), rounds=3)
    benchmark.pedantic(aggregator.aggregate, (pool, yeast.samples), rounds=1)
    report.quapy.append(f"| {aggregator!r} | | | {cost.cpu:.4f} | | {cost.wall:.4f} | | | | |")
    assert estimates.shape == (N_SAMPLES, yeast.Y.shape[1])


SCALE = [
    pytest.param(CC(), 5, id="cc"),
    pytest.param(PCC(), 5, id="pcc"),
    pytest.param(ACC(), 5, id="acc"),
    pytest.param(PACC(), 5, id="pacc"),
    pytest.param(SLD(), 90, id="sld"),
    pytest.param(SLD(method="em"), 90, id="sld-em"),
    pytest.param(PAV(unify=0.001), None, id="pav"),
]


@pytest.mark.parametrize(("aggregator", "asked"), SCALE)
def test_delicious(
    benchmark: Any, report: Report, delicious: Labelled, aggregator: Aggregator, asked: int | None
) -> None:
    labelled, pool = delicious.scores(aggregator.consumes)
    _, fit = timed(lambda: aggregator.fit(labelled, delicious.Y))
    # The first call compiles where nothing is cached yet.
    aggregator.aggregate(pool, delicious.samples[:2])
    estimates, cost = timed(lambda: aggregator.aggregate(pool, delicious.samples))
    benchmark.pedantic(aggregator.aggregate, (pool, delicious.samples[:100]), rounds=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    report.scale.append(
        f"| {aggregator!r} | {fit.wall:.2f} | {cost.wall:.2f} | {cost.cpu:.2f} | {asked or ''} | "
        f"{peak:.2f} |"
    )
    assert estimates.shape == (10_000, 983)
    assert asked is None or cost.wall < asked
    assert peak < 3


def versions() -> str:
    found = []
    for package in ("numpy", "scipy", "scikit-learn", "numba", "quapy"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    return f"Python {platform.python_version()}, {', '.join(found)}"


def render(lines: Report) -> str:
    load_average = " / ".join(f"{one:.1f}" for one in os.getloadavg())
    return "\n".join(
        [
            "# Aggregators",
            "",
            f"Written by `benchmarks/test_aggregators.py`. {versions()}; {os.cpu_count()} cores, "
            f"load {load_average} at the end.",
            "",
            f"## Yeast: {N_SAMPLES:,} ML-APP samples of 100 items, 14 labels",
            "",
            "QuaPy has one quantifier per label, gets the posteriors ready-made and aggregates "
            "sample by sample; its default solver of ACC and PACC is a numerical minimiser, which "
            "answers 0.5 where the classes do not separate. The ratio is of CPU seconds.",
            "",
            "| prevalens | QuaPy | QuaPy CPU s | ours CPU s | QuaPy wall s | ours wall s | ratio "
            "| asked | largest difference | median difference |",
            "|---|---|---|---|---|---|---|---|---|---|",
            *lines.quapy,
            "",
            "## Delicious: 10,000 samples of 100 items, 983 labels, scores in float32",
            "",
            "| prevalens | fit s | aggregate s | CPU s | asked below | peak GB so far |",
            "|---|---|---|---|---|---|",
            *lines.scale,
            "",
        ]
    )
