"""Evaluation: the truth, the estimate, and figures by regime, label and target."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from prevalens import Quantifier, Samples, evaluate
from prevalens.aggregators import CC, PCC, TrainingPrevalence
from prevalens.classifiers import PerLabel
from prevalens.collection import Collection
from prevalens.datasets import synthetic
from prevalens.evaluation import evaluate_samples
from prevalens.protocols import MLAPP, CovariateTilt, Natural
from prevalens.scores import Kind
from prevalens.uncertainty.drift import mean_times
from prevalens.validation import InputError

DATA = synthetic(n_train=300, n_test=400, n_labels=4, random_state=1)
FITTED = Quantifier(PerLabel(), PCC()).fit(DATA.train.X, DATA.train.Y)
NAIVE = Quantifier(None, TrainingPrevalence()).fit(DATA.train.X, DATA.train.Y)


def test_the_whole_pool_as_one_sample() -> None:
    whole = Samples.whole(DATA.test.n_items)
    evaluation = evaluate_samples({"": FITTED}, DATA.test, whole)[""]
    np.testing.assert_allclose(evaluation.true[0], DATA.test.prevalence)
    np.testing.assert_allclose(evaluation.estimated[0], FITTED.quantify(DATA.test.X))
    assert evaluation.method == "lr+pcc"


def test_the_naive_error_is_the_shift() -> None:
    evaluation = evaluate(NAIVE, DATA.test, MLAPP(size=50, grid=11), random_state=0)
    np.testing.assert_allclose(evaluation.errors("ae"), evaluation.shift)
    assert evaluation.by_shift()["low"][0] < evaluation.by_shift()["high"][0]


def test_regimes_add_up() -> None:
    evaluation = evaluate(FITTED, DATA.test, MLAPP(size=50, grid=11), random_state=0)
    regimes = evaluation.by_shift("rae")
    counts = [regimes[name][1] for name in ("low", "mid", "high")]
    assert sum(counts) == regimes["all"][1] == len(evaluation)
    mean = sum(v * n for v, n in (regimes[r] for r in ("low", "mid", "high")) if n) / len(
        evaluation
    )
    assert mean == pytest.approx(regimes["all"][0])
    assert np.mean(list(evaluation.by_label().values())) == pytest.approx(
        evaluation.errors().mean()
    )


def test_by_target_and_prevalence() -> None:
    evaluation = evaluate(FITTED, DATA.test, MLAPP(size=50, grid=11), random_state=0)
    targets = evaluation.by_target()
    assert sum(n for _, n in targets.values()) == len(evaluation)
    rows = evaluation.by_prevalence(n_bins=5)
    assert sum(row["n_samples"] for row in rows) == len(evaluation)
    assert all(row["low"] < row["high"] for row in rows)
    natural = evaluate(FITTED, DATA.test, Natural(size=20, n_samples=5), random_state=0)
    assert natural.by_target() == {}
    assert natural.by_prevalence() == []


def test_an_empty_regime_is_nan() -> None:
    samples = Samples.from_indices([[0, 1], [0, 1]], n_items=DATA.test.n_items)
    evaluation = evaluate_samples({"a": FITTED}, DATA.test, samples)["a"]
    value, count = evaluation.by_shift()["high"]
    assert np.isnan(value)
    assert count == 0


def test_the_same_seed_gives_the_same_samples_to_all() -> None:
    protocol = Natural(size=20, n_samples=30)
    first = evaluate(FITTED, DATA.test, protocol, random_state=5)
    second = evaluate(NAIVE, DATA.test, protocol, random_state=5)
    np.testing.assert_array_equal(first.true, second.true)
    assert first.seed == 5


def test_every_item_is_scored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    original = PerLabel.respond

    def counting(self: PerLabel, X: np.ndarray, kind: Kind) -> np.ndarray:
        calls["items"] += len(X)
        return original(self, X, kind)

    quantifier = Quantifier(PerLabel(), CC()).fit(DATA.train.X, DATA.train.Y)
    monkeypatch.setattr(PerLabel, "respond", counting)
    evaluate(quantifier, DATA.test, MLAPP(size=50, grid=11), random_state=0)
    assert calls["items"] == DATA.test.n_items


def test_protocols_that_look_at_items_are_told_them() -> None:
    evaluation = evaluate(FITTED, DATA.test, CovariateTilt(size=50, n_samples=10), random_state=0)
    assert len(evaluation) == 10


def test_records_carry_their_provenance() -> None:
    evaluation = evaluate(FITTED, DATA.test, Natural(size=20, n_samples=30), random_state=5)
    records = evaluation.records("synthetic", data_sha="abc")
    assert {record.metric for record in records} == {"ae", "rae"}
    assert {record.shift for record in records} == {"low", "mid", "high", "all"}
    assert all(r.seed == 5 and r.data_sha == "abc" and r.method == "lr+pcc" for r in records)


def test_other_labels_are_refused() -> None:
    fewer = Collection(DATA.test.X, DATA.test.Y[:, :2])
    with pytest.raises(InputError, match="knows 4 labels, but the pool has 2"):
        evaluate(FITTED, fewer, Natural(size=20, n_samples=3))
    with pytest.raises(InputError, match="metric must be one of"):
        evaluate(FITTED, DATA.test, Natural(size=20, n_samples=3)).errors("f1")


def test_an_evaluation_shows_itself_in_notebooks() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    evaluation = evaluate(FITTED, DATA.test, MLAPP(size=50, grid=5))
    axes = evaluation.plot(n_bins=4)
    (line,) = axes.lines
    assert line.get_label() == "lr+pcc"
    assert len(line.get_xdata()) <= 4
    assert (
        evaluation.shift.min()
        <= min(line.get_xdata())
        <= max(line.get_xdata())
        <= evaluation.shift.max()
    )
    assert evaluation.plot("altair").to_dict()["layer"]
    page = evaluation._repr_html_()
    assert all(f"{error:.4f}" in page for error in evaluation.by_label().values())


def test_intervals_are_measured_from_the_same_estimate() -> None:
    samples = Natural(size=50, n_samples=5).draw(DATA.test.Y, 0)
    points = evaluate_samples({"": FITTED}, DATA.test, samples)[""]
    both = evaluate_samples({"": FITTED}, DATA.test, samples, interval=0.9)[""]
    np.testing.assert_allclose(both.estimated, points.estimated)
    estimate = FITTED.quantify_many(DATA.test.X, samples, interval=0.9)
    holds = (estimate.lower <= both.true) & (both.true <= estimate.upper)
    np.testing.assert_allclose(both.errors("coverage"), holds.mean(axis=1))
    assert {r.metric for r in both.records("d", metrics=("ae", "band_width"))} == {
        "ae",
        "band_width",
    }
    with pytest.raises(InputError, match="metric"):
        points.errors("coverage")


def test_mean_times_of_samples() -> None:
    times = np.datetime64("1946-01-01") + np.arange(0, 40, 10)
    samples = Samples.from_indices([[0, 1], [1, 3]], n_items=4)
    found = mean_times(samples, times).astype("datetime64[D]")
    assert found.astype(str).tolist() == ["1946-01-06", "1946-01-21"]
