"""Cells of timelines: cuts, horizons, intervals, and methods that are told the times."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

from prevalens.datasets import load
from prevalens.estimate import PrevalenceEstimate
from prevalens.experiments import Cell, DataSource, MethodSpec, Plan, ProtocolSpec, Store
from prevalens.experiments import run as run_module
from prevalens.experiments.run import run_cell
from prevalens.experiments.runner import plan_records, run_plan
from prevalens.metrics import HORIZON_NAMES, INTERVAL_METRICS
from prevalens.validation import InputError

pytestmark = pytest.mark.filterwarnings("ignore:.*is not the published file")

WORDS = {"Human rights": "torture asylum", "Colonialism": "territory independence"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Roll calls from 1980 to 1989, 60 a year, in a data home of its own."""
    rng = np.random.default_rng(0)
    lines = ["date,id,text,issues"]
    for i in range(600):
        issues = [name for name in WORDS if rng.random() < 0.4]
        text = " ".join(["vote", *(WORDS[name] for name in issues), rng.choice(["now", "then"])])
        lines.append(f"{1980 + i // 60}-{1 + i // 5 % 12:02}-01,{i},{text},{';'.join(issues)}")
    (tmp_path / "timelines").mkdir()
    (tmp_path / "timelines" / "un.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("PREVALENS_DATA", str(tmp_path))
    return tmp_path


def cell(expression: str = "lr+pcc", *, name: str = "un@1984", **changes: Any) -> Cell:
    given: dict[str, Any] = {
        "source": DataSource.registered(name, {"max_train": 200}),
        "method": MethodSpec(expression, expression),
        "protocol": ProtocolSpec("periods", "periods", {"unit": "Y"}),
        "seed": 0,
        "metrics": ("ae",),
        "interval": 0.9,
    }
    return Cell(**{**given, **changes})


@pytest.mark.usefixtures("home")
def test_figures_are_those_of_an_estimate_by_hand() -> None:
    result = run_cell(cell("lr+mixture"))
    data = load("un", cut="1984", max_train=200)
    quantifier = run_module.build(MethodSpec("", "lr+mixture"), 0)
    quantifier.fit(data.train.X, data.train.Y)
    years = data.test.times.astype("datetime64[Y]").astype(str)  # type: ignore[union-attr]
    estimate = quantifier.quantify_many(data.test.X, years, interval=0.9)
    true = np.array([data.test.Y[years == year].mean(axis=0) for year in np.unique(years)])
    holds = (estimate.lower <= true) & (true <= estimate.upper)
    bands = (estimate.band_lower <= true) & (true <= estimate.band_upper)
    columns = result.columns
    np.testing.assert_allclose(columns["ae"], abs(estimate.point - true).mean(axis=1), rtol=1e-5)
    np.testing.assert_allclose(columns["coverage"], holds.mean(axis=1))
    np.testing.assert_allclose(columns["band_coverage"], bands.all(axis=1))
    widths = (estimate.upper - estimate.lower).mean(axis=1)
    np.testing.assert_allclose(columns["width"], widths, rtol=1e-5)
    assert (columns["band_width"] >= columns["width"]).all()


@pytest.mark.usefixtures("home")
def test_horizons_are_shares_of_the_training_span() -> None:
    result = run_cell(cell(name="un@1984"))
    # Six years after four; the middle of the first is half a year after the end, of 3.9.
    assert np.allclose(result.columns["horizon"], (np.arange(6) + 0.53) / 3.92, atol=0.02)
    records = {(r.metric, r.shift): r for r in result.records()}
    assert [records["ae", name].n_samples for name in (*HORIZON_NAMES, "all")] == [1, 3, 2, 6]
    means = [records["ae", name].value for name in HORIZON_NAMES]
    assert np.dot(means, [1, 3, 2]) / 6 == pytest.approx(records["ae", "all"].value, rel=1e-6)
    assert {metric for metric, _ in records} == {"ae", *INTERVAL_METRICS}


@pytest.mark.usefixtures("home")
def test_samples_without_order_have_no_horizon() -> None:
    natural = ProtocolSpec("natural", "natural", {"size": 20, "n_samples": 3})
    result = run_cell(cell(protocol=natural, interval=None))
    assert "horizon" not in result.columns
    assert {record.shift for record in result.records()} == {"low", "mid", "high", "all"}
    assert {record.metric for record in result.records()} == {"ae"}


class Told:
    """A quantifier with the interface that takes times; it remembers what it was told."""

    name = "told"

    def fit(self, X: Any, Y: Any, *, labels: Any = None, time: Any = None) -> Self:
        self.prevalence_, self.labels_, self.fitted = Y.mean(axis=0), labels, time
        return self

    def score(self, X: Any) -> Any:
        return X

    def aggregate(
        self, scores: Any, samples: Any, interval: float | None = None, *, time: Any = None
    ) -> PrevalenceEstimate:
        assert scores.shape[0] == samples.n_items
        self.asked = time
        point = np.repeat(self.prevalence_[np.newaxis], len(samples), axis=0)
        ends = dict.fromkeys(("lower", "band_lower"), point * 0)
        ends |= dict.fromkeys(("upper", "band_upper"), point * 0 + 1)
        return PrevalenceEstimate(point, self.labels_, level=interval, **ends)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}


def test_a_method_with_times_is_told_them(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    monkeypatch.setattr(run_module, "build", lambda *_, **__: told)
    result = run_cell(cell(method=MethodSpec("told, time", "auto", time=True)))
    data = load("un", cut="1984", max_train=200, home=home)
    np.testing.assert_array_equal(told.fitted, data.train.times)
    years = told.asked.astype("datetime64[Y]").astype(str).tolist()
    assert years == [str(year) for year in range(1984, 1990)]
    assert result.columns["coverage"].tolist() == [1.0] * 6


def test_times_that_are_not_there_are_an_error() -> None:
    timed = cell(
        method=MethodSpec("auto, time", "auto", time=True),
        source=DataSource("synthetic"),
        protocol=ProtocolSpec("natural", "natural"),
    )
    with pytest.raises(InputError, match="'synthetic' has none; skip it there by an override"):
        run_cell(timed)


@pytest.mark.usefixtures("home")
def test_rolling_origins_run_and_resume(tmp_path: Path) -> None:
    content = {
        "name": "cuts",
        "datasets": ["un@1983", "un@1986"],
        "metrics": ["ae"],
        "intervals": 0.9,
        "max_train": 150,
        "max_test": 120,
        "protocols": [{"name": "windows", "size": 40}],
        "methods": [{"expression": "naive"}, {"expression": "lr+pcc"}],
    }
    plan, store = Plan.from_dict(content), Store(tmp_path / "results")
    first = run_plan(plan, store, progress=False, cells=plan.cells()[:1])
    again = run_plan(plan, store, progress=False)
    assert (first.computed, again.found, again.computed) == (1, 1, 3)
    assert not again.failed
    records = plan_records(plan.cells(), store)
    assert {record.dataset for record in records} == {"un@1983", "un@1986"}
    assert {r.n_samples for r in records if r.shift == "all"} == {3}
    # The cut is part of the key, the checksum of the files is the same.
    assert len({record.data_sha for record in records}) == 1
    assert len(store) == 4
