from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from prevalens.records import Result
from prevalens.reports.grid import MISSING, Grid
from prevalens.reports.page import Section, grids_of, page
from prevalens.reports.summarise import summarise
from prevalens.studies.moreo2023.comparison import Comparison, compare
from prevalens.studies.moreo2023.comparison_layout import (
    agreement_grid,
    comparison_grid,
    orders_grid,
    outside_grid,
)
from prevalens.studies.moreo2023.printed import printed
from prevalens.studies.moreo2023.reproduction import paper_sections
from prevalens.validation import InputError

PaperLike = Callable[..., list[Result]]


@pytest.fixture
def comparison(paper_like: PaperLike) -> Comparison:
    """As described: scene 20 % off. As printed: all on the spot, with two seeds."""
    described = paper_like(datasets=("emotions", "genbase"))
    described += paper_like(datasets=("scene",), factor=1.2)
    ours = {
        "as described": summarise(described),
        "as printed": summarise(paper_like(seeds=(0, 1))),
    }
    return compare(ours, printed("pcc_general"))


def texts(grid: Grid, number: int = 0) -> list[str]:
    return [entry.text for entry in list(grid.lines())[number].entries]


def test_values_ratios_and_printed_values_side_by_side(comparison: Comparison) -> None:
    grid = comparison_grid(comparison)
    heads = [heading.text for heading in grid.headings[1]][:5]
    assert heads == ["as described", "ratio", "as printed", "ratio", "paper"]
    assert [(heading.text, heading.span) for heading in grid.headings[0]] == [
        (name, 5) for name in ("BC+BA", "MLC+BA", "BC+MLA", "MLC+MLA")
    ]
    scene = grid.groups[1]
    assert scene.title == "Scene"
    shown = [entry.text for entry in scene.lines[0].entries][:5]
    assert shown == [".1010", "1.20", ".0842", "1.00", ".0842"]


def test_ratios_out_of_bounds_are_flagged(comparison: Comparison) -> None:
    grid = comparison_grid(comparison)
    flags = [[e.flag for line in group.lines for e in line.entries] for group in grid.groups]
    assert [sum(own) for own in flags] == [0, 12, 0]
    assert not any(
        e.flag for line in comparison_grid(comparison, within=0.25).lines() for e in line.entries
    )


def test_notes_say_what_is_not_compared(make_result: Callable[..., Result]) -> None:
    ours = summarise([make_result("BC+BA", dataset="tmc2007_500")])
    grid = comparison_grid(compare({"ours": ours}, printed("pcc_general")))
    assert any(note.startswith("Tmc2007_500: the paper measured on other") for note in grid.notes)
    assert not any("one way only" in note for note in grid.notes)


def test_missing_values_are_dashes(paper_like: PaperLike) -> None:
    ours = {"a": summarise(paper_like()), "b": summarise(paper_like(datasets=("scene",)))}
    grid = comparison_grid(compare(ours, printed("pcc_general")))
    assert texts(grid)[:5] == [".0418", "1.00", MISSING, MISSING, ".0418"]


def test_printed_values_keep_their_digits(paper_like: PaperLike) -> None:
    ours = {"ours": summarise(paper_like("mlc", factor=1.5))}
    comparison = compare(ours, printed("mlc"))
    assert texts(comparison_grid(comparison))[:3] == [".0630", "1.50", ".042"]
    assert texts(outside_grid(comparison, "ours"))[3] == ".042"


def test_agreement_is_counted_over_all_and_by_method_and_dataset(comparison: Comparison) -> None:
    grid = agreement_grid(comparison, thresholds=[0.15, 0.25])
    assert [group.title for group in grid.groups] == ["as described", "as printed"]
    names = [line.name for line in grid.groups[0].lines]
    assert names == ["all cells", *comparison.methods, "Emotions", "Scene", "Genbase"]
    assert texts(grid) == ["36", "67 % (24)", "100 % (36)"]
    assert texts(grid, names.index("Scene")) == ["12", "0 % (0)", "100 % (12)"]
    assert grid.notes[0].startswith("On Genbase, a difference of at most .0005")


