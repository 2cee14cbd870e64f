from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from prevalens import parse
from prevalens.classifiers import CrossFit
from prevalens.datasets import load
from prevalens.evaluation import evaluate
from prevalens.experiments import Cell, CellResult, Failure, MethodSpec, ProtocolSpec, run_cell
from prevalens.experiments.cache import ScoreCache
from prevalens.experiments.run import build, run_cells, to_plain_values
from prevalens.metrics import SHIFT_NAMES
from prevalens.protocols import MLAPP
from prevalens.validation import InputError

Make = Callable[..., Cell]
TOO_LARGE = ProtocolSpec("too large", "ml-app", {"size": 10**6})


def same(left: CellResult, right: CellResult) -> bool:
    columns = all(
        np.array_equal(left.columns[name], right.columns[name], equal_nan=True)
        for name in left.columns
    )
    plain = ("cell", "key", "data_sha", "versions", "chosen", "labels")
    return columns and all(getattr(left, name) == getattr(right, name) for name in plain)


def test_figures_are_those_of_an_evaluation_by_hand(make_cell: Make) -> None:
    data = load("synthetic")
    quantifier = parse("lr+pacc").set_params(scheme=CrossFit(random_state=3))
    quantifier.fit(data.train.X, data.train.Y, labels=data.train.labels)
    expected = evaluate(quantifier, data.test, MLAPP(size=50, grid=5), random_state=3)
    result = run_cell(make_cell(expression="lr+pacc", seed=3))
    for metric in ("ae", "rae"):
        np.testing.assert_allclose(result.columns[metric], expected.errors(metric), rtol=1e-6)
    np.testing.assert_array_equal(result.columns["shift"], expected.shift)
    np.testing.assert_array_equal(result.columns["target"], expected.samples.target)
    rows = np.arange(len(expected))
    steered = expected.estimated[rows, expected.samples.target]
    np.testing.assert_allclose(result.columns["estimated"], steered, rtol=1e-6)
    by_label = dict(zip(result.labels["name"], result.labels["error"], strict=True))
    assert by_label == pytest.approx(expected.by_label(), abs=1e-6)
    records = {(record.metric, record.shift): record for record in result.records()}
    for regime in (*SHIFT_NAMES, "all"):
        value, count = expected.by_shift("ae")[regime]
        assert records["ae", regime].value == pytest.approx(value, rel=1e-6)
        assert records["ae", regime].n_samples == count


def test_a_result_for_tables_has_the_names_it_is_asked_for(make_cell: Make) -> None:
    computed = run_cell(make_cell())
    method = MethodSpec("PCC", "lr+pcc", variant="plain")
    result = computed.result(make_cell(method=method))
    assert (result.method, result.variant, result.expression) == ("PCC", "plain", "lr+pcc")
    assert set(result.errors) == {"ae", "rae"}
    assert result.shift is computed.columns["shift"]
    assert list(result.by_label) == list(load("synthetic").test.labels)
    assert computed.usage is not None
    assert result.usage["fit_seconds"] == computed.usage.fit_seconds
    assert computed.records(make_cell(method=method))[0].method == "PCC [plain]"


def test_the_same_cell_gives_the_same_result(make_cell: Make, tmp_path: Path) -> None:
    cell = make_cell(expression="lr+acc")
    first = run_cell(cell)
    assert same(run_cell(pickle.loads(pickle.dumps(cell))), first)
    cache = ScoreCache(tmp_path)
    assert same(run_cell(cell, cache), first)
    assert cache.misses > 0
    again = run_cell(cell, cache)
    assert same(again, first)
    assert again.usage is not None
    assert (again.usage.scores_computed, again.usage.scores_reused) == (0, cache.hits)


def test_all_methods_see_the_same_samples(make_cell: Make) -> None:
    left, right = (run_cell(make_cell(expression=text)) for text in ("lr+cc", "lr+pcc"))
    for name in ("shift", "target", "prevalence", "true", "size"):
        np.testing.assert_array_equal(left.columns[name], right.columns[name])
    other = run_cell(make_cell(expression="lr+cc", seed=1))
    assert not np.array_equal(other.columns["shift"], left.columns["shift"])


