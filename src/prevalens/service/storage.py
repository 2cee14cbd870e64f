"""The private folder of one server: uploads, results and models trained here."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prevalens.service.problems import Problem
from prevalens.service.settings import Limits

__all__ = ["Storage", "Upload", "Uploads", "new_id"]

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


@dataclass
class Upload:
    """One file of a client.

    Attributes
    ----------
    name : str
        For people; never a path.
    path : Path
        Where it is, in `folder`, which is removed with it.
    preview : dict
        Columns and first rows.
    """

    name: str
    path: Path
    folder: Path
    size: int
    preview: dict[str, Any]
    id: str = field(default_factory=new_id)
    used: float = field(default_factory=time.time)

    def shown(self) -> dict[str, Any]:
        """What a client sees."""
        return {"id": self.id, "name": self.name, "bytes": self.size, **self.preview}


class Uploads:
    """The uploads there are; unused ones are removed after a while.

    Parameters
    ----------
    storage : Storage
    limits : Limits
    """

    def __init__(self, storage: Storage, limits: Limits) -> None:
        self._storage = storage
        self._limits = limits
        self._uploads: dict[str, Upload] = {}

    def __len__(self) -> int:
        return len(self._uploads)

    @property
    def size(self) -> int:
        """Bytes of all uploads."""
        return sum(one.size for one in self._uploads.values())

    def check_room(self, size: int) -> None:
        """Refuse if so many bytes more would be too many."""
        self.expire()
        if self.size + size > self._limits.stored_bytes:
            raise Problem(
                "storage", "The server keeps enough uploads; remove some, or try again later."
            )

    def add(self, upload: Upload) -> Upload:
        """Keep a file."""
        self._uploads[upload.id] = upload
        return upload

    def get(self, key: str) -> Upload:
        """The upload of an identifier, or a refusal."""
        if key not in self._uploads:
            raise Problem("not_found", "There is no such upload; unused ones are removed in time.")
        found = self._uploads[key]
        found.used = time.time()
        return found

    def items(self) -> list[tuple[str, Upload]]:
        """Every upload with its identifier."""
        return list(self._uploads.items())

    def touch(self, keys: Iterable[str]) -> None:
        """Note that uploads were used, as far as they are still there."""
        for key in keys:
            if key in self._uploads:
                self._uploads[key].used = time.time()

    def remove(self, key: str) -> None:
        """Drop an upload and its file."""
        self._storage.remove(self.get(key).folder)
        del self._uploads[key]

    def expire(self) -> None:
        """Drop uploads that nobody has used for long."""
        oldest = time.time() - self._limits.kept_seconds
        for one in list(self._uploads.values()):
            if one.used < oldest:
                self.remove(one.id)
