"""Files on disk: reading, compressed or not; writing completely or not at all.

Every failure of the file system, of a decompressor or of a decoder becomes one sentence that names
the file.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import errno
import gzip
import hashlib
import io
import lzma
import os
import secrets
import shutil
import socket
import sys
import tarfile
import tempfile
import time
import weakref
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from prevalens.errors import FormatError, InputError

__all__ = [
    "ByteSource",
    "EncodingError",
    "about",
    "check_writable",
    "damaged",
    "digest",
    "file_ending",
    "fingerprint",
    "from_stdin",
    "locate",
    "make_folder",
    "members",
    "read_bytes",
    "read_text",
    "sweep",
    "tree_digest",
    "write_whole",
    "writing",
]

#: First bytes of the compressed formats; the name of a file does not matter.
_OPENERS: tuple[tuple[bytes, Any], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ\x00", lzma.open),
)
_COMPRESSED = ("", ".gz", ".bz2", ".xz")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: Bytes of standard input that are kept in memory; more go to a temporary file.
_IN_MEMORY = 32 * 2**20
#: The end of the name of a file that is being written.
_UNFINISHED = ".unfinished"
#: Seconds after which an unfinished file of another machine is taken to be abandoned.
_ABANDONED = 86_400


class EncodingError(FormatError):
    """A text file is not in the encoding in which it is read."""


def damaged(place: object, what: object, *, line: int | None = None) -> FormatError:
    """The error for a file that is not what it should be.

    Parameters
    ----------
    place : path or str
        The file, or the place in it, such as ``tickets.csv, line 17``.
    what : str or exception
        What is wrong there; line breaks in the message of a parser become spaces.
    line : int, optional
        Line of the file, counted from 1.
    """
    where = f"{place}" if line is None else f"{place}, line {line}"
    return FormatError(f"{where}: {' '.join(str(what).split())}")


@contextmanager
def about(path: str | Path) -> Iterator[None]:
    """Put the file's name before the message of any error about what was read from it."""
    try:
        yield
    except FormatError:
        raise
    except InputError as error:
        raise damaged(path, error) from error


class ByteSource:
    """Bytes that can be read several times and are decompressed on the way.

    Parameters
    ----------
    origin : Path or binary file
        A binary file must be seekable and stays open.
    name : str, optional
        Name in messages; the path if omitted.

    Attributes
    ----------
    path : Path or None
        None for a binary file.
    suffix : str
        The ending of the name; see `file_ending`.
    size : int or None
        Stored bytes; None if the file does not exist.
    """

    def __init__(self, origin: Path | IO[bytes], name: str | None = None) -> None:
        self.path = origin if isinstance(origin, Path) else None
        self._file = None if isinstance(origin, Path) else origin
        self.name = name or str(origin)
        self.suffix = file_ending(self.path or Path(self.name))
        self.size: int | None = None
        with contextlib.suppress(OSError):
            self.size = self._file.seek(0, 2) if self._file else self.path.stat().st_size  # type: ignore[union-attr]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Open the file once for everything that is read from it in the body."""
        if self.path is None:
            yield
            return
        with _readable(self.name), self.path.open("rb") as self._file:
            try:
                yield
            finally:
                self._file = None

    @contextmanager
    def opened(self) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """The decompressed stream, and the stored one, whose position measures the progress."""
        with _readable(self.name), self._stored() as stored:
            start = stored.read(6)
            stored.seek(0)
            opener = next((opener for magic, opener in _OPENERS if start.startswith(magic)), None)
            yield (stored if opener is None else cast("IO[bytes]", opener(stored, "rb"))), stored

    def _stored(self) -> contextlib.AbstractContextManager[IO[bytes]]:
        if self._file is None:
            return cast("Path", self.path).open("rb")
        self._file.seek(0)
        return contextlib.nullcontext(self._file)

    def start(self, count: int = 4096) -> bytes:
        """The first bytes, decompressed."""
        with self.opened() as (stream, _):
            return stream.read(count)

    def content(self) -> bytes:
        """All bytes, decompressed."""
        with self.opened() as (stream, _):
            return stream.read()

    @contextmanager
    def text(self, encoding: str | None = None) -> Iterator[tuple[io.TextIOWrapper, IO[bytes]]]:
        """The text, by default in the encoding of its byte order mark or UTF-8, and the bytes."""
        with self.opened() as (stream, stored):
            chosen = encoding or _encoding(stream.read(4))
            stream.seek(0)
            try:
                text = io.TextIOWrapper(cast("Any", stream), encoding=chosen, newline="")
            except LookupError:
                raise InputError(
                    f"There is no encoding {chosen!r}; common ones are utf-8, cp1252, latin-1."
                ) from None
            try:
                yield text, stored
            except UnicodeError as error:
                raise EncodingError(f"{self.name}: {_not_decodable(error, chosen)}") from None
            finally:
                text.detach()


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turn every failure of the file system or of a decompressor into one sentence."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"There is no file {name}.") from None
    except IsADirectoryError:
        raise InputError(f"{name} is a folder, not a file.") from None
    except PermissionError:
        raise InputError(f"{name} cannot be read: you have no permission.") from None
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        # The system numbers its errors, the decompressors do not.
        if isinstance(error, OSError) and error.errno is not None:
            raise InputError(f"{name} cannot be read: {error.strerror}.") from None
        what = f"the compressed data is damaged or cut off ({error})."
        raise damaged(name, what) from None


