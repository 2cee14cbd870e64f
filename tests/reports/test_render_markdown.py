from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.reports.grid import Grid, GridCell, GridGroup, GridLine, Heading
from prevalens.reports.layout import long_grid, wide_grid
from prevalens.reports.render import escape_markdown, to_markdown
from prevalens.studies.moreo2023.printed import printed


def rows(markdown: str) -> list[list[str]]:
    """The cells of the table; a bar behind a backslash does not divide."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


@pytest.mark.parametrize("table", ["pcc_general", "mlc"])
def test_tables_are_rectangles(table: str) -> None:
    wide, long = wide_grid(printed(table)), long_grid(printed(table))
    for grid, extra in ((wide, 1), (long, 2)):
        cells = rows(to_markdown(grid))
        assert {len(row) for row in cells} == {grid.n_columns + extra}
        assert len(cells) == 2 + sum(1 for _ in grid.lines())


def test_heads_are_joined_and_figures_aligned_right() -> None:
    lines = rows(to_markdown(wide_grid(printed("pcc_general"))))
    assert lines[0][:2] == ["dataset", "low shift, BC+BA"]
    assert lines[1][:2] == ["---", "---:"]


def test_the_best_is_bold_and_marks_are_signs() -> None:
    markdown = to_markdown(long_grid(printed("pcc_general")))
    lines = rows(markdown)
    assert lines[2] == ["Emotions", "low", "**.0418**", ".0420", ".0586", ".0474"]
    assert lines[3][0] == ""
    assert ".0228†" in markdown
    assert "\n- † hardly different from the best: .001 \\< p \\< .05.\n" in markdown


def test_captions_notes_and_flags() -> None:
    grid = Grid(
        "A *caption*",
        "name",
        ((Heading("w", left=True), Heading("r")),),
        (GridGroup((GridLine("x|y", (GridCell("", bold=True), GridCell("1.2", flag=True))),)),),
        ("A note.",),
    )
    assert to_markdown(grid) == (
        "**A \\*caption\\***\n\n"
        "| name | w | r |\n| --- | --- | ---: |\n| x\\|y |  | *1.2* |\n\n- A note.\n"
    )


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a_b*c", r"a\_b\*c"),
        ("- no list", r"\- no list"),
        ("1. no list", r"1\. no list"),
        ("-.5 and 1.5", "-.5 and 1.5"),
        ("two\nlines", "two lines"),
    ],
)
def test_text_stays_text(text: str, escaped: str) -> None:
    assert escape_markdown(text) == escaped


@given(st.text())
def test_no_text_breaks_a_table(text: str) -> None:
    grid = Grid("c", "s", ((Heading(text),),), (GridGroup((GridLine(text, (GridCell(text),)),)),))
    assert {len(row) for row in rows(to_markdown(grid))} == {2}
