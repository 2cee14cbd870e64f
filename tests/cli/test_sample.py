"""What `prevalens sample` writes, and what `prevalens quantify --labelled` makes of it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from prevalens.__main__ import cli
from prevalens.datasets.tickets import SEPARATOR, tickets, write_tickets
from prevalens.errors import InputError


def run(*words: object) -> Result:
    done = CliRunner().invoke(cli, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sample")
    write_tickets(tickets(n_train=400, n_per_month=60, months=1), place)
    how = ["--text", "text", "--tags", "tags", "--sep", SEPARATOR, "--method", "lr+pacc"]
    run("fit", place / "train.csv", *how, "-o", place / "m.prevalens")
    return place


def _fill(sheet: Path, filled: Path) -> None:
    """Label as the column of tags says."""
    rows = list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"))))
    labels = list(rows[0])[4:-1]
    for row in rows:
        row |= {name: int(name in row["tags"].split(SEPARATOR)) for name in labels}
    with filled.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_draw_label_estimate(folder: Path, tmp_path: Path) -> None:
    model, batch, sheet = folder / "m.prevalens", folder / "labelled.csv", tmp_path / "to_label.csv"
    said = run("sample", model, batch, "-n", 40, "-o", sheet).stdout
    assert said.startswith(f"40 of 100 items: {sheet}")
    assert f"Next: prevalens quantify {model} {batch} --labelled {sheet}" in said
    filled, page = tmp_path / "labelled.csv", tmp_path / "report.html"
    _fill(sheet, filled)
    words = ["quantify", model, batch]
    done = run(*words, "--labelled", filled, "--json", "--html", page)
    assert "labelled uses the labels of 40 of the 100 items; about" in done.stderr
    found, before = json.loads(done.stdout), json.loads(run(*words, "--json").stdout)
    widths = [sum(r["upper"] - r["lower"] for r in one["rows"]) for one in (found, before)]
    assert widths[0] < widths[1]
    assert {row["n_labelled"] for row in found["rows"]} == {40}
    assert before["rows"][0]["n_labelled"] == 0
    assert [file["name"] for file in found["provenance"]["files"]] == [str(batch), str(filled)]
    text = page.read_text()
    assert "of them labelled" in text
    assert "more to halve" in text


def test_periods_and_a_stratified_draw(folder: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "a b.csv"
    how = ["--by-time", "date", "--freq", "Y", "--stratified", "--seed", 3]
    said = run("sample", folder / "m.prevalens", folder / "labelled.csv", *how, "-o", sheet).stdout
    assert f"--by-time date --freq Y --labelled '{sheet}'" in said
    rows = list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"))))
    assert sum(float(row["prevalens_weight"]) for row in rows) == pytest.approx(100, abs=0.01)


def test_small_groups_are_drawn_as_they_are_estimated(folder: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.xlsx"
    how = ["--by", "date", "--min-items", 1000, "-n", 7]
    said = run("sample", folder / "m.prevalens", folder / "labelled.csv", *how, "-o", sheet).stdout
    # All days are small, so they are one batch.
    assert said.startswith("7 of 100 items")
    assert f"--by date --min-items 1000 --labelled {sheet}" in said


def test_work_is_not_overwritten(folder: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "to_label.csv"
    sheet.write_text("my labels")
    words = ["sample", str(folder / "m.prevalens"), str(folder / "labelled.csv"), "-o", str(sheet)]
    with pytest.raises(InputError, match="exists and may have labels"):
        CliRunner().invoke(cli, words, catch_exceptions=False)
    assert sheet.read_text() == "my labels"
    run(*words, "--force", "-n", 2)
    assert len(sheet.read_text().splitlines()) >= 3
    with pytest.raises(InputError, match="is an input of this command"):
        CliRunner().invoke(
            cli, [*words[:3], "-o", str(folder / "labelled.csv"), "--force"], catch_exceptions=False
        )
    with pytest.raises(InputError, match="ends in none of them"):
        CliRunner().invoke(cli, [*words[:3], "-o", "x.doc"], catch_exceptions=False)


def test_the_help_says_why_random_is_safe() -> None:
    text = " ".join(run("sample", "--help").stdout.split())
    assert "drawn uniformly at random, which is safe" in text
