"""The pages that experiments are written to."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from prevalens.cli.plans import Pages, page_options, write_text
from prevalens.errors import InputError
from prevalens.reports.layout import wide_grid
from prevalens.reports.page import Section
from prevalens.studies.moreo2023.printed import printed

SECTIONS = [Section("Results", ("A paragraph.", wide_grid(printed("pcc_general"))))]


@click.command()
@page_options
@click.option("--other", default="x")
def command(pages: Pages, other: str) -> None:
    """Tell which pages are wanted."""
    click.echo(f"{pages.html} {pages.markdown} {pages.latex} {bool(pages)} {other}")


def test_options_become_one_value() -> None:
    assert CliRunner().invoke(command, []).output == "None None None False x\n"
    arguments = ["--html", "a.html", "--latex", "b.tex", "--other", "y"]
    assert CliRunner().invoke(command, arguments).output == "a.html None b.tex True y\n"


def test_only_what_is_asked_for_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Pages(latex=tmp_path / "t.tex").write("Title", SECTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["t.tex"]
    assert r"\begin{tabular}" in (tmp_path / "t.tex").read_text("utf-8")
    assert capsys.readouterr().err == f"Wrote {tmp_path / 't.tex'}.\n"
    Pages(tmp_path / "t.html", tmp_path / "t.md").write("Title", SECTIONS)
    assert "<h1>Title</h1>" in (tmp_path / "t.html").read_text("utf-8")
    assert (tmp_path / "t.md").read_text("utf-8").startswith("# Title\n")


def test_places_are_checked_before_anything_is_done(tmp_path: Path) -> None:
    Pages(html=tmp_path / "t.html").check([])
    with pytest.raises(InputError, match="there is no folder"):
        Pages(html=tmp_path / "t.html", markdown=tmp_path / "none" / "t.md").check([])
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "t.md"
    write_text(path, "old")
    write_text(path, "néw")
    assert path.read_text("utf-8") == "néw"
    assert list(tmp_path.iterdir()) == [path]
