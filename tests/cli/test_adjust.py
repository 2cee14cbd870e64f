"""What `prevalens adjust` reads, prints, writes and refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from prevalens import __main__ as program
from prevalens.errors import InputError
from prevalens.model import adjust_files
from prevalens.uncertainty import adjust_prevalence

BOTH = ("--sensitivity", "0.9", "--specificity", "0.95")


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(program.cli, ["adjust", *map(str, words)], catch_exceptions=True)


def rows_of(*words: str | Path) -> list[dict[str, Any]]:
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return rows


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lines = ("label,positives,n,group", "flu,30,150,north", "flu,60,150,south", "rsv,15,150,north")
    return written(tmp_path / "counts.csv", *lines)


def test_a_table_words_and_counted_columns_agree(tmp_path: Path) -> None:
    items = ["a,b,site", *["1,0,x"] * 30, *["0,1,x"] * 20, *["0,0,x"] * 50]
    counted = rows_of(written(tmp_path / "items.csv", *items), "--labels", "a,b", *BOTH)
    tags = ["t", *['"a"'] * 30, *["b"] * 20, *['""'] * 50]
    tagged = rows_of(written(tmp_path / "tags.csv", *tags), "--tags", "t", *BOTH)
    stated = written(tmp_path / "counts.csv", "Label,Positive,Tested", "a,30,100", "b,20,100")
    assert counted == tagged == rows_of(stated, *BOTH) == rows_of("a=30/100", "b=20/100", *BOTH)
    expected = adjust_prevalence([30, 20], [100, 100], 0.9, 0.95)
    assert [row["prevalence"] for row in counted] == pytest.approx(expected.point.tolist())


def test_groups_are_counted_apart(tmp_path: Path, table: Path) -> None:
    rows = rows_of(table, *BOTH)
    assert [(row["group"], row["label"]) for row in rows] == [
        ("north", "flu"),
        ("south", "flu"),
        ("north", "rsv"),
    ]
    items = written(tmp_path / "items.csv", "a,site", "1,x", "0,x", "1,y")
    found = rows_of(items, "--labels", "a", "--by", "site", *BOTH)
    assert [(row["group"], row["positives"], row["n"]) for row in found] == [
        ("x", 1, 2),
        ("y", 1, 1),
    ]


def test_rates_per_label_from_options_a_table_and_the_counts(tmp_path: Path) -> None:
    lines = ("label,positives,n,sensitivity", "a,30,100,0.8", "b,30,100,", "c,30,100,")
    counts = written(tmp_path / "counts.csv", *lines)
    rates = ("label,sensitivity,specificity", 'a,0.99,"0.95 (0.90-1)"', "b,0.7,190/200")
    file = written(tmp_path / "rates.csv", *rates)
    stated = ("--sensitivity", "c=0.9", "--sensitivity", "0.6", "--specificity", "0.97")
    found = rows_of(counts, "--rates", file, *stated)
    assert [row["sensitivity"] for row in found] == [0.8, 0.7, 0.9]
    assert [row["specificity"] for row in found] == [0.95, 0.95, 0.97]


def test_outputs_and_notices(tmp_path: Path, table: Path) -> None:
    page, output = tmp_path / "page.html", tmp_path / "out.csv"
    done = run(table, "--sensitivity", "0.9", "--specificity", "0.8", "--html", page, "-o", output)
    assert done.exit_code == 0, done.output
    assert "rsv (north): 10.0 % of the tests are positive, fewer than the 20.0 %" in done.output
    assert "20.0" in done.stdout
    with output.open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[1]["prevalence"]) == pytest.approx((0.4 - 0.2) / 0.7)
    text = page.read_text()
    assert "28.6 %" in text
    assert "fewer than the 20.0 %" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("a=3/2", *BOTH), "got 3 of 2"),
        (("a=3/20", "b", *BOTH), "written LABEL=POSITIVES/N"),
        (("a=3/20", "--sensitivity", "0.9"), "No specificity is given for the label 'a'"),
        (("a=3/20", "--sensitivity", "85", "--specificity", "1"), "The sensitivity is '85'"),
        (("a=3/20", "--sensitivity", "0.3", "--specificity", "0.6"), "their sum must exceed 1"),
        (("a=3/20", "--sensitivity", "b=0.9", *BOTH), "given for 'b', but the counts have"),
        (("a=3/20", "--sensitivity", "0.8", *BOTH), "given twice for all labels"),
        (("nothing.csv", *BOTH), "There is no file nothing.csv"),
        (("a=3/20", *BOTH, "--interval", "95"), "must lie strictly between 0 and 1"),
    ],
)
def test_bad_input_is_refused(words: tuple[str, ...], sentence: str) -> None:
    error = run(*words).exception
    assert isinstance(error, InputError)
    assert sentence in str(error)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (("name,positives,n", "a,1,2"), "has no column 'label'"),
        (("label,positives,n", "a,1.5,2"), "line 2: 'positives' is '1.5'; a count is a whole"),
        (("label,positives,n", "a,5,2"), "line 2: 5 of 2 are positive"),
        (("label,positives,n", "a,0,0"), "line 2: 0 of 0 are positive"),
        (("label,positives,n", "a,1,2", "a,1,2"), "line 3: the label a has a row already"),
        (("label,positives,n,se", "a,1,2,often"), "line 2: the sensitivity is written 0.85"),
        (("label,positives,n",), "a header but no rows"),
    ],
)
def test_bad_tables_are_refused(tmp_path: Path, lines: tuple[str, ...], sentence: str) -> None:
    file = written(tmp_path / "counts.csv", *lines)
    with pytest.raises(InputError) as error:
        adjust_files(file, sensitivity=0.9, specificity=0.9)
    assert sentence in str(error.value)
