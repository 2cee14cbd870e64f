from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.reports.svg import document, element, label, path, polygon, short


@given(st.floats(-1e5, 1e5))
def test_coordinates_are_short_and_near(value: float) -> None:
    text = short(value)
    assert float(text) == pytest.approx(value, abs=0.051)
    assert text not in ("-0", "-0.0")
    assert not text.endswith(".0")


def test_elements() -> None:
    assert element("g", element("a"), class_="x", stroke_width=2, fill=None) == (
        '<g class="x" stroke-width="2"><a/></g>'
    )
    assert element("rect", x=1.25, y=2.0) == '<rect x="1.2" y="2"/>'


def test_texts_and_attributes_are_escaped() -> None:
    assert label("a < b & c", 1.0, 2.0) == '<text x="1" y="2">a &lt; b &amp; c</text>'
    assert element("title", "</title><script>") == "<title>&lt;/title&gt;&lt;script&gt;</title>"
    assert element("g", name='"<&') == '<g name="&#34;&lt;&amp;"/>'


def test_lines_and_areas() -> None:
    points = [(0.0, 1.0), (2.5, 3.0)]
    assert path(points, stroke="red") == '<polyline points="0,1 2.5,3" fill="none" stroke="red"/>'
    assert polygon(points, fill="red") == '<polygon points="0,1 2.5,3" fill="red"/>'


def test_documents_have_a_name_and_scale(read_xml: Callable[[str], Any]) -> None:
    root = read_xml(document(480, 320, 'A "title" & <more>', element("g")))
    assert root.attrib["viewBox"] == "0 0 480 320"
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == 'A "title" & <more>'
    assert root[0].text == 'A "title" & <more>'
    assert root.attrib["fill"] == "currentColor"
