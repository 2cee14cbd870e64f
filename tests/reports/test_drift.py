from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from prevalens.metrics import INTERVAL_METRICS
from prevalens.records import Record
from prevalens.reports.drift import drift
from prevalens.reports.grid import MISSING
from prevalens.reports.leaderboard import read_records

DOCS = Path(__file__).parents[2] / "docs"
#: AE of each method by dataset.
ERRORS = {
    "un@1970": {"naive": 0.08, "lr+pcc": 0.02, "auto": 0.03},
    "un@1985": {"naive": 0.05, "lr+pcc": 0.04, "auto": 0.02},
    "goemotions": {"naive": 0.01, "lr+pcc": 0.01, "auto": 0.01},
}
#: Batches by horizon; the control has none.
BATCHES = {"un@1970": {"near": 2, "far": 3}, "un@1985": {"near": 4}, "goemotions": {}}


def make_records() -> list[Record]:
    records = []
    for (dataset, methods), metric in itertools.product(ERRORS.items(), ("ae", *INTERVAL_METRICS)):
        for method, error in methods.items():
            sizes = {"all": 5, "low": 5, **dict.fromkeys(("near", "medium", "far"), 0)}
            if dataset == "goemotions":
                sizes = {"all": 5, "low": 5}
            for shift, count in {**sizes, **BATCHES[dataset]}.items():
                value = error if metric == "ae" else 0.5
                value = (value * 2 if shift == "far" else value) if count else float("nan")
                records.append(
                    Record(dataset, method, "periods", 0, shift, metric, value, count, "1.0", "abc")
                )
    return records


def rows_of(page: str, title: str) -> list[str]:
    block = page.split(f"\n{title}\n", 1)[1].split("\n#", 1)[0]
    return [line for line in block.splitlines() if line.startswith("| `")]


def test_errors_stand_beside_the_best_single_method_of_the_cut() -> None:
    rows = rows_of(drift(make_records()), "## UN roll calls")
    assert rows == [
        "| `naive` | 8.00 (4.00) | 5.00 (1.25) |",
        "| `lr+pcc` | 2.00 (1.00) | 4.00 (1.00) |",
        "| `auto` | 3.00 (1.50) | 2.00 (.50) |",
    ]


def test_all_cuts_have_the_same_weight_and_controls_none() -> None:
    (_, _, auto) = rows_of(drift(make_records()), "## All cuts")
    assert auto == "| `auto` | 2 | 1.00 | 1.50 | .50 | 50.0 | 50.0 | .50 | 50.0 |"


def test_figures_by_horizon_name_the_classes_that_have_batches() -> None:
    page = drift(make_records())
    assert "5 batches (`periods`): 2 near, 3 far. Figures are over all batches" in page
    assert "by horizon: near / far." in page
    rows = rows_of(page, "### UN roll calls, 1970")
    assert rows[0].startswith("| `naive` | 8.00 (8.00 / 16.00) | .50 (.50 / 1.00) | 50.0 (50.0")
    # One class alone is all batches.
    assert rows_of(page, "### UN roll calls, 1985")[0].startswith("| `naive` | 5.00 | .50 |")
    assert "### GoEmotions, published parts\n\n5 batches (`periods`).\n\n| method" in page


def test_what_was_not_measured_is_a_dash() -> None:
    partly = [r for r in make_records() if (r.dataset, r.method) != ("un@1985", "auto")]
    page = drift(partly, level=0.8)
    assert rows_of(page, "## UN roll calls")[2] == f"| `auto` | 3.00 (1.50) | {MISSING} |"
    assert len(rows_of(page, "### UN roll calls, 1985")) == 2
    assert rows_of(page, "## All cuts")[2].startswith("| `auto` | 1 | 1.50 | 1.50 |")
    assert "8 of 9 combinations" in page
    assert "Both should be .80." in page


@pytest.mark.parametrize("methods", [{"naive"}, {"auto"}])
def test_pages_of_few_methods_are_made_too(methods: set[str]) -> None:
    page = drift([r for r in make_records() if r.method in methods])
    assert len(rows_of(page, "## UN roll calls")) == 1
    assert "nan" not in page


def test_the_page_that_is_checked_in_is_made_of_the_records() -> None:
    page = drift(
        read_records(DOCS / "records" / "timelines.csv"),
        command="prevalens bench timelines.toml",
        source="records/timelines.csv",
    )
    assert (DOCS / "drift.md").read_text(encoding="utf-8") == page