def test_cells_that_disagree_are_listed_with_seeds_and_reasons(comparison: Comparison) -> None:
    grid = outside_grid(comparison, "as described", reasons={("scene", "BC+BA"): "a reason"})
    lines = list(grid.lines())
    assert len(lines) == 12
    assert lines[0].name == "Scene, low"
    assert texts(grid) == ["BC+BA", ".1010", "1: .1010", ".0842", "1.20", "a reason"]
    assert texts(grid, 1)[-1] == ""
    without = outside_grid(comparison, "as described")
    assert len(texts(without)) == without.n_columns == 5


def test_nothing_outside_is_said(comparison: Comparison) -> None:
    grid = outside_grid(comparison, "as printed")
    assert list(grid.lines()) == []
    assert grid.notes == ("There are none.",)


def test_the_range_of_seeds_is_shown(make_result: Callable[..., Result]) -> None:
    ours = [make_result("BC+BA", [e] * 6, seed=seed) for seed, e in enumerate((0.1, 0.3))]
    grid = outside_grid(compare({"ours": summarise(ours)}, printed("pcc_general")), "ours")
    assert texts(grid)[2] == "2: .1000 to .3000"


def test_orders_stand_beside_the_paper_s(comparison: Comparison) -> None:
    grid = orders_grid({"PCC": comparison})
    assert [group.title for group in grid.groups] == ["PCC"]
    names = [line.name for line in grid.lines()]
    assert names[:3] == ["low, as described", "low, as printed", "low, paper"]
    assert len(names) == 9
    ours, paper = texts(grid), texts(grid, 2)
    assert ours[:5] == paper[:5]
    assert (ours[5], paper[5]) == ("yes", MISSING)
    assert ours[6] == "3"
    ranks = [float(text) for text in ours[:4]]
    assert sum(ranks) == pytest.approx(10, abs=0.03)


def test_no_comparison_has_no_order() -> None:
    with pytest.raises(InputError, match="no comparison to take an order from"):
        orders_grid({})


def captions(sections: list[Section]) -> list[str]:
    return [grid.caption for grid in grids_of(sections)]


def test_a_report_beside_the_paper(paper_like: PaperLike) -> None:
    results = paper_like(factor=1.2) + paper_like(variant="as printed", methods=("BC+BA",))
    sections = paper_sections(results, tables=["pcc_general"], reasons={("scene", "BC+BA"): "why"})
    assert [section.title for section in sections][:2] == ["Results, AE", "Beside the paper, AE"]
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
    sections = paper_sections(paper_like(), tables=["mlqreg_mrae"])
    assert not any(section.title.startswith("Beside the paper") for section in sections)


def test_every_measure_beside_its_own_table(paper_like: PaperLike) -> None:
    both = [
        Result(**{**vars(result), "errors": {**result.errors, **other.errors}})
        for result, other in zip(paper_like("mlqreg"), paper_like("mlqreg_mrae"), strict=True)
    ]
    sections = paper_sections(both, metrics=["ae", "rae"], tables=["mlqreg", "mlqreg_mrae"])
    assert [section.title for section in sections] == [
        "Results, AE",
        "Beside the paper, AE",
        "Error against shift, AE",
        "Results, RAE",
        "Beside the paper, RAE",
        "Error against shift, RAE",
        "Where the figures come from",
    ]
    assert "Relative absolute error (RAE): ours beside the printed values." in captions(sections)


def test_the_same_results_give_the_same_bytes_beside_the_paper(paper_like: PaperLike) -> None:
    results = paper_like(seeds=(0, 1)) + paper_like(variant="as printed", methods=("BC+BA",))
    first = page("Title", paper_sections(results, tables=["pcc_general"]))
    random.Random(1).shuffle(results)
    assert page("Title", paper_sections(results, tables=["pcc_general"])) == first


def test_methods_stand_in_the_order_of_the_print(paper_like: PaperLike) -> None:
    (table, *_) = grids_of(paper_sections(paper_like("mlqreg")[::-1]))
    shown = [heading.text for heading in table.headings[-1]]
    assert shown[: len(printed("mlqreg").columns)] == list(printed("mlqreg").columns)
