"""`prevalens demo --table` shows a result that makes its point."""

from __future__ import annotations

import re

from click.testing import CliRunner

from prevalens.cli.demo import METHODS, command


def test_the_table_makes_its_point() -> None:
    result = CliRunner().invoke(
        command, ["--table", "--quick", "--items", "600"], env={"COLUMNS": "200"}
    )
    assert result.exit_code == 0, result.output
    assert "600 training items" in result.output
    assert "ML-APP" in result.output
    assert "uniform" in result.output
    assert "What next?" in result.output
    moved = result.output.split("It has not")[0]
    errors = {name: _figures(moved, name) for name in METHODS}
    # Where the mix has moved far, the naive answer is worst and the joint correction best.
    assert errors["naive"][2] == max(row[2] for row in errors.values())
    assert errors["lr+rq(pcc,ridge)"][2] < errors["lr+pcc"][2]


def _figures(text: str, method: str) -> list[float]:
    rows = (
        re.findall(r"(?<!\S)\d?\.\d{3}", line)
        for line in text.splitlines()
        if line.split()[:1] == [method]
    )
    return [float(figure) for figure in next(figures for figures in rows if figures)]


def test_the_same_seed_shows_the_same_table() -> None:
    words = ["--table", "--quick", "--items", "300", "--labels", "4", "--seed", "7"]
    first, second = (CliRunner().invoke(command, words).output for _ in range(2))
    assert first.split("Done in")[0] == second.split("Done in")[0]
