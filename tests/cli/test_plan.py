"""What `prevalens plan` prints and writes, and that its sheets can be used."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from prevalens import __main__ as program
from prevalens.errors import InputError


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(program.cli, list(map(str, words)), catch_exceptions=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores of 90 labelled and 150 other items, for two labels."""
    place = tmp_path_factory.mktemp("plan")
    rng = np.random.default_rng(0)
    truth = rng.random((240, 2)) < [0.5, 0.3]
    scores = np.where(truth, rng.beta(4, 2, truth.shape), rng.beta(2, 5, truth.shape)).round(3)
    for name, rows, labelled in (("pilot", range(90), True), ("batch", range(90, 240), False)):
        with (place / f"{name}.csv").open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["id", "p_a", "p_b", *(["y_a", "y_b"] if labelled else [])])
            for i in rows:
                out.writerow([i, *scores[i], *(truth[i].astype(int) if labelled else [])])
    return place


def test_a_pilot_gives_a_plan_a_page_and_a_sheet(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two parts are enough for a curve.
    monkeypatch.setattr("prevalens.model.plan._PARTS", ((0.4, 1), (0.75, 1)))
    page, rows, sheet = folder / "plan.html", folder / "plan.csv", folder / "next.csv"
    words = ("--scores", "p_*", "--labels", "y_*", "--method", "given+pcc")
    outputs = ("--html", page, "-o", rows, "--to-label", sheet, "-n", "30", "--stratified")
    batch = folder / "batch.csv"
    done = run("plan", folder / "pilot.csv", *words, "--batch", batch, *outputs)
    assert done.exit_code == 0, done.output
    assert "30 items to label" in done.stdout
    with rows.open() as file:
        assert [row["label"] for row in csv.DictReader(file)] == ["y_a", "y_b"]
    text = page.read_text()
    assert "Expected width of intervals" in text
    assert "Measured with given+pcc on parts of 90 labelled items" in text
    # Filled in, the sheet is what quantify takes.
    with sheet.open(encoding="utf-8-sig") as file:
        drawn = [{**row, "y_a": "1", "y_b": "0"} for row in csv.DictReader(file)]
    with sheet.open("w", newline="") as file:
        out = csv.DictWriter(file, list(drawn[0]))
        out.writeheader()
        out.writerows(drawn)
    model = folder / "m.prevalens"
    assert run("fit", folder / "pilot.csv", "-o", model, *words).exit_code == 0
    done = run("quantify", model, batch, "--labelled", sheet, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["batches"][0]["n_labelled"] == 30


def test_scores_alone_give_a_plan_and_a_first_sheet(folder: Path) -> None:
    sheet = folder / "first.csv"
    words = ("plan", folder / "batch.csv", "--scores", "p_*", "--to-label", sheet, "-n", "20")
    done = run(*words, "--sensitivity", "0.9", "--target-width", "10", "--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer["target_width"] == 0.1
    assert "sensitivity 0.9 and specificity 0.95 is assumed" in answer["basis"]
    with sheet.open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 20
    assert set(rows[0]) == {"id", "p_a", "p_b", "a", "b", "prevalens_item"}
    again = run(*words)
    assert isinstance(again.exception, InputError)
    assert "may have labels" in str(again.exception)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "needs labelled items"),
        (("--labels", "y_*", "--to-label", "x.csv"), "name it with --batch"),
        (("--labels", "y_*", "--sensitivity", "0.9"), "where there are no labels"),
        (("--scores", "p_*", "--to-label", "x.doc"), "x.doc"),
    ],
)
def test_bad_input_is_refused(folder: Path, words: tuple[str, ...], sentence: str) -> None:
    error = run("plan", folder / "pilot.csv", *words).exception
    assert isinstance(error, InputError)
    assert sentence in str(error)
