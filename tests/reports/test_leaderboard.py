from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from prevalens.records import Record
from prevalens.reports.grid import MISSING
from prevalens.reports.leaderboard import (
    leaderboard,
    leaderboard_page,
    read_records,
    write_records,
)
from prevalens.studies.moreo2023.printed import printed
from prevalens.studies.moreo2023.table_summary import tuned_tables
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


def board(records, **options):
    return leaderboard(records, printed("pcc_general"), **options)


def test_ratios_are_geometric_means_of_ratios_to_print(records):
    page = board(records)
    assert "| `lr+pcc` | 2.00 | 2.00 | 2.00 | 2.00 | 2.00 | 2.00 |" in page
    assert "| `auto` |" + " **.25** |" * 6 in page


def test_genbase_counts_in_one_of_the_two_means(records):
    coarse = [
        replace(r, dataset="genbase", value=16 * METHODS[r.method] * reference("genbase", r.shift))
        for r in records
        if r.dataset == "scene" and r.shift != "all"
    ]
    # The geometric mean of 0.25, 0.25 and 4 is 0.63.
    page = board(records + coarse)
    assert "| `auto` |" + " **.63** |" * 3 + " **.25** |" * 3 in page
    assert "without Genbase |  | **.25** / **.25** / **.25** (2 datasets)" in page


def test_a_method_measured_on_fewer_datasets_is_compared_with_auto_there(records):
    partly = [r for r in records if (r.dataset, r.method) != ("scene", "lr+mixture")]
    page = board(partly)
    assert "geometric mean over 2 datasets (Emotions, Scene)" in page
    assert "| `lr+mixture` | 2.00 | 2.00 | Emotions |" in page
    assert "Not run: `lr+mixture` on Scene." in page
    assert "**.25** / **.25** / **.25** (2 datasets)" in page
    assert "**.50** / **.50** / **.50** (1 datasets)" in page


def test_without_shift_the_difference_to_counting_is_told(records):
    assert ".2000 | .0500 (-75 %) | .0250 (-88 %)" in board(records)


def test_only_datasets_with_auto_are_averaged(records):
    page = board([r for r in records if (r.dataset, r.method) != ("scene", "auto")])
    assert "geometric mean over 1 datasets (Emotions)" in page
    assert "Not run: `auto` on Scene." in page


def test_a_protocol_on_some_datasets_is_named(records):
    partly = [r for r in records if (r.dataset, r.protocol) != ("scene", "natural")]
    assert "`natural` was run on Emotions only." in board(partly)


def test_spread_over_seeds(records):
    assert "were run with: Emotions 1, Scene 1." in board(records)
    second = [replace(r, seed=1, value=3 * r.value) for r in records if r.dataset == "emotions"]
    page = board(records + second)
    assert "were run with: Emotions 2, Scene 1." in page
    ratio, error = ".50 (.25 to .75)", ".0500 (.0250 to .0750)"
    assert f"| `auto` | {' | '.join([ratio] * 3 + [error] * 2)} |" in page


def test_methods_with_more_seeds_are_compared_on_the_common_ones(records):
    more = [replace(r, seed=1, value=3 * r.value) for r in records if r.method == "auto"]
    page = board(records + more)
    assert "were run with: Emotions 1, Scene 1." in page
    assert "| `auto` |" + " **.25** |" * 6 in page
    assert "| `auto` | .50 (.25 to .75) |" in page
    assert "| `lr+pcc` | 1.00" not in page


def test_tuned_tables_are_compared_with_print(records):
    page = board(records, tuned={"PCC, printed": printed("pcc_general")})
    row = next(line for line in page.splitlines() if line.startswith("| PCC, printed"))
    assert row.endswith("| 1.00 / 1.00 / 1.00 | 2 |")


def test_fewer_training_items_are_not_compared_with_print(records):
    page = leaderboard(records, None, max_train=3000)
    assert "at most 3,000 of them" in page
    assert "printed" not in page
    assert "| `auto` | **.0250** | **.0250** |" in page


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


def checked_in(plan, **options):
    return {
        "records": read_records(DOCS / "records" / f"{plan}.csv"),
        "command": f"prevalens bench {plan}.toml",
        "source": f"records/{plan}.csv",
        **options,
    }


def test_the_pages_that_are_checked_in_are_made_of_the_records():
    tuned = tuned_tables(DOCS / "records")
    page = leaderboard(**checked_in("leaderboard", reference=printed("pcc_general"), tuned=tuned))
    assert (DOCS / "accuracy.md").read_text(encoding="utf-8") == page
    further = leaderboard(**checked_in("further", reference=None, max_train=3000))
    assert (DOCS / "accuracy-further.md").read_text(encoding="utf-8") == further


def as_table(page, title):
    """The rows of the table below a heading, as lists of texts, heads first."""
    body = page.split(f"<h2>{title}</h2>")[1].split("</table>")[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in body.split("<tr>")[1:]]
    return [[re.sub(r"<[^>]+>", "", cell) for cell in row] for row in rows]


def test_the_page_compares_with_the_best_method_of_each_dataset(records):
    page = leaderboard_page(records, command="x", source="y")
    heads, *rows = as_table(page, "AE by kind of shift")
    assert heads == ["method", "all kinds", "ml-app", "natural", "datasets"]
    assert rows == [
        ["auto", "1.00", "1.00", "1.00", "2"],
        ["lr+mixture", "2.00", "2.00", "2.00", "2"],
        ["lr+pcc", "8.00", "8.00", "8.00", "2"],
    ]
    heads, *rows = as_table(page, "natural, RAE")
    assert heads == ["method", "by the best", "Emotions", "Scene"]
    assert rows[0] == ["auto", "1.00", ".025", ".025"]


def test_the_page_leaves_gaps_where_nothing_was_measured(records):
    fewer = [r for r in records if (r.method, r.dataset) != ("auto", "scene")]
    fewer = [r for r in fewer if (r.method, r.protocol) != ("lr+pcc", "natural")]
    page = leaderboard_page(fewer, command="x", source="y")
    rows = {row[0]: row[1:] for row in as_table(page, "AE by kind of shift")}
    assert rows["auto"] == ["1.00", "1.00", "1.00", "1"]
    # On Scene the best method is now another one.
    assert rows["lr+mixture"] == ["1.41", "1.41", "1.41", "2"]
    assert rows["lr+pcc"] == ["5.66", "5.66", MISSING, "2"]
    natural = [row[0] for row in as_table(page, "natural, AE")]
    assert natural == ["method", "auto", "lr+mixture"]


def test_genbase_is_shown_but_not_in_the_ratios(records):
    coarse = [replace(r, dataset="genbase", value=1.0) for r in records if r.dataset == "scene"]
    page = leaderboard_page(records + coarse, command="x", source="y")
    assert as_table(page, "AE by kind of shift")[1] == ["auto", "1.00", "1.00", "1.00", "2"]
    assert as_table(page, "natural, AE")[0] == [
        "method",
        "by the best",
        "Emotions",
        "Scene",
        "Genbase",
    ]


def test_the_page_loads_nothing(records):
    page = leaderboard_page(records, command="x", source="y")
    assert not re.findall(r'(?:src|href)="(?!#)', page)
