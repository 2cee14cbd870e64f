"""Files that are whole or not there, and a sentence where they cannot be written."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from prevalens.errors import InputError

__all__ = ["check_writable", "writing"]


@contextmanager
def writing(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file for writing; it appears under its name when all of it is on the disk.

    If the body fails or is interrupted, nothing is left behind, and what was there stays.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.unfinished")
    try:
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
