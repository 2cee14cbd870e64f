from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from prevalens import files
from prevalens.files import make_folder, sweep, write_whole
from prevalens.validation import InputError


def unfinished(folder: Path, process: int, host: str | None = None) -> Path:
    path = folder / f".a.json.{host or files._host()}.{process}.00ff.unfinished"
    path.write_bytes(b"half")
    return path


@pytest.fixture
def dead_process() -> int:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_written_file_is_all_there_and_nothing_else(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.json", b"one")
    write_whole(tmp_path / "a.json", b"two")
    assert (tmp_path / "a.json").read_bytes() == b"two"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_crash_between_writing_and_renaming_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_whole(tmp_path / "a.json", b"old")

    def crash(*_: object) -> None:
        os.kill(os.getpid(), 9)

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(Path, "replace", crash)
        write_whole(tmp_path / "a.json", b"new")
    os.waitpid(child, 0)
    assert (tmp_path / "a.json").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2
    assert sweep(tmp_path) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    ("error", "raised"), [(OSError("broken"), InputError), (KeyboardInterrupt(), KeyboardInterrupt)]
)
def test_error_while_writing_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    raised: type[BaseException],
) -> None:
    def fail(_: int) -> None:
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(raised):
        write_whole(tmp_path / "a.json", b"new")
    assert list(tmp_path.iterdir()) == []


def test_sweep_spares_files_that_somebody_may_still_write(
    tmp_path: Path, dead_process: int
) -> None:
    ours = unfinished(tmp_path, os.getpid())
    elsewhere = unfinished(tmp_path, dead_process, host="other_host")
    dead = unfinished(tmp_path, dead_process)
    assert sweep(tmp_path) == 1
    assert ours.exists()
    assert elsewhere.exists()
    assert not dead.exists()


def test_sweep_deletes_what_another_machine_left_long_ago(tmp_path: Path) -> None:
    path = unfinished(tmp_path, 1, host="other_host")
    os.utime(path, (0, 0))
    assert sweep(tmp_path) == 1


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"folder .*file/inside cannot be made"):
        make_folder(tmp_path / "file" / "inside")
