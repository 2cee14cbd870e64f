from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prevalens.service.problems import Problem
from prevalens.service.settings import Limits
from prevalens.service.storage import Storage, Upload, Uploads


def _upload(storage: Storage, size: int = 10, **more: Any) -> Upload:
    folder = storage.folder()
    path = folder / "0.csv"
    path.write_text("x")
    return Upload("may.csv", path, folder, size, {"columns": [], "rows": []}, **more)


def test_an_upload_is_kept_until_it_is_removed(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    uploads = Uploads(storage, Limits())
    one = uploads.add(_upload(storage))
    assert uploads.get(one.id) is one
    assert one.shown()["name"] == "may.csv"
    assert str(tmp_path) not in str(one.shown())
    uploads.remove(one.id)
    assert not one.folder.exists()
    with pytest.raises(Problem, match="no such upload"):
        uploads.get(one.id)
    storage.close()


def test_unused_uploads_expire_and_used_ones_stay(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    uploads = Uploads(storage, Limits(kept_seconds=100))
    old, used = (uploads.add(_upload(storage)) for _ in range(2))
    old.used = used.used = 0
    uploads.touch([used.id, "unknown"])
    uploads.expire()
    assert [key for key, _ in uploads.items()] == [used.id]
    assert not old.path.exists()
    storage.close()


def test_all_uploads_together_are_limited(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    uploads = Uploads(storage, Limits(stored_bytes=25))
    uploads.add(_upload(storage))
    uploads.add(_upload(storage))
    with pytest.raises(Problem, match="keeps enough uploads"):
        uploads.check_room(10)
    uploads.check_room(5)
    assert (len(uploads), uploads.size) == (2, 20)
    storage.close()
