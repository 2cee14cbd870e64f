"""Tables with marks in a real browser: nothing sticks out, on a desk or on a phone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prevalens.records import Record, Result
from prevalens.reports.leaderboard import leaderboard_page
from prevalens.reports.page import page
from prevalens.reports.sections import protocol_sections

pytestmark = [
    # The driver of the browser leaves loops open at its end.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def results() -> list[Result]:
    """Methods that can hardly be told apart, so that their figures have marks."""
    rng = np.random.default_rng(0)
    shift = rng.random(300)
    return [
        Result(
            "own", protocol, f"method-{number}", "lr+pcc", 0, shift, {"ae": rng.random(300) / 10}
        )
        for protocol in ("ml-app", "natural")
        for number in range(5)
    ]


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_is_as_wide_as_the_screen(
    open_tab: Callable[..., Any], tmp_path: Path, width: int
) -> None:
    path = tmp_path / "page.html"
    path.write_text(page("Own", protocol_sections(results())), encoding="utf-8")
    tab = open_tab(path.as_uri(), viewport={"width": width, "height": 800})
    messages: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda message: messages.append(message.text))
    tab.on("pageerror", lambda error: messages.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(path.as_uri())
    assert tab.locator("td sup").count() > 0
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert (messages, asked) == ([], [path.as_uri()])


def board() -> str:
    """A leaderboard of twelve methods on two datasets."""
    blank = Record("", "", "natural", 0, "all", "ae", 0.0, 100, "1.0", "abc")
    records = [
        replace(blank, dataset=dataset, method=f"lr+m{n}", value=(n * 5 % 12 + 1) / 100)
        for dataset in ("emotions", "scene")
        for n in range(12)
    ]
    # One method was not measured everywhere.
    return leaderboard_page(records[:-1], command="x", source="y")


def test_a_leaderboard_is_searched_sorted_and_reduced_by_keyboard(
    open_tab: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "board.html"
    path.write_text(board(), encoding="utf-8")
    tab = open_tab(path.as_uri(), viewport={"width": 390, "height": 800})
    messages: list[str] = []
    tab.on("console", lambda message: messages.append(message.text))
    tab.on("pageerror", lambda error: messages.append(str(error)))
    tab.goto(path.as_uri())
    table = tab.locator("table").nth(1)
    names = table.locator("tbody tr:visible th")
    assert names.all_inner_texts()[:2] == ["lr+m0", "lr+m5"]
    # Sort by a dataset: least first, then greatest, a gap last in both orders.
    head = table.get_by_role("button", name="Scene")
    for order, first in (("ascending", "lr+m0"), ("descending", "lr+m7")):
        head.focus()
        tab.keyboard.press("Enter")
        assert table.locator(f"th[aria-sort={order}]").count() == 1
        assert names.all_inner_texts()[0] == first
        assert names.all_inner_texts()[-1] == "lr+m11"
    # Find rows in all tables at once.
    search = tab.get_by_label("Find methods")
    search.focus()
    tab.keyboard.type("M1 lr")
    assert sorted(names.all_inner_texts()) == ["lr+m1", "lr+m10", "lr+m11"]
    assert tab.locator("output").inner_text() == "3 of 12 methods"
    # Hide a column, then all of them, then none.
    tab.locator("summary", has_text="Columns").focus()
    tab.keyboard.press("Enter")
    tab.get_by_role("checkbox", name="Emotions").focus()
    tab.keyboard.press("Space")
    heads = table.locator("thead th:visible")
    assert [text.split()[0] for text in heads.all_inner_texts()] == ["method", "by", "Scene"]
    assert table.locator("tbody tr:visible").first.locator("td:visible").count() == 2
    tab.get_by_role("button", name="Hide all").press("Enter")
    assert heads.count() == 1
    tab.get_by_role("button", name="Show all").press("Enter")
    assert heads.count() == 4
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert messages == []
