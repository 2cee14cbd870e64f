"""Charts of batches: well-formed, escaped, in proportion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from prevalens.model.result import BatchResult
from prevalens.reports.batch_charts import (
    change_map,
    interval_bar,
    is_skewed,
    movers_chart,
    points_text,
    share_text,
    small_bars,
    small_trend,
    top_of,
)
from prevalens.reports.theme import DARK, LIGHT

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def report() -> BatchResult:
    point = np.array([[0.1, 0.004], [0.2, 0.003], [0.6, 0.002]])
    return BatchResult(
        ["<script>&", "a label with a name that does not fit beside any chart"],
        ["May", "June", "July"],
        [100, 200, 300],
        point,
        [0.3, 0.0],
        lower=point * 0.8,
        upper=point * 1.2,
        level=0.9,
        true=point * 1.1,
    )


@pytest.mark.parametrize("draw", ["movers", "trend", "map", "bars"])
def test_charts_are_well_formed_and_say_their_names(
    draw: str, report: BatchResult, read_xml: Callable[[str], Any]
) -> None:
    svg = {
        "movers": lambda: movers_chart(report, 2, [0, 1], "<Movers>"),
        "trend": lambda: small_trend(report, 0),
        "map": lambda: change_map(report, [0, 1], 3),
        "bars": lambda: small_bars(replace(report, ordered=False), 0, 25),
    }[draw]()
    root = read_xml(svg)
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text
    texts = " ".join(root.itertext())
    assert "<script>&" in texts
    assert "60.0 %" in texts


def test_a_bar_puts_estimate_interval_and_training_on_one_scale(
    report: BatchResult, read_xml: Callable[[str], Any]
) -> None:
    root = read_xml(interval_bar(report, 2, 0, 1.0))
    point, mark = root.find("circle"), root.findall("line")[1]
    span = root.find("rect")
    left, width = 6.0, 108.0
    assert float(point.get("cx")) == pytest.approx(left + 0.6 * width, abs=0.06)
    assert float(mark.get("x1")) == pytest.approx(left + 0.3 * width, abs=0.06)
    assert float(span.get("x")) == pytest.approx(left + 0.48 * width, abs=0.06)
    assert float(span.get("width")) == pytest.approx(0.24 * width, abs=0.11)


def test_the_top_is_round_and_above_everything(report: BatchResult) -> None:
    assert top_of(report) == pytest.approx(0.8)
    small = BatchResult(["a"], ["b"], [1], [[0.0]], [0.0])
    assert 0 < top_of(small) <= 0.05
    full = BatchResult(["a"], ["b"], [1], [[1.0]], [0.99])
    assert top_of(full) == 1.0


def test_without_intervals_there_is_no_band(read_xml: Callable[[str], Any]) -> None:
    bare = BatchResult(["a"], ["May", "June"], [1, 2], [[0.1], [0.2]], [0.1])
    root = read_xml(small_trend(bare, 0))
    assert root.find(f"{SVG}polygon") is None
    assert len(root.findall(f"{SVG}circle")) == 2


def test_shares_and_points_as_text() -> None:
    assert [share_text(x) for x in (0.5, 0.0099, 0.00999, 1e-9)] == [
        "50.0 %",
        "0.99 %",
        "1.0 %",
        "0.00 %",
    ]
    assert [points_text(x) for x in (0.123, -0.0003, 1e-6)] == ["+12.3", "-0.03", "0.0"]


def test_rare_labels_are_seen_on_a_scale_of_roots(read_xml: Callable[[str], Any]) -> None:
    point = np.array([[0.64, 0.01, 0.01]])
    report = BatchResult(["often", "rare", "rarer"], ["May"], [99], point, [0.5, 0.01, 0.0])
    assert is_skewed(report)
    assert not is_skewed(BatchResult(["a", "b"], ["May"], [9], [[0.3, 0.2]], [0.3, 0.2]))
    root = read_xml(interval_bar(report, 0, 1, 1.0, root=True))
    assert float(root.find("circle").get("cx")) == pytest.approx(6 + 0.1 * 108, abs=0.06)


def test_the_map_names_its_columns_and_marks_what_is_supported(
    report: BatchResult, read_xml: Callable[[str], Any]
) -> None:
    alarming = replace(report, p_value=[0.6, 0.7, 0.001])
    texts = [each.text for each in read_xml(change_map(report, [0, 1], 3)).iter(f"{SVG}text")]
    assert {"May", "June", "July"} < set(texts)
    assert "▲+30" in texts
    # In a batch that raises the alarm nothing is claimed.
    texts = [each.text for each in read_xml(change_map(alarming, [0, 1], 3)).iter(f"{SVG}text")]
    assert not any("+30" in text for text in texts)


def test_groups_are_drawn_without_lines_between_them(
    report: BatchResult, read_xml: Callable[[str], Any]
) -> None:
    root = read_xml(small_bars(replace(report, ordered=False), 0, 2))
    assert root.find(f"{SVG}polyline") is None
    assert len(list(root.iter(f"{SVG}circle"))) == 2


@pytest.mark.parametrize("draw", [small_trend, lambda report, label: small_bars(report, label, 9)])
def test_intervals_have_an_outline_of_full_colour(
    draw: Callable[[BatchResult, int], str], report: BatchResult, read_xml: Callable[[str], Any]
) -> None:
    """A light filling alone would have less than three to one in contrast."""
    drawn = list(read_xml(draw(report, 0)).iter())
    filled = [each for each in drawn if each.get("fill-opacity")]
    lines = [each for each in drawn if "series-1" in str(each.get("stroke"))]
    assert filled
    assert len(lines) > len(filled) or all(each.get("stroke") for each in filled)


def _rgb(text: str) -> np.ndarray[Any, Any]:
    return np.array([int(text[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def _luminance(rgb: np.ndarray[Any, Any]) -> float:
    """Relative luminance as in the Web Content Accessibility Guidelines."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("hue", ["plus", "minus"])
def test_marks_in_the_map_can_be_read_on_its_strongest_colours(
    colours: dict[str, str], hue: str, report: BatchResult, read_xml: Callable[[str], Any]
) -> None:
    cells = read_xml(change_map(report, [0, 1], 3)).iter(f"{SVG}rect")
    opacity = max(float(cell.get("fill-opacity")) for cell in cells)
    ground = opacity * _rgb(colours[hue]) + (1 - opacity) * _rgb(colours["ground"])
    dark, light = sorted((_luminance(ground), _luminance(_rgb(colours["text"]))))
    assert (light + 0.05) / (dark + 0.05) >= 3
