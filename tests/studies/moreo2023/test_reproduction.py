"""The page on the reproduction: made of records alone, and the one that is checked in is true."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prevalens.records import Result
from prevalens.reports.grid import Grid
from prevalens.reports.page import Section, markdown_page
from prevalens.reports.render import to_markdown
from prevalens.reports.table import ranks
from prevalens.studies.moreo2023.plan import DISCUSSED, GUARDED, paper_plan
from prevalens.studies.moreo2023.printed import printed
from prevalens.studies.moreo2023.reproduction import (
    ABOUT,
    CHECKED,
    OBSERVATIONS,
    REASONS,
    TITLE,
    reproduction_sections,
)
from prevalens.studies.moreo2023.table_summary import TableSummary, read_summaries, summarise_table

Make = Callable[..., list[Result]]

DOCS = Path(__file__).parents[3] / "docs"


_LAST = "Where the figures come from, and what is missing"


def _summary(results: list[Result]) -> TableSummary:
    both = [replace(r, errors={**r.errors, "rae": r.errors["ae"]}) for r in results]
    return summarise_table("pcc_general", both)


def sections_of(paper_like: Make, **more: object) -> dict[str, Section]:
    results = paper_like(datasets=CHECKED, variant="as printed") + paper_like(
        datasets=CHECKED, variant="as described", factor=2.0
    )
    made = reproduction_sections({"pcc_general": _summary(results)}, **more)
    return {section.title: section for section in made}


def test_what_agrees_is_said(paper_like: Make) -> None:
    sections = sections_of(paper_like)
    near = sections["How near we come"].parts[0]
    assert isinstance(near, str)
    assert "84 of 84 as printed and 3 of 84 as described" in near
    paper, ours = sections["The order of the four groups"].parts[:2]
    assert isinstance(paper, str)
    assert isinstance(ours, str)
    assert "in 3 combinations of base quantifier and shift BC+BA is last in 3" in paper
    assert paper.endswith("by 1.00 on average.")
    assert "3 have all four groups in the order of the printed figures." in ours


def test_figures_in_sentences_are_those_of_the_records(paper_like: Make) -> None:
    why = sections_of(paper_like)["Why"].parts
    elsewhere = ("{acc/", "{sld/", "{delicious")
    assert len(why) == sum(not any(figure in text for figure in elsewhere) for text in OBSERVATIONS)
    first = why[0]
    assert isinstance(first, str)
    assert "the error at low shift is .0842 (paper: .0842)" in first
    assert "the same classifier has .1684" in first


def test_sentences_may_have_figures_of_several_tables() -> None:
    summaries = read_summaries(DOCS / "records")
    (why,) = [part.parts for part in reproduction_sections(summaries) if part.title == "Why"]
    assert len(why) == len(OBSERVATIONS)
    (adjusted,) = [text for text in why if isinstance(text, str) and text.startswith("ACC and")]
    assert "paper: .1810" in adjusted


def test_what_was_not_run_is_said(paper_like: Make) -> None:
    parts = sections_of(paper_like)["Where the figures come from, and what is missing"].parts
    sentences = [part for part in parts if isinstance(part, str)]
    assert "Classifiers: not run on any dataset." in sentences
    (own,) = [text for text in sentences if text.startswith("PCC, both ways:")]
    assert "Delicious" in own
    assert "Scene" not in own


def test_what_was_run_in_part_is_said(paper_like: Make) -> None:
    whole = paper_like(datasets=("emotions", "scene"), variant="as printed")
    partly = [r for r in whole if (r.dataset, r.method) != ("scene", "MLC+BA")]
    summary = summarise_table("pcc_general", partly, metrics=("ae",))
    *_, last = reproduction_sections({"pcc_general": summary})
    (own,) = [part for part in last.parts if str(part).startswith("PCC, as")]
    assert str(own).endswith("On Scene without MLC+BA.")


def test_classifiers_without_printed_figures_have_a_section_of_their_own(paper_like: Make) -> None:
    given = paper_like(datasets=["emotions"], variant="as described")
    names = {"BC+BA": "RF", "MLC+BA": "HOMER"}
    results = [
        replace(r, method=names[r.method], errors={**r.errors, "rae": r.errors["ae"]})
        for r in given
        if r.method in names
    ]
    tables = {"pcc_general": _summary(given), DISCUSSED: summarise_table(DISCUSSED, results)}
    sections = {section.title: section for section in reproduction_sections(tables)}
    text, grid = sections["More classifiers, AE"].parts
    assert isinstance(text, str)
    assert "RankSVM" in text
    page = to_markdown(grid)  # type: ignore[arg-type]
    assert "classifiers with PCC, as described: RF, HOMER" in page
    low = printed("pcc_general").cell("emotions", "low", "MLC+BA")
    assert low is not None
    assert f"{low.value:.4f}".removeprefix("0") in page
    assert "More classifiers" in to_markdown(sections[_LAST].parts[0])  # type: ignore[arg-type]
    assert "More classifiers, AE" not in sections_of(paper_like)


def test_columns_of_the_pcc_table_are_taken_from_there(paper_like: Make) -> None:
    pcc = paper_like(datasets=("emotions", "scene"), variant="as described", factor=1.05)
    own = paper_like("mlc", datasets=("scene",), variant="as described", methods=("DT",))
    summaries = {
        "pcc_general": summarise_table("pcc_general", pcc, metrics=("ae",)),
        "mlc": summarise_table("mlc", own, metrics=("ae",)),
    }
    sections = {part.title: part for part in reproduction_sections(summaries)}
    grid = sections["Classifiers, AE"].parts[0]
    assert isinstance(grid, Grid)
    assert [heading.text for heading in grid.headings[0]] == ["BC+BA", "DT", "SG"]
    first = next(iter(grid.lines()))
    ours = [entry.text for entry in first.entries[1::2]]
    # The printed .0842, .042 and .0362, the first and the last times 1.05; none on Emotions.
    assert ours == [".0884", ".0420", ".0380"]
    assert grid.groups[0].title == "Scene"


def test_whether_validation_and_test_results_correlate_is_said(paper_like: Make) -> None:
    results = paper_like("mlc", datasets=("emotions", "scene"), variant="as described")
    losses = [replace(r, validation_loss=2 * float(r.errors["ae"].mean())) for r in results]
    summary = summarise_table("mlc", losses, metrics=("ae",))
    sections = {part.title: part for part in reproduction_sections({"mlc": summary})}
    text = str(sections["Do validation and test results correlate?"].parts[0])
    assert "Of 2 pairs of dataset and table it is positive in 2 and at least .7 in 2" in text
    assert "the mean is 1.00, the range 1.00 to 1.00" in text
    assert "the smallest test error in 2 of 2; on average its test error is 1.00 times" in text
    best = [
        min((r for r in losses if r.dataset == name), key=lambda r: r.errors["ae"].mean()).method
        for name in ("emotions", "scene")
    ]
    (said,) = re.findall(r"SG, .* smallest validation loss on (\d) of 2 datasets", text)
    assert int(said) == best.count("SG")
    without = reproduction_sections({"mlc": summarise_table("mlc", results, metrics=("ae",))})
    assert "correlate" not in " ".join(part.title for part in without)


def test_sentences_without_figures_are_left_out(paper_like: Make) -> None:
    few = paper_like(datasets=("emotions",), variant="as printed")
    both = [replace(result, errors={**result.errors, "rae": result.errors["ae"]}) for result in few]
    sections = reproduction_sections({"pcc_general": summarise_table("pcc_general", both)})
    (why,) = [section.parts for section in sections if section.title == "Why"]
    assert 0 < len(why) < len(OBSERVATIONS)
    assert not any("{" in text for text in why if isinstance(text, str))


@pytest.mark.parametrize(
    "methods", [("BC+BA",), ("BC+BA", "MLC+BA"), ("MLC+MLA", "BC+MLA", "BC+BA")]
)
def test_a_page_of_some_groups_says_nothing_of_all_four(
    paper_like: Make, methods: tuple[str, ...]
) -> None:
    ways = ("as printed", "as described")
    few = [result for way in ways for result in paper_like(variant=way, methods=methods)]
    both = [replace(result, errors={**result.errors, "rae": result.errors["ae"]}) for result in few]
    sections = reproduction_sections({"pcc_general": summarise_table("pcc_general", both)})
    page = markdown_page(TITLE, sections)
    assert "four groups in the order" not in page
    assert ".0842" in page


def test_the_paper_is_counted_once_beside_a_table_of_some_groups(paper_like: Make) -> None:
    ways = ("as printed", "as described")
    summaries = {}
    for table, methods in (("pcc_general", None), ("cc_general", ("BC+BA", "MLC+BA"))):
        few = [result for way in ways for result in paper_like(table, variant=way, methods=methods)]
        summaries[table] = summarise_table(table, few, metrics=("ae",))
    sections = {section.title: section for section in reproduction_sections(summaries)}
    paper = sections["The order of the four groups"].parts[0]
    assert isinstance(paper, str)
    assert "As the paper prints them" in paper
    assert "in 3 combinations of base quantifier and shift" in paper


def test_the_page_that_is_checked_in_is_made_of_the_records() -> None:
    summaries = read_summaries(DOCS / "records")
    made = markdown_page(TITLE, reproduction_sections(summaries))
    assert (DOCS / "reproduction.md").read_text("utf-8") == made


def test_every_cell_that_is_off_has_a_reason() -> None:
    tables = read_summaries(DOCS / "records")["pcc_general"]
    (section,) = [
        section
        for section in reproduction_sections({"pcc_general": tables})
        if section.title.startswith("PCC: cells that are off")
    ]
    grid = section.parts[0]
    assert not isinstance(grid, str)
    lines = list(grid.lines())  # type: ignore[union-attr]
    assert lines, "if none is off any more, the reasons can go"
    assert [line.name for line in lines if not line.entries[-1].text] == []
    named = {(line.name.split(",")[0].lower(), line.entries[0].text) for line in lines}
    assert named == set(REASONS), "reasons are for cells that are off"


@pytest.mark.parametrize("name", ["cc_general", "pcc_general", "sld_general"])
def test_records_have_both_ways_and_both_measures(name: str) -> None:
    summary = read_summaries(DOCS / "records")[name]
    assert set(summary.tables) == {"ae", "rae"}
    for tables in summary.tables.values():
        assert list(tables) == ["as described", "as printed"]
        assert set(CHECKED) <= set(tables["as printed"].datasets)


def test_what_was_run_in_one_way_is_said_to_be() -> None:
    """The page's words on two ways are those of the plan."""
    ways: dict[str, set[str]] = {}
    for method in paper_plan(datasets=["emotions"]).methods:
        if method.variant != GUARDED:
            ways.setdefault(method.label, set()).add(method.variant)
    twice = {label for label, variants in ways.items() if len(variants) == 2}
    groups = {label for label in ways if " " in label}
    regressors = {"Ridge-RQ", "MultitaskLasso", "RF-RQ", "StackedLinearSVR", "ChainedLinearSVR"}
    assert twice == groups | {"ML-knn", "CLEMS", "LSC"} | regressors
    sentence = "The four groups, ML-kNN, CLEMS, LSC and the other regressors of RQ were run in two"
    assert any(text.startswith(sentence) for text in ABOUT)


