from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.reports.svg import Frame, Scale, line_style, nice_ticks, tick_text
from prevalens.reports.theme import N_SERIES


def test_scales_map_ends_to_ends_and_stay_inside() -> None:
    scale = Scale(0, 2, 100, 0)
    assert [scale(value) for value in (0, 1, 2, 3, -1)] == [100, 50, 0, 0, 100]
    assert Scale(1, 1, 0, 10)(1) == 5


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.integers(2, 8))
def test_ticks_are_inside_even_and_not_too_many(low: float, width: float, n: int) -> None:
    high = low + width
    ticks = nice_ticks(low, high, n)
    slack = 1e-6 * width + 1e-9
    assert all(low - slack <= tick <= high + slack for tick in ticks)
    assert len(ticks) <= n + 1
    steps = [right - left for left, right in pairwise(ticks)]
    assert steps == pytest.approx(steps[:1] * len(steps))


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (0, 0.03, [0, 0.01, 0.02, 0.03]), (2, 2, [2])],
)
def test_ticks_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert nice_ticks(low, high) == ticks


@pytest.mark.parametrize(
    ("value", "text"), [(0.001, ".001"), (0, "0"), (1, "1"), (-0.25, "-.25"), (12.5, "12.5")]
)
def test_tick_texts(value: float, text: str) -> None:
    assert tick_text(value) == text


def test_the_first_series_differ_in_colour_and_later_ones_in_dash() -> None:
    styles = [tuple(line_style(number).items()) for number in range(2 * N_SERIES)]
    assert len(set(styles)) == len(styles)
    assert line_style(0)["stroke_dasharray"] is None
    assert line_style(N_SERIES)["stroke_dasharray"] is not None


def test_frames_have_axes_names_and_a_legend(read_xml: Callable[[str], Any]) -> None:
    frame = Frame("Title", (0, 1), (0, 10), names=["first", "second"])
    root = read_xml(frame.draw("", x_name="across", y_name="up", x_ticks={0.5: "half"}))
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Title", "across", "up", "half", "first", "second", "10"} <= set(texts)


def test_long_legends_are_wrapped_and_make_the_chart_higher() -> None:
    short_one = Frame("", (0, 1), (0, 1), names=["a"])
    long_one = Frame("", (0, 1), (0, 1), names=["a method with a long name"] * 6)
    assert long_one.height > short_one.height > Frame("", (0, 1), (0, 1)).height
    assert long_one.bottom - long_one.top == short_one.bottom - short_one.top
