"""The paper's tables as a plan: every method is there, once, and can be built."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from prevalens.experiments import Plan, Store, run_plan
from prevalens.experiments.run import build
from prevalens.experiments.specs import parse
from prevalens.records import Result
from prevalens.studies.moreo2023.plan import (
    DESCRIBED,
    DISCUSSED,
    GUARDED,
    PARTS,
    PRINTED,
    TABLES,
    paper_plan,
    table_results,
)
from prevalens.validation import InputError

PLAN = paper_plan(datasets=["emotions"])


@pytest.mark.parametrize("method", PLAN.methods, ids=lambda method: method.name)
def test_every_method_can_be_built(method: object) -> None:
    assert hasattr(build(method, 0, parts=PARTS), "fit")


def test_names_are_unique_and_both_ways_are_there() -> None:
    names = Counter(method.name for method in PLAN.methods)
    assert max(names.values()) == 1
    groups = {m.label for m in PLAN.methods if m.variant == PRINTED and m.label.startswith("pcc")}
    assert groups == {f"pcc {g}" for g in ("BC+BA", "MLC+BA", "BC+MLA", "MLC+MLA")}
    assert {m.variant for m in PLAN.methods} == {DESCRIBED, PRINTED, GUARDED}


def test_grids_are_those_of_the_paper() -> None:
    sizes = {
        method.name: int(np.prod([len(values) for values in method.grid.values()]))
        for method in PLAN.methods
    }
    assert sizes[f"pcc BC+BA [{DESCRIBED}]"] == 10
    assert sizes[f"pcc MLC+BA [{DESCRIBED}]"] == 20
    assert sizes[f"pcc BC+MLA [{DESCRIBED}]"] == 5
    assert sizes[f"ML-knn [{DESCRIBED}]"] == 15
    assert sizes[f"CLEMS [{DESCRIBED}]"] == 45
    assert sizes[f"LSC [{DESCRIBED}]"] == 75
    assert sizes[f"LSC [{PRINTED}]"] == 5
    assert sizes[f"RakEL-LPQ [{DESCRIBED}]"] == 50
    assert sizes[f"Ridge-RQ [{DESCRIBED}]"] == 7
    assert sizes[f"Ridge-RQ [{PRINTED}]"] == 70


def test_rates_are_inverted_wherever_they_differ_unless_the_guard_is_named() -> None:
    adjusted = [m for m in PLAN.methods if m.label.startswith(("acc ", "pacc "))]
    assert len(adjusted) == 24
    for method in adjusted:
        inside = build(method, 0, parts=PARTS).get_params(deep=True)
        guards = {value for name, value in inside.items() if name.endswith("__guard")}
        assert guards == ({4.0} if method.variant == GUARDED else {None})


def test_only_the_print_starts_sld_from_the_training_prevalence() -> None:
    for method in PLAN.methods:
        if method.label.startswith("sld "):
            inside = build(method, 0, parts=PARTS).get_params(deep=True)
            priors = {value for name, value in inside.items() if name.endswith("__prior")}
            assert priors == ({"training"} if method.variant == PRINTED else {None})


def test_as_described_regressors_leave_the_settings_to_each_label() -> None:
    regressors = [m for m in PLAN.methods if "svr" not in m.expression and "rq(" in m.expression]
    assert {m.label for m in regressors} == {"Ridge-RQ", "RF-RQ", "MultitaskLasso"}
    for method in regressors:
        assert ("choose=per-label" in method.expression) == (method.variant == DESCRIBED)


def test_solvers_stop_earlier_on_delicious_and_nowhere_else() -> None:
    def expressions(dataset: str) -> dict[str, str]:
        cells = paper_plan(TABLES, ["emotions", "delicious"]).cells()
        return {
            cell.method.name: cell.method.expression for cell in cells if cell.dataset == dataset
        }

    usual, coarse = expressions("emotions"), expressions("delicious")
    assert not any("tol=" in expression for expression in usual.values())
    for name, expression in coarse.items():
        assert ("stack(lr,lr(tol=0.0001)" in expression) == ("stack(" in usual[name])
        group = name.partition(" [")[0]
        assert ("tol=0.001)" in expression) == group.endswith("+MLA"), name
        parse(expression, PARTS)


def test_delicious_has_its_coarser_grid() -> None:
    cells = paper_plan(["cc_general"], ["emotions", "delicious"]).cells()
    grids = {cell.dataset: cell.protocol.parameters.get("grid") for cell in cells}
    assert grids == {"emotions": None, "delicious": 21}


def test_a_smoke_run_has_small_grids() -> None:
    fast = paper_plan(["pcc_general"], ["emotions"], fast=True)
    assert all(len(values) <= 2 for method in fast.methods for values in method.grid.values())
    assert not any("lr-grid" in method.expression for method in fast.methods)
    assert fast.protocols[0].parameters["more_than"] == 1_000


def test_unknown_table() -> None:
    with pytest.raises(InputError, match="There is no table 'nosuch'; there are cc_general"):
        paper_plan(["nosuch"])


def test_results_find_their_table_and_its_names() -> None:
    results = [
        Result("emotions", "ml-app", label, "x", 0, np.zeros(1), {"ae": np.zeros(1)}, variant)
        for label, variant in [
            ("pcc MLC+BA", DESCRIBED),
            ("pcc BC+MLA", DESCRIBED),
            ("cc BC+BA", DESCRIBED),
            ("RF", DESCRIBED),
        ]
    ]
    names = {table: [r.method for r in table_results(results, table)] for table in TABLES}
    assert names["pcc_general"] == ["MLC+BA", "BC+MLA"]
    assert names["cc_general"] == ["BC+BA"]
    assert names["mlc"] == ["SG", "RF"]
    assert names["mlq"] == [], "columns that are borrowed from PCC do not make a table"
    ridge = Result("emotions", "ml-app", "Ridge-RQ", "x", 0, np.zeros(1), {}, DESCRIBED)
    assert [r.method for r in table_results([*results, ridge], "mlq")] == ["SVR-RQ", "Ridge-RQ"]


def test_discussed_classifiers_stand_next_to_those_of_the_printed_table() -> None:
    def labels(table: str) -> dict[str, str]:
        methods = paper_plan([table], ["emotions"]).methods
        return {m.label: m.expression for m in methods if m.variant == DESCRIBED}

    more, printed = labels(DISCUSSED), labels("mlc")
    assert printed.items() <= more.items()
    added = ["AdaBoost.MH", "ML-ARAM", "HOMER", "HOMER-R", "RankSVM", "ML-TSVM", "ML-MPM"]
    assert [label for label in more if label not in printed] == [*added, "Fun-KFCV", "Fun-TAT"]


def test_datasets_without_discussed_classifiers_are_not_among_their_results() -> None:
    def result(dataset: str, label: str) -> Result:
        return Result(dataset, "ml-app", label, "x", 0, np.zeros(1), {}, DESCRIBED)

    results = [result("emotions", "RF"), result("emotions", "HOMER"), result("birds", "RF")]
    found = [(r.dataset, r.method) for r in table_results(results, DISCUSSED)]
    assert found == [("emotions", "RF"), ("emotions", "HOMER")]


def test_keys_of_stored_results_are_still_known() -> None:
    printed = [table for table in TABLES if table != DISCUSSED]
    keys = [cell.key("ab" * 32) for cell in paper_plan(printed).cells()]
    assert keys[0] == "c19dd48e100767373413259fefc4bf7d"
    assert hashlib.sha256("".join(keys).encode()).hexdigest()[:16] == "e5ab786ff46191ea"


def test_other_processes_know_the_parts_of_the_plan(tmp_path: Path) -> None:
    methods = [
        {"expression": "twice(tuned(lr+sld,grid=lr-small))"},
        {"expression": "stack(lr,lr,cv=in-order)+pcc"},
    ]
    content = {"name": "small", "datasets": ["synthetic"], "methods": methods}
    content["protocols"] = [{"name": "ml-app", "size": 50, "grid": 3}]
    plan = Plan.from_dict(content, parts=PARTS)
    alone, several = Store(tmp_path / "alone"), Store(tmp_path / "several")
    assert run_plan(plan, alone, progress=False).failed == ()
    assert run_plan(plan, several, n_jobs=2, progress=False).failed == ()
    assert several.records() == alone.records()
