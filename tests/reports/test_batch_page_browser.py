"""The report in a real browser: it works, asks nothing of anybody, and can be used by keyboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prevalens.model.result import BatchResult, Driver, Drivers, Notice
from prevalens.reports.batch_charts import points_range, points_text, share_text
from prevalens.reports.batch_page import batch_page

pytestmark = [
    # The driver of the browser leaves loops open at its end.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
sync_api = pytest.importorskip("playwright.sync_api")

LABELS = ["billing", "delivery", "login", "<b>praise"]
POINT = np.array(
    [[0.2, 0.1, 0.3, 0.05], [0.25, 0.2, 0.3, 0.04], [0.1, 0.3, 0.31, 0.05],
     [0.2, 0.4, 0.29, 0.06], [0.2, 0.5, 0.3, 0.05]]
)  # fmt: skip
REPORT = BatchResult(
    LABELS,
    ["2026-01", "2026-02", "2026-03", "2026-04", "2026-05"],
    [100, 200, 300, 400, 50],
    POINT,
    [0.2, 0.1, 0.3, 0.05],
    lower=POINT - 0.03,
    upper=POINT + 0.03,
    level=0.9,
    counted=POINT * 0.8,
    drivers=(Drivers("delivery", "2026-05", (Driver("parcel", 0.4, 0.1, 0.3),)),),
    notices=(Notice("A warning."),),
    provenance={"method": "lr+pacc"},
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(batch_page(REPORT), encoding="utf-8")
    return path.as_uri()


class Opened:
    """A page, what it asked for and what it complained of."""

    def __init__(self, open_tab: Callable[..., Any], address: str, **settings: Any) -> None:
        # A page that glides to the next field is elsewhere by the time the pointer arrives.
        self.page = open_tab(address, reduced_motion="reduce", **settings)
        self.asked: list[str] = []
        self.said: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.goto(address)

    def labels(self) -> list[str]:
        rows = self.page.locator("#prevalence-table tbody tr:visible th")
        return [text.strip() for text in rows.all_inner_texts()]


@pytest.fixture
def opened(open_tab: Callable[..., Any], address: str) -> Opened:
    return Opened(open_tab, address)


def test_nothing_is_asked_of_anybody_and_nothing_is_wrong(opened: Opened, address: str) -> None:
    opened.page.locator("#theme").click()
    assert opened.asked == [address]
    assert opened.said == []


def test_labels_are_filtered(opened: Opened) -> None:
    # Delivery has moved; the others follow by the distance of their estimates.
    assert opened.labels() == ["delivery", "billing", "login", "<b>praise"]
    opened.page.fill("#filter", "IN")
    assert opened.labels() == ["billing", "login"]
    assert "2 of 4 labels" in opened.page.inner_text("#found")
    opened.page.fill("#filter", "")
    opened.page.check("#moved")
    assert opened.labels() == ["delivery"]


def test_another_batch_is_shown(opened: Opened) -> None:
    row = opened.page.locator('#prevalence-table tr[data-label="1"]')
    assert row.locator('[data-field="point"]').inner_text() == "50.0 %"
    place = float(row.locator("circle").get_attribute("cx"))
    opened.page.select_option("#batch", label="2026-03")
    assert row.locator('[data-field="point"]').inner_text() == "30.0 %"
    assert row.locator('[data-field="interval"]').inner_text() == "27.0 % to 33.0 %"
    assert row.locator('[data-field="change"]').inner_text() == "+20.0"
    assert float(row.locator("circle").get_attribute("cx")) < place
    assert opened.page.inner_text("#shown-batch") == "2026-03"
    assert opened.labels()[:2] == ["delivery", "billing"]
    assert row.locator('[data-field="change"]').get_attribute("class") == "clear up"
    opened.page.select_option("#batch", label="2026-01")
    assert row.locator('[data-field="change"]').get_attribute("class") == ""


def test_any_two_batches_are_compared(opened: Opened) -> None:
    def cells() -> list[str]:
        row = opened.page.locator('#difference-table tr[data-label="1"]')
        return [text.strip() for text in row.locator("td").all_inner_texts()]

    def expected(first: str, second: str) -> list[str]:
        found = next(
            r for r in REPORT.difference(first, second).to_rows() if r["label"] == LABELS[1]
        )
        ends = points_range(found["lower"], found["upper"])
        sign = {1: "▲ higher", -1: "▼ lower", 0: "no"}[found["supported"]]
        shown = (share_text(found["first"]), share_text(found["second"]))
        return [*shown, points_text(found["difference"]), ends, sign]

    assert cells() == expected("2026-04", "2026-05")
    opened.page.select_option("#first", label="2026-01")
    assert cells() == expected("2026-01", "2026-05")
    assert opened.page.inner_text("#compared") == "2026-05 minus 2026-01"
    opened.page.select_option("#second", label="2026-01")
    assert "0 of 4 differences supported" in opened.page.inner_text("#differences-found")


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report on thirty labels of four groups, one of which raises the alarm."""
    point = np.random.default_rng(0).random((4, 30)) * 0.4
    report = BatchResult(
        [f"label {j}" for j in range(30)],
        ["Malta", "Spain", "France", "Italy"],
        [30, 400, 300, 90],
        point,
        np.full(30, 0.2),
        lower=np.clip(point - 0.05, 0, 1),
        upper=point + 0.05,
        level=0.9,
        p_value=[0.9, 0.9, 0.8, 0.001],
        ordered=False,
    )
    path: Path = tmp_path_factory.mktemp("groups") / "report.html"
    path.write_text(batch_page(report), encoding="utf-8")
    return path.as_uri()


