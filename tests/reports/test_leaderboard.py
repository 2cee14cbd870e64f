from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from prevalens.records import Record
from prevalens.reports.leaderboard import leaderboard, read_records, write_records
from prevalens.studies.moreo2023.printed import printed
from prevalens.validation import FormatError

DOCS = Path(__file__).parents[2] / "docs"
METHODS = {"lr+pcc": 2.0, "lr+mixture": 0.5, "auto": 0.25}


def reference(dataset, shift):
    table = printed("pcc_general")
    column = table.columns.index("MLC+MLA")
    matching = [r for r in table.rows if (r.dataset, r.shift) == (dataset, shift)]
    return matching[0].cells[column].value


@pytest.fixture
def records():
    """Each method is a fixed multiple of the printed value."""
    blank = Record("", "", "", 0, "all", "ae", 0.0, 100, "1.0", "abc")
    records = []
    for dataset in ("emotions", "scene"):
        for method, factor in METHODS.items():
            head = replace(blank, dataset=dataset, method=method, protocol="ml-app")
            records += [
                replace(head, shift=shift, value=factor * reference(dataset, shift))
                for shift in ("low", "mid", "high")
            ]
            for metric in ("ae", "rae"):
                for protocol in ("ml-app", "natural"):
                    new = replace(head, protocol=protocol, metric=metric, value=0.1 * factor)
                    records.append(new)
    return records


def test_ratios_are_geometric_means_of_ratios_to_print(records):
    page = leaderboard(records, printed("pcc_general"))
    assert "| `lr+pcc` | 2.00 | 2.00 | 2.00 |" in page
    assert "| `auto` | **.25** | **.25** | **.25** |" in page


def test_each_of_ours_is_averaged_over_all_its_datasets(records):
    partly = [r for r in records if (r.dataset, r.method) != ("scene", "lr+mixture")]
    page = leaderboard(partly, printed("pcc_general"))
    assert "**.25** / **.25** / **.25** (2 datasets)" in page
    assert "**.50** / **.50** / **.50** (1 datasets)" in page


def test_without_shift_the_difference_to_counting_is_told(records):
    assert ".2000 | .0500 (-75 %) | .0250 (-88 %)" in leaderboard(records, printed("pcc_general"))


def test_only_datasets_with_all_methods_are_averaged(records):
    partly = [r for r in records if (r.dataset, r.method) != ("scene", "auto")]
    page = leaderboard(partly, printed("pcc_general"))
    assert "geometric mean over 1 datasets (Emotions)" in page
    assert "10 of 12 combinations" in page


def test_records_come_back_from_the_file(records, tmp_path):
    path = tmp_path / "records.csv"
    write_records(records, path)
    back = read_records(path)
    assert [replace(r, value=0.0) for r in back] == [replace(r, value=0.0) for r in records]
    assert all(
        math.isclose(a.value, b.value, rel_tol=1e-6) for a, b in zip(back, records, strict=True)
    )
    assert not list(tmp_path.glob("*.part"))


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(FormatError, match="holds no records"):
        read_records(path)


def test_a_damaged_line_is_named(records, tmp_path):
    path = tmp_path / "records.csv"
    write_records(records[:2], path)
    lines = path.read_text().splitlines()
    lines[2] = lines[2].replace(",100,", ",many,")
    path.write_text("\n".join(lines))
    with pytest.raises(FormatError, match="line 3"):
        read_records(path)


def test_the_page_that_is_checked_in_is_made_of_the_records():
    records = read_records(DOCS / "records" / "leaderboard.csv")
    page = leaderboard(
        records,
        printed("pcc_general"),
        command="prevalens bench leaderboard.toml",
        source="records/leaderboard.csv",
    )
    assert (DOCS / "accuracy.md").read_text(encoding="utf-8") == page
