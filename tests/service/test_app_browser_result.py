"""The result in a real browser: the answer first, charts that can be read, items, many batches."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prevalens.model import Model
from prevalens.service.settings import Settings

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_core_python.sync_playwright")
expect = playwright.expect
expect.set_options(timeout=20_000)

EVIL = '<img src="x" onerror="document.title=1">'
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


def _violations(page: Any) -> list[tuple[str, list[str]]]:
    found = axe.Axe().run(page, options={"resultTypes": ["violations"]})["violations"]
    return [(one["id"], [node["html"][:200] for node in one["nodes"]][:3]) for one in found]


def _estimate(page: Any, *files: Path, split: str | None = None) -> Any:
    """Estimate files with the given model; the page scrolls to the result and shows its charts."""
    page.locator("[name=model][value=small]").check()
    page.locator("#files").set_input_files(list(files))
    expect(page.locator("#file-list li")).to_have_count(len(files))
    if split is not None:
        page.locator("#split").select_option(split)
    page.get_by_role("button", name="Estimate").click()
    expect(page.locator("#prevalence-chart svg[role=img]")).to_be_visible()
    return page


@pytest.fixture
def months(tickets_folder: Path) -> list[Path]:
    return sorted((tickets_folder / "months").iterdir())


@pytest.fixture(scope="module")
def odd_file(tickets_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four small groups with words and names that no model expects."""
    with (tickets_folder / "months" / "2026-01.csv").open() as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    path: Path = tmp_path_factory.mktemp("odd") / "odd.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "team"])
        for n in range(48):
            words = f"zork{n} blarg{n} quux{n}" if n % 2 else texts[n]
            writer.writerow([f"{words} {EVIL}", f"{EVIL}{n // 12}"])
    return path


def test_the_answer_comes_first_then_five_warnings(
    visit: Callable[..., Any], months: list[Path], odd_file: Path
) -> None:
    page = visit()
    with page.expect_response("**/batches") as sent:
        _estimate(page, *months)
    answer = sent.value.json()
    said = [answer["headline"]["text"], answer["headline"]["alarm"]]
    first = page.locator("#result-body > :first-child")
    assert first.inner_text().removeprefix("Take care. ") in said
    expect(page.locator(".facts")).to_contain_text("Logistic regression for each label")
    expect(page.locator(".model").first).to_contain_text("Logistic regression for each label")

    page = visit()
    with page.expect_response("**/batches") as sent:
        _estimate(page, odd_file, split="by:team")
    total = sent.value.json()["n_messages"]
    assert total > 5
    expect(page.locator("#messages > ul > li")).to_have_count(5)
    expect(page.locator("#messages summary")).to_have_text(f"{total - 5} more")
    page.locator("#messages summary").click()
    expect(page.locator("#messages details li")).to_have_count(total - 5)
    shown = page.locator("#messages").inner_text()
    assert "--" not in shown
    assert "p = " not in shown


def test_a_clear_move_is_one_sentence_with_its_band(
    visit: Callable[..., Any], tickets_folder: Path, tmp_path: Path
) -> None:
    with (tickets_folder / "train.csv").open() as file:
        rows = list(csv.DictReader(file))
    tagged = [[r["text"] for r in rows if ("billing" in r["tags"]) == has] for has in (True, False)]
    path = tmp_path / "june.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["text"], *([text] for text in tagged[0] + tagged[1][:30])])
    page = visit()
    with page.expect_response("**/batches") as sent:
        _estimate(page, path)
    row = next(r for r in sent.value.json()["rows"] if r["label"] == "billing")
    assert row["moved"] == 1
    before, now = f"{100 * row['training']:.1f} %", f"{100 * row['prevalence']:.1f} %"
    first = page.locator("#result-body > :first-child")
    expect(first).to_have_class("headline")
    expect(first).to_contain_text(
        "In june, 1 of 9 labels has clearly moved since training: "
        f"billing rose from {before} to {now} ({100 * row['band_lower']:.1f} to "
    )
    expect(page.locator("#mover-chart g rect.up:not(.unsure)")).to_have_count(1)


