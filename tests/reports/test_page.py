from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from typing import Any

import pytest

from prevalens.reports.charts import prevalence_histogram
from prevalens.reports.layout import wide_grid
from prevalens.reports.page import (
    Figure,
    Gallery,
    Section,
    figure_files,
    grids_of,
    markdown_page,
    page,
)
from prevalens.studies.moreo2023.printed import printed

NASTY = "<img src=x onerror=alert(1)> & more"


@pytest.fixture
def sections() -> list[Section]:
    chart = prevalence_histogram([0.1, 0.3])
    gallery = Gallery((Figure(chart, name="one"), Figure(chart)), "Two charts.")
    return [
        Section("Results", ("A paragraph.", wide_grid(printed("pcc_general")))),
        Section("Charts", (Figure(chart, "A chart.", "two"), gallery)),
        Section("Charts", ()),
    ]


@pytest.fixture
def read_page(read_xml: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda html: read_xml(html.removeprefix("<!DOCTYPE html>"))


def test_pages_are_well_formed_and_whole(
    sections: list[Section], read_page: Callable[[str], Any]
) -> None:
    root = read_page(page("A & B", sections, lead="What it is about."))
    assert root.attrib["lang"] == "en"
    assert root.find(".//title").text == "A & B"
    assert root.find(".//h1").text == "A & B"
    assert [heading.text for heading in root.findall(".//h2")] == ["Results", "Charts", "Charts"]
    assert root.find(".//main/p").text == "What it is about."
    assert len(root.findall(".//table")) == 1
    assert len(root.findall(".//{http://www.w3.org/2000/svg}svg")) == 3
    assert root.find(".//meta[@name='viewport']") is not None


def test_contents_lead_to_the_sections(
    sections: list[Section], read_page: Callable[[str], Any]
) -> None:
    root = read_page(page("Title", sections))
    links = [link.attrib["href"] for link in root.findall(".//nav//a")]
    assert links == ["#results", "#charts", "#charts-2"]
    assert [f"#{section.attrib['id']}" for section in root.findall(".//section")] == links
    assert read_page(page("Title", sections[:1])).find(".//nav") is None


def test_pages_ask_for_nothing_from_elsewhere(sections: list[Section]) -> None:
    html = page("Title", sections)
    without_names = html.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "http:" not in without_names
    assert "https:" not in without_names
    assert not re.search(r"\ssrc(set)?=|@import|url\(", without_names)
    assert set(re.findall(r'href="(.)', html)) == {"#"}


def test_the_policy_allows_this_style_and_script_only(sections: list[Section]) -> None:
    html = page("Title", sections)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'")
    assert "unsafe" not in policy[1]
    for name in ("style", "script"):
        (content,) = re.findall(rf"<{name}>(.*?)</{name}>", html, re.DOTALL)
        checksum = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{checksum}'" in policy[1]
    # Styles and handlers in attributes would be refused.
    assert not re.search(r"<[^>]*\s(style|on\w+)=", html)


def test_pages_are_the_same_every_time(sections: list[Section]) -> None:
    assert page("Title", sections) == page("Title", list(sections))


def test_light_and_dark_and_paper(sections: list[Section]) -> None:
    html = page("Title", sections)
    assert "@media (prefers-color-scheme:dark)" in html
    assert ":root[data-theme=dark]" in html
    assert "@media print" in html
    assert 'id="theme" type="button" hidden="hidden"' in html


def test_markup_in_text_is_shown_not_obeyed(read_page: Callable[[str], Any]) -> None:
    part = Gallery((Figure("<svg/>", NASTY),), NASTY)
    html = page(NASTY, [Section(NASTY, (NASTY, part))] * 2, lead=NASTY)
    assert "<img" not in html
    root = read_page(html)
    assert root.find(".//section/p").text == NASTY
    assert [caption.text for caption in root.findall(".//figcaption")] == [NASTY] * 4


def test_the_same_as_markdown(sections: list[Section]) -> None:
    text = markdown_page("A_B", sections, lead="What it is about.", figures="figures")
    assert text.startswith("# A\\_B\n\nWhat it is about.\n\n## Results\n\nA paragraph.\n\n**")
    assert "| Emotions | **.0418** |" in text
    assert "![A chart.](figures/two.svg)" in text
    assert "![one](figures/one.svg)" in text
    assert "Two charts." in text
    assert "\n\n\n" not in text


def test_markdown_without_charts(sections: list[Section]) -> None:
    text = markdown_page("Title", sections)
    assert "![" not in text
    assert "Two charts." not in text
    assert text.count("## Charts") == 1  # the one that was empty from the start


def test_tables_and_charts_can_be_taken_out(
    sections: list[Section], read_xml: Callable[[str], Any]
) -> None:
    assert grids_of(sections) == [wide_grid(printed("pcc_general"))]
    files = figure_files(sections)
    assert sorted(files) == ["one.svg", "two.svg"]
    for svg in files.values():
        assert read_xml(svg).tag.endswith("svg")
    assert "var(" not in "".join(figure_files(sections, theme="light").values())
