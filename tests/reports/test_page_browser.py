"""Tables with marks in a real browser: nothing sticks out, on a desk or on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prevalens.records import Result
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
def test_the_page_is_as_wide_as_the_screen(browser: Any, tmp_path: Path, width: int) -> None:
    path = tmp_path / "page.html"
    path.write_text(page("Own", protocol_sections(results())), encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 800})
    tab = context.new_page()
    messages: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda message: messages.append(message.text))
    tab.on("pageerror", lambda error: messages.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(path.as_uri())
    assert tab.locator("td sup").count() > 0
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert (messages, asked) == ([], [path.as_uri()])
    context.close()
