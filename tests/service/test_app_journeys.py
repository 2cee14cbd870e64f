"""What goes into the page: no guess in silence, nothing lost. In a real browser."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from prevalens.service.storage import ModelEntry

sync_api = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_core_python.sync_playwright")
expect = sync_api.expect
expect.set_options(timeout=20_000)

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
WORDS = ("the wheel is broken and squeaks", "my parcel came much too late")


def _write(path: Path, rows: Sequence[Sequence[Any]], encoding: str = "utf-8", **how: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="", encoding=encoding) as file:
        csv.writer(file, **how).writerows(rows)
    return path


@pytest.fixture(autouse=True)
def clean(server: Any) -> Iterator[None]:
    """What a test trained or uploaded goes with it."""
    yield
    for entry in server.state.models.trained():
        server.state.models.remove(entry.name)
    for upload in server.state.uploads.all():
        server.state.uploads.remove(upload.id)


@pytest.fixture
def own(server: Any, model_file: Path) -> Callable[[str], None]:
    """Add a model as if it had been trained here."""

    def add(name: str) -> None:
        path = server.state.storage.folder() / f"{name}.prevalens"
        path.write_bytes(model_file.read_bytes())
        about = server.state.models.get("small").about
        server.state.models.add(ModelEntry(name, path, "trained", about))

    return add


@pytest.fixture
def shop(client: httpx.Client, finished: Callable[..., Any], tmp_path: Path) -> str:
    """A model of the columns age and income, for the label bought."""
    rows = [[n, n * 7 % 30, n % 2] for n in range(30)]
    path = _write(tmp_path / "shop.csv", [["age", "income", "bought"], *rows])
    sent = client.post("/v1/uploads", files={"file": (path.name, path.read_bytes())}).json()
    body = {"features": ["age", "income"], "labels": ["bought"], "method": "lr+cc"}
    job = client.post("/v1/models", json={"upload": sent["uploads"][0]["id"], **body}).json()
    return str(finished(client, job)["result"]["model"])


def _violations(page: Any) -> list[tuple[str, list[str]]]:
    found = axe.Axe().run(page, options={"resultTypes": ["violations"]})["violations"]
    return [(one["id"], [node["html"][:200] for node in one["nodes"]][:3]) for one in found]


def _open_training(page: Any, path: Path) -> None:
    page.get_by_role("button", name="Train from a labelled file").click()
    page.locator("#train-file").set_input_files(path)
    expect(page.get_by_role("region", name=f"First rows of {path.name}")).to_be_visible()


def _settle(page: Any, method: str = "lr+cc", test: str = "") -> None:
    page.get_by_text("More settings").click()
    page.locator("#train-method").fill(method)
    page.locator("#train-test").select_option(test)


def _choose(page: Any, name: str) -> None:
    page.locator(f"[name=model][value='{name}']").check()


def _shown(page: Any, selector: str) -> str:
    return str(page.locator(f"{selector} option:checked").inner_text())


def _hint(page: Any, text: str) -> None:
    """Estimate is blocked, and the page says why."""
    expect(page.locator("#estimate-hint")).to_have_text(text)
    expect(page.locator("#estimate")).to_be_disabled()


def _texts(n: int) -> list[str]:
    return [f"{WORDS[row % 2]}, the number is {row}" for row in range(n)]


TEXTS = _texts(40)
TOPICS = ["wheel" if n % 2 else "late" for n in range(40)]
_NUMBERS = [[f"c{n}", 20 + n, n * 7 % 30, n % 2, n // 2 % 2] for n in range(40)]
_LISTS = [json.dumps(["a", "b"]), json.dumps(["b", "c, d"])]
_TAGS = ["a;b", "a", "b;c", ""]
LAYOUTS: dict[str, tuple[list[Any], dict[str, Any], dict[str, str], str]] = {
    "cp1252": (
        [["text", "topic"], *zip([f"Größe fehlt: {text}" for text in TEXTS], TOPICS, strict=True)],
        {"encoding": "cp1252", "delimiter": ";"},
        {"#train-text": "text", "#train-category": "topic", "#train-encoding": "1252"},
        "2 labels in 40 items: late 50 %, wheel 50 %.",
    ),
    "lists": (
        [["body", "tags"], *([text, _LISTS[n % 2]] for n, text in enumerate(TEXTS))],
        {},
        {"#train-text": "body", "#train-tags": "tags"},
        "3 labels in 40 items: b 100 %, a 50 %, c, d 50 %.",
    ),
    "category": (
        [["id", "text", "topic"], *([n, text, TOPICS[n]] for n, text in enumerate(TEXTS))],
        {},
        {"#train-text": "text", "#train-category": "topic"},
        "2 labels in 40 items: late 50 %, wheel 50 %.",
    ),
    "short": (
        [["subject", "label"], *([f"too late {n}", topic] for n, topic in enumerate(TOPICS))],
        {},
        {"#train-text": "subject", "#train-category": "label"},
        "2 labels in 40 items: late 50 %, wheel 50 %.",
    ),
    "columns": (
        [["id", "age", "income", "bought", "churned"], *_NUMBERS],
        {},
        {},
        "2 labels in 40 items: bought 50 %, churned 50 %; 10 items without any.",
    ),
    "tags": (
        [["text", "labels"], *([text, _TAGS[n % 4]] for n, text in enumerate(TEXTS))],
        {},
        {"#train-text": "text", "#train-tags": "labels"},
        "3 labels in 40 items: a 50 %, b 50 %, c 25 %; 10 items without any.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("number", "layout"), list(enumerate(LAYOUTS)))
def test_every_usual_layout_is_trained_from(
    number: int, layout: str, visit: Callable[..., Any], server: Any, tmp_path: Path
) -> None:
    rows, how, guesses, summary = LAYOUTS[layout]
    path = _write(tmp_path / f"{layout}.csv", rows, **how)
    page = visit(**(PHONE if number % 2 else {}))
    _open_training(page, path)
    for selector, words in guesses.items():
        shown = _shown(page, selector)
        assert words in shown
        assert shown.endswith("(a guess)")
    expect(page.locator("#train-summary")).to_have_text(summary)
    guess = page.locator("#train-sep-guess")
    if layout == "tags":
        expect(page.locator("#train-sep")).to_have_value(";")
        expect(guess).to_be_visible()
    if layout == "lists":
        # A separator is no part of lists, and one that was chosen is no guess.
        page.locator("#train-sep").fill("|")
        page.locator("#train-sep").blur()
        expect(guess).to_be_hidden()
        expect(page.locator("#train-summary")).to_have_text(summary)
    if layout == "columns":
        assert _violations(page) == []
        ticks = page.locator("#train-features input:checked")
        assert ticks.evaluate_all("boxes => boxes.map(box => box.value)") == ["age", "income"]
        expect(page.locator("#train-features legend")).to_contain_text("a guess")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    _settle(page)
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.locator(f"[name=model][value={layout}]")).to_be_checked()
    labels = server.state.models.get(layout).about["labels"]
    assert all(f"{label} " in summary for label in labels)


def test_how_good_a_model_is_is_said_and_drawn(visit: Callable[..., Any], tmp_path: Path) -> None:
    rows = [[text, TOPICS[n % 40]] for n, text in enumerate(_texts(140))]
    page = visit()
    _open_training(page, _write(tmp_path / "topics.csv", [["text", "topic"], *rows]))
    _settle(page, "lr+pacc", "0.25")
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.locator("[name=model][value=topics]")).to_be_checked()
    expect(page.locator("[name=model][value=topics]")).to_be_focused()
    quality = page.locator("#quality")
    expect(quality.get_by_role("heading")).to_have_text("How good is topics?")
    said = quality.locator("p").first
    expect(said).to_contain_text("In held-out samples whose label mix was shifted, estimates are")
    chart = quality.get_by_role("img", name="Mean error by the shift of the labels.")
    expect(chart).to_be_visible()
    assert chart.locator("path").count() == 3
    expect(quality.get_by_role("table")).to_be_hidden()
    quality.get_by_text("What the test found").click()
    expect(quality.get_by_role("table")).to_be_visible()
    expect(quality.get_by_text("Tested on 3")).to_be_visible()
    assert _violations(page) == []
    page.set_viewport_size(PHONE["viewport"])
    page.wait_for_function(
        "document.querySelector('#quality svg[role=img]').viewBox.baseVal.width < 340"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    # The other model was not tested, so nothing is said of it.
    _choose(page, "small")
    expect(quality).to_be_hidden()
    # Few items are trained on without a test, and the page says so.
    page.locator("#train-open").click()
    page.locator("#train-file").set_input_files(
        _write(tmp_path / "few.csv", [["text", "topic"], *rows[:20]])
    )
    expect(page.locator("#train-hint")).to_have_text(
        "20 items are too few for the test, so that the model will not be tested."
    )


def test_nothing_ticked_and_nothing_chosen_is_a_sentence(
    visit: Callable[..., Any], tmp_path: Path
) -> None:
    page = visit()
    _open_training(page, _write(tmp_path / "c.csv", LAYOUTS["columns"][0]))
    hint, train = page.locator("#train-hint"), page.locator("#train-start")
    for name in ("bought", "churned"):
        page.locator(f"#train-labels input[value={name}]").uncheck()
    expect(hint).to_have_text("Tick at least one label column.")
    expect(train).to_be_disabled()
    expect(page.locator("#train-summary")).to_be_empty()
    page.locator("#train-labels input[value=bought]").check()
    expect(page.locator("#train-summary")).to_have_text(
        "1 label in 40 items: bought 50 %; 20 items without any."
    )
    expect(train).to_be_enabled()
    # The label is no feature any more; what was a label may be one.
    boxes = page.locator("#train-features input")
    assert boxes.evaluate_all("boxes => boxes.map(box => box.value)") == [
        *("id", "age", "income", "churned")
    ]
    for name in ("age", "income"):
        page.locator(f"#train-features input[value={name}]").uncheck()
    expect(hint).to_have_text("Tick at least one column to learn from.")
    page.locator("#train-from").select_option("text")
    expect(hint).to_have_text("Choose the column that holds the texts.")
    page.locator("#train-text").select_option("age")
    page.locator("#train-where").select_option("category")
    expect(hint).to_have_text("Choose the column that holds the labels.")
    page.locator("#train-category").select_option("age")
    expect(hint).to_have_text(
        "The column age cannot hold both the texts and the labels; choose another one."
    )
    expect(train).to_be_disabled()


def test_labels_that_are_none_are_told_before_the_training(
    visit: Callable[..., Any], tmp_path: Path
) -> None:
    page = visit(expected=422)
    _open_training(page, _write(tmp_path / "c.csv", LAYOUTS["category"][0]))
    page.locator("#train-where").select_option("labels")
    page.locator("#train-labels input[value=topic]").check()
    expect(page.locator("#train-hint")).to_contain_text("the label 'topic' is 'late'")
    expect(page.locator("#train-start")).to_be_disabled()


def test_encoding_and_separator_are_chosen_with_a_live_preview(
    visit: Callable[..., Any], tmp_path: Path
) -> None:
    rows = [["text", "tags"], ["Größe, Maß", "a"], ["Straße, Weg", "b"]]
    path = _write(tmp_path / "old.csv", rows, "cp1252", delimiter=";", quoting=csv.QUOTE_NONE)
    page = visit(expected=422)
    _choose(page, "small")
    page.locator("#files").set_input_files(path)
    preview = page.get_by_role("region", name="First rows of old.csv")
    expect(preview.get_by_role("cell", name="Größe, Maß")).to_be_visible()
    assert _shown(page, "#data-encoding") == "Western European (Windows-1252) (a guess)"
    page.locator("#data-encoding").select_option("cp1251")
    expect(preview.get_by_role("cell", name="GrцЯe")).to_be_visible()
    expect(page.locator("#data-encoding")).to_be_focused()
    # What cannot be read is refused, and the way it was read before stays.
    page.locator("#data-encoding").select_option("utf-8")
    expect(page.get_by_role("alert")).to_contain_text("old.csv")
    expect(page.locator("#data-encoding")).to_have_value("cp1251")
    page.locator("#data-encoding").select_option("cp1252")
    expect(preview.get_by_role("cell", name="Größe, Maß")).to_be_visible()
    expect(page.get_by_role("alert")).to_be_hidden()
    page.locator("#data-delimiter").select_option("|")
    expect(preview.get_by_role("columnheader")).to_have_text(["text;tagstext"])
    assert _shown(page, "#column-0") == "text;tags (a guess)"
    page.locator("#data-delimiter").select_option(";")
    expect(page.locator("#column-0")).to_have_value("text")
    assert _shown(page, "#column-0") == "text"


def test_a_file_that_cannot_be_read_asks_how(visit: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "uneven.csv"
    path.write_text("text, of the message, or mail|topic\none, two|x\nthree|y\n")
    page = visit(expected=422)
    page.get_by_role("button", name="Train from a labelled file").click()
    page.locator("#train-file").set_input_files(path)
    expect(page.get_by_role("alert")).to_contain_text("uneven.csv")
    page.locator("#train-unread-delimiter").select_option("|")
    expect(page.get_by_role("cell", name="one, two")).to_be_visible()
    expect(page.locator("#train-unread")).to_be_hidden()
    expect(page.locator("#train-delimiter")).to_have_value("|")


def test_a_column_that_the_file_lacks_is_left_open(
    visit: Callable[..., Any], shop: str, tmp_path: Path
) -> None:
    rows = [["customer", "Age", "when"], *([n, 20 + n, "2026-01-02"] for n in range(12))]
    page = visit()
    _choose(page, shop)
    page.locator("#files").set_input_files(_write(tmp_path / "may.csv", rows))
    # Nearly the same name is a guess, and marked; nothing stands for the income.
    expect(page.locator("#column-0")).to_have_value("Age")
    assert _shown(page, "#column-0") == "Age (a guess)"
    expect(page.locator("#column-1")).to_have_value("")
    _hint(page, "may.csv has no column income; choose the column that stands for it.")
    page.locator("#column-1").select_option("Age")
    _hint(page, "The column Age cannot stand for both age and income; choose another one.")
    page.locator("#column-1").select_option("customer")
    expect(page.locator("#estimate")).to_be_enabled()
    assert _shown(page, "#split") == "by time: when (a guess)"
    # A second file has to have the same columns.
    other = _write(tmp_path / "june.csv", [["customer", "age"], [1, 2]])
    page.locator("#files").set_input_files(other)
    _hint(page, "june.csv has no column Age; remove it, or choose a column that every file has.")
    page.get_by_role("button", name="Remove june.csv").click()
    expect(page.locator("#column-1")).to_have_value("customer")
    page.get_by_role("button", name="Estimate").click()
    expect(page.locator("#prevalence-chart svg[role=img]")).to_be_visible()
    page.get_by_text("Pasted texts").click()
    _hint(page, f"The model {shop} reads the columns age, income, not texts; add a file.")


def test_choices_stay_and_files_of_one_name_are_two_batches(
    visit: Callable[..., Any], tmp_path: Path
) -> None:
    head = ["subject line", "body of it", "day"]
    rows = [[f"to {n} of you", f"{WORDS[n % 2]} {n}", "2026-01-02"] for n in range(12)]
    files = [
        _write(tmp_path / folder / "may.csv", [head, *rows[n:]]) for n, folder in enumerate("ab")
    ]
    page = visit()
    _choose(page, "small")
    page.locator("#files").set_input_files(files[0])
    # Two texts: nothing is guessed.
    _hint(page, "may.csv has no column text; choose the column that stands for it.")
    page.locator("#column-0").select_option("body of it")
    page.locator("#split").select_option("")
    page.locator("#interval").select_option("0.8")

    def unchanged() -> None:
        expect(page.locator("#column-0")).to_have_value("body of it")
        expect(page.locator("#split")).to_have_value("")
        expect(page.locator("#interval")).to_have_value("0.8")

    page.locator("#files").set_input_files(files[1])
    expect(page.get_by_role("button", name="Remove may.csv (2)")).to_be_visible()
    unchanged()
    page.get_by_role("button", name="Estimate").click()
    expect(page.locator("#batch option")).to_have_text(
        ["may.csv (12 items)", "may.csv (2) (11 items)"]
    )
    stale = page.locator("#stale")
    expect(stale).to_be_hidden()
    page.get_by_role("button", name="Remove may.csv (2)").click()
    unchanged()
    expect(stale).to_be_visible()
    # A result has an address; a page that is loaded again is as it was.
    address = page.url
    assert "#/result/" in address
    page.reload()
    expect(page.locator("#batch option")).to_have_count(2)
    unchanged()
    # Another tab gets what is left of its inputs, and is told that a file is gone.
    other = visit(address)
    expect(other.locator("#batch option")).to_have_count(2)
    expect(other.locator("#alert-text")).to_contain_text("no longer has a file of this result")
    expect(other.locator("#column-0")).to_have_value("body of it")
    expect(other.locator("#stale")).to_be_visible()
    page.bring_to_front()
    expect(page.get_by_role("button", name="Remove may.csv")).to_have_count(1)
    expect(stale).to_be_visible()
    page.get_by_role("button", name="Estimate").click()
    expect(stale).to_be_hidden()
    expect(page.locator("#batch")).to_have_count(0)
    assert page.url != address
    page.go_back()
    expect(page.locator("#batch option")).to_have_count(2)
    expect(stale).to_be_visible()
    page.go_forward()
    expect(page.locator("#batch")).to_have_count(0)
    expect(stale).to_be_hidden()
    page.locator("#data-delimiter").select_option("|")
    expect(stale).to_be_visible()


def test_a_page_that_is_loaded_again_goes_on(visit: Callable[..., Any], paused: list[int]) -> None:
    page = visit()
    _choose(page, "small")
    page.get_by_text("Pasted texts").click()
    page.get_by_label("One text per line").fill("where is my parcel\nit is late")
    page.get_by_role("button", name="Estimate").click()
    progress = page.locator("#quantify-progress")
    expect(progress).to_contain_text("Estimating")
    expect(page.locator("#estimate")).to_have_attribute("aria-disabled", "true")
    page.reload()
    expect(progress).to_contain_text("Estimating")
    # A part of a page that is busy is not announced.
    expect(page.locator("#main")).not_to_have_attribute("aria-busy", "true")
    expect(page.get_by_label("One text per line")).to_have_value("where is my parcel\nit is late")
    for pid in paused:
        psutil.Process(pid).resume()
    expect(page.locator("#prevalence-chart svg[role=img]")).to_be_visible()
    expect(page.get_by_text("2 items", exact=True)).to_be_visible()
    expect(page.locator("#stale")).to_be_hidden()


def test_a_training_goes_on_when_the_page_is_loaded_again(
    visit: Callable[..., Any], server: Any, tmp_path: Path
) -> None:
    page = visit()
    _open_training(page, _write(tmp_path / "c.csv", LAYOUTS["category"][0]))
    page.locator("#train-time").select_option("")
    _settle(page)
    page.locator("#train-name").fill("first")
    train = page.get_by_role("button", name="Train", exact=True)
    train.click()
    expect(page.locator("[name=model][value=first]")).to_be_checked()
    (pid,) = server.state.training.pids()
    psutil.Process(pid).suspend()
    page.locator("#train-open").click()
    page.locator("#train-name").fill("second")
    page.locator("#train-category").select_option("topic")
    train.click()
    expect(page.locator("#train-progress")).to_contain_text("Training")
    page.reload()
    expect(page.locator("#train-progress")).to_contain_text("Training")
    # The form has what was chosen, and a choice is no guess.
    expect(page.locator("#train-name")).to_have_value("second")
    expect(page.locator("#train-method")).to_have_value("lr+cc")
    assert _shown(page, "#train-text") == "text (a guess)"
    assert _shown(page, "#train-category") == "topic"
    expect(page.locator("[name=model][value=first]")).to_be_checked()
    psutil.Process(pid).resume()
    expect(page.locator("[name=model][value=second]")).to_be_checked()
    page.reload()
    expect(page.locator("[name=model][value=second]")).to_be_checked()
    expect(page.locator("#train-progress")).to_be_hidden()


def test_a_removed_model_comes_back_and_never_changes_the_choice(
    visit: Callable[..., Any], own: Callable[[str], None]
) -> None:
    own("one")
    own("two")
    page = visit()
    # Of several models none is chosen in silence.
    _hint(page, "Choose or train a model first.")
    _choose(page, "two")
    page.get_by_role("button", name="Remove the model one", exact=True).click()
    keep = page.get_by_role("button", name="Keep the model one")
    expect(keep).to_be_focused()
    keep.press("Enter")
    remove = page.get_by_role("button", name="Remove the model one", exact=True)
    expect(remove).to_be_focused()
    remove.press("Enter")
    page.get_by_role("button", name="Yes, remove the model one").press("Enter")
    models = page.locator("[name=model]")
    expect(models).to_have_count(2)
    expect(page.locator("[name=model][value=two]")).to_be_checked()
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_focused()
    undo.press("Enter")
    expect(models).to_have_count(3)
    expect(page.locator("[name=model][value=two]")).to_be_checked()
    # If the chosen one goes, no other takes its place.
    page.get_by_role("button", name="Remove the model two", exact=True).click()
    page.get_by_role("button", name="Yes, remove the model two").click()
    expect(models).to_have_count(2)
    expect(page.locator("[name=model]:checked")).to_have_count(0)
    _hint(page, "Choose or train a model first.")
    undo.click()
    expect(page.locator("[name=model][value=two]")).to_be_checked()
    expect(page.locator("#notice")).to_be_hidden()


def test_two_tabs_do_not_disturb_each_other(
    visit: Callable[..., Any], own: Callable[[str], None], tmp_path: Path
) -> None:
    own("one")
    page = visit(expected=404)
    other = visit(page.url, expected=404)
    for tab, name, text in ((page, "small", "my parcel is late"), (other, "one", "the wheel")):
        # In a tab that is not in front every click takes a second.
        tab.bring_to_front()
        _choose(tab, name)
        tab.get_by_text("Pasted texts").click()
        tab.get_by_label("One text per line").fill(text)
        tab.get_by_role("button", name="Estimate").click()
        expect(tab.locator("#result")).to_contain_text(f"model {name}")
    # The address of one tab's result works in any other, and brings what it was made from.
    third = visit(other.url, expected=404)
    expect(third.locator("#result")).to_contain_text("model one")
    expect(third.locator("[name=model][value=one]")).to_be_checked()
    expect(third.get_by_label("One text per line")).to_have_value("the wheel")
    expect(third.locator("#stale")).to_be_hidden()
    page.bring_to_front()
    page.reload()
    expect(page.locator("#result")).to_contain_text("model small")
    expect(page.locator("[name=model][value=small]")).to_be_checked()
    # A model that is removed in one tab is gone from the other as soon as one looks at it.
    page.get_by_role("button", name="Remove the model one", exact=True).click()
    page.get_by_role("button", name="Yes, remove the model one").click()
    other.evaluate("dispatchEvent(new Event('focus'))")
    expect(other.locator("[name=model]")).to_have_count(1)
    expect(other.locator("#estimate-hint")).to_have_text("Choose or train a model first.")
    expect(other.locator("#stale")).to_be_visible()
    # A result that the server no longer has is a sentence.
    third.goto(f"{other.url.partition('#')[0]}#/result/{'0' * 32}")
    expect(third.get_by_role("alert")).to_contain_text("There is no such job")
    third.wait_for_url(lambda address: not address.endswith("0" * 32))


def test_a_file_that_the_server_dropped_is_named(
    visit: Callable[..., Any], server: Any, tmp_path: Path
) -> None:
    page = visit()
    page.locator("#files").set_input_files(_write(tmp_path / "may.csv", [["text"], ["a b c"]]))
    expect(page.get_by_role("button", name="Remove may.csv")).to_be_visible()
    (kept,) = server.state.uploads.all()
    server.state.uploads.remove(kept.id)
    page.reload()
    expect(page.locator("#alert-text")).to_have_text(
        "The server no longer has may.csv; add what is missing again."
    )
    page.keyboard.press("Escape")
    expect(page.get_by_role("alert")).to_be_hidden()


def test_a_model_is_trained_with_the_keyboard_alone(
    visit: Callable[..., Any], tmp_path: Path
) -> None:
    page = visit()
    expect(page.locator("[name=model]")).to_have_count(1)

    def reach(selector: str) -> None:
        for _ in range(60):
            if page.evaluate("s => document.activeElement.matches(s)", selector):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"{selector} cannot be reached")

    reach("#train-open")
    page.keyboard.press("Enter")
    reach("#train-file")
    # The dialogue of the system is not the page's.
    page.locator("#train-file").set_input_files(_write(tmp_path / "c.csv", LAYOUTS["columns"][0]))
    expect(page.locator("#train-summary")).to_contain_text("2 labels")
    reach("#train-name")
    page.keyboard.type("typed")
    reach("#train-labels input[value=churned]")
    page.keyboard.press("Space")
    expect(page.locator("#train-summary")).to_contain_text("1 label in 40 items")
    expect(page.locator("#train-labels input[value=churned]")).to_be_focused()
    expect(page.locator("#train-labels input[value=churned]")).not_to_be_checked()
    reach("#train-more summary")
    page.keyboard.press("Enter")
    reach("#train-method")
    page.keyboard.press("Control+A")
    page.keyboard.type("lr+cc")
    reach("#train-start")
    page.keyboard.press("Enter")
    chosen = page.locator("[name=model][value=typed]")
    expect(chosen).to_be_checked()
    expect(chosen).to_be_focused()


def test_texts_are_learned_from_beside_the_answers_of_a_labeller(
    visit: Callable[..., Any], tmp_path: Path
) -> None:
    page = visit()
    answers = [topic if n % 5 else "late" for n, topic in enumerate(TOPICS)]
    rows = list(zip(TEXTS, answers, TOPICS, strict=True))
    _open_training(page, _write(tmp_path / "answers.csv", [["text", "llm", "human"], *rows]))
    page.locator("#train-from").select_option("answers")
    page.locator("#train-answers").select_option("llm")
    page.locator("#train-where").select_option("category")
    page.locator("#train-category").select_option("human")
    assert _shown(page, "#train-text") == "text (a guess)"
    _settle(page, "given+pcc")
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.locator("[name=model]:checked")).to_have_value("answers")
    # A batch needs both columns: without its texts nothing is estimated.
    page.locator("#files").set_input_files(_write(tmp_path / "b.csv", [["llm"], ["late"]]))
    _hint(page, "b.csv has no column text; choose the column that stands for it.")
    page.get_by_role("button", name="Remove b.csv").click()
    batch = [["text", "llm"], *([text, answer] for text, answer, _ in rows[:20])]
    page.locator("#files").set_input_files(_write(tmp_path / "c.csv", batch))
    page.get_by_role("button", name="Estimate", exact=True).click()
    expect(page.locator("#result-body")).to_contain_text("wheel")
