"""What the commands share: lists of names, progress, files of results."""

from __future__ import annotations

from pathlib import Path

import pytest

from prevalens.cli.steps import listed, shown_steps, write_results
from prevalens.errors import InputError
from prevalens.workflow.progress import Step


def test_names_may_be_repeated_and_divided_by_commas() -> None:
    assert listed(["a, b", "c"]) == ["a", "b", "c"]
    assert listed([]) is None
    assert listed([" ,"]) is None


def test_progress_is_quiet_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_steps() as show:
        show(Step("scoring", 1, 3))
        show(Step("waiting"))
    assert capsys.readouterr() == ("", "")


def test_formulas_are_defused_in_csv(tmp_path: Path) -> None:
    rows = [{"label": "=SUM(A1)", "error": 0.5}]
    write_results(tmp_path / "x.csv", rows, {})
    assert (tmp_path / "x.csv").read_text("utf-8") == "label,error\n'=SUM(A1),0.5\n"
    write_results(tmp_path / "x.json", rows, {"ä": 1})
    assert (tmp_path / "x.json").read_text("utf-8") == '{\n "ä": 1\n}\n'
    with pytest.raises(InputError, match=r"as .csv or .json; got 'x.txt'"):
        write_results(tmp_path / "x.txt", rows, {})
