"""Digests of results: nothing that a table shows is lost, and a file is the same every time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prevalens.records import Result
from prevalens.reports.sections import tables_of
from prevalens.studies.moreo2023.table_summary import (
    read_summaries,
    summarise_table,
    tuned_tables,
    write_summary,
)
from prevalens.validation import FormatError, InputError

Make = Callable[..., list[Result]]


@pytest.fixture
def results(paper_like: Make) -> list[Result]:
    """Two ways, two seeds, AE and RAE."""
    given = paper_like(variant="as described", seeds=(0, 1)) + paper_like(
        factor=1.07, variant="as printed"
    )
    return [
        replace(result, errors={**result.errors, "rae": 3 * result.errors["ae"]})
        for result in given
    ]


def test_tables_come_back_as_they_were(results: list[Result], tmp_path: Path) -> None:
    written = write_summary(summarise_table("pcc_general", results), tmp_path)
    summary = read_summaries(tmp_path)["pcc_general"]
    assert written == tmp_path / "pcc_general.json"
    for metric in ("ae", "rae"):
        for variant, table in tables_of(results, metric=metric).items():
            read = summary.tables[metric][variant]
            assert (read.columns, read.protocol) == (table.columns, table.protocol)
            assert read.notes == table.notes
            rows = zip(read.rows + read.summaries, table.rows + table.summaries, strict=True)
            for ours, theirs in rows:
                assert replace(ours, cells=()) == replace(theirs, cells=())
                for cell, other in zip(ours.cells, theirs.cells, strict=True):
                    assert cell is not None
                    assert other is not None
                    assert cell.value == pytest.approx(other.value, rel=1e-6)
                    assert cell.by_seed == pytest.approx(other.by_seed, rel=1e-6)
                    assert (cell.mark, cell.best) == (other.mark, other.best)
                    assert cell.n_samples == other.n_samples


def test_where_the_figures_come_from(results: list[Result]) -> None:
    summary = summarise_table("pcc_general", results)
    assert [run.dataset for run in summary.runs] == ["emotions", "scene", "genbase"]
    assert summary.runs[0].seeds == (0, 1)
    assert summary.runs[0].n_results == 4 * 3
    assert summary.runs[0].seconds == pytest.approx(1.5 * 12)
    assert summary.methods["as printed"]["BC+BA"] == "lr+BC+BA"


def test_the_same_results_give_the_same_bytes(results: list[Result], tmp_path: Path) -> None:
    first = write_summary(summarise_table("pcc_general", results), tmp_path).read_bytes()
    order = np.random.default_rng(0).permutation(len(results))
    shuffled = [results[i] for i in order]
    assert write_summary(summarise_table("pcc_general", shuffled), tmp_path).read_bytes() == first
    again = read_summaries(tmp_path)["pcc_general"]
    assert write_summary(again, tmp_path / "again").read_bytes() == first


def test_tuned_tables_are_those_of_the_four_groups(results: list[Result], tmp_path: Path) -> None:
    for name in ("pcc_general", "mlc"):
        write_summary(summarise_table(name, results), tmp_path)
    tables = read_summaries(tmp_path)["pcc_general"].tables
    assert tuned_tables(tmp_path) == {f"PCC, {way}": table for way, table in tables["ae"].items()}
    assert list(tuned_tables(tmp_path, "rae")) == ["PCC, as described", "PCC, as printed"]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There are no records"):
        read_summaries(tmp_path)
    with pytest.raises(InputError, match="There are no results of the table 'mlc'"):
        summarise_table("mlc", [])
    (tmp_path / "mlc.json").write_text('{"format": 99}')
    with pytest.raises(FormatError, match="has the format 99"):
        read_summaries(tmp_path)
    (tmp_path / "mlc.json").write_text('{"format": 1, "tables": []}')
    with pytest.raises(FormatError, match="is no record of a table"):
        read_summaries(tmp_path)


def test_losses_of_model_selection_are_kept(results: list[Result], tmp_path: Path) -> None:
    known = [
        replace(r, validation_loss=0.5 * r.seed) if r.dataset == "scene" else r for r in results
    ]
    write_summary(summarise_table("pcc_general", known), tmp_path)
    pairs = read_summaries(tmp_path)["pcc_general"].validated
    assert {pair.dataset for pair in pairs} == {"scene"}
    assert len(pairs) == 4 * 3
    by_place = {(r.variant, r.method, r.seed): r for r in known if r.dataset == "scene"}
    for pair in pairs:
        assert pair.validation == 0.5 * pair.seed
        errors = by_place[pair.variant, pair.method, pair.seed].errors["ae"]
        assert pair.test == pytest.approx(np.mean(errors), rel=1e-6)
