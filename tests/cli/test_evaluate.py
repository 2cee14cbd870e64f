"""`prevalens evaluate`: the same figures on the screen, in JSON, in files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from prevalens.cli.evaluate import command
from prevalens.datasets.tickets import tickets, write_tickets
from prevalens.model.fit import fit_files

QUICK = ("--tags", "tags", "--sep", ";", "--samples", "60")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tickets")
    write_tickets(tickets(800, 5, months=1), folder, held_out=0.5)
    model = fit_files(folder / "train.csv", text="text", tags="tags", sep=";", method="lr+pacc")
    model.save(folder / "model.prevalens")
    return folder


def _run(folder: Path, *words: str) -> str:
    given = [str(folder / "model.prevalens"), str(folder / "labelled.csv"), *QUICK, *words]
    result = CliRunner().invoke(command, given, env={"COLUMNS": "120"})
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_the_screen_shows_verdict_and_tables(folder: Path) -> None:
    said = _run(folder)
    assert said.split(":")[0] in ("Yes", "With care", "No")
    assert "classify and count" in said
    assert "delivery" in said


def test_json_files_and_page_hold_the_same(folder: Path, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("page.html", "labels.csv")]
    found = json.loads(_run(folder, "--json", "--html", str(paths[0]), "-o", str(paths[1])))
    assert found["verdict"] in ("yes", "with care", "no")
    assert set(found["n_samples"]) == {"ml-app", "natural", "label-tilt"}
    assert found["headline"] in paths[0].read_text("utf-8")
    with paths[1].open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == [row["label"] for row in found["by_label"]]
    assert float(rows[0]["error"]) == pytest.approx(found["by_label"][0]["error"])
    _run(folder, "-o", str(tmp_path / "all.json"))
    assert json.loads((tmp_path / "all.json").read_text("utf-8")) == found


def test_refusals_are_sentences(folder: Path, tmp_path: Path) -> None:
    model, labelled = str(folder / "model.prevalens"), str(folder / "labelled.csv")
    for words, sentence in (
        ([model, labelled, *QUICK, "--protocol", "x"], "There is no protocol 'x'"),
        ([model, labelled, *QUICK, "-o", str(tmp_path / "a.txt")], "written as .csv or .json"),
        ([model, labelled, *QUICK, "--html", str(tmp_path / "n" / "a.html")], "there is no folder"),
        ([model, labelled], "has no column"),
        ([str(tmp_path / "none"), labelled, *QUICK], "none"),
    ):
        result = CliRunner().invoke(command, words)
        assert result.exit_code == 1
        assert sentence in str(result.exception)