@pytest.mark.parametrize("settings", [{}, PHONE], ids=["desktop", "phone"])
def test_charts_are_read_by_keys_and_pointer_and_hide_no_number(
    visit: Callable[..., Any], months: list[Path], settings: dict[str, Any]
) -> None:
    page = _estimate(visit(**settings), *months)
    assert _covered(page) == []

    chart = page.locator("#prevalence-read")
    reading = page.locator("#prevalence-chart output")
    labels = page.locator("#prevalence-chart g > text:first-child").all_text_contents()
    chart.focus()
    expect(reading).to_contain_text(f"{labels[0]}: ")
    page.keyboard.press("ArrowDown")
    expect(reading).to_contain_text(f"{labels[1]}: ")
    expect(reading).to_have_attribute("aria-live", "polite")
    page.keyboard.press("End")
    expect(reading).to_contain_text(f"{labels[-1]}: ")
    chart.hover(position={"x": 80, "y": 3 + 28 * 2 + 10})
    expect(reading).to_contain_text(f"{labels[2]}: ")
    expect(reading).to_have_attribute("aria-live", "off")

    panel = page.locator("#trend-chart .readable").first
    panel.focus()
    trend = page.locator("#trend-chart output")
    expect(trend).to_contain_text("2026-03: ")
    page.keyboard.press("ArrowLeft")
    expect(trend).to_contain_text("2026-02: ")
    page.locator("#mover-read").focus()
    expect(page.locator("#mover-chart output")).to_contain_text(" in training, ")


def _covered(page: Any) -> list[Any]:
    """Marks of a chart that touch a number at the right, or a number that leaves the chart."""
    found: list[Any] = page.evaluate(
        """() => [...document.querySelectorAll('.chart svg > g')].flatMap(row => {
          const number = row.querySelector('.end').getBoundingClientRect();
          const frame = row.closest('svg').getBoundingClientRect();
          const marks = [...row.querySelectorAll('.dot, .before, .span, rect')];
          return marks.map(mark => mark.getBoundingClientRect())
            .filter(mark => mark.right > number.left || number.right > frame.right + 1)
            .map(mark => [mark.right, number.left]);
        })"""
    )
    assert page.locator("#prevalence-chart .end").count() == 9
    return found


def test_all_charts_can_have_one_scale(visit: Callable[..., Any], months: list[Path]) -> None:
    page = _estimate(visit(), *months)

    def scales() -> set[str]:
        panels = page.locator("#trend-chart svg[role=img]").all()
        return {",".join(panel.locator(".tick").all_text_contents()) for panel in panels}

    def ends() -> list[str]:
        found = []
        for batch in "012":
            page.locator("#batch").select_option(batch)
            found.append(page.locator("#prevalence-chart .tick:not(.end)").all_text_contents()[-1])
        return found

    assert len(scales()) > 1
    own = ends()
    box = page.get_by_label("Same scale in all charts")
    box.check()
    expect(box).to_be_focused()
    assert len(scales()) == 1
    assert len(set(ends())) == 1
    box.uncheck()
    assert ends() == own


def test_items_behind_a_number_can_be_checked(visit: Callable[..., Any], odd_file: Path) -> None:
    page = _estimate(visit(), odd_file, split="by:team")
    page.locator("#item-label").select_option("billing")
    lists = page.locator(".item-list")
    expect(lists).to_have_count(2)
    expect(lists.first.locator("h4")).to_have_text("Highest scores of billing")
    scores = [int(text.split()[0]) for text in lists.locator("strong").all_text_contents()]
    assert scores[:3] == sorted(scores[:3], reverse=True)
    assert scores[3:] == sorted(scores[3:])
    assert scores[2] >= scores[5]
    # Texts stay texts, and say where they are from.
    texts = lists.locator("q").all_text_contents()
    assert any(EVIL in text for text in texts)
    assert page.locator("#result img").count() == 0
    assert page.title() == "prevalens"
    lines = odd_file.read_text().splitlines()
    place = lists.locator("small").first.inner_text()
    assert place.startswith("odd.csv, line ")
    assert texts[0] in lines[int(place.split()[-1]) - 1].replace('""', '"')
    # A row of the chart does the same, with the keyboard.
    page.locator("#prevalence-read").focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    last = page.locator("#prevalence-chart g > text:first-child").last.text_content()
    expect(lists.first.locator("h4")).to_have_text(f"Highest scores of {last}")
    expect(page.locator("#item-label")).to_have_value(last)


