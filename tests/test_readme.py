"""The README's Python runs as it stands."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from click.testing import CliRunner

from prevalens import PrevalenceEstimate
from prevalens.cli.demo import DemoRun, command, run_demo

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text("utf-8")


@pytest.mark.slow
def test_the_code_of_the_readme_runs() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert len(blocks) >= 4
    names: dict[str, object] = {"months": np.arange(2000) % 3}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    estimate = names["quantifier"].quantify(names["data"].test.X)  # type: ignore[attr-defined]
    assert isinstance(estimate, PrevalenceEstimate)
    assert estimate.labels == names["data"].train.labels  # type: ignore[attr-defined]


def test_the_commands_of_a_checkout_are_targets() -> None:
    makefile = README.with_name("Makefile").read_text("utf-8")
    for target in ("demo", "test", "docs"):
        assert f"make {target}" in README.read_text("utf-8")
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def _row(name: str) -> list[str]:
    """The cells of a row of the first table."""
    lines = README.read_text("utf-8").splitlines()
    line = next(line for line in lines if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_the_first_table_is_what_the_demo_finds() -> None:
    story: DemoRun = run_demo()
    column = story.model.labels.index("login")
    n_months = len(story.true)
    answers = {
        "truth": story.true[:, column],
        "prevalens": story.result.point[:, column],
        "classifier's answers counted": story.counted[:, column],
        "training prevalence kept": [story.model.prevalence[column]] * n_months,
    }
    for name, shares in answers.items():
        # Another processor may round the last digit otherwise.
        np.testing.assert_allclose(
            [float(cell) for cell in _row(name)[:n_months]], 100 * np.asarray(shares), atol=0.7
        )
    for (name, _), errors in zip(list(answers.items())[1:], story.errors().values(), strict=True):
        said = float(_row(name)[-1].replace("*", "").removesuffix(" points"))
        assert said == pytest.approx(100 * errors.mean(), abs=0.1)


def test_the_second_table_is_what_the_demo_prints() -> None:
    result = CliRunner().invoke(command, ["--table"], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    moved = result.output.partition("The label mix has moved")[2].partition("It has not")[0]
    said = re.findall(r"^\| `(\S+)`: .*?((?: \| \**\.\d{3}\**){4}) \|$", TEXT, re.MULTILINE)
    assert len(said) == 4
    for method, cells in said:
        line = next(line for line in moved.splitlines() if line.split()[:1] == [method])
        printed = [float(figure) for figure in re.findall(r"(?<!\S)\.\d{3}", line)[:4]]
        figures = [float(figure) for figure in re.findall(r"\.\d{3}", cells)]
        # Another processor may round the last digit otherwise.
        np.testing.assert_allclose(figures, printed, atol=0.0011)


def test_the_concepts_say_the_same_errors_of_the_demo() -> None:
    page = README.parent / "docs" / "concepts" / "quantification.md"
    said = re.findall(r"by (\d\.\d)(?: points)?", page.read_text("utf-8"))
    rows = ("prevalens", "classifier's answers counted", "training prevalence kept")
    assert said == [_row(name)[-1].replace("*", "").removesuffix(" points") for name in rows]


def test_the_commands_of_the_readme_have_their_files_and_options() -> None:
    text = README.read_text("utf-8")
    for verb in ("fit", "quantify", "evaluate", "compare"):
        assert re.search(rf"^prevalens {verb} .*tickets/", text, re.MULTILINE)
    shell = (README.parent / "examples" / "tickets.sh").read_text("utf-8")
    for line in re.findall(
        r"^prevalens (?:fit|quantify|evaluate|compare) [^#\n]*", text, re.MULTILINE
    ):
        # The example runs the README's commands, which a test runs in turn.
        assert line.split(" --")[0].strip() in shell


def test_the_first_screen_is_short_and_its_badges_are_true() -> None:
    text = README.read_text("utf-8")
    screen = text.partition("\n## ")[0]
    assert len(screen.splitlines()) <= 20
    assert "docs/images/figure-trend.svg" in screen
    project = tomllib.loads(README.with_name("pyproject.toml").read_text("utf-8"))["project"]
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    python, licence = re.findall(r"https://img.shields.io/badge/(\S+)-blue", screen)
    assert unquote(python) == "python-" + " | ".join(versions)
    assert licence.replace("--", "-") == f"licence-{project['license']}"