def test_groups_are_bars_by_size_or_by_value(open_tab: Callable[..., Any], groups: str) -> None:
    view = Opened(open_tab, groups)
    names = view.page.locator("#trend-chart text[text-anchor=end]")
    assert names.all_text_contents() == ["Spain", "France", "Italy", "Malta"]
    assert view.page.locator("#trend-chart polyline").count() == 0
    view.page.select_option("#bar-order", "value")
    by_value = names.all_text_contents()
    view.page.locator("#trend-chart").focus()
    shares = []
    for _ in by_value:
        shares.append(float(view.page.inner_text("#trend-value").split(": ")[1].split(" %")[0]))
        view.page.keyboard.press("ArrowDown")
    assert shares == sorted(shares, reverse=True)
    assert view.said == []


def test_a_group_that_raises_the_alarm_is_grey_with_what_to_do(
    open_tab: Callable[..., Any], groups: str
) -> None:
    view = Opened(open_tab, groups)
    table, advice = view.page.locator("#prevalence-table"), view.page.locator("#batch-alarm")
    assert table.get_attribute("class") in (None, "")
    assert not advice.is_visible()
    view.page.select_option("#batch", label="Italy (alarm)")
    assert table.get_attribute("class") == "unsure"
    assert "prevalens sample MODEL BATCH -n 50" in advice.inner_text()


def test_long_tables_are_opened_by_a_button_and_never_scroll_inside(
    open_tab: Callable[..., Any], groups: str
) -> None:
    view = Opened(open_tab, groups, viewport={"width": 1280, "height": 800})
    assert len(view.labels()) == 25
    view.page.click("button.more[data-table=prevalence-table]")
    assert len(view.labels()) == 30
    inner = """() => [...document.querySelectorAll("main *")].filter(one =>
      ["auto", "scroll"].includes(getComputedStyle(one).overflowY)
      && one.scrollHeight > one.clientHeight + 1).length"""
    assert view.page.evaluate(inner) == 0


def test_the_scale_of_the_bars_can_be_changed(opened: Opened) -> None:
    row = opened.page.locator('#prevalence-table tr[data-label="3"]')
    before = [
        float(row.locator(selector).get_attribute(at))
        for selector, at in (("circle", "cx"), (".training", "x1"))
    ]
    opened.page.check("#root")
    after = [
        float(row.locator(selector).get_attribute(at))
        for selector, at in (("circle", "cx"), (".training", "x1"))
    ]
    assert after[0] > before[0]
    assert after[1] > before[1]


def test_tables_are_sorted_by_keyboard(opened: Opened) -> None:
    head = opened.page.locator("#prevalence-table thead button", has_text="estimate")
    head.focus()
    opened.page.keyboard.press("Enter")
    assert opened.labels() == ["delivery", "login", "billing", "<b>praise"]
    opened.page.keyboard.press("Enter")
    assert opened.labels() == ["<b>praise", "billing", "login", "delivery"]
    cell = opened.page.locator("#prevalence-table thead th", has_text="estimate")
    assert cell.get_attribute("aria-sort") == "ascending"


def test_the_trend_follows_the_choice_and_the_arrow_keys(opened: Opened) -> None:
    opened.page.select_option("#trend-label", label="billing")
    value = opened.page.locator("#trend-value")
    sync_api.expect(value).to_contain_text("billing, 2026-05: 20.0 % (17.0 % to 23.0 %)")
    opened.page.locator("#trend-chart").focus()
    opened.page.keyboard.press("ArrowLeft")
    opened.page.keyboard.press("ArrowLeft")
    sync_api.expect(value).to_contain_text("billing, 2026-03: 10.0 %")
    sync_api.expect(value).to_have_attribute("aria-live", "polite")
    sync_api.expect(value).to_contain_text("uncorrected 8.0 %")
    opened.page.uncheck("#show-counted")
    sync_api.expect(value).not_to_contain_text("uncorrected")
    opened.page.keyboard.press("Tab")
    opened.page.locator("#trend-chart").hover(position={"x": 60, "y": 20})
    sync_api.expect(value).to_contain_text("billing, 2026-01: 20.0 %")
    sync_api.expect(value).to_have_attribute("aria-live", "off")


