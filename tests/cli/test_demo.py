"""`prevalens demo` tells a story whose figures are those of the report beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from prevalens.cli.demo import FOLLOWED, command, run_demo
from prevalens.datasets.tickets import month_names
from prevalens.model.progress import Step


def test_the_demo_tells_its_story(tmp_path: Path) -> None:
    page = tmp_path / "story.html"
    result = CliRunner().invoke(command, ["--report", str(page)], env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    found = re.search(
        r"off by (\S+) points on average, counting by (\S+), and keeping the training "
        r"prevalence by (\d+\.\d)",
        said,
    )
    assert found is not None
    estimate, counted, training = map(float, found.groups())
    assert estimate < counted / 2 < training / 2
    assert str(page) in result.output.replace("\n", "")
    assert "What next?" in result.output
    said = " ".join(result.output.split())
    assert "this is what can be said: In 2026-08," in said
    assert "since training" in said
    data = json.loads(
        re.search(r'id="batch-data">(.*?)</script>', page.read_text("utf-8")).group(1)
    )
    assert set(FOLLOWED) <= set(data["labels"])
    row = next(line.split() for line in result.output.splitlines() if line.startswith("2026-04"))
    column = data["labels"].index(FOLLOWED[0])
    month = data["batches"].index("2026-04")
    assert float(row[1]) == round(100 * data["true"][month][column])
    assert float(row[2]) == round(100 * data["point"][month][column])


def test_a_report_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["--report", str(tmp_path / "no" / "story.html")])
    assert result.exit_code == 1
    assert "there is no folder" in str(result.exception)


def test_files_are_written_with_the_commands_to_try(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["--files", str(tmp_path / "tickets")])
    assert result.exit_code == 0, result.output
    names = {path.relative_to(tmp_path / "tickets").as_posix() for path in tmp_path.rglob("*.csv")}
    assert {"train.csv", "labelled.csv", "truth.csv", "months/2026-08.csv"} <= names
    for verb in ("fit", "evaluate", "quantify", "compare"):
        assert f"prevalens {verb} " in result.output


def test_the_truth_is_the_share_of_labels_in_each_month() -> None:
    steps: list[Step] = []
    run = run_demo(n_train=300, n_per_month=50, seed=3, progress=steps.append)
    months = np.array(month_names(run.data.test_times))
    assert run.result.batches == tuple(np.unique(months).tolist())
    assert run.result.ordered
    for row, month in enumerate(run.result.batches):
        np.testing.assert_allclose(run.true[row], run.data.test.Y[months == month].mean(axis=0))
    # Counts are whole numbers of tickets.
    np.testing.assert_allclose(run.counted * 50, np.round(run.counted * 50), atol=1e-9)
    errors = run.errors()["training prevalence"]
    naive = np.abs(run.model.prevalence - run.true).mean(axis=1)
    np.testing.assert_allclose(errors, naive)
    assert [step.stage for step in steps] == ["writing tickets", "training", "estimating"]


def test_the_page_shows_the_truth() -> None:
    run = run_demo(n_train=200, n_per_month=40)
    assert "dotted: the truth" in run.html()