def test_the_lead_of_mlc_mla_is_told_for_the_print_and_both_ways() -> None:
    sections = {
        part.title: part for part in reproduction_sections(read_summaries(DOCS / "records"))
    }
    sentences = sections["The order of the four groups"].parts[:3]
    said = [re.search(r"better by (\.\d\d) on average", str(text))[1] for text in sentences]
    leads = [mean_lead(source) for source in ("paper", "as printed", "as described")]
    assert said == [f"{lead:.2f}".removeprefix("0") for lead in leads]
    assert leads[2] < leads[1], "the page says that the lead is smaller as described"


def mean_lead(source: str) -> float:
    """Mean difference of the ranks of BC+MLA and MLC+MLA, computed from the rows of the records."""
    leads = []
    for name, summary in read_summaries(DOCS / "records").items():
        if not name.endswith("_general"):
            continue
        ways = {way: summary.tables["ae"][way] for way in ("as described", "as printed")}
        table = {"paper": printed(name), **ways}[source]
        both = set(ways["as described"].datasets) & set(ways["as printed"].datasets)
        for shift in ("low", "mid", "high"):
            rows = [row for row in table.rows if row.shift == shift and row.dataset in both]
            rows = [row for row in rows if row.dataset != "tmc2007_500"]
            columns = [table.columns.index(group) for group in ("BC+MLA", "MLC+MLA")]
            places = np.mean([ranks(row.cells, "ae") for row in rows], axis=0)
            leads.append(float(places[columns[0]] - places[columns[1]]))
    return float(np.mean(leads))
