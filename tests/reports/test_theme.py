from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from prevalens.reports.charts import prevalence_histogram
from prevalens.reports.theme import DARK, LIGHT, N_SERIES, colour, declarations, series, standalone


def luminance(hexed: str) -> float:
    """Relative luminance of the web content accessibility guidelines."""
    parts = [int(hexed[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["text", "muted", "link"])
def test_text_has_enough_contrast(theme: dict[str, str], name: str) -> None:
    for ground in ("ground", "raised"):
        assert contrast(theme[name], theme[ground]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_and_bars_have_enough_contrast(theme: dict[str, str]) -> None:
    for name in ("plus", "minus", *(f"series-{i + 1}" for i in range(N_SERIES))):
        assert contrast(theme[name], theme["ground"]) >= 3


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("tint", [(0, 150, 110), (235, 120, 0)])
def test_figures_on_the_strongest_shades_are_readable(
    theme: dict[str, str], tint: tuple[int, int, int]
) -> None:
    ground = [int(theme["ground"][i : i + 2], 16) for i in (1, 3, 5)]
    mixed = [round(0.36 * t + 0.64 * g) for t, g in zip(tint, ground, strict=True)]
    assert contrast(theme["text"], "#{:02x}{:02x}{:02x}".format(*mixed)) >= 4.5


def test_both_themes_have_the_same_colours() -> None:
    assert set(LIGHT) == set(DARK)
    assert declarations({"a": "#000000", "b": "#111111"}) == "--pv-a:#000000;--pv-b:#111111;"


def test_series_repeat_their_colours() -> None:
    assert series(0) == series(N_SERIES) == colour("series-1")
    assert len({series(number) for number in range(N_SERIES)}) == N_SERIES


def test_a_chart_of_its_own_follows_the_reader_or_a_fixed_theme(
    read_xml: Callable[[str], Any],
) -> None:
    svg = prevalence_histogram([0.1, 0.2])
    followed = standalone(svg)
    assert "prefers-color-scheme:dark" in followed
    assert DARK["text"] in followed
    for theme, colours in (("light", LIGHT), ("dark", DARK)):
        fixed = standalone(svg, theme)
        assert "var(" not in fixed
        assert colours["series-1"] in fixed
        assert read_xml(fixed).attrib["color"] == colours["text"]
    read_xml(followed)
