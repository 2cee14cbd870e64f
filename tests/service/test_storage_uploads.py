from __future__ import annotations

from pathlib import Path

import pytest

from prevalens.service.problems import Problem
from prevalens.service.settings import Limits
from prevalens.service.storage import Storage, Upload, Uploads


def _add(uploads: Uploads, storage: Storage, size: int = 10) -> Upload:
    path = storage.root / "3.csv.gz"
    path.write_bytes(b"x" * size)
    return uploads.add("may.csv.gz", path, {"columns": [], "rows": []})


def test_an_upload_is_kept_until_it_is_removed(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    uploads = Uploads(storage, Limits())
    one = _add(uploads, storage)
    assert uploads.get(one.id) is one
    assert one.shown()["name"] == "may.csv.gz"
    assert one.path == one.folder / "0.csv.gz"
    assert one.path.read_bytes() == b"x" * 10
    assert str(tmp_path) not in str(one.shown())
    uploads.remove(one.id)
    assert not one.folder.exists()
    with pytest.raises(Problem, match="no such upload"):
        uploads.get(one.id)
    storage.close()


def test_unused_uploads_expire_and_used_ones_stay(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    uploads = Uploads(storage, Limits(kept_seconds=100))
    old, used = (_add(uploads, storage) for _ in range(2))
    old.used = used.used = 0
    uploads.touch([used.id, "unknown"])
    uploads.expire()
    assert [upload.id for upload in uploads.all()] == [used.id]
    assert not old.path.exists()
    storage.close()


def test_all_uploads_together_are_limited(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    uploads = Uploads(storage, Limits(stored_bytes=25))
    _add(uploads, storage)
    _add(uploads, storage)
    with pytest.raises(Problem, match="keeps enough uploads"):
        uploads.check_room(10)
    uploads.check_room(5)
    assert (len(uploads), uploads.size) == (2, 20)
    storage.close()