@pytest.mark.parametrize(("scheme", "other"), [("light", "Dark"), ("dark", "Light")])
def test_colours_follow_the_reader_and_the_button(
    open_tab: Callable[..., Any], address: str, scheme: str, other: str
) -> None:
    view = Opened(open_tab, address, color_scheme=scheme)
    ground = "getComputedStyle(document.body).backgroundColor"
    before = view.page.evaluate(ground)
    assert view.page.inner_text("#theme") == other
    view.page.click("#theme")
    assert view.page.evaluate(ground) != before


def test_without_scripts_there_are_tables_and_charts(
    open_tab: Callable[..., Any], address: str
) -> None:
    view = Opened(open_tab, address, java_script_enabled=False)
    assert view.page.locator(".controls:visible").count() == 0
    assert view.page.locator("#prevalence-table tbody tr:visible").count() == len(LABELS)
    assert view.page.locator("figure svg:visible").count() >= 6
    assert view.page.locator("table:visible").count() >= 5


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_never_scrolls_sideways(
    open_tab: Callable[..., Any], address: str, width: int
) -> None:
    view = Opened(open_tab, address, viewport={"width": width, "height": 800})
    assert view.page.evaluate("document.documentElement.scrollWidth") == width


def test_everything_has_a_name_for_screen_readers(opened: Opened) -> None:
    """Controls have labels, charts and scrolling boxes have names, headings are in order."""
    unnamed = opened.page.evaluate(
        """() => {
          const bad = [];
          for (const one of document.querySelectorAll("input, select"))
            if (!one.labels.length) bad.push(one.outerHTML);
          for (const one of document.querySelectorAll("svg:not([aria-hidden])"))
            if (!one.getAttribute("aria-label")) bad.push(one.outerHTML.slice(0, 80));
          for (const one of document.querySelectorAll("[tabindex]"))
            if (!one.getAttribute("aria-label")) bad.push(one.outerHTML.slice(0, 80));
          for (const one of document.querySelectorAll("button"))
            if (!one.textContent.trim()) bad.push(one.outerHTML);
          return bad;
        }"""
    )
    assert unnamed == []
    levels = opened.page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3')].map(one => Number(one.tagName[1]))"
    )
    assert levels[0] == 1
    assert set(levels[1:]) == {2}


def test_it_prints_on_paper_with_every_drawer_open(opened: Opened, tmp_path: Path) -> None:
    content = opened.page.pdf()
    assert content.startswith(b"%PDF")
    opened.page.emulate_media(media="print")
    assert opened.page.locator(".controls:visible").count() == 0
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") in (
        "rgb(255, 255, 255)",
        "rgba(0, 0, 0, 0)",
    )


#: What has to stand out from what is behind it, and the property that does.
PARTS = {
    "select, input[type=search], button:not(.sort)": "border-top-color",
    "#prevalence-table .interval": "stroke",
    "#prevalence-table .point": "fill",
    "#prevalence-table .training": "stroke",
    "#trend-chart polyline, #trend-chart rect[fill-opacity]": "stroke",
}


@pytest.mark.parametrize(
    ("kind", "scheme", "width"),
    [
        ("time", "light", 1280),
        ("time", "dark", 360),
        ("groups", "light", 360),
        ("groups", "dark", 1280),
    ],
)
def test_the_report_is_accessible(
    open_tab: Callable[..., Any],
    address: str,
    groups: str,
    faint: Callable[..., list[Any]],
    kind: str,
    scheme: str,
    width: int,
) -> None:
    axe = pytest.importorskip("axe_core_python.sync_playwright")
    size = {"width": width, "height": 800}
    url = {"time": address, "groups": groups}[kind]
    view = Opened(open_tab, url, color_scheme=scheme, viewport=size)
    found = axe.Axe().run(view.page, options={"resultTypes": ["violations"]})["violations"]
    told = [(one["id"], [node["html"][:200] for node in one["nodes"]][:3]) for one in found]
    assert told == []
    assert view.page.locator("h1").count() == 1
    # Phones show no bars in the table.
    parts = {name: PARTS[name] for name in PARTS if width > 640 or "prevalence" not in name}
    assert faint(view.page, parts) == []
