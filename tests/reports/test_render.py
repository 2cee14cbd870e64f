from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.reports.grid import Grid, GridCell, GridGroup, GridLine, Heading
from prevalens.reports.layout import long_grid, wide_grid
from prevalens.reports.render import N_SHADES, to_html
from prevalens.studies.moreo2023.printed import printed

NASTY = "<script>alert('&\"')</script>"


def small(text: str = "x", **entry: Any) -> Grid:
    return Grid(
        text,
        text,
        ((Heading(text),),),
        (GridGroup((GridLine(text, (GridCell(text, **entry),)),), text),),
        (text,),
    )


@pytest.fixture
def parse(read_xml: Callable[[str], Any]) -> Callable[[Grid], Any]:
    return lambda grid: read_xml(f"<body>{to_html(grid)}</body>")


@pytest.mark.parametrize("layout", [wide_grid, long_grid])
@pytest.mark.parametrize("table", ["pcc_general", "mlc"])
def test_every_row_fills_all_columns(
    parse: Callable[[Grid], Any], layout: Callable[..., Grid], table: str
) -> None:
    grid = layout(printed(table))
    root = parse(grid)
    head = root.findall(".//thead/tr")
    assert len(head) == len(grid.headings)
    # The first cell spans the rows of the head, and does not stand in the others.
    for number, row in enumerate(head):
        spans = [int(cell.get("colspan", 1)) for cell in row]
        assert sum(spans) == grid.n_columns + (number == 0)
    for row in root.findall(".//tbody/tr"):
        assert sum(int(cell.get("colspan", 1)) for cell in row) == grid.n_columns + 1


def test_tables_can_be_read_aloud(parse: Callable[[Grid], Any]) -> None:
    root = parse(wide_grid(printed("pcc_general"), "A caption."))
    region = root.find("div")
    assert region.attrib["role"] == "region"
    assert region.attrib["tabindex"] == "0"
    assert region.attrib["aria-label"] == "A caption."
    assert "".join(root.find(".//caption").itertext()) == "A caption."
    assert {cell.get("scope") for cell in root.findall(".//thead//th")} == {"col", "colgroup"}
    assert all(row[0].get("scope") == "row" for row in root.findall(".//tbody/tr"))
    grouped = parse(long_grid(printed("pcc_general")))
    assert len(grouped.findall(".//th[@scope='rowgroup']")) == 17


def test_the_best_is_bold_and_marks_are_explained(parse: Callable[[Grid], Any]) -> None:
    root = parse(wide_grid(printed("pcc_general")))
    assert len(root.findall(".//td/b")) == 51
    signs = root.findall(".//td/sup")
    assert [sign.text for sign in signs] == ["†", "†"]
    assert ".001 < p < .05" in signs[0].attrib["title"]
    assert any("†" in item.text for item in root.findall(".//li"))


def test_flags_asides_and_columns_of_text(parse: Callable[[Grid], Any]) -> None:
    cell = parse(small(flag=True, aside=True)).find(".//td")
    assert cell.find("i").text == "x"
    assert cell.attrib["class"] == "aside"
    root = parse(Grid.from_rows("c", "s", [Heading("w", left=True)], [("l", "t")]))
    assert root.find(".//td").attrib["class"] == "left"
    assert root.findall(".//th")[1].attrib["class"] == "left"


@pytest.mark.parametrize(("shade", "name"), [(0.0, "shade-0"), (0.5, "shade-4"), (1.0, "shade-8")])
def test_shades_are_steps(parse: Callable[[Grid], Any], shade: float, name: str) -> None:
    assert parse(small(shade=shade)).find(".//td").attrib["class"] == name


def test_colours_are_explained_where_there_are_any() -> None:
    assert "Colours run from green" in to_html(small(shade=0.5))
    assert "Colours run from green" not in to_html(small())


def test_the_style_sheet_has_every_shade_but_the_middle_one() -> None:
    css = resources.files("prevalens.reports").joinpath("templates", "page.css").read_text("utf-8")
    for number in range(N_SHADES):
        assert (f".shade-{number}{{" in css) == (number != N_SHADES // 2)


def test_markup_in_names_is_shown_not_obeyed(parse: Callable[[Grid], Any]) -> None:
    html = to_html(small(NASTY))
    assert "<script" not in html
    root = parse(small(NASTY))
    assert root.find(".//td").text == NASTY
    assert root.find("div").attrib["aria-label"] == NASTY


# Characters that XML has no place for are not in results either.
@given(st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff")))
def test_any_text_survives(text: str) -> None:
    root = ElementTree.fromstring(f"<body>{to_html(small(text))}</body>")
    assert (root.find(".//td").text or "") == text  # type: ignore[union-attr]
