from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from prevalens.records import Result
from prevalens.reports.grid import MISSING, Grid
from prevalens.reports.page import Section, grids_of, page
from prevalens.reports.sections import report_sections, tables_of
from prevalens.validation import InputError

PaperLike = Callable[..., list[Result]]


def captions(sections: list[Section]) -> list[str]:
    return [grid.caption for grid in grids_of(sections)]


def test_a_report_without_the_paper(paper_like: PaperLike) -> None:
    sections = report_sections(paper_like())
    assert [one.title for one in sections] == [
        "Results, AE",
        "Error against shift, AE",
        "Where the figures come from",
    ]
    assert captions(sections)[0] == "Absolute error (AE) by dataset and shift, ml-app."
    words = [part for part in sections[0].parts if isinstance(part, str)]
    assert words[0].startswith("Absolute error (AE): the distance")
    assert any("120 per dataset" in one for one in words)
    assert any("Wilcoxon" in one for one in words)


def test_a_report_beside_the_paper(paper_like: PaperLike) -> None:
    results = paper_like(factor=1.2) + paper_like(variant="as printed", methods=("BC+BA",))
    sections = report_sections(
        results, paper_tables=["pcc_general"], reasons={("scene", "BC+BA"): "why"}
    )
    assert [one.title for one in sections][:2] == ["Results, AE", "Beside the paper, AE"]
    assert captions(sections)[:2] == [
        "Absolute error (AE) by dataset and shift, ml-app, as described.",
        "Absolute error (AE) by dataset and shift, ml-app, as printed.",
    ]
    assert captions(sections)[2:7] == [
        "Absolute error (AE): ours beside the printed values.",
        "Share of our cells that agree with the printed ones.",
        "Cells farther than 15 % from the printed value, as described.",
        "Cells farther than 15 % from the printed value, as printed.",
        "Mean rank of the methods by shift, ours beside the paper's.",
    ]
    assert "why" in page("", sections)


def test_a_table_of_another_measure_is_not_compared_with(paper_like: PaperLike) -> None:
    sections = report_sections(paper_like(), paper_tables=["mlqreg_mrae"])
    assert not any(one.title.startswith("Beside the paper") for one in sections)


def test_every_measure_beside_its_own_table(paper_like: PaperLike) -> None:
    both = [
        Result(**{**vars(one), "errors": {**one.errors, **other.errors}})
        for one, other in zip(paper_like("mlqreg"), paper_like("mlqreg_mrae"), strict=True)
    ]
    sections = report_sections(both, metrics=["ae", "rae"], paper_tables=["mlqreg", "mlqreg_mrae"])
    assert [one.title for one in sections] == [
        "Results, AE",
        "Beside the paper, AE",
        "Error against shift, AE",
        "Results, RAE",
        "Beside the paper, RAE",
        "Error against shift, RAE",
        "Where the figures come from",
    ]
    assert "Relative absolute error (RAE): ours beside the printed values." in captions(sections)


def test_many_methods_are_shown_below_each_other(paper_like: PaperLike) -> None:
    wide, long = (grids_of(report_sections(paper_like(name)))[0] for name in ("mlq", "mlc"))
    assert (wide.stub, wide.n_columns) == ("dataset", 18)
    assert (long.stub, long.n_columns) == ("shift", 8)


def test_the_same_results_give_the_same_bytes(paper_like: PaperLike) -> None:
    results = paper_like(seeds=(0, 1)) + paper_like(variant="as printed", methods=("BC+BA",))
    first = page("Title", report_sections(results, paper_tables=["pcc_general"]))
    random.Random(1).shuffle(results)
    assert page("Title", report_sections(results, paper_tables=["pcc_general"])) == first


def test_provenance(paper_like: PaperLike) -> None:
    *_, samples, methods, runs = grids_of(report_sections(paper_like(seeds=(0, 1))))
    assert samples.caption.startswith("Standard deviation between seeds")
    assert next(line.entries[0].text for line in methods.lines()) == "lr+BC+BA"
    first = next(iter(runs.lines()))
    assert [entry.text for entry in first.entries] == ["0, 1", "8", "12", "0.1.0", "0123456789ab"]


def test_what_is_not_known_is_a_dash(make_result: Callable[..., Result]) -> None:
    *_, runs = grids_of(report_sections([make_result(version="")]))
    assert isinstance(runs, Grid)
    assert [entry.text for entry in next(iter(runs.lines())).entries] == ["0", "1", *[MISSING] * 3]


def test_twins_do_not_count_twice(
    paper_like: PaperLike, make_result: Callable[..., Result]
) -> None:
    release = paper_like(datasets=("tmc2007_500_paper",), methods=("BC+BA",))
    corrected = [make_result("BC+BA", [0.9] * 6, dataset="tmc2007_500")]
    (both,) = tables_of(release + corrected).values()
    (alone,) = tables_of(corrected).values()
    for table, value in ((both, 0.1108), (alone, 0.9)):
        row = table.summary("mean", "low")
        assert row is not None
        assert row.cells[0] is not None
        assert row.cells[0].value == pytest.approx(value)


def test_one_protocol_at_a_time(make_result: Callable[..., Result]) -> None:
    results = [make_result(), make_result(protocol="natural")]
    with pytest.raises(InputError, match="choose one with protocol="):
        report_sections(results)
    sections = report_sections(results, protocol="natural")
    assert captions(sections)[0] == "Absolute error (AE) by dataset and shift, natural."


def test_at_least_one_measure(make_result: Callable[..., Result]) -> None:
    with pytest.raises(InputError, match="metrics is empty"):
        report_sections([make_result()], metrics=[])