def test_the_result_knows_where_it_comes_from(make_cell: Make) -> None:
    grid = {"classifier__C": (1, 10), "classifier__class_weight": ("None", "balanced")}
    selection = {"choose": "together", "protocol": {"name": "natural", "n_samples": 20}}
    result = run_cell(make_cell(method=MethodSpec("tuned", "lr+pcc", grid, selection)))
    assert result.data_sha == load("synthetic").sha
    assert result.key == result.cell.key(result.data_sha)
    assert result.chosen["classifier__C"] in (1, 10)
    assert result.chosen["classifier__class_weight"] in (None, "balanced")
    data = load("synthetic").train
    search = build(result.cell.method, result.cell.seed).fit(data.X, data.Y)
    assert result.validation_loss == pytest.approx(min(-search.cv_results_["mean_test_score"]))
    assert run_cell(make_cell(expression="lr+pcc")).validation_loss is None
    assert {"prevalens", "numpy", "scipy", "scikit-learn", "python"} == set(result.versions)
    assert result.usage is not None
    assert result.usage.fit_seconds > 0
    assert result.usage.quantify_seconds > 0
    assert result.usage.peak_megabytes > 10


def test_searches_inside_others_tell_what_they_chose(make_cell: Callable[..., Cell]) -> None:
    expression = "rq(tuned(lr+pcc,grid=lr-small,choose=together),ridge,scheme=holdout)"
    grid = {"aggregator__regressor__alpha": (1.0, 10.0)}
    chosen = run_cell(make_cell(method=MethodSpec("nested", expression, grid))).chosen
    inner = "best_quantifier.aggregator.base.quantifier.classifier__C"
    assert chosen.keys() == {"aggregator__regressor__alpha", inner}
    assert chosen[inner] in (1.0, 100.0)


def test_chosen_parts_are_written_as_text() -> None:
    plain = to_plain_values({"scheme": CrossFit(3), "values": (np.float64(10), None, "balanced")})
    assert plain == {"scheme": "crossfit(n_folds=3)", "values": [10, None, "balanced"]}


def test_samples_without_a_target_have_no_steered_prevalence(make_cell: Make) -> None:
    protocol = ProtocolSpec("natural", "natural", {"size": 20, "n_samples": 5})
    result = run_cell(make_cell(protocol=protocol))
    assert np.all(result.columns["target"] == -1)
    for name in ("prevalence", "true", "estimated"):
        assert np.isnan(result.columns[name]).all()
    assert np.isfinite(result.columns["ae"]).all()


def test_a_cell_that_cannot_be_computed_raises(make_cell: Make) -> None:
    with pytest.raises(InputError, match="cannot be drawn without replacement"):
        run_cell(make_cell(protocol=TOO_LARGE))


def test_one_failure_does_not_stop_the_others(make_cell: Make) -> None:
    cells = [make_cell(), make_cell(protocol=TOO_LARGE), make_cell(metrics=("se",))]
    first, failure, last = run_cells(cells)
    assert isinstance(first, CellResult)
    assert isinstance(failure, Failure)
    assert failure.cell == cells[1]
    assert "cannot be drawn" in failure.sentence
    assert "Traceback" in failure.trace
    assert isinstance(last, CellResult)
    assert "ae" not in last.columns
    assert first.usage is not None
    assert last.usage is not None
    assert first.usage.fit_seconds == last.usage.fit_seconds
    assert last.usage.seconds < first.usage.seconds


def test_a_training_that_fails_fails_all_its_cells(make_cell: Make) -> None:
    method = MethodSpec("bad", "lr(C=-1)+pcc")
    outcomes = list(
        run_cells([make_cell(method=method), make_cell(method=method, metrics=("se",))])
    )
    assert [type(outcome) for outcome in outcomes] == [Failure, Failure]