def _encoding(start: bytes) -> str:
    return next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8")


def _not_decodable(error: UnicodeError, encoding: str) -> str:
    if isinstance(error, UnicodeDecodeError):
        byte = f"the byte 0x{error.object[error.start]:02x}" if error.object else "the end"
        return (
            f"{byte} is not {encoding}; name the encoding of the file with `encoding=`, for "
            "example `encoding='cp1252'` if it comes from Windows."
        )
    return f"this is not {encoding} ({error}); name the encoding of the file with `encoding=`."


def from_stdin(name: str) -> ByteSource:
    """Standard input, kept in memory or in a temporary file, so that it can be read again."""
    spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
    shutil.copyfileobj(sys.stdin.buffer, spool)
    source = ByteSource(cast("IO[bytes]", spool), name)
    weakref.finalize(source, spool.close)
    return source


def file_ending(path: Path) -> str:
    """The ending of the name in lower case, without that of a compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def locate(folder: Path, name: str) -> Path | None:
    """Find a file or folder by name, also compressed as ``.gz``, ``.bz2`` or ``.xz``."""
    candidates = (folder / f"{name}{suffix}" for suffix in _COMPRESSED)
    return next((path for path in candidates if path.exists()), None)


def read_bytes(path: str | Path) -> bytes:
    """The whole content of a plain or compressed file."""
    return ByteSource(Path(path)).content()


def read_text(path: str | Path) -> str:
    """The whole content as text: UTF-8, or Latin-1 if it is not valid UTF-8."""
    content = read_bytes(path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name (with ``/`` between folders) and uncompressed content of each file, in name order.

    The path is a folder, a tar archive or a single file. Nothing is unpacked to the disk.
    """
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file() and not file.name.startswith("."):
                yield file.relative_to(path).as_posix(), read_bytes(file)
    elif ".tar" in path.suffixes or path.suffix == ".tgz":
        yield from _archived(path)
    else:
        yield path.name, read_bytes(path)


def _archived(path: Path) -> Iterator[tuple[str, bytes]]:
    with ByteSource(path).opened() as (stream, _):
        try:
            with tarfile.open(fileobj=stream, mode="r:") as archive:
                contents = {file.name: _content(archive, file) for file in archive if file.isfile()}
        except (tarfile.TarError, EOFError, zlib.error, ValueError) as error:
            raise damaged(path, f"the archive is damaged or cut off ({error}).") from error
    if not contents:
        raise InputError(f"The archive {path} holds no files.")
    yield from sorted(contents.items())


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    content = b"" if stream is None else stream.read()
    if len(content) != member.size:
        raise tarfile.ReadError(f"{member.name} is cut off")
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def digest(path: str | Path) -> str:
    """SHA-256 of the uncompressed content, so that a compressed copy has the same."""
    with ByteSource(Path(path)).opened() as (stream, _):
        return hashlib.file_digest(cast("Any", stream), "sha256").hexdigest()


