from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from prevalens.records import Result
from prevalens.reports.grid import MISSING, Grid
from prevalens.reports.page import Section, grids_of, page
from prevalens.reports.sections import by_variant, report_sections, tables_of
from prevalens.validation import InputError

PaperLike = Callable[..., list[Result]]


def captions(sections: list[Section]) -> list[str]:
    return [grid.caption for grid in grids_of(sections)]


def test_a_report_without_the_paper(paper_like: PaperLike) -> None:
    sections = report_sections(paper_like())
    assert [section.title for section in sections] == [
        "Results, AE",
        "Error against shift, AE",
        "Where the figures come from",
    ]
    assert captions(sections)[0] == "Absolute error (AE) by dataset and shift, ml-app."
    paragraphs = [part for part in sections[0].parts if isinstance(part, str)]
    assert paragraphs[0].startswith("Absolute error (AE): the distance")
    assert any("120 per dataset" in text for text in paragraphs)
    assert any("Wilcoxon" in text for text in paragraphs)


def test_many_methods_are_shown_below_each_other(paper_like: PaperLike) -> None:
    wide, long = (grids_of(report_sections(paper_like(name)))[0] for name in ("mlq", "mlc"))
    assert (wide.stub, wide.n_columns) == ("dataset", 18)
    assert (long.stub, long.n_columns) == ("shift", 8)


def test_the_same_results_give_the_same_bytes(paper_like: PaperLike) -> None:
    results = paper_like(seeds=(0, 1)) + paper_like(variant="as printed", methods=("BC+BA",))
    first = page("Title", report_sections(results))
    random.Random(1).shuffle(results)
    assert page("Title", report_sections(results)) == first


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


def test_variants_become_tables_of_their_own(make_result: Callable[..., Result]) -> None:
    given = [
        make_result("BC+BA", variant="as printed"),
        make_result("BC+BA"),
        make_result("MLC+BA"),
        make_result("BC+BA", variant="another"),
    ]
    groups = by_variant(given)
    assert list(groups) == ["as described", "another", "as printed"]
    for own in groups.values():
        assert sorted(result.method for result in own) == ["BC+BA", "MLC+BA"]
        assert {result.variant for result in own} == {""}


def test_a_variant_that_is_not_finished_is_not_filled(make_result: Callable[..., Result]) -> None:
    given = [
        make_result("BC+BA"),
        make_result("BC+BA", dataset="yeast"),
        make_result("BC+BA", variant="as printed"),
    ]
    assert [result.dataset for result in by_variant(given)["as printed"]] == ["scene"]


def test_hostile_names_are_shown_and_not_obeyed(
    make_result: Callable[..., Result], read_xml: Callable[[str], Any]
) -> None:
    evil = "</title><img src=x onerror=alert(1)>\"'&"
    results = [
        make_result(evil, dataset=evil, protocol=evil, expression=evil, variant=variant)
        for variant in ("", evil)
    ]
    html = page(evil, report_sections(results), lead=evil)
    assert "<img" not in html
    texts = list(read_xml(html.removeprefix("<!DOCTYPE html>")).itertext())
    # The title of the page, its heading, the lead, the rows of tables and the titles of charts.
    assert texts.count(evil) >= 8
