"""The page in a real browser: what a person does with it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from prevalens.__main__ import cli
from prevalens.service.settings import Settings

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
#: Set it to write the pictures of the documentation anew.
PICTURES = os.environ.get("PREVALENS_SCREENSHOTS")

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")

expect = playwright.expect
expect.set_options(timeout=20_000)


def _picture(page: Any, name: str, **how: Any) -> None:
    if PICTURES:
        folder = Path(__file__).parents[2] / "docs" / "images"
        folder.mkdir(parents=True, exist_ok=True)
        page.wait_for_timeout(700)
        page.screenshot(path=folder / f"service-{name}.png", **how)


@pytest.fixture
def clean(server: Any) -> Iterator[None]:
    """Models trained in a test go with it."""
    yield
    for entry in server.state.models.trained():
        server.state.models.remove(entry.name)


def _method(page: Any, name: str) -> None:
    """Train with this method, and without a test."""
    page.get_by_text("More settings").click()
    page.locator("#train-method").fill(name)
    page.locator("#train-test").select_option("")


def _choose(page: Any, name: str) -> None:
    page.locator(f"[name=model][value={name}]").check()


def _charts(page: Any) -> None:
    expect(page.locator("#prevalence-chart svg[role=img]")).to_be_visible()
    expect(page.locator("#mover-chart svg[role=img]")).to_be_visible()


def test_a_new_user_reaches_a_chart_in_three_clicks(
    visit: Callable[..., Any], start: Callable[[Settings], Any]
) -> None:
    running = start(Settings())
    page = visit(running.url)
    expect(page.get_by_text("A model learns from items that carry labels")).to_be_visible()
    _picture(page, "start")
    clicks = 0
    for name in ("Try the demo data", "Estimate"):
        page.get_by_role("button", name=name).click()
        clicks += 1
        expect(page.get_by_role("button", name="Estimate")).to_be_enabled()
    _charts(page)
    expect(page.locator("#trend-chart svg[role=img]")).to_have_count(9)
    assert clicks <= 3
    expect(page.locator("#batch option")).to_have_count(8)
    page.locator("#batch").select_option("0")
    expect(page.locator("#prevalence-chart h3")).to_have_text("Prevalence in 2026-01")
    page.locator("#batch").select_option("7")
    _picture(page, "result", full_page=True)


@pytest.mark.parametrize("well", [True, False])
def test_the_page_tells_that_it_is_busy_until_it_has_loaded(
    visit: Callable[..., Any], well: bool
) -> None:
    page = visit(expected=500)
    held: list[Any] = []
    page.route("**/v1/models", lambda route: held.append(route))
    page.reload()
    main = page.locator("#main")
    expect(main).to_have_attribute("aria-busy", "true")
    while not held:
        page.wait_for_timeout(10)
    if well:
        held[0].continue_()
        expect(page.locator("[name=model][value=small]")).to_be_visible()
    else:
        held[0].fulfill(status=500, body="{}")
        expect(page.get_by_role("alert")).to_be_visible()
    expect(main).not_to_have_attribute("aria-busy", re.compile(""))


def test_train_upload_estimate_and_download_what_the_command_line_writes(
    visit: Callable[..., Any], tickets_folder: Path, tmp_path: Path, clean: None
) -> None:
    page = visit()
    page.get_by_role("button", name="Train from a labelled file").click()
    page.locator("#train-file").set_input_files(tickets_folder / "train.csv")
    expect(page.get_by_role("region", name="First rows of train.csv")).to_be_visible()
    # The columns are guessed.
    assert page.locator("#train-text").input_value() == "text"
    assert page.locator("#train-tags").input_value() == "tags"
    assert page.locator("#train-sep").input_value() == ";"
    assert page.locator("#train-time").input_value() == "date"
    expect(page.locator("#train-time option:checked")).to_have_text("date (a guess)")
    _method(page, "lr+pacc")
    page.locator("#train-name").fill("own")
    _picture(page, "training", full_page=True)
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.locator("[name=model][value=own]")).to_be_checked()
    expect(page.locator(".drift", has_text="In a backtest over 4 origins")).to_be_visible()

    months = sorted((tickets_folder / "months").iterdir())
    page.locator("#files").set_input_files(months)
    expect(page.get_by_role("button", name="Remove 2026-03.csv")).to_be_visible()
    assert page.locator("#split").input_value() == "time:date"
    page.get_by_role("button", name="Estimate").click()
    _charts(page)
    expect(page.locator("#trend-chart svg[role=img]")).to_have_count(9)

    saved = {name: _saved(page, name, tmp_path) for name in ("CSV", "JSON", "HTML report")}
    with page.expect_download() as loading:
        page.get_by_role("button", name="Download the model own").click()
    model = tmp_path / loading.value.suggested_filename
    loading.value.save_as(model)
    assert model.name == "own.prevalens"
    for name, ending in (("CSV", "csv"), ("JSON", "json")):
        written = tmp_path / f"cli.{ending}"
        how = ["--by-time", "date", "--freq", "M", "--interval", "0.9", "-o", str(written)]
        done = CliRunner().invoke(cli, ["quantify", str(model), *map(str, months), *how])
        assert done.exit_code == 0, done.output
        if name == "CSV":
            assert saved[name].read_bytes() == written.read_bytes()
        else:
            ours, theirs = (_json(path) for path in (saved[name], written))
            assert {**ours, "provenance": None} == {**theirs, "provenance": None}
            assert ours["provenance"]["rows"] == theirs["provenance"]["rows"]
    assert saved["HTML report"].read_text().startswith("<!DOCTYPE html>")
    page.get_by_text("The same on the command line").click()
    expect(page.get_by_text("--by-time date --freq M --interval 0.9")).to_be_visible()


def test_a_few_labels_shrink_the_intervals(
    visit: Callable[..., Any], tickets_folder: Path, tmp_path: Path
) -> None:
    page = visit(expected=422)
    _choose(page, "small")
    page.locator("#files").set_input_files(tickets_folder / "labelled.csv")
    page.locator("#split").select_option("")
    page.get_by_role("button", name="Estimate").click()
    _charts(page)
    with page.expect_download() as loading:
        page.get_by_role("button", name="Download items to label").click()
    sheet = tmp_path / loading.value.suggested_filename
    loading.value.save_as(sheet)
    assert sheet.name == "to_label.csv"
    rows = list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"))))
    assert len(rows) == 50
    labels = [name for name in rows[0] if name not in ("id", "date", "text", "tags")][:-1]

    def write(name: str, value: str) -> Path:
        for row in rows:
            row |= {label: str(int(label in row["tags"].split(";"))) for label in labels}
        rows[0][labels[0]] = value or rows[0][labels[0]]
        with (tmp_path / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return tmp_path / name

    page.locator("#labelled").set_input_files(write("wrong.csv", "perhaps"))
    expect(page.get_by_role("alert")).to_contain_text("wrong.csv, line 2: the label")
    page.locator("#labelled").set_input_files(write("labels.csv", ""))
    said = page.locator("#labelling p").first
    expect(said).to_contain_text("With 50 labelled items the intervals are")
    now, before = (
        float(part.split()[0]) for part in re.findall(r"[\d.]+ points", said.inner_text())
    )
    assert now < before
    expect(said).to_contain_text("more labels would halve them")
    told = said.inner_text()
    page.reload()
    expect(said).to_have_text(told)
    expect(page.get_by_role("alert")).to_be_hidden()
    page.get_by_text("The same on the command line").click()
    expect(page.get_by_text("--labelled labels.csv")).to_be_visible()


def _json(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def _saved(page: Any, name: str, folder: Path) -> Path:
    with page.expect_download() as loading:
        page.get_by_role("group", name="Download").get_by_role("button", name=name).click()
    path = folder / loading.value.suggested_filename
    loading.value.save_as(path)
    assert path.stem == "prevalence"
    return path


def test_pasted_texts_and_no_intervals(visit: Callable[..., Any]) -> None:
    page = visit()
    _choose(page, "small")
    page.get_by_text("Pasted texts").click()
    expect(page.get_by_role("button", name="Estimate")).to_be_disabled()
    page.get_by_label("One text per line").fill("where is my parcel\n\nI want my money back\n")
    page.locator("#interval").select_option("")
    page.get_by_role("button", name="Estimate").click()
    _charts(page)
    expect(page.get_by_text("2 items", exact=True)).to_be_visible()
    expect(page.locator("#prevalence-chart .span")).to_have_count(0)
    expect(page.locator("#trend-chart")).to_have_count(0)
    # Two items are few, and the page says so.
    expect(page.locator(".warnings")).to_be_visible()
    page.get_by_text("Numbers", exact=True).click()
    expect(page.locator("details table tbody tr")).to_have_count(9)


def test_columns_are_mapped_and_names_stay_text(visit: Callable[..., Any], tmp_path: Path) -> None:
    evil = '<img src="x" onerror="document.title=1">'
    path = tmp_path / "other names.csv"
    with path.open("w", newline="") as file:
        rows = [[n, f"where is my parcel number {n}", evil] for n in range(9)]
        csv.writer(file).writerows([["number", "message", "team"], *rows])
    page = visit()
    _choose(page, "small")
    page.locator("#files").set_input_files(path)
    expect(page.locator("#column-0")).to_have_value("message")
    page.locator("#split").select_option("by:team")
    page.get_by_role("button", name="Estimate").click()
    _charts(page)
    expect(page.locator("#prevalence-chart h3")).to_have_text(f"Prevalence in {evil}")
    assert page.locator("main img").count() == 0
    assert page.title() == "prevalens"


def test_what_the_training_left_out_is_told(
    visit: Callable[..., Any], tmp_path: Path, clean: None
) -> None:
    path = tmp_path / "few.csv"
    rows = [f"text number {n} about {'cats' if n % 2 else 'dogs'},{'ab'[n % 2]}" for n in range(40)]
    path.write_text("text,tags\n" + "\n".join([*rows, "one more,rare"]) + "\n")
    page = visit()
    page.get_by_role("button", name="Train from a labelled file").click()
    page.locator("#train-file").set_input_files(path)
    page.locator("#train-where").select_option("tags")
    assert page.locator("#train-time").input_value() == ""
    _method(page, "lr+cc")
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.locator("[name=model][value=few]")).to_be_checked()
    expect(page.locator(".note", has_text="'rare'")).to_be_visible()


def test_an_error_is_shown_and_can_be_put_away(visit: Callable[..., Any], tmp_path: Path) -> None:
    page = visit(expected=422)
    _choose(page, "small")
    path = tmp_path / "broken.csv"
    path.write_text('a,b\n1,2\n3\n"')
    page.locator("#files").set_input_files(path)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("broken.csv")
    _picture(page, "error")
    page.get_by_role("button", name="Close the message").click()
    expect(alert).to_be_hidden()
    good = tmp_path / "good.csv"
    good.write_text("text\nwhere is my parcel\n")
    page.locator("#files").set_input_files(good)
    expect(page.get_by_role("button", name="Estimate")).to_be_enabled()


def test_training_shows_progress_and_is_cancelled(
    visit: Callable[..., Any], server: Any, tickets_folder: Path, clean: None
) -> None:
    page = visit()
    page.get_by_role("button", name="Train from a labelled file").click()
    page.locator("#train-file").set_input_files(tickets_folder / "train.csv")
    _method(page, "lr+cc")
    train = page.get_by_role("button", name="Train", exact=True)
    train.click()
    expect(page.locator("[name=model][value=train]")).to_be_checked()
    expect(page.locator("[name=model][value=train]")).to_be_focused()
    (pid,) = server.state.training.pids()
    psutil.Process(pid).suspend()
    page.get_by_role("button", name="Train from a labelled file").click()
    train.click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.locator("#train-progress [role=status]")).to_contain_text("Training")
    _picture(page, "progress", full_page=True)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("alert")).to_contain_text("cancelled")
    expect(page.get_by_role("progressbar")).to_be_hidden()
    expect(train).to_be_focused()
    assert not psutil.pid_exists(pid)
    assert len(server.state.models.trained()) == 1


def test_dark_mode_follows_the_system_and_the_choice(
    visit: Callable[..., Any], tickets_folder: Path
) -> None:
    page = visit(color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert _brightness(page.evaluate(ground)) < 60
    page.get_by_label("Theme").select_option("light")
    assert _brightness(page.evaluate(ground)) > 200
    page.get_by_label("Theme").select_option("auto")
    _choose(page, "small")
    page.locator("#files").set_input_files(sorted((tickets_folder / "months").iterdir()))
    expect(page.get_by_role("button", name="Remove 2026-01.csv")).to_be_visible()
    page.get_by_role("button", name="Estimate").click()
    _charts(page)
    text = page.evaluate("getComputedStyle(document.querySelector('svg text')).fill")
    assert _brightness(text) > 150
    _picture(page, "dark", full_page=True)
    page.reload()
    assert _brightness(page.evaluate(ground)) < 60


def _brightness(colour: str) -> float:
    numbers = colour[colour.index("(") + 1 : -1].replace(",", " ").split()[:3]
    return sum(map(float, numbers)) / 3


def test_it_fits_a_phone(visit: Callable[..., Any], tickets_folder: Path) -> None:
    page = visit(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    _choose(page, "small")
    page.locator("#files").set_input_files(sorted((tickets_folder / "months").iterdir()))
    expect(page.get_by_role("button", name="Remove 2026-01.csv")).to_be_visible()
    page.get_by_role("button", name="Estimate").tap()
    _charts(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    small = page.evaluate(
        "[...document.querySelectorAll('button, select, input:not([type=radio],[type=checkbox],"
        "[type=file])')].filter(n => n.offsetParent && !n.matches('.quiet'))"
        ".map(n => [n.outerHTML.slice(0, 80), n.getBoundingClientRect().height])"
        ".filter(found => found[1] < 31)"
    )
    assert small == []
    letters = page.evaluate(
        "[...document.querySelectorAll('#prevalence-chart svg[role=img]')].map(s => "
        "s.viewBox.baseVal.width / s.getBoundingClientRect().width)"
    )
    assert letters == pytest.approx([1], abs=0.05)
    _picture(page, "phone", full_page=True)


def test_everything_works_with_the_keyboard_alone(visit: Callable[..., Any]) -> None:
    page = visit()
    expect(page.locator("[name=model][value=small]")).to_be_visible()

    def reach(selector: str, key: str = "Tab") -> None:
        for _ in range(40):
            if page.evaluate("s => document.activeElement.matches(s)", selector):
                return
            page.keyboard.press(key)
        raise AssertionError(f"{selector} cannot be reached")

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    reach("[name=model]")
    page.keyboard.press("Space")
    reach("[name=source]")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("One text per line")).to_be_visible()
    reach("#paste")
    page.keyboard.type("where is my parcel")
    reach("#interval")
    page.keyboard.press("ArrowDown")
    reach("#estimate")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    _charts(page)
    expect(page.locator("#result-title")).to_be_focused()
    expect(page.get_by_text("intervals of 95 %")).to_be_visible()
    reach("#result summary")
    page.keyboard.press("Enter")
    expect(page.locator("details table")).to_be_visible()
    reach("[aria-label=Download] button")
    with page.expect_download() as loading:
        page.keyboard.press("Enter")
    assert loading.value.suggested_filename == "prevalence.csv"


def test_every_field_has_a_name(visit: Callable[..., Any]) -> None:
    page = visit()
    expect(page.locator("[name=model][value=small]")).to_be_visible()
    unnamed = page.evaluate(
        "[...document.querySelectorAll('input, select, textarea, button')]"
        ".filter(n => !n.labels?.length && !n.getAttribute('aria-label') && !n.textContent.trim())"
        ".map(n => n.outerHTML)"
    )
    assert unnamed == []
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("h1, h2").count() >= 2


def test_the_token_is_taken_from_the_address_or_asked_for(
    visit: Callable[..., Any], start: Callable[[Settings], Any]
) -> None:
    token = "a-token/with+signs=1"
    running = start(Settings(token=token))
    page = visit(running.url, expected=401)
    expect(page.get_by_text("This server asks for its token")).to_be_visible()
    page.locator("#token").fill(token)
    page.get_by_role("button", name="Use it").click()
    expect(page.get_by_text("A model learns from items that carry labels")).to_be_visible()
    expect(page.get_by_text("This server asks for its token")).to_be_hidden()
    other = visit(f"{running.url}/#token=a-token%2Fwith%2Bsigns%3D1")
    expect(other.get_by_text("A model learns from items that carry labels")).to_be_visible()
    assert "token" not in other.url


def test_the_interface_is_described_on_a_page(visit: Callable[..., Any], server: Any) -> None:
    page = visit(f"{server.url}/docs")
    expect(page.get_by_role("heading", name="POST /v1/models/{name}/quantify")).to_be_visible()
    expect(page.get_by_role("heading", name="QuantifyAnswer", exact=True)).to_be_visible()