def tree_digest(path: Path) -> str:
    """SHA-256 of a file's uncompressed content, or of all names and contents in a folder."""
    if not path.is_dir():
        return digest(path)
    return fingerprint(
        f"{name} {hashlib.sha256(content).hexdigest()}" for name, content in members(path)
    )


def fingerprint(checksums: Iterable[str]) -> str:
    """One SHA-256 for several contents, whatever the order of the files."""
    return hashlib.sha256("\n".join(sorted(checksums)).encode()).hexdigest()


@contextmanager
def writing(path: str | Path, *, lasting: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for writing; it appears under its name when all of it is written.

    If the body fails or is interrupted, no file is left, and an existing one is unchanged.

    Parameters
    ----------
    path : str or Path
    lasting : bool
        Whether to wait until the file is on the disk and survives a power cut.
    """
    path = Path(path)
    try:
        # A device or a pipe is written to; a new file must not take its place.
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        with _replacing(path, lasting) as file:
            yield file
    except OSError as error:
        raise InputError(_not_written(path, error)) from error


@contextmanager
def _replacing(path: Path, lasting: bool) -> Iterator[IO[bytes]]:
    # The name contains host and process, so that others can detect an abandoned file.
    writer = f"{_host()}.{os.getpid()}.{secrets.token_hex(4)}"
    temporary = path.with_name(f".{path.name}.{writer}{_UNFINISHED}")
    try:
        with temporary.open("x+b") as file:
            yield file
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    if lasting:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Write the new name to the disk, if the system supports that."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _not_written(path: Path, error: OSError) -> str:
    if isinstance(error, IsADirectoryError):
        return f"{path} is a folder; name a file to write."
    if isinstance(error, FileNotFoundError):
        return f"{path} cannot be written: there is no folder {path.parent}."
    if isinstance(error, PermissionError):
        return f"{path} cannot be written: you have no permission in {path.parent}."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{path} cannot be written: the disk is full. Nothing was left there."
    return f"{path} cannot be written: {error.strerror or error}."


def write_whole(path: Path, content: bytes, *, lasting: bool = True) -> None:
    """Write a file at once; readers see all of it or nothing. See `writing`."""
    with writing(path, lasting=lasting) as file:
        file.write(content)


def check_writable(path: str | Path) -> None:
    """Refuse a place that cannot be written to, before the work is done."""
    path = Path(path)
    if path.is_dir():
        raise InputError(_not_written(path, IsADirectoryError()))
    if not path.parent.is_dir():
        raise InputError(_not_written(path, FileNotFoundError()))
    if not os.access(path.parent, os.W_OK):
        raise InputError(_not_written(path, PermissionError()))


def make_folder(path: Path) -> Path:
    """Create a folder and its parents, or raise an error with the reason."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {path} cannot be made: {error.strerror}.") from error
    return path


def sweep(folder: Path) -> int:
    """Delete the unfinished files of processes that have ended; return how many."""
    abandoned = [path for path in folder.glob(f".*{_UNFINISHED}") if _is_abandoned(path)]
    for path in abandoned:
        path.unlink(missing_ok=True)
    return len(abandoned)


def _is_abandoned(path: Path) -> bool:
    *_, host, process, _token, _suffix = path.name.split(".")
    if host == _host() and os.name == "posix" and process.isdecimal():
        return not _runs(int(process))
    try:
        return time.time() - path.stat().st_mtime > _ABANDONED
    except FileNotFoundError:
        return False


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _host() -> str:
    return socket.gethostname().replace(".", "_")
