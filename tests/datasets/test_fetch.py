from __future__ import annotations

import gzip
import hashlib
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from prevalens.datasets.fetch import DownloadError, NotFoundError, download
from prevalens.validation import InputError

CONTENT = bytes(range(256)) * 1024
SHA = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "file.bin"


def left(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir())


def test_success_leaves_only_the_file(server: Any, target: Path) -> None:
    server.files["/file"] = CONTENT
    assert download(f"{server.address}/file", target, sha256=SHA) == target
    assert target.read_bytes() == CONTENT
    assert left(target) == ["file.bin"]


def test_a_file_that_is_there_is_not_fetched(server: Any, target: Path) -> None:
    target.parent.mkdir()
    target.write_bytes(b"mine")
    download(f"{server.address}/file", target)
    assert server.asked == []
    assert target.read_bytes() == b"mine"


def test_cut_connections_are_resumed_where_they_ended(server: Any, target: Path) -> None:
    server.files["/file"] = CONTENT
    server.cuts = [100_000, 70_000]
    download(f"{server.address}/file", target, sha256=SHA, wait=0)
    assert [wanted for _, wanted in server.asked] == [None, "bytes=100000-", "bytes=170000-"]
    assert target.read_bytes() == CONTENT
    assert left(target) == ["file.bin"]


def test_a_later_call_resumes(server: Any, target: Path) -> None:
    server.files["/file"] = CONTENT
    server.cuts = [100_000]
    with pytest.raises(DownloadError, match="cut after 100000 of 262144 bytes"):
        download(f"{server.address}/file", target, retries=0)
    assert left(target) == ["file.bin.part", "file.bin.part.tag"]
    download(f"{server.address}/file", target, retries=0)
    assert server.asked[-1][1] == "bytes=100000-"
    assert target.read_bytes() == CONTENT


def test_another_version_is_not_mixed_in(server: Any, target: Path) -> None:
    server.files["/file"] = CONTENT
    server.cuts = [100_000]
    with pytest.raises(DownloadError):
        download(f"{server.address}/file", target, retries=0)
    server.files["/file"], server.etag = CONTENT[::-1], '"two"'
    download(f"{server.address}/file", target, retries=0)
    assert target.read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("how", ["no ranges", "no version"])
def test_without_resuming_it_starts_over(server: Any, target: Path, how: str) -> None:
    server.files["/file"] = CONTENT
    server.cuts = [100_000]
    server.ranges = how != "no ranges"
    server.etag = None if how == "no version" else '"one"'
    download(f"{server.address}/file", target, sha256=SHA, wait=0)
    assert len(server.asked) == 2
    assert target.read_bytes() == CONTENT


def test_a_part_longer_than_the_file_starts_over(server: Any, target: Path) -> None:
    server.files["/file"] = CONTENT
    target.parent.mkdir()
    (target.parent / "file.bin.part").write_bytes(CONTENT * 2)
    (target.parent / "file.bin.part.tag").write_text('"one"')
    download(f"{server.address}/file", target, sha256=SHA, wait=0)
    assert target.read_bytes() == CONTENT


def test_wrong_checksum_leaves_nothing(server: Any, target: Path) -> None:
    server.files["/file"] = CONTENT
    with pytest.raises(DownloadError, match="is not the expected file"):
        download(f"{server.address}/file", target, sha256="0" * 64)
    assert left(target) == []


def test_checksum_is_of_the_uncompressed_content(server: Any, target: Path) -> None:
    server.files["/file"] = gzip.compress(CONTENT)
    download(f"{server.address}/file", target, sha256=SHA)
    assert gzip.decompress(target.read_bytes()) == CONTENT


def test_damaged_packing_leaves_nothing(server: Any, target: Path) -> None:
    server.files["/file"] = gzip.compress(CONTENT)[:-20]
    with pytest.raises(DownloadError, match="compressed data is damaged"):
        download(f"{server.address}/file", target, sha256=SHA)
    assert left(target) == []


def test_404_is_said_at_once(server: Any, target: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no file at http.*/file \(HTTP 404\)"):
        download(f"{server.address}/file", target)
    assert len(server.asked) == 1
    assert left(target) == []


def test_server_errors_are_retried_client_errors_are_not(server: Any, target: Path) -> None:
    server.files["/file"] = CONTENT
    server.statuses = [503, 500]
    download(f"{server.address}/file", target, sha256=SHA, wait=0)
    assert len(server.asked) == 3
    server.statuses = [403, 200]
    with pytest.raises(DownloadError, match="HTTP 403"):
        download(f"{server.address}/file", target.with_name("other"), wait=0)
    assert len(server.asked) == 4


def test_offline_is_one_sentence(target: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/file"
    with pytest.raises(DownloadError, match=r"could not be fetched: .*refused") as caught:
        download(address, target, retries=1, wait=0)
    assert address in str(caught.value)
    assert left(target) == []


@pytest.mark.parametrize("address", ["ftp://host/file", "file:///etc/passwd", "nothing"])
def test_other_schemes_are_refused(target: Path, address: str) -> None:
    with pytest.raises(InputError, match="Only http and https"):
        download(address, target)


def test_other_schemes_by_override(tmp_path: Path, target: Path) -> None:
    (tmp_path / "here").write_bytes(b"local")
    download((tmp_path / "here").as_uri(), target, schemes=("file",))
    assert target.read_bytes() == b"local"


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DownloadError, match="cannot be made"):
        download("http://127.0.0.1:9/x", tmp_path / "file" / "x")


def test_two_downloads_at_once_do_not_mix(server: Any, target: Path) -> None:
    server.files["/file"] = CONTENT
    threads = [
        threading.Thread(
            target=download, args=(f"{server.address}/file", target), kwargs={"sha256": SHA}
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_bytes() == CONTENT
    assert len(server.asked) == 1
    assert left(target) == ["file.bin"]