def test_pasted_texts_have_items_too_and_long_ones_are_cut(visit: Callable[..., Any]) -> None:
    page = visit()
    page.locator("[name=model][value=small]").check()
    page.get_by_text("Pasted texts").click()
    page.get_by_label("One text per line").fill("where is my parcel\n" + "parcel " * 500)
    page.get_by_role("button", name="Estimate").click()
    expect(page.locator("#prevalence-chart svg[role=img]")).to_be_visible()
    page.locator("#item-label").select_option("delivery")
    texts = page.locator(".item-list q")
    expect(texts).to_have_count(2)
    assert sorted(map(len, texts.all_text_contents())) == [18, 300]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model of two labels, and a file of 20,000 days with an item each."""
    folder = tmp_path_factory.mktemp("many")
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 2, 200)
    words = [f"{['cat purrs', 'dog barks'][k]} {rng.integers(9)}" for k in kinds]
    model = folder / "two.prevalens"
    Y = np.column_stack([kinds, 1 - kinds])
    Model.fit(words, Y, labels=["dog", "cat"], method="lr+pcc").save(model)
    with (folder / "days.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "day"])
        for n in range(20_000):
            day = date(1970, 1, 1) + timedelta(n)
            writer.writerow([words[n % 200], day.isoformat()])
    return model, folder / "days.csv"


def test_twenty_thousand_batches_are_paged(
    visit: Callable[..., Any],
    start: Callable[..., Any],
    finished: Callable[..., dict[str, Any]],
    many: tuple[Path, Path],
    tmp_path: Path,
) -> None:
    model, days = many
    server = start(Settings(models=(model,)))
    page = visit(server.url)
    page.locator("[name=model][value=two]").check()
    page.locator("#files").set_input_files(days)
    expect(page.locator("#file-list li")).to_have_count(1)
    page.locator("#split").select_option("time:day")
    page.locator("#freq").select_option("D")
    page.locator("#interval").select_option("")
    page.get_by_role("button", name="Estimate").click()
    said = page.locator("#page-said")
    expect(said).to_have_text("Batches 19,765 to 20,000 of 20,000")
    _small(page)
    page.get_by_role("button", name="Previous").click()
    expect(said).to_have_text("Batches 19,399 to 19,764 of 20,000")
    expect(page.locator("#page-before")).to_be_focused()
    expect(page.locator("#batch option")).to_have_count(366)
    _small(page)
    page.get_by_label("Find a batch").fill("1999-12")
    page.keyboard.press("Enter")
    expect(said).to_have_text("Batches 1 to 31 of 31")
    expect(page.locator("#batch option").first).to_have_text("1999-12-01 (1 item)")
    page.get_by_label("Find a batch").fill("nothing")
    page.keyboard.press("Enter")
    expect(said).to_have_text("No batch has this in its name")
    expect(page.locator("#prevalence-chart")).to_have_count(0)
    with page.expect_download() as loading:
        page.get_by_role("button", name="HTML report").click()
    loading.value.save_as(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 1_500_000

    # Groups without an order in time: the largest comes first.
    groups = [f"shop {n}" for n in range(4_000)]
    body = {
        "texts": ["dog barks"] * 4_003,
        "groups": [*groups, *["shop 77"] * 3],
        "interval": None,
    }
    with server.client() as client:
        job = finished(client, client.post("/v1/models/two/quantify?wait=false", json=body).json())
    page.goto(f"{server.url}/#/result/{job['id']}")
    expect(said).to_have_text("Batches 1 to 366 of 4,000")
    expect(page.locator("#prevalence-chart h3")).to_have_text("Prevalence in shop 77")
    page.get_by_label("Find a batch").fill("shop 399")
    page.keyboard.press("Enter")
    expect(said).to_have_text("Batches 1 to 11 of 11")
    page.get_by_label("Find a batch").fill("")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Next").click()
    expect(said).to_have_text("Batches 367 to 732 of 4,000")
    _small(page)


def _small(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollHeight") < 5000
    assert page.evaluate("document.querySelectorAll('*').length") < 3000


def test_the_page_is_accessible_in_both_colours_on_phone_and_desktop(
    visit: Callable[..., Any], months: list[Path], faint: Callable[..., list[Any]]
) -> None:
    for settings, scheme in (({}, "light"), (PHONE, "dark")):
        page = visit(**settings)
        expect(page.locator("[name=model][value=small]")).to_be_visible()
        page.get_by_role("button", name="Train from a labelled file").click()
        _check(page, scheme)
        _estimate(page, *months)
        page.locator("#item-label").select_option("billing")
        expect(page.locator(".item-list")).to_have_count(2)
        for summary in page.locator("#result summary").all():
            summary.click()
        _check(page, "light", "dark")
        assert page.locator("h1").count() == 1
        for each in ("light", "dark"):
            page.emulate_media(color_scheme=each, reduced_motion="reduce")
            assert faint(page, _PARTS) == []


def _check(page: Any, *schemes: str) -> None:
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert _violations(page) == [], scheme


#: What has to stand out from what is behind it, and the property that does.
_PARTS = {
    "select, textarea, #drawn, button:not(.quiet, .primary)": "border-top-color",
    ".drop": "border-top-color",
    ".model": "border-top-color",
    "#prevalence-chart .span": "stroke",
    "#trend-chart .edge": "stroke",
    "#mover-chart rect.unsure": "stroke",
    "#mover-chart .up:not(.unsure)": "fill",
    "#prevalence-chart .dot": "fill",
    "#prevalence-chart .before": "stroke",
}


def test_the_description_of_the_interface_is_accessible(
    visit: Callable[..., Any], server: Any
) -> None:
    for settings, scheme in (({}, "dark"), (PHONE, "light")):
        page = visit(f"{server.url}/docs", **settings)
        expect(page.get_by_role("heading", name="QuantifyAnswer", exact=True)).to_be_visible()
        _check(page, scheme)
        assert page.locator("h1").count() == 1


def test_every_stop_of_the_keyboard_is_seen(visit: Callable[..., Any], months: list[Path]) -> None:
    page = _estimate(visit(), *months)
    page.locator(".skip").focus()
    seen: list[str] = []
    for _ in range(80):
        page.keyboard.press("Tab")
        stop, visible = page.evaluate(_FOCUS)
        if stop in ("BODY", *seen[:1]):
            break
        seen.append(stop)
        assert visible, f"{stop} has no visible focus"
    assert len(seen) > 30
    assert any("prevalence-read" in stop for stop in seen)


#: The element with the focus, and whether it or the label around it has an outline.
_FOCUS = """() => {
  const stop = document.activeElement;
  if (stop === document.body) return ["BODY", true];
  const framed = [stop, stop.closest("label")].filter(Boolean).some(node => {
    const style = getComputedStyle(node);
    return style.outlineStyle === "solid" && parseFloat(style.outlineWidth) >= 2;
  });
  return [stop.outerHTML.slice(0, 90), framed];
}"""


def test_escape_closes_an_alert_and_the_focus_stays(
    visit: Callable[..., Any], tmp_path: Path
) -> None:
    page = visit(expected=422)
    broken = tmp_path / "broken.csv"
    broken.write_text('a,b\n1,2\n3\n"')
    page.locator("#files").set_input_files(broken)
    alert = page.get_by_role("alert")
    expect(alert).to_be_visible()
    page.locator("#theme").focus()
    page.keyboard.press("Escape")
    expect(alert).to_be_hidden()
    expect(page.locator("#theme")).to_be_focused()


def test_progress_is_announced_by_stage_and_not_by_the_second(
    visit: Callable[..., Any], months: list[Path]
) -> None:
    """The job seems to take ten looks; numbers and seconds change with each, the stage once."""
    page = visit()
    looks: list[int] = []

    def slowly(route: Any) -> None:
        answer = route.fetch()
        looks.append(1)
        job = answer.json()
        if len(looks) <= 10:
            n = len(looks)
            stage = f"scoring {1000 * n:,} items" if n <= 7 else "estimating"
            job |= {"state": "running", "stage": stage, "seconds": n, "result": None}
        route.fulfill(response=answer, body=json.dumps(job))

    page.route(re.compile(r"/v1/jobs/[0-9a-f]{32}$"), slowly)
    page.evaluate(
        """() => {
          window.said = [];
          new MutationObserver(() => {
            const text = document.querySelector("#quantify-progress [role=status]")?.textContent;
            if (text && text !== said.at(-1)) said.push(text);
          }).observe(document.getElementById("quantify-progress"),
            { subtree: true, childList: true });
        }"""
    )
    _estimate(page, *months[:1])
    stages = [text for text in page.evaluate("said") if "scoring" in text or "estimating" in text]
    assert stages == ["Estimating: scoring", "Estimating: estimating"]
    assert len(page.evaluate("said")) <= 4


def test_a_cancelled_estimate_gives_the_focus_back(
    visit: Callable[..., Any], months: list[Path], paused: list[int]
) -> None:
    page = visit()
    page.locator("[name=model][value=small]").check()
    page.get_by_text("Pasted texts").click()
    page.get_by_label("One text per line").fill("where is my parcel")
    button = page.get_by_role("button", name="Estimate")
    button.focus()
    page.keyboard.press("Enter")
    stop = page.get_by_role("button", name="Cancel")
    expect(stop).to_be_visible()
    expect(button).to_be_focused()
    stop.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("cancelled")
    expect(button).to_be_focused()
