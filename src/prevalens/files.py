"""Files that are whole or not there, and a sentence where they cannot be written."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from prevalens.validation import InputError

__all__ = ["check_writable", "make_folder", "sweep", "write_whole", "writing"]


@contextmanager
def writing(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file for writing; it appears under its name when all of it is on the disk.

    If the body fails or is interrupted, nothing is left behind, and what was there stays.
    """
    path = Path(path)
    # A device or a pipe is written to; a new file must not take its place.
    special = path.exists() and not path.is_file()
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.unfinished")
    try:
        if special:
            with path.open("wb") as file:
                yield file
            return
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise InputError(_sentence(path, error)) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def check_writable(path: str | Path) -> None:
    """Refuse a place that cannot be written to, before the work is done."""
    path = Path(path)
    if path.is_dir():
        raise InputError(_sentence(path, IsADirectoryError(errno.EISDIR, "")))
    if not path.parent.is_dir():
        raise InputError(_sentence(path, FileNotFoundError(errno.ENOENT, "")))
    if not os.access(path.parent, os.W_OK):
        raise InputError(_sentence(path, PermissionError(errno.EACCES, "")))


def _sentence(path: Path, error: OSError) -> str:
    if isinstance(error, IsADirectoryError):
        return f"{path} is a folder; name a file to write."
    if isinstance(error, FileNotFoundError):
        return f"{path} cannot be written: there is no folder {path.parent}."
    if isinstance(error, PermissionError):
        return f"{path} cannot be written: you have no permission in {path.parent}."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{path} cannot be written: the disk is full. Nothing was left there."
    return f"{path} cannot be written: {error.strerror or error}."


#: How the name of a file that is being written ends.
_UNFINISHED = ".unfinished"
#: After this many seconds nobody is still writing it, wherever he may be.
_ABANDONED = 86_400


def make_folder(path: Path) -> Path:
    """Make a folder and those above it, or say why it cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {path} cannot be made: {error.strerror}.") from error
    return path


def write_whole(path: Path, content: bytes, *, lasting: bool = True) -> None:
    """Write a file so that whoever looks sees all of it or nothing, also after a crash.

    With `lasting` it is on the disk when this returns, and stays there through a power cut.
    """
    # The name tells who writes, so that others know whether it is abandoned.
    writer = f"{_host()}.{os.getpid()}.{secrets.token_hex(4)}"
    temporary = path.with_name(f".{path.name}.{writer}{_UNFINISHED}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if lasting:
        _sync_folder(path.parent)


def sweep(folder: Path) -> int:
    """Delete what killed processes have left half-written; return how many files."""
    count = 0
    for path in folder.glob(f".*{_UNFINISHED}"):
        if _is_abandoned(path):
            path.unlink(missing_ok=True)
            count += 1
    return count


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
        return True
    return True


def _host() -> str:
    return socket.gethostname().replace(".", "_")


def _sync_folder(folder: Path) -> None:
    """Make the new name last, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
