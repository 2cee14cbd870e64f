"""`prevalens compare`: a leaderboard on the screen, in JSON, in files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from prevalens.cli.compare import command
from prevalens.datasets.tickets import tickets, write_tickets

QUICK = ("--text", "text", "--tags", "tags", "--sep", ";", "--samples", "40", "--folds", "2")


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tickets")
    write_tickets(tickets(600, 5, months=1), folder, held_out=0.0)
    return str(folder / "train.csv")


def test_the_leaderboard_is_the_same_everywhere(train: str, tmp_path: Path) -> None:
    words = [train, *QUICK, "--methods", "naive;lr+rq(pcc,ridge)"]
    output, page = tmp_path / "all.csv", tmp_path / "page.html"
    result = CliRunner().invoke(
        command, [*words, "-o", str(output), "--html", str(page)], env={"COLUMNS": "120"}
    )
    assert result.exit_code == 0, (result.output, result.exception)
    assert "lr+rq(pcc,ridge) has the smallest error" in result.output
    found = json.loads(CliRunner().invoke(command, [*words, "--json"]).output)
    assert [place["method"] for place in found["places"]] == ["lr+rq(pcc,ridge)", "naive"]
    with output.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["error"]) for row in rows] == [place["error"] for place in found["places"]]
    assert "lr+rq(pcc,ridge) has the smallest error" in page.read_text("utf-8")


def test_failures_are_shown_and_unknown_methods_refused(train: str) -> None:
    words = [train, *QUICK, "--methods"]
    result = CliRunner().invoke(command, [*words, "naive;lr(C=-1)+pcc"], env={"COLUMNS": "150"})
    assert result.exit_code == 0, (result.output, result.exception)
    assert "lr(C=-1)+pcc could not be trained" in result.output
    refused = CliRunner().invoke(command, [*words, "nothing+pcc"])
    assert "There is no classifier called 'nothing'" in str(refused.exception)


def test_a_warning_is_one_line(train: str) -> None:
    words = [train, "--text", "text", "--tags", "tags", "--sep", ",", "--samples", "40"]
    result = CliRunner().invoke(command, [*words, "--folds", "2", "--methods", "naive"])
    assert result.exit_code == 0, (result.output, result.exception)
    (line,) = result.stderr.splitlines()
    assert line.startswith("prevalens: note: No tag of the column 'tags' holds ','")
