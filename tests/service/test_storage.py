from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

from prevalens.service.storage import Storage, new_id


def test_the_folder_is_private_and_goes(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    inside = storage.folder()
    (inside / "secret.csv").write_text("x")
    for folder in (storage.root, inside):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    storage.close()
    assert list(tmp_path.iterdir()) == []
    storage.close()


def test_what_a_killed_server_left_is_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    left = tmp_path / f"prevalens-serve-{gone.pid}-abc"
    alive = tmp_path / f"prevalens-serve-{os.getpid()}-abc"
    other = tmp_path / "prevalens-serve-notes"
    for folder in (left, alive, other):
        folder.mkdir()
    storage = Storage(tmp_path)
    assert not left.exists()
    assert alive.exists()
    assert other.exists()
    storage.close()


def test_identifiers_differ_and_are_long() -> None:
    assert len({new_id() for _ in range(100)}) == 100
    assert len(new_id()) == 32
