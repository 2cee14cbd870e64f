from __future__ import annotations

from pathlib import Path

import pytest

from prevalens.service.problems import Problem
from prevalens.service.settings import Limits
from prevalens.service.storage import (
    Storage,
    Upload,
    Uploads,
    keep_reading,
    plain_path,
    stored_reading,
)


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
    storage = Storage(tmp_path, limit=25)
    uploads = Uploads(storage, Limits())
    first, _ = _add(uploads, storage), _add(uploads, storage)
    with pytest.raises(Problem, match="keeps enough uploads"):
        storage.check_room(10)
    storage.check_room(5)
    assert (len(uploads), storage.used, storage.room(100)) == (2, 20, 5)
    uploads.remove(first.id)
    storage.check_room(15)
    storage.close()


def test_what_arrives_counts_before_it_is_complete(tmp_path: Path) -> None:
    storage = Storage(tmp_path, limit=25)
    one, other = storage.folder(), storage.folder()
    storage.hold(one, 10)
    storage.hold(one, 10)
    with pytest.raises(Problem, match="keeps enough uploads"):
        storage.hold(other, 6)
    (one / "answer.json").write_bytes(b"x" * 12)
    assert storage.measure(one) == 12
    storage.hold(other, 6)
    storage.remove(one)
    assert storage.used == 6
    storage.close()


def test_of_a_compressed_file_the_unpacked_copy_is_kept_and_counted(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    uploads = Uploads(storage, Limits())
    plain_path(storage.root / "3.csv.gz").write_bytes(b"a\n" * 50)
    upload = _add(uploads, storage)
    assert (upload.path.name, upload.size, storage.used) == ("0.csv", 10, 100)
    storage.close()


def test_an_upload_outlives_the_tasks_that_wait_for_it(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    uploads = Uploads(storage, Limits(kept_seconds=100))
    waited_for, removed = (_add(uploads, storage) for _ in range(2))
    with uploads.in_use([waited_for.id, removed.id, "unknown"]):
        waited_for.used = 0
        uploads.expire()
        uploads.remove(removed.id)
        assert removed.id not in uploads
        assert removed.path.exists()
        with uploads.in_use([waited_for.id]):
            pass
        waited_for.used = 0
        uploads.expire()
        assert waited_for.path.exists()
    assert not removed.folder.exists()
    # Counted from the end of the task on.
    uploads.expire()
    assert uploads.all() == [waited_for]
    storage.close()


def test_the_reading_moves_with_the_file(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    path = storage.root / "3.csv"
    path.write_bytes(b"x")
    chosen = {"encoding": "cp1252", "delimiter": None}
    keep_reading(path, {**chosen, "guessed": True})
    upload = Uploads(storage, Limits()).add("may.csv", path, {})
    assert stored_reading(upload.path) == chosen
    assert stored_reading(path) == {"encoding": None, "delimiter": None}
    storage.close()
