"""`prevalens paper`, for real on the smallest dataset, with small grids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from prevalens.cli.paper import command
from prevalens.validation import FormatError, InputError

DOCS = Path(__file__).parents[2] / "docs"
ARGUMENTS = ["--tables", "pcc_general", "--datasets", "emotions", "--fast"]


@pytest.mark.data
@pytest.mark.slow
def test_run_report_and_resume(tmp_path: Path) -> None:
    store, html = str(tmp_path / "store"), tmp_path / "page.html"
    arguments = [*ARGUMENTS, "--store", store]
    listed = CliRunner().invoke(command, [*arguments, "--list"], catch_exceptions=False)
    assert "0 of 8 cells are done" in listed.output
    first = CliRunner().invoke(
        command,
        [*arguments, "--html", str(html), "--markdown", str(tmp_path / "p.md")],
        catch_exceptions=False,
    )
    assert "8 cells computed, 0 were there" in first.stderr
    assert "as printed" in first.output
    page = html.read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "Emotions" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    again = CliRunner().invoke(
        command,
        [*arguments, "--html", str(html), "--save-records", str(tmp_path / "records")],
        catch_exceptions=False,
    )
    assert "Wrote" in again.stderr
    assert (tmp_path / "records" / "pcc_general.json").is_file()
    assert "0 cells computed, 8 were there" in again.stderr
    assert html.read_text() == page


def test_an_interrupt_says_where_things_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("prevalens.cli.plans.run_plan", interrupt)
    result = CliRunner().invoke(command, [*ARGUMENTS, "--store", str(tmp_path / "out")])
    assert result.exit_code != 0
    assert f"Finished cells are in {tmp_path / 'out'}; the same command" in result.stderr


def test_the_reproduction_is_made_of_records(tmp_path: Path) -> None:
    out = tmp_path / "page.md"
    arguments = ["--from-records", str(DOCS / "records"), "--reproduction", str(out)]
    CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert out.read_text("utf-8") == (DOCS / "reproduction.md").read_text("utf-8")


def test_records_need_a_file_to_write() -> None:
    result = CliRunner().invoke(command, ["--from-records", str(DOCS / "records")])
    assert result.exit_code == 2
    assert "--from-records needs --reproduction" in result.output


def test_some_cells_of_a_table(tmp_path: Path) -> None:
    arguments = ["--tables", "pcc_general,acc_general", "--datasets", "synthetic", "--list"]
    arguments += ["--store", str(tmp_path / "out")]
    only = ["--only", "method=pcc BC+MLA,variant=as printed"]
    listed = CliRunner().invoke(command, [*arguments, *only], catch_exceptions=False).output
    assert listed.splitlines() == [
        "open  synthetic, pcc BC+MLA [as printed], ml-app, seed 0",
        "0 of 1 cells are done.",
    ]
    with pytest.raises(InputError, match=r"no such method; did you mean 'pcc BC[+]MLA'"):
        CliRunner().invoke(
            command, [*arguments, "--only", "method=pcc BC+ML"], catch_exceptions=False
        )


def test_a_page_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    arguments = [*ARGUMENTS, "--store", str(tmp_path / "store"), "--reproduction"]
    with pytest.raises(InputError, match="nowhere"):
        CliRunner().invoke(
            command, [*arguments, str(tmp_path / "nowhere" / "page.md")], catch_exceptions=False
        )
    assert not (tmp_path / "store").exists()


def test_records_that_cannot_be_joined_are_refused_before_the_run(tmp_path: Path) -> None:
    records = tmp_path / "records"
    records.mkdir()
    (records / "pcc_general.json").write_text("not mine")
    arguments = [*ARGUMENTS, "--store", str(tmp_path / "store"), "--save-records", str(records)]
    with pytest.raises(FormatError, match=r"pcc_general.json is no record of a table"):
        CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert not (tmp_path / "store").exists()
    assert (records / "pcc_general.json").read_text() == "not mine"


def test_nothing_run_yet(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        command,
        [
            "--tables",
            "mlc",
            "--datasets",
            "synthetic",
            "--no-run",
            "--store",
            str(tmp_path / "none"),
        ],
        catch_exceptions=False,
    )
    assert "mlc: nothing has been run yet" in result.output


def test_unknown_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no table 'nosuch'"):
        CliRunner().invoke(command, ["--tables", "nosuch"], catch_exceptions=False)
    with pytest.raises(InputError, match="nosuch"):
        CliRunner().invoke(command, ["--datasets", "nosuch"], catch_exceptions=False)


@pytest.mark.parametrize("seeds", ["a", "0,b", "-1", ""])
def test_seeds_must_be_numbers(seeds: str) -> None:
    with pytest.raises(InputError, match="--seeds takes whole numbers with commas"):
        CliRunner().invoke(command, ["--seeds", seeds, "--list"], catch_exceptions=False)
