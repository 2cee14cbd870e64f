"""Names, patterns and folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from prevalens.errors import InputError
from prevalens.tables.opening import expand


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.csv", "a.csv.gz", "c.jsonl", "notes.md", ".hidden.csv"):
        (tmp_path / name).write_text("x\n1\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "d.csv").write_text("x\n1\n")
    return tmp_path


def names(found: list[Path]) -> list[str]:
    return [path.name for path in found]


def test_folders_and_patterns(folder: Path) -> None:
    assert names(expand(folder)) == ["a.csv.gz", "b.csv", "c.jsonl"]
    assert names(expand(str(folder / "*.csv"))) == ["b.csv"]
    assert names(expand(str(folder / "**" / "*.csv"))) == ["b.csv", "d.csv"]
    assert names(expand([folder / "b.csv", folder])) == ["b.csv", "a.csv.gz", "c.jsonl"]


def test_names_stay_as_they_are(tmp_path: Path) -> None:
    assert expand("-") == [Path("-")]
    assert expand("missing.csv") == [Path("missing.csv")]
    odd = tmp_path / "a[1].csv"
    odd.write_text("x\n")
    assert expand(odd) == [odd]


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No file fits the pattern"):
        expand(str(tmp_path / "*.csv"))
    with pytest.raises(InputError, match="holds no table"):
        expand(tmp_path)
    with pytest.raises(InputError, match="No file is named"):
        expand([])
