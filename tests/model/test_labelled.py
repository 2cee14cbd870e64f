"""Labelled files: what is refused before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from prevalens.errors import InputError, PrevalensWarning
from prevalens.model.labelled import check_labelled, read_labelled


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
        read_labelled(path, labels=["x", "y"], id="text")


def test_tags_divided_by_another_sign_are_pointed_out(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("text,tags\nhello,a;b\nworld,b\nagain,a\n")
    with pytest.warns(PrevalensWarning, match="No tag of the column 'tags' holds ',', but 1 of 3"):
        found = read_labelled(path, tags="tags", text="text")
    assert found.labels == ("a", "a;b", "b")
    # None of these warns, and warnings are errors.
    assert read_labelled(path, tags="tags", text="text", sep=";").labels == ("a", "b")
    path.write_text('text,tags\nhello,"a,c;b"\nworld,b\n')
    assert read_labelled(path, tags="tags", text="text").labels == ("a", "b", "c;b")
    path.write_text("text,tags\nhello,a b\nworld,b\n")
    assert read_labelled(path, tags="tags", text="text").labels == ("a b", "b")


def test_headers_alone_show_missing_columns(tmp_path: Path, path: Path) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text("text,x\nshort\n")
    bad.write_text("text,z\n")
    check_labelled(good, text="text", labels=["x"])
    with pytest.raises(InputError, match="has no column 'when'"):
        check_labelled(good, text="text", labels=["x"], time="when")
    with pytest.raises(InputError, match="has no column 'age'"):
        check_labelled(good, text="text", labels=["x"], others=["age"])
    with pytest.raises(InputError, match=r"bad\.csv has no column 'x'"):
        check_labelled([good, bad], text="text", labels=["x"])
    # It can be read only once.
    check_labelled("-", text="text", labels=["x"])
