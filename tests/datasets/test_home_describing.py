from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from prevalens.datasets.home import describe
from prevalens.datasets.registry import names
from prevalens.validation import InputError


def test_available_or_not(tmp_path: Path, place_mulan: Callable[..., None]) -> None:
    files = ("yeast-train.arff", "yeast-test.arff", "yeast.xml")
    before = describe("yeast", home=tmp_path)
    assert not before.available
    assert before.files == files
    assert before.folder == tmp_path / "yeast"
    place_mulan(tmp_path / "yeast", *files)
    assert describe("yeast", home=tmp_path).available


def test_files_of_the_layout_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "ohsumed").mkdir()
    (tmp_path / "ohsumed" / "ohsumed-all-docs.tar.gz").touch()
    assert describe("ohsumed", home=tmp_path).files == ("ohsumed-all-docs.tar.gz",)


def test_built_in_data_has_no_folder(tmp_path: Path) -> None:
    found = describe("synthetic", home=tmp_path)
    assert found.available
    assert found.folder is None
    assert found.files == ()


@pytest.mark.parametrize("name", names())
def test_every_dataset_can_be_described(tmp_path: Path, name: str) -> None:
    found = describe(name, home=tmp_path)
    assert found.name == name
    assert found.origin
    assert found.shape.labels > 0


def test_unknown_name() -> None:
    with pytest.raises(InputError, match="no dataset 'bird'; did you mean 'birds'"):
        describe("bird")
