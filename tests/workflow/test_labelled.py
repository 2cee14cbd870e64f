"""Labelled files: what is refused before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from prevalens.errors import InputError
from prevalens.workflow import read_labelled


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "t.csv"
    found.write_text("text,x,y\nhello,1,0\nworld,0,1\n")
    return found


def test_patterns_of_labels_and_the_rest_as_items(path: Path) -> None:
    found = read_labelled(path, labels=["[xy]"])
    assert found.labels == ("x", "y")
    assert found.columns == ("text",)
    assert found.text is None
    assert found.items.place(1).endswith("t.csv, line 3")
    assert found.Y.tolist() == [[1, 0], [0, 1]]


def test_nothing_but_labels(path: Path) -> None:
    with pytest.raises(InputError, match="has no columns besides the labels"):
        read_labelled(path, labels=["*"])
    with pytest.raises(InputError, match="has no columns besides the labels"):
        read_labelled(path, labels=["x", "y"], leave_out=["text"])
