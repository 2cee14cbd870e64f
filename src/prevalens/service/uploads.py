"""Files that were uploaded to be looked at first and used later."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prevalens.service.problems import Problem
from prevalens.service.settings import Limits
from prevalens.service.storage import Storage, new_id

__all__ = ["Upload", "Uploads"]


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
