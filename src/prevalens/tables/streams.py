"""Where the bytes come from: a file on disk, a file that was handed in, standard input."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import shutil
import sys
import tempfile
import weakref
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from prevalens.errors import InputError
from prevalens.tables.table import damaged

__all__ = ["Bytes", "Given", "Stored", "file_ending", "from_stdin", "text_of"]

#: First bytes of the compressed formats; a file's name does not matter.
_OPENERS: tuple[tuple[bytes, Any], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ\x00", lzma.open),
)
_COMPRESSED = {".gz", ".bz2", ".xz"}
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: What is kept of standard input in memory; more goes to a temporary file.
_IN_MEMORY = 32 * 2**20


class Bytes(ABC):
    """A stream of bytes that can be opened several times, decompressed on the way."""

    name: str
    suffix: str
    size: int | None
    _held: IO[bytes] | None = None

    @abstractmethod
    def _open(self) -> IO[bytes]:
        """Open the bytes as they are stored, at the start."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Open the file once for everything that is read from it in the body."""
        with _sentences(self.name), self._open() as self._held:
            try:
                yield
            finally:
                self._held = None

    def _raw(self) -> IO[bytes]:
        if self._held is None:
            return self._open()
        self._held.seek(0)
        return cast("IO[bytes]", _Kept(self._held))

    @contextmanager
    def opened(self) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """The decompressed stream, and the stored one, whose position tells the progress.

        Every failure of the file system or of the decompressor, here or in the body, becomes one
        sentence.
        """
        with _sentences(self.name), self._raw() as raw:
            start = raw.read(6)
            raw.seek(0)
            opener = next((opener for magic, opener in _OPENERS if start.startswith(magic)), None)
            yield (raw if opener is None else cast("IO[bytes]", opener(raw, "rb"))), raw

    def start(self, count: int = 4096) -> bytes:
        """The first bytes, decompressed."""
        with self.opened() as (stream, _):
            return stream.read(count)

    def content(self) -> bytes:
        """Everything, decompressed."""
        with self.opened() as (stream, _):
            return stream.read()


@contextmanager
def _sentences(name: str) -> Iterator[None]:
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


class Stored(Bytes):
    """A file on disk."""

    def __init__(self, path: Path, name: str | None = None) -> None:
        self.path = path
        self.name = name or str(path)
        self.suffix = file_ending(path)
        try:
            self.size = path.stat().st_size
        except OSError:
            self.size = None

    def _open(self) -> IO[bytes]:
        return self.path.open("rb")


class Given(Bytes):
    """A binary file that was handed in and can be wound back."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.file = file
        self.name = name
        self.suffix = file_ending(Path(name))
        self.size = file.seek(0, io.SEEK_END)

    def _open(self) -> IO[bytes]:
        self.file.seek(0)
        return cast("IO[bytes]", _Kept(self.file))


class _Kept(io.RawIOBase):
    """Closing this leaves the file below open, so that it can be read again."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)

    def readinto(self, buffer: Any) -> int:
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def from_stdin(name: str) -> Bytes:
    """Standard input, kept in memory or in a temporary file, so that it can be wound back."""
    spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
    shutil.copyfileobj(sys.stdin.buffer, spool)
    source = Given(cast("IO[bytes]", spool), name)
    weakref.finalize(source, spool.close)
    return source


def file_ending(path: Path) -> str:
    """The ending that tells the format, in lower case, below those of compression."""
    suffixes = [one.lower() for one in path.suffixes]
    while suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


@contextmanager
def text_of(source: Bytes, encoding: str | None) -> Iterator[tuple[io.TextIOWrapper, IO[bytes]]]:
    """The stream as text: in the encoding asked for, or by its first bytes, or in UTF-8."""
    with source.opened() as (stream, raw):
        chosen = encoding or _encoding(stream.read(4))
        stream.seek(0)
        try:
            wrapped = io.TextIOWrapper(cast("Any", stream), encoding=chosen, newline="")
        except LookupError:
            raise InputError(
                f"There is no encoding {chosen!r}; common ones are utf-8, cp1252, latin-1."
            ) from None
        try:
            yield wrapped, raw
        except UnicodeError as error:
            raise damaged(source.name, _not_decodable(error, chosen)) from None
        finally:
            wrapped.detach()


def _encoding(start: bytes) -> str:
    return next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8")


def _not_decodable(error: UnicodeError, encoding: str) -> str:
    if isinstance(error, UnicodeDecodeError):
        byte = f"the byte 0x{error.object[error.start]:02x}" if error.object else "the end"
        return (
            f"{byte} is not {encoding}; name the encoding of the file, for example cp1252 if it "
            "comes from Windows."
        )
    return f"this is not {encoding} ({error}); name the encoding of the file."
