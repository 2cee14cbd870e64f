"""Many files at one place: a folder, a tar archive, or a single file seen as one."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from prevalens.datasets.files import digest, fingerprint, malformed, opened, read_bytes
from prevalens.validation import InputError

__all__ = ["members", "tree_digest"]


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name (with ``/`` between folders) and uncompressed content of each file, in name order.

    Nothing is unpacked to disk, so an archive cannot write anywhere.
    """
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file() and not file.name.startswith("."):
                yield file.relative_to(path).as_posix(), read_bytes(file)
    elif ".tar" in path.suffixes or path.suffix == ".tgz":
        yield from _archived(path)
    else:
        yield path.name, read_bytes(path)


def tree_digest(path: Path) -> str:
    """SHA-256 of a file's uncompressed content, or of all names and contents in a folder."""
    if not path.is_dir():
        return digest(path)
    return fingerprint(
        f"{name} {hashlib.sha256(content).hexdigest()}" for name, content in members(path)
    )


def _archived(path: Path) -> Iterator[tuple[str, bytes]]:
    with opened(path) as stream:
        try:
            with tarfile.open(fileobj=stream, mode="r:") as archive:
                contents = {one.name: _content(archive, one) for one in archive if one.isfile()}
        except (tarfile.TarError, EOFError, zlib.error, ValueError) as error:
            raise malformed(path, None, f"the archive is damaged or cut off ({error}).") from error
    if not contents:
        raise InputError(f"The archive {path} holds no files.")
    yield from sorted(contents.items())


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    content = b"" if stream is None else stream.read()
    if len(content) != member.size:
        raise tarfile.ReadError(f"{member.name} is cut off")
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
