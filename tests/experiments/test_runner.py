from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prevalens._version import __version__
from prevalens.experiments import Plan, Store, plan_records, plan_results, run_plan
from prevalens.experiments import runner as module
from prevalens.experiments.runner import Keys
from prevalens.validation import FormatError, InputError, PrevalensWarning


def contents(store: Store) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (store.folder / "cells").iterdir()}


@pytest.fixture
def failing(content: dict[str, Any]) -> Plan:
    content["protocols"].append({"name": "too large", "kind": "natural", "size": 10**6})
    return Plan.from_dict(content)


def test_finished_cells_are_not_computed_again(plan: Plan, store: Store) -> None:
    first = run_plan(plan, store, progress=False)
    assert (first.found, first.computed, first.failed) == (0, 2, ())
    before = contents(store)
    second = run_plan(plan, store, progress=False)
    assert (second.found, second.computed, second.failed) == (2, 0, ())
    assert contents(store) == before


def test_where_nothing_can_be_kept_nothing_is_computed(
    plan: Plan, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compute(*_: Any, **__: Any) -> Iterator[Any]:
        raise AssertionError("nothing should be computed")

    monkeypatch.setattr(module, "compute", compute)
    monkeypatch.setattr("prevalens.experiments.store.pa", None)
    with pytest.raises(InputError, match="Parquet"):
        run_plan(plan, store, progress=False)


def test_a_new_method_costs_only_itself(content: dict[str, Any], plan: Plan, store: Store) -> None:
    run_plan(plan, store, progress=False)
    content["methods"].append({"expression": "lr(C=1.0)+pcc", "label": "again"})
    content["methods"].append({"expression": "lr+pcc", "label": "another name"})
    larger = Plan.from_dict(content)
    summary = run_plan(larger, store, progress=False)
    # Another name is no other cell; another way to write a default is, but shares the scores.
    assert (summary.found, summary.computed) == (2, 1)
    cells, keys = larger.cells(), Keys(larger.cells())
    usage = store.usage(keys[cells[2]])
    assert usage is not None
    assert (usage.scores_computed, usage.scores_reused) == (0, 1)
    names = {"lr+cc", "lr+pcc", "again", "another name"}
    assert {record.method for record in plan_records(cells, store)} == names
    assert {result.method for result in plan_results(cells, store)} == names


def test_results_of_another_version_are_kept_and_pointed_out(
    plan: Plan, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr("prevalens.experiments.run.__version__", "0.0.9")
        run_plan(plan, store, cells=plan.cells()[:1], progress=False)
    assert [store.version(key) for key in store] == ["0.0.9"]
    expected = f"1 of the 1 results found in .* by prevalens 0.0.9, and this is {__version__}; "
    with pytest.warns(PrevalensWarning, match=expected):
        summary = run_plan(plan, store, progress=False)
    assert (summary.found, summary.computed) == (1, 1)
    assert sorted(map(str, map(store.version, store))) == ["0.0.9", __version__]


def test_a_damaged_result_has_no_version(plan: Plan, store: Store) -> None:
    run_plan(plan, store, cells=plan.cells()[:1], progress=False)
    (path,) = (store.folder / "cells").iterdir()
    path.write_bytes(path.read_bytes()[:100])
    assert store.version(path.stem) is None


def test_without_a_cache_nothing_is_kept_and_nothing_changes(
    plan: Plan, store: Store, tmp_path: Path
) -> None:
    run_plan(plan, store, progress=False)
    other = Store(tmp_path / "other")
    run_plan(plan, other, progress=False, remember=False)
    assert contents(other) == contents(store)
    assert (store.folder / "scores").is_dir()
    assert not (other.folder / "scores").exists()


def test_a_failed_cell_is_named_logged_and_tried_again(
    failing: Plan, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = run_plan(failing, store, progress=False)
    assert (summary.found, summary.computed, len(summary.failed)) == (0, 2, 2)
    failed = summary.failed[0]
    assert failed.cell.protocol.name == "too large"
    assert "cannot be drawn without replacement" in failed.sentence
    assert "Traceback" in failed.log.read_text()
    assert len(store) == 2
    again = run_plan(failing, store, progress=False)
    assert (again.found, again.computed, len(again.failed)) == (2, 0, 2)


def test_an_interrupt_leaves_what_is_finished(
    plan: Plan, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = module.compute

    def cut(*given: Any, **named: Any) -> Iterator[Any]:
        yield next(whole(*given, **named))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "compute", cut)
        with pytest.raises(KeyboardInterrupt):
            run_plan(plan, store, progress=False)
    assert len(store) == 1
    summary = run_plan(plan, store, progress=False)
    assert (summary.found, summary.computed) == (1, 1)
    uninterrupted = Store(tmp_path / "other")
    run_plan(plan, uninterrupted, progress=False)
    assert contents(store) == contents(uninterrupted)


def test_a_damaged_result_is_told_before_the_work_starts(
    plan: Plan, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_plan(plan, store, cells=plan.cells()[:1], progress=False)
    (path,) = (store.folder / "cells").iterdir()
    path.write_bytes(path.read_bytes()[:-50])
    monkeypatch.setattr(module, "compute", lambda *_, **__: pytest.fail("nothing may be computed"))
    with pytest.raises(FormatError, match=path.name):
        run_plan(plan, store, progress=False)


def test_results_of_other_data_are_not_stored(
    plan: Plan, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a worker on another machine would send them."""
    whole = module.compute

    def elsewhere(*given: Any, **named: Any) -> Iterator[Any]:
        for outcome in whole(*given, **named):
            yield dataclasses.replace(outcome, key=outcome.cell.key("other"))

    monkeypatch.setattr(module, "compute", elsewhere)
    summary = run_plan(plan, store, progress=False)
    assert (summary.computed, len(summary.failed)) == (0, 2)
    assert summary.failed[0].sentence.startswith("It was computed elsewhere with other data")
    assert len(store) == 0


def test_only_some_cells(plan: Plan, store: Store) -> None:
    summary = run_plan(plan, store, cells=plan.cells()[1:], progress=False)
    assert summary.computed == 1
    assert {record.method for record in store.records()} == {"lr+pcc"}
    assert {record.method for record in plan_records(plan.cells(), store)} == {"lr+pcc"}


def test_cells_that_share_a_training_are_one_group(content: dict[str, Any]) -> None:
    content["protocols"].append({"name": "natural"})
    cells = Plan.from_dict(content).cells()
    assert [len(group) for group in module._groups(cells)] == [2, 2]


def test_other_data_are_other_cells(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = plan.cells()[0]
    before = Keys([cell])[cell]
    assert Keys([dataclasses.replace(cell)])[cell] == before
    monkeypatch.setattr(module, "data_checksum", lambda _: "changed")
    assert Keys([cell])[cell] != before
