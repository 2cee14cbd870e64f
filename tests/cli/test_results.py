"""Pages, files and JSON of results."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from prevalens.cli.results import Results, result_options, write_results
from prevalens.errors import InputError

EVERYTHING = {"ä": 1}


@click.command()
@result_options("Write a page.")
def command(results: Results) -> None:
    results.check()
    click.echo("working")
    results.write(lambda: "<p>", lambda: [{"label": "a", "error": 0.5}], EVERYTHING)


def test_only_what_is_asked_for_is_made(tmp_path: Path) -> None:
    assert CliRunner().invoke(command, []).output == "working\n"
    page, table = tmp_path / "p.html", tmp_path / "t.csv"
    done = CliRunner().invoke(command, ["--html", str(page), "-o", str(table), "--json"])
    assert json.loads(done.output.removeprefix("working\n")) == EVERYTHING
    assert page.read_text() == "<p>"
    assert table.read_text() == "label,error\na,0.5\n"


@pytest.mark.parametrize("option", ["--html", "-o"])
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    option: str, tmp_path: Path
) -> None:
    done = CliRunner().invoke(command, [option, str(tmp_path / "no" / "x.csv")])
    assert isinstance(done.exception, InputError)
    assert "there is no folder" in str(done.exception)
    assert "working" not in done.output


def test_formulas_are_defused_in_csv(tmp_path: Path) -> None:
    rows = [{"label": "=SUM(A1)", "error": 0.5}]
    write_results(tmp_path / "x.csv", rows, {})
    assert (tmp_path / "x.csv").read_text("utf-8") == "label,error\n'=SUM(A1),0.5\n"
    write_results(tmp_path / "x.json", rows, {"ä": 1})
    assert (tmp_path / "x.json").read_text("utf-8") == '{\n "ä": 1\n}\n'
    with pytest.raises(InputError, match=r"as .csv or .json; got 'x.txt'"):
        write_results(tmp_path / "x.txt", rows, {})
