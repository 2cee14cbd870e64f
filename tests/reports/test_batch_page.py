"""The report on batches as a page: all sections, all escaped, nothing from elsewhere."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from prevalens.model.result import BatchResult, Driver, Drivers, Notice
from prevalens.reports.batch_page import batch_page, batch_sections

EVIL = "</script><img src=x onerror=alert(1)>\"'&"


def _report(n_batches: int = 6, **more: object) -> BatchResult:
    rng = np.random.default_rng(0)
    point = rng.random((n_batches, 3)) * 0.5
    given = {
        "lower": np.clip(point - 0.02, 0, 1),
        "upper": point + 0.02,
        "level": 0.9,
        "counted": point * 0.9,
        "drivers": (Drivers(EVIL, EVIL, (Driver(EVIL, 0.5, 0.1, 0.2),)),),
        "notices": (Notice(EVIL, "note"), Notice("Tiny.", "warning", EVIL)),
        "provenance": {EVIL: EVIL},
        "title": EVIL,
    }
    names = [f"{EVIL}{i}" for i in range(n_batches)]
    return BatchResult(
        [EVIL, "b", "c"], names, [90] * n_batches, point, [0.1] * 3, **{**given, **more}
    )


def test_every_name_is_escaped_everywhere() -> None:
    page = batch_page(_report())
    assert "<img" not in page
    assert page.count("<script") == page.count("</script>") == 2
    data = json.loads(re.search(r'id="batch-data">(.*?)</script>', page, re.DOTALL).group(1))
    assert data["labels"][0] == EVIL


def test_all_sections_are_there_in_their_order() -> None:
    titles = [section.title for section in batch_sections(_report())]
    assert titles == [
        "Prevalence per label",
        "Trend over batches",
        "Biggest movers",
        "Difference of two batches",
        "Labels that move together",
        "What drives the estimates",
        "Data warnings",
        "All estimates",
        "How the numbers were made",
    ]


def test_one_batch_has_no_trend_and_says_what_it_cannot_tell() -> None:
    page = batch_page(_report(1))
    assert "Trend over batches" not in page
    assert "1 batch says nothing about which labels move together" in page


def test_nothing_is_asked_of_any_server() -> None:
    page = batch_page(_report())
    assert "default-src 'none'" in page
    # The name space of SVG is a name, not an address that anybody asks.
    assert set(re.findall(r"https?://[^\"' <]+", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(link|iframe|object|embed|base)\b", page)
    assert "style=" not in page


def test_a_report_without_extras_says_so() -> None:
    bare = BatchResult(["a"], ["May"], [50], [[0.1]], [0.2])
    page = batch_page(bare)
    assert "Nothing unusual was found" in page
    assert "offers no weights" in page
    assert "interval" not in re.search(r"<thead>.*?</thead>", page).group(0)


def test_the_lead_names_the_farthest_mover() -> None:
    point = np.array([[0.3, 0.9]])
    report = BatchResult(
        ["still", "gone up"],
        ["May"],
        [99],
        point,
        [0.3, 0.2],
        lower=point - 0.05,
        upper=point + 0.05,
        level=0.9,
    )
    page = batch_page(report)
    assert "1 of 2 labels has clearly moved" in page
    assert "gone up rose from 20.0 % to 90.0 % (85.0 to 95.0 %)" in page
    facts = re.search(r'<ul class="facts">(.*?)</ul>', page, re.DOTALL).group(1)
    assert "+65.0 to +75.0" in facts
    assert "+70.0" not in facts


def test_too_many_estimates_are_left_to_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prevalens.reports.batch_page.MOST_CELLS", 10)
    assert "18 estimates are too many for a table" in batch_page(_report())


def test_what_intervals_allow_for_is_a_paragraph_of_its_own() -> None:
    made = batch_sections(_report(provenance={"drift": f"Off by 1. {EVIL}", "rows": "9"}))[-1]
    assert made.parts[1] == f"Off by 1. {EVIL}"
    assert "<img" not in batch_page(_report(provenance={"drift": EVIL}))
    assert len(batch_sections(_report(provenance={"rows": "9"}))[-1].parts) == 2


def test_an_alarm_stands_before_everything_else() -> None:
    page = batch_page(_report(p_value=[0.9] * 5 + [0.001]))
    lead = page[page.index("<main>") : page.index('<ul class="facts">')]
    assert lead.index("Alarm.") < lead.index("differs from the training data in more than")
    assert lead.index("Alarm.") < lead.index("clearly moved")
    assert "prevalens sample MODEL BATCH -n 50" in lead
    calm = batch_page(_report(p_value=[0.9] * 6))
    assert "Alarm." not in calm[calm.index("<main>") : calm.index('<ul class="facts">')]


def test_groups_are_no_time() -> None:
    names = ["France", "Spain", "Italy", "Malta", "Austria", "Norway"]
    report = replace(_report(title="Countries", notices=(), provenance={}), ordered=False)
    report = replace(report, batches=names, sizes=[50, 900, 40, 30, 20, 10], drivers=())
    titles = [section.title for section in batch_sections(report)]
    assert "Groups side by side" in titles
    assert "Trend over batches" not in titles
    page = batch_page(report)
    main = re.sub(r"<script.*?</script>", "", page[page.index("<main>") :], flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", " ", main)
    for word in ("since", "trend", "rose", "fell", "latest"):
        assert not re.search(rf"\b{word}\b", text, re.IGNORECASE), word
    assert "In the largest, Spain (900 items)" in text
    assert "<polyline" not in main


def test_the_map_says_how_many_labels_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "left out" not in batch_page(_report())
    monkeypatch.setattr("prevalens.reports.batch_page._MOST_IN_MAP", 2)
    assert "1 are left out here" in batch_page(_report())


@pytest.mark.parametrize("ordered", [True, False])
def test_twenty_thousand_batches_make_a_small_page(ordered: bool) -> None:
    n, labels = 20_000, [f"label {i}" for i in range(9)]
    rng = np.random.default_rng(0)
    point = rng.random((n, 9)) * 0.1
    point[7, 3] = 0.9
    sizes = rng.integers(50, 1000, n)
    sizes[7], sizes[11] = 50, 5000
    names = [f"group {i}" for i in range(n)]
    ends = {"lower": np.clip(point - 0.1, 0, 1), "upper": point + 0.05, "level": 0.9}
    notices = tuple(Notice("Few items.", "note", name) for name in names)
    report = BatchResult(
        labels, names, sizes, point, [0.05] * 9, ordered=ordered, notices=notices, **ends
    )
    page = batch_page(report)
    assert len(page) < 1_500_000
    assert page.count("<option") < 3 * 366 + 50
    assert "of 20,000 " in page
    data = json.loads(re.search(r'id="batch-data">(.*?)</script>', page, re.DOTALL).group(1))
    assert len(data["batches"]) == 366
    if ordered:
        assert data["batches"] == names[-366:]
    else:
        # The largest group comes first, and the one that is farthest from training is there.
        assert data["batches"][0] == "group 11"
        assert "group 7" in data["batches"]
        assert data["moved"][data["batches"].index("group 7")][3] == 1
