"""An evaluation as a page: verdict first, figures of the report, everything escaped."""

from __future__ import annotations

import re

import numpy as np

from prevalens.model.trust import Trial, TrustReport
from prevalens.reports.grid import Grid
from prevalens.reports.page import Figure, grids_of
from prevalens.reports.trust_page import (
    label_grid,
    protocol_caption,
    trust_page,
    trust_sections,
    verdict,
)

EVIL = "<img src=x onerror=alert(1)>"


def make() -> TrustReport:
    rng = np.random.default_rng(0)
    true = rng.random((80, 2))
    trials = tuple(
        Trial(
            name, true, true * 0.9, true * 0.5, np.arange(80), true * 0.8, np.minimum(true * 1.1, 1)
        )
        for name in ("ml-app", "label-tilt")
    )
    return TrustReport(
        EVIL, (EVIL, "b"), np.array([0.2, 0.4]), np.array([30, 40]), 400, 100, trials, 0.9,
        notices=(EVIL,), provenance={EVIL: EVIL},
    )  # fmt: skip


def test_the_page_begins_with_the_verdict_and_escapes_all() -> None:
    page = trust_page(make())
    assert "<img" not in page
    assert verdict(make()).headline in page
    assert page.index(verdict(make()).headline) < page.index("Error by amount of shift")
    assert "default-src 'none'" in page


def test_the_tables_hold_the_figures() -> None:
    report = make()
    grids: list[Grid] = grids_of(trust_sections(report))
    captions = [grid.caption for grid in grids]
    assert captions[:2] == ["Mean absolute error by shift", "Mean absolute error by kind of shift"]
    by_protocol = next(iter(grids[1].lines()))
    mean = report.by_protocol()["ml-app"]["this model"].mean
    assert by_protocol.entries[0].text == f"{100 * mean:.2f}"
    assert by_protocol.entries[0].bold
    assert by_protocol.name == protocol_caption("ml-app")
    line = next(iter(label_grid(report).lines()))
    assert line.name == EVIL
    assert line.entries[-1].text == "100 %"


def test_protocols_are_described_after_their_names() -> None:
    assert protocol_caption("natural").startswith("natural: drawn evenly")
    assert protocol_caption("label-tilt").startswith("label-tilt: ")
    assert protocol_caption("mine") == "mine"


def test_charts_and_tables_are_in_percentage_points() -> None:
    figures = [part for section in trust_sections(make()) for part in section.parts
               if isinstance(part, Figure)]  # fmt: skip
    by_shift, by_prevalence = (figure.svg for figure in figures)
    assert "mean absolute error, percentage points" in by_shift
    assert "shift since training, percentage points" in by_shift
    assert "true prevalence, percent" in by_prevalence
    # Ticks of shares would be below 1.
    for drawn in (by_shift, by_prevalence):
        ticks = [float(text) for text in re.findall(r">(\d*\.?\d+)</text>", drawn)]
        assert max(ticks) > 1
    assert max(make().lines().lines[1].values) > 1
