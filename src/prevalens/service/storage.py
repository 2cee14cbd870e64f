"""The private folder of one server: uploads, results and models trained here."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
from pathlib import Path

__all__ = ["Storage", "new_id"]

_PREFIX = "prevalens-serve-"
_NAME = re.compile(rf"{_PREFIX}(\d+)-\w+")


class Storage:
    """A temporary folder that only this user can read, emptied when the server stops.

    Names inside are made here, never by a client.

    Parameters
    ----------
    parent : Path, optional
        Where to make it; the system's folder for temporary files by default.
    """

    def __init__(self, parent: Path | None = None) -> None:
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        _sweep(parent)
        # mkdtemp gives rights to nobody else.
        self.root = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent))

    def folder(self) -> Path:
        """A new empty folder."""
        path = self.root / new_id()
        path.mkdir(mode=0o700)
        return path

    @staticmethod
    def remove(path: Path) -> None:
        """Remove a folder with all that is in it; no complaint if it has gone."""
        shutil.rmtree(path, ignore_errors=True)

    def close(self) -> None:
        """Remove everything."""
        self.remove(self.root)


def new_id() -> str:
    """An identifier that cannot be guessed: whoever knows it was given it."""
    return secrets.token_hex(16)


def _sweep(parent: Path) -> None:
    """Remove what servers of this user left behind that were killed."""
    for path in parent.glob(f"{_PREFIX}*"):
        found = _NAME.fullmatch(path.name)
        if found and _is_ours(path) and not _is_alive(int(found[1])):
            Storage.remove(path)


def _is_ours(path: Path) -> bool:
    try:
        return not path.is_symlink() and path.stat().st_uid == os.getuid()
    except (OSError, AttributeError):
        return False


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
