"""Files as they lie on disk: plain or compressed, found by name, read with one-sentence errors."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from prevalens.validation import FormatError, InputError

__all__ = [
    "about",
    "digest",
    "fingerprint",
    "locate",
    "malformed",
    "members",
    "opened",
    "read_bytes",
    "read_text",
    "tree_digest",
]

#: First bytes of the compressed formats; a file's name does not matter.
_OPENERS = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\x00", lzma.open))
_SUFFIXES = ("", ".gz", ".bz2", ".xz")
_CHUNK = 2**20


def malformed(path: str | Path, line: int | None, what: str) -> FormatError:
    """The error for a damaged file: its name, the line (from 1) and what is wrong there."""
    # The words of another parser may come in several lines.
    what = " ".join(what.split())
    place = f"{path}" if line is None else f"{path}, line {line}"
    return FormatError(f"{place}: {what}")


@contextmanager
def about(path: str | Path) -> Iterator[None]:
    """Put the file's name before the sentence of any error about what was read from it."""
    try:
        yield
    except FormatError:
        raise
    except InputError as error:
        raise malformed(path, None, str(error)) from error


def locate(folder: Path, name: str) -> Path | None:
    """Find a file or folder by name, also compressed as ``.gz``, ``.bz2`` or ``.xz``."""
    candidates = (folder / f"{name}{suffix}" for suffix in _SUFFIXES)
    return next((path for path in candidates if path.exists()), None)


@contextmanager
def opened(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, decompressed if it is compressed.

    Every failure of the file system or of the decompressor, here or in the body, becomes one
    sentence.
    """
    path = Path(path)
    try:
        with path.open("rb") as raw:
            start = raw.read(6)
        opener = next((open_ for magic, open_ in _OPENERS if start.startswith(magic)), None)
        with path.open("rb") if opener is None else opener(path, "rb") as stream:
            yield cast("IO[bytes]", stream)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder, not a file.") from None
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        # The system numbers its errors, the decompressors do not.
        if getattr(error, "errno", None) is None:
            what = f"the compressed data is damaged or cut off ({error})."
            raise malformed(path, None, what) from error
        raise InputError(f"{path} cannot be read: {error}.") from error


def read_bytes(path: str | Path) -> bytes:
    """The whole content of a plain or compressed file."""
    with opened(path) as stream:
        return stream.read()


def read_text(path: str | Path) -> str:
    """The whole content as text: UTF-8, or Latin-1 where it is not valid UTF-8."""
    content = read_bytes(path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def digest(path: str | Path) -> str:
    """SHA-256 of the uncompressed content, so that a compressed copy has the same."""
    total = hashlib.sha256()
    with opened(path) as stream:
        while chunk := stream.read(_CHUNK):
            total.update(chunk)
    return total.hexdigest()


def fingerprint(checksums: Iterable[str]) -> str:
    """One SHA-256 for several contents, whatever the order of the files."""
    return hashlib.sha256("\n".join(sorted(checksums)).encode()).hexdigest()


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
