"""Tables for notebooks: everything escaped, bars in proportion."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np

from prevalens.charts import Dots, table


def test_names_are_escaped_and_figures_are_there() -> None:
    chart = Dots(["<b>&"], np.array([0.25]), np.array([0.2]), np.array([0.5]), title="<x>")
    html = table(chart)
    root = ElementTree.fromstring(html)
    assert root.find("tbody/tr/th").text == "<b>&"
    assert [cell.text for cell in root.findall("tbody/tr/td")][:3] == ["0.2500", "0.2000", "0.5000"]
    assert root.find("caption").text == "<x>"


def test_a_bar_reaches_as_far_as_its_value() -> None:
    html = table(Dots(["a", "b", "c"], np.array([0.0, 0.2, 0.4])))
    places = [float(x) for x in re.findall(r'cx="([\d.]+)"', html)]
    assert places[1] - places[0] == places[2] - places[1] > 0


def test_intervals_have_an_outline_of_full_colour() -> None:
    html = table(Dots(["a"], np.array([0.2]), np.array([0.1]), np.array([0.3])))
    (interval,) = ElementTree.fromstring(html).iter("rect")
    assert interval.get("stroke") == interval.get("fill")


def test_more_rows_than_are_shown_are_counted() -> None:
    html = table(Dots([str(i) for i in range(7)], np.zeros(7)), most=5)
    assert html.count("<tr>") == 6
    assert "and 2 more" in html
