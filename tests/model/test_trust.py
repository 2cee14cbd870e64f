"""Figures of an evaluation, against slow loops."""

from __future__ import annotations

import json

import numpy as np
import pytest

from prevalens.model.trust import COUNTED, ESTIMATE, TRAINING, Trial, TrustReport


def make(seed: int = 0, *, counted: bool = True, intervals: bool = True) -> TrustReport:
    rng = np.random.default_rng(seed)
    trials = []
    for protocol, n in (("ml-app", 40), ("natural", 25)):
        true = rng.random((n, 3))
        estimated = np.clip(true + rng.normal(0, 0.03, true.shape), 0, 1)
        rows = np.arange(0, n, 2)
        ends = {}
        if intervals:
            ends = {"rows": rows, "lower": estimated[rows] - 0.05, "upper": estimated[rows] + 0.05}
        count = np.clip(true * 0.8, 0, 1) if counted else None
        trials.append(Trial(protocol, true, estimated, count, **ends))
    return TrustReport(
        method="lr+pacc",
        labels=("a", "b", "c"),
        training=np.array([0.1, 0.5, 0.9]),
        positives=np.array([50, 60, 70]),
        n_items=400,
        size=100,
        trials=tuple(trials),
        level=0.9,
    )


def test_errors_by_regime_and_protocol_are_plain_means() -> None:
    report = make()
    errors, shifts, protocols = [], [], []
    for trial in report.trials:
        for true, estimated in zip(trial.true, trial.estimated, strict=True):
            errors.append(np.abs(true - estimated).mean())
            shifts.append(np.abs(true - report.training).mean())
            protocols.append(trial.protocol)
    np.testing.assert_allclose(report.errors(ESTIMATE), errors)
    np.testing.assert_allclose(report.shifts, shifts)
    first = [error for error, name in zip(errors, protocols, strict=True) if name == "ml-app"]
    assert report.by_protocol()["ml-app"][ESTIMATE].mean == pytest.approx(np.mean(first))
    edges = np.linspace(min(shifts), max(shifts), 4)
    low = [error for error, s in zip(errors, shifts, strict=True) if s < edges[1]]
    found = report.by_shift()["low"][ESTIMATE]
    assert (found.mean, found.n_samples) == (pytest.approx(np.mean(low)), len(low))
    assert found.ninth == pytest.approx(np.quantile(low, 0.9))
    assert report.error(TRAINING).mean == pytest.approx(np.mean(shifts))


def test_coverage_by_move_is_that_of_the_labels_that_moved_so_far() -> None:
    report = make()
    found = report.coverage_by_move()
    inside: dict[str, list[bool]] = {name: [] for name in found}
    for trial in report.trials:
        for row, low, high in zip(trial.rows, trial.lower, trial.upper, strict=True):
            for j, true in enumerate(trial.true[row]):
                moved = 100 * abs(true - report.training[j])
                first = 0 if moved < 1 else 1 if moved < 3 else 3 if moved < 10 else 10
                last = {0: 1, 1: 3, 3: 10, 10: 100}[first]
                inside[f"{first} to {last} points"].append(bool(low[j] <= true <= high[j]))
    assert {name: n for name, (_, _, n) in found.items()} == {n: len(v) for n, v in inside.items()}
    for name, (share, width, _) in found.items():
        assert (share, width) == (pytest.approx(np.mean(inside[name])), pytest.approx(0.1))
    total = sum(number for _, _, number in found.values())
    assert total == report.coverage()["all"][2]
    assert make(intervals=False).coverage_by_move() == {}


def test_coverage_counts_the_truths_inside() -> None:
    report = make()
    inside = [
        low <= true <= high
        for trial in report.trials
        for row, lows, highs in zip(trial.rows, trial.lower, trial.upper, strict=True)
        for true, low, high in zip(trial.true[row], lows, highs, strict=True)
    ]
    share, width, number = report.coverage()["all"]
    assert (share, number) == (pytest.approx(np.mean(inside)), len(inside))
    assert width == pytest.approx(0.1)
    assert make(intervals=False).coverage() == {}


def test_labels_are_judged_where_they_move() -> None:
    report = make()
    true = np.concatenate([trial.true for trial in report.trials])
    moved = np.abs(true[:, 1] - 0.5) > 0.05
    label = report.by_label()[1]
    assert label.n_moved == moved.sum()
    assert label.moved[COUNTED] == pytest.approx((0.2 * true[moved, 1]).mean())
    assert label.positives == 60


def test_without_a_classifier_nothing_is_counted() -> None:
    assert make(counted=False).compared == (ESTIMATE, TRAINING)


def test_json_has_no_nan() -> None:
    text = json.dumps(make(intervals=False).to_dict())
    assert "NaN" not in text
    assert json.loads(text)["n_samples"] == {"ml-app": 40, "natural": 25}


def test_it_shows_itself_in_notebooks() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    report = make()
    axes = report.plot()
    assert [line.get_label() for line in axes.lines] == list(report.compared)
    assert report.plot("altair").to_dict()["layer"]
    html = report._repr_html_()
    assert html.startswith("<table>")
    assert "lr+pacc" in html
    frame = report.to_frame("polars")
    assert frame["label"].to_list() == ["a", "b", "c"]
    assert f"moved: {TRAINING}" in frame.columns
