"""The examples run as they stand."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
#: The commands of the environment that the tests run in.
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "METHOD": "lr(C=10)+pacc",
    "METHODS": "naive;lr+pacc",
    "NO_COLOR": "1",
}


def _run(*words: str, folder: Path) -> str:
    done = subprocess.run(
        words, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no shell")
def test_from_tickets_to_a_report(tmp_path: Path) -> None:
    said = _run("sh", str(EXAMPLES / "tickets.sh"), str(tmp_path), folder=tmp_path)
    assert "has the smallest error" in said
    for name in ("trust.html", "report.html", "methods.html"):
        assert "</html>" in (tmp_path / name).read_text("utf-8")
    with (tmp_path / "months.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with (tmp_path / "tickets" / "truth.csv").open(newline="", encoding="utf-8") as file:
        truth = {row["month"]: row for row in csv.DictReader(file)}
    errors = [
        abs(float(row["prevalence"]) - float(truth[row["group"]][row["label"]])) for row in rows
    ]
    kept = [abs(float(row["training"]) - float(truth[row["group"]][row["label"]])) for row in rows]
    assert len(errors) == 72
    assert sum(errors) < sum(kept) / 2


@pytest.mark.slow
def test_the_learning_curve(tmp_path: Path) -> None:
    said = _run(sys.executable, str(EXAMPLES / "learning_curve.py"), "--quick", folder=tmp_path)
    few, many = (line.split("|")[1:-1] for line in said.splitlines()[2:])
    assert (few[0].strip(), many[0].strip()) == ("100", "400")
    # More labels, smaller errors and narrower intervals.
    assert float(many[4]) < float(few[4])
    assert float(many[5]) < float(few[5])


@pytest.mark.data
@pytest.mark.slow
def test_reuters_is_exported(tmp_path: Path) -> None:
    said = _run(sys.executable, str(EXAMPLES / "export_reuters.py"), str(tmp_path), folder=tmp_path)
    assert "9603 and 3299 stories" in said


@pytest.mark.slow
def test_labels_of_people_correct_the_counts_of_rules(tmp_path: Path) -> None:
    new = tmp_path / "new"
    said = _run(sys.executable, str(EXAMPLES / "own_scores.py"), str(new), folder=tmp_path)
    counted, *corrected = [float(points) for points in re.findall(r"off by ([\d.]+) points", said)]
    assert len(corrected) == 6
    alone, with_texts = corrected[::2], corrected[1::2]
    # A hundred labels are too few for nine labels; a thousand are not.
    assert alone[-1] < 0.75 * counted
    assert alone[-1] < alone[1] < alone[0]
    assert all(both < without for both, without in zip(with_texts, alone, strict=True))
    assert with_texts[1] < 0.75 * counted
    with (new / "labelled-300.csv").open(newline="", encoding="utf-8") as file:
        assert next(csv.DictReader(file)).keys() == {
            "month", "text", "llm_labels", "human_labels"
        }  # fmt: skip
