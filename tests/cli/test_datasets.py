from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from prevalens.cli.datasets import command
from prevalens.datasets import DataNotFoundError, names
from prevalens.validation import InputError


def run(*arguments: str, home: Path | str | None = None) -> Result:
    options = [] if home is None else ["--home", str(home)]
    return CliRunner().invoke(command, [*arguments, *options], catch_exceptions=True)


def test_list_names_every_dataset(tmp_path: Path) -> None:
    result = run(home=tmp_path)
    assert result.exit_code == 0
    lines = {line.split()[0]: line.split() for line in result.output.splitlines() if line.split()}
    for name in names():
        assert lines[name][1] == ("yes" if name.startswith("synthetic") else "no")
    assert lines["delicious"][3:] == ["983", "12,920", "3,185", "500"]


def test_list_as_json(tmp_path: Path) -> None:
    found = json.loads(run("--json", home=tmp_path).output)
    assert [one["name"] for one in found] == list(names())
    yeast = next(one for one in found if one["name"] == "yeast")
    assert yeast["shape"] == {"labels": 14, "train": 1500, "test": 917, "features": 103}
    assert yeast["available"] is False
    assert yeast["folder"] == str(tmp_path / "yeast")


def test_describe_one_that_is_there(tmp_path: Path) -> None:
    result = run("synthetic", home=tmp_path)
    assert result.exit_code == 0
    assert "2,000 training and 2,000 test items" in result.output
    assert "billing" in result.output
    assert "... 2 more" in result.output
    found = json.loads(run("synthetic", "--json", home=tmp_path).output)
    assert len(found["loaded"]["train_prevalence"]) == 12
    assert found["loaded"]["statistics"]["diversity"] > 50


def test_describe_one_that_is_not_there(tmp_path: Path) -> None:
    result = run("genbase", home=tmp_path)
    assert result.exit_code == 0
    assert "is an identifier" in result.output
    assert "prevalens datasets genbase --download" in result.output.replace("\n", " ")
    assert json.loads(run("genbase", "--json", home=tmp_path).output)["loaded"] is None


def test_errors_come_through_for_the_main_program(tmp_path: Path) -> None:
    assert isinstance(run("yeats", home=tmp_path).exception, InputError)
    assert isinstance(run("synthetic", "--table", home=tmp_path).exception, InputError)


def test_failed_download_comes_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("PREVALENS_MIRROR", "http://127.0.0.1:9")
    monkeypatch.setattr("prevalens.datasets.fetch.time.sleep", lambda seconds: None)
    result = run("yeast", "--download", home=tmp_path)
    assert isinstance(result.exception, DataNotFoundError)
    table = run("yeast", "--table", "--download", home=tmp_path)
    assert table.exit_code == 0
    assert "Skipped yeast: The dataset 'yeast' is not in" in table.output


def test_table_says_what_it_skips(tmp_path: Path) -> None:
    result = run("--table", home=tmp_path)
    assert result.exit_code == 0
    assert "Skipped, not in the data home: emotions, scene, yeast" in result.output
    found = json.loads(run("--table", "--json", home=tmp_path).stdout)
    assert found["rows"] == []
    assert len(found["skipped"]) == 17


@pytest.mark.data
def test_table_marks_every_difference(data_home: Path) -> None:
    rows: dict[str, Any] = {}
    for name in ("yeast", "tmc2007_500"):
        (row,) = json.loads(run(name, "--table", "--json", home=data_home).stdout)["rows"]
        rows[name] = row
    assert rows["yeast"]["differences"] == []
    assert rows["tmc2007_500"]["computed"]["div"] == 1341
    output = run("tmc2007_500", "--table", home=data_home).output
    assert "4/10" in output
    assert [word for word in output.split() if word.startswith("*")] == [
        "*",
        "*2.158",
        "*0.098",
        "*1341",
        "*60.955",
        "*0.031",
        "*0.116",
    ]
