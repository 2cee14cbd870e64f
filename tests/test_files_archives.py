from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from prevalens.files import digest, members, tree_digest
from prevalens.validation import FormatError, InputError

FILES = {"b/two": b"2" * 600, "a/one": b"1"}


def tar(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def test_folder_archive_and_file_read_alike(tmp_path: Path) -> None:
    for name, content in FILES.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "tree" / ".hidden").write_bytes(b"no")
    (tmp_path / "all.tar.gz").write_bytes(tar(FILES))
    expected = sorted(FILES.items())
    assert list(members(tmp_path / "tree")) == expected
    assert list(members(tmp_path / "all.tar.gz")) == expected
    assert list(members(tmp_path / "tree" / "a" / "one")) == [("one", b"1")]


def test_packed_members_are_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "all.tar"
    path.write_bytes(tar({"a/one.gz": gzip.compress(b"1")}, "w:"))
    assert list(members(path)) == [("a/one.gz", b"1")]


@pytest.mark.parametrize("cut", [3, 40, 100])
def test_cut_archive_is_a_format_error(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "all.tar.gz"
    path.write_bytes(tar(FILES)[:cut])
    with pytest.raises(FormatError, match=r"all\.tar\.gz"):
        list(members(path))


def test_member_shorter_than_promised_is_a_format_error(tmp_path: Path) -> None:
    path = tmp_path / "all.tar"
    path.write_bytes(tar({"a/one": b"x" * 2000}, "w:")[:1024])
    with pytest.raises(FormatError, match="cut off"):
        list(members(path))


def test_archive_without_files(tmp_path: Path) -> None:
    path = tmp_path / "none.tar"
    path.write_bytes(tar({}, "w:"))
    with pytest.raises(InputError, match="holds no files"):
        list(members(path))


def test_digest_of_a_folder_sees_names_and_contents(tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.mkdir()
    (one / "a").write_bytes(b"1")
    before = tree_digest(one)
    (one / "a").rename(one / "b")
    renamed = tree_digest(one)
    (one / "b").write_bytes(b"2")
    assert len({before, renamed, tree_digest(one)}) == 3
    assert tree_digest(one / "b") == digest(one / "b")
