"""What the wheel must do without extras, run by ``release/try_wheel.py`` away from the sources."""

from __future__ import annotations

import csv
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import prevalens

COMMAND = [sys.executable, "-m", "prevalens"]


def run(*words: str, folder: Path) -> str:
    done = subprocess.run(
        [*COMMAND, *words], cwd=folder, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_the_installed_package() -> None:
    home = Path(prevalens.__file__).resolve()
    assert "site-packages" in home.parts
    assert importlib.metadata.version("prevalens") == prevalens.__version__
    assert (home.parent / "py.typed").is_file()


def test_public_names_load() -> None:
    for name in prevalens.__all__:
        assert getattr(prevalens, name) is not None


def test_the_demo_writes_its_report(tmp_path: Path) -> None:
    assert "login" in run("demo", folder=tmp_path)
    assert "</html>" in (tmp_path / "prevalens-demo.html").read_text("utf-8")


def test_from_files_to_estimates(tmp_path: Path) -> None:
    run("demo", "--files", "tickets", folder=tmp_path)
    columns = ("--text", "text", "--tags", "tags", "--sep", ";", "--method", "lr+pacc")
    run("fit", "tickets/train.csv", "-o", "model.prevalens", *columns, folder=tmp_path)
    assert "lr+pacc" in run("inspect", "model.prevalens", folder=tmp_path)
    outputs = ("-o", "months.csv", "--html", "report.html")
    run(
        "quantify", "model.prevalens", "tickets/months", "--by-time", "date", *outputs,
        folder=tmp_path,
    )  # fmt: skip
    with (tmp_path / "months.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8 * 9  # months x labels
    assert all(0 <= float(row["prevalence"]) <= 1 for row in rows)
    assert "</html>" in (tmp_path / "report.html").read_text("utf-8")


def test_results_show_themselves_in_notebooks() -> None:
    data = prevalens.datasets.synthetic(200, 100, n_labels=3)
    quantifier = prevalens.parse("lr+pcc").fit(data.train.X, data.train.Y)
    bundle = quantifier._repr_mimebundle_()
    assert "Quantifier" in bundle["text/plain"]
    # The diagram of scikit-learn, then the training prevalences.
    assert "sk-container" in bundle["text/html"]
    assert bundle["text/html"].count("<svg width") == 3
    assert quantifier.quantify(data.test.X)._repr_html_().count("<svg") == 3
