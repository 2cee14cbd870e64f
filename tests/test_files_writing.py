"""Files are whole or not there, and failures are sentences."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from prevalens.errors import InputError
from prevalens.files import check_writable, writing


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("old")
    with writing(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def fail(path: Path, error: BaseException) -> None:
    """Write half of a file, then fail."""
    with writing(path) as file:
        file.write(b"half")
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_nothing_is_left_of_an_interrupted_file(tmp_path: Path, error: type) -> None:
    with pytest.raises(error):
        fail(tmp_path / "x.csv", error())
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the disk is full\. Nothing was left there"):
        fail(tmp_path / "x.csv", OSError(errno.ENOSPC, "No space left on device"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("act", [check_writable, lambda path: writing(path).__enter__()])
def test_places_that_cannot_be_written(act: object, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be written: there is no folder"):
        act(tmp_path / "nowhere" / "x.csv")


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder; name a file to write"):
        check_writable(tmp_path)
    with pytest.raises(InputError, match=r"folder|Is a directory"), writing(tmp_path) as file:
        file.write(b"x")


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="you have no permission in"):
        check_writable(tmp_path / "x.csv")
