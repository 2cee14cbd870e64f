"""Records of several runs in one table: what needs no samples is as if all were run at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prevalens.records import Result
from prevalens.reports.sections import tables_of
from prevalens.reports.table import ResultTable, TableCell
from prevalens.studies.moreo2023.table_summary import (
    TableSummary,
    merge_summaries,
    read_summaries,
    save_summary,
    summarise_table,
)
from prevalens.validation import InputError

Make = Callable[..., list[Result]]
BOTH = ("as described", "as printed")


@pytest.fixture(scope="module")
def results(paper_like: Make) -> list[Result]:
    """Four methods on three datasets, in two ways."""
    return paper_like(variant=BOTH[0]) + paper_like(factor=1.07, variant=BOTH[1])


def made(results: Iterable[Result]) -> TableSummary:
    return summarise_table("pcc_general", results, metrics=("ae",))


def cells(table: ResultTable) -> list[TableCell]:
    rows = (*table.rows, *table.summaries)
    return [cell for row in rows for cell in row.cells if cell is not None]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_means_averages_and_ranks_are_those_of_one_run(
    results: list[Result], data: st.DataObject
) -> None:
    first = data.draw(st.lists(st.booleans(), min_size=len(results), max_size=len(results)))
    old = [result for result, is_old in zip(results, first, strict=True) if is_old]
    new = [result for result, is_old in zip(results, first, strict=True) if not is_old]
    if not old or not new:
        return
    joined, whole = merge_summaries(made(old), made(new)), made(results)
    assert joined.methods == whole.methods
    assert joined.runs == whole.runs
    for way in BOTH:
        ours, theirs = joined.tables["ae"][way], whole.tables["ae"][way]
        assert ours.columns == theirs.columns
        for row, other in zip(
            (*ours.rows, *ours.summaries), (*theirs.rows, *theirs.summaries), strict=True
        ):
            assert replace(row, cells=()) == replace(other, cells=())
        for cell, other in zip(cells(ours), cells(theirs), strict=True):
            assert cell.value == pytest.approx(other.value, rel=1e-12)
            assert (cell.by_seed, cell.n_samples) == (other.by_seed, other.n_samples)
            assert cell.best == other.best
            # What is known of a test is what all samples say; else nothing is claimed.
            if cell.mark != "untested":
                assert (cell.mark, cell.p_value) == (other.mark, other.p_value)


def test_rows_of_one_run_keep_their_tests(results: list[Result]) -> None:
    old = [result for result in results if result.dataset != "genbase"]
    joined = merge_summaries(
        made(old), made(result for result in results if result.dataset == "genbase")
    )
    whole = made(results)
    for way in BOTH:
        ours, theirs = joined.tables["ae"][way], whole.tables["ae"][way]
        assert ours.rows == theirs.rows
        assert ours.notes == theirs.notes
        pooled = [row for row in ours.summaries if row.kind == "pooled"]
        assert len(pooled) == 3
        for row in pooled:
            assert row.n_datasets == 3
            assert {cell.mark for cell in row.cells if cell and not cell.best} == {"untested"}


def test_rounding_makes_no_second_best(results: list[Result], tmp_path: Path) -> None:
    scene = [result for result in results if result.dataset == "scene"]
    (best,) = [
        result for result in scene if (result.method, result.variant) == ("MLC+MLA", BOTH[0])
    ]
    twin = replace(best, method="twin", errors={"ae": best.errors["ae"] * (1 + 1e-9)})
    save_summary(made([*scene, twin]), tmp_path)
    written = save_summary(
        made(result for result in results if result.dataset == "genbase"), tmp_path
    )
    row = written.tables["ae"][BOTH[0]].row("scene", "low")
    assert row is not None
    assert sum(cell.best for cell in row.cells if cell) == 1
    assert not any(cell.mark == "untested" for cell in row.cells if cell)


def test_a_way_that_only_one_run_has_is_kept_whole(results: list[Result]) -> None:
    described = [result for result in results if result.variant == BOTH[0]]
    printed = [result for result in results if result.variant == BOTH[1]]
    assert merge_summaries(made(described), made(printed)).tables == made(results).tables


def test_cells_of_different_runs_are_not_tested(results: list[Result]) -> None:
    best = {"MLC+MLA"}
    described = [
        result for result in results if result.variant == BOTH[0] and result.dataset == "scene"
    ]
    old = [result for result in described if result.method not in best]
    new = [result for result in described if result.method in best]
    table = merge_summaries(made(old), made(new)).tables["ae"][BOTH[0]]
    row = table.row("scene", "low")
    assert row is not None
    marks = {c: cell.mark for c, cell in zip(table.columns, row.cells, strict=True) if cell}
    assert marks == {"BC+BA": "untested", "MLC+BA": "untested", "BC+MLA": "untested", "MLC+MLA": ""}
    # At high shift BC+MLA is the best and was tested against two others.
    assert table.notes[0].startswith("7 of the results could not be tested")


def test_the_new_result_stands(results: list[Result]) -> None:
    again = [
        replace(result, errors={"ae": 2 * result.errors["ae"]})
        for result in results
        if (result.dataset, result.variant, result.method) == ("scene", BOTH[0], "BC+BA")
    ]
    joined, before = merge_summaries(made(results), made(again)), made(results)
    for way, factor in zip(BOTH, (2, 1), strict=True):
        cell = joined.tables["ae"][way].cell("scene", "low", "BC+BA")
        other = before.tables["ae"][way].cell("scene", "low", "BC+BA")
        assert cell is not None
        assert other is not None
        assert cell.value == pytest.approx(factor * other.value)
    assert joined.runs[1].n_results == before.runs[1].n_results
    # What the replaced result had taken is not known.
    assert joined.runs[1].seconds is None
    assert joined.runs[2] == before.runs[2]
    assert merge_summaries(before, made(results)) == before
    assert merge_summaries(joined, made(again)) == joined


def test_seeds_of_results_that_are_all_replaced_are_forgotten(results: list[Result]) -> None:
    again = [replace(result, seed=7, version="9.9") for result in results]
    assert merge_summaries(made(results), made(again)).runs == made(again).runs


def test_a_method_without_a_variant_is_renewed_under_both(results: list[Result]) -> None:
    plain = [replace(result, method="DT") for result in results if result.method == "BC+BA"]
    plain = [result for result in plain if result.variant == BOTH[0]]
    again = [replace(result, errors={"ae": 2 * result.errors["ae"]}) for result in plain]
    joined = merge_summaries(made(results + plain), made(again))
    expected = tables_of(results + again)
    for way in BOTH:
        values = [cell.value for cell in cells(joined.tables["ae"][way])]
        assert values == pytest.approx([cell.value for cell in cells(expected[way])])
    assert joined.runs[0].n_results == 9


def test_expressions_that_differ_by_dataset_are_all_kept(results: list[Result]) -> None:
    coarse = [
        replace(result, expression=f"coarse {result.expression}")
        for result in results
        if result.dataset == "genbase"
    ]
    fine = [result for result in results if result.dataset != "genbase"]
    for merged in (made(fine + coarse), merge_summaries(made(fine), made(coarse))):
        assert merged.methods[BOTH[0]]["BC+BA"] == "coarse lr+BC+BA | lr+BC+BA"


def test_other_data_and_other_tables_are_refused(results: list[Result]) -> None:
    other = [replace(result, data_sha="f" * 64) for result in results if result.dataset == "scene"]
    with pytest.raises(InputError, match="on a scene with the SHA-256 0123456789ab, and"):
        merge_summaries(made(results), made(other))
    with pytest.raises(InputError, match="no common table"):
        merge_summaries(made(results), summarise_table("mlc", results, metrics=("ae",)))
    natural = [replace(result, protocol="natural") for result in results]
    with pytest.raises(InputError, match="protocols 'natural' and 'ml-app'"):
        merge_summaries(made(results), made(natural))


def test_saving_keeps_what_is_there(results: list[Result], tmp_path: Path) -> None:
    folder = tmp_path / "records"
    save_summary(made(result for result in results if result.dataset == "scene"), folder)
    written = save_summary(made(result for result in results if result.dataset != "scene"), folder)
    merged = read_summaries(folder)["pcc_general"]
    assert [run.dataset for run in merged.runs] == ["emotions", "scene", "genbase"]
    assert merged.runs == written.runs
    assert [path.name for path in folder.iterdir()] == ["pcc_general.json"]


def test_losses_of_model_selection_are_joined(results: list[Result]) -> None:
    known = [replace(result, validation_loss=0.25) for result in results]
    lower = [replace(result, validation_loss=0.125) for result in results[:3]]
    joined = merge_summaries(made(known), made(lower)).validated
    assert len(joined) == len(results)
    renewed = {(r.dataset, r.method, r.variant) for r in lower}
    for pair in joined:
        new = (pair.dataset, pair.method, pair.variant) in renewed
        assert pair.validation == (0.125 if new else 0.25)


def test_results_that_are_repeated_keep_their_seeds_and_tests(
    paper_like: Make, tmp_path: Path
) -> None:
    both_seeds = made(paper_like(seeds=(0, 1), variant=BOTH[0]))
    save_summary(both_seeds, tmp_path)
    again = made(paper_like(seeds=(0,), variant=BOTH[0], datasets=("scene",)))
    joined = save_summary(again, tmp_path)
    row = joined.tables["ae"][BOTH[0]].row("scene", "low")
    assert row is not None
    assert [len(cell.by_seed) for cell in row.cells if cell] == [2] * 4
    assert not any(cell.mark == "untested" for cell in row.cells if cell)
    changed = made(paper_like(seeds=(0,), variant=BOTH[0], datasets=("scene",), factor=1.01))
    row = merge_summaries(joined, changed).tables["ae"][BOTH[0]].row("scene", "low")
    assert row is not None
    assert [len(cell.by_seed) for cell in row.cells if cell] == [1] * 4
