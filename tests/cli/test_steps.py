"""What the commands share: lists of names, progress, files of results."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from tqdm import tqdm

from prevalens.cli import steps
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


class Terminal(io.StringIO):
    """Somebody looks."""

    def isatty(self) -> bool:
        return True


def test_progress_names_the_stage_and_what_comes_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(**how: Any) -> Any:
        return tqdm(**{**how, "delay": 0, "ascii": True})

    monkeypatch.setattr(steps, "tqdm", at_once)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with shown_steps() as show:
        show(Step("reading", 3, 3))
        show(Step("fitting", detail="forest, fold 1 of 5"))
        lines = sys.stderr.getvalue().split("\r")
    assert any(line.startswith("reading |###") for line in lines)
    # How long the fit takes is not known: the bar of the reading is gone.
    assert lines[-1].startswith("fitting: forest, fold 1 of 5 |  ")
    assert "#" not in lines[-1]


def test_formulas_are_defused_in_csv(tmp_path: Path) -> None:
    rows = [{"label": "=SUM(A1)", "error": 0.5}]
    write_results(tmp_path / "x.csv", rows, {})
    assert (tmp_path / "x.csv").read_text("utf-8") == "label,error\n'=SUM(A1),0.5\n"
    write_results(tmp_path / "x.json", rows, {"ä": 1})
    assert (tmp_path / "x.json").read_text("utf-8") == '{\n "ä": 1\n}\n'
    with pytest.raises(InputError, match=r"as .csv or .json; got 'x.txt'"):
        write_results(tmp_path / "x.txt", rows, {})
