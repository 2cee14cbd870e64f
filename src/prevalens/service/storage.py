"""Data of a server: its private folder, the uploads in it, and the models by name."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from prevalens.errors import InputError
from prevalens.service.problems import Problem
from prevalens.service.settings import Limits

ENDING = ".prevalens"
_PREFIX = "prevalens-serve-"
_NAME = re.compile(rf"{_PREFIX}(\d+)-\w+")
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 60


Entry = TypeVar("Entry")


class Registry(Generic[Entry]):
    """Entries by key, oldest first; an unknown key is refused with the sentence `missing`."""

    missing = "There is nothing under {!r}."

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def all(self) -> list[Entry]:
        """Every entry, oldest first."""
        return list(self._entries.values())

    def get(self, key: str) -> Entry:
        """The entry of a key, or a refusal."""
        if key not in self._entries:
            raise Problem("not_found", self.missing.format(key))
        return self._entries[key]


class Storage:
    """A temporary folder that only this user can read, removed when the server stops.

    The server makes every name inside; a client never does.

    Parameters
    ----------
    parent : Path, optional
        Where to make it; the system's folder for temporary files by default.
    limit : int, optional
        Bytes that all files in it may have, with those that are arriving.
    """

    def __init__(self, parent: Path | None = None, *, limit: int | None = None) -> None:
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        _sweep(parent)
        # mkdtemp gives rights to nobody else.
        self.root = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent))
        self._limit = limit
        self._held: dict[Path, int] = {}

    @property
    def used(self) -> int:
        """Bytes of all files."""
        return sum(self._held.values())

    def room(self, most: int) -> int:
        """Bytes that may still be stored, up to `most`."""
        return most if self._limit is None else min(most, max(0, self._limit - self.used))

    def hold(self, folder: Path, size: int) -> None:
        """Count bytes that arrive for a folder, or refuse them."""
        self.check_room(size)
        self._held[folder] = self._held.get(folder, 0) + size

    def check_room(self, size: int) -> None:
        """Refuse `size` more bytes if they would be too many."""
        if self.room(size) < size:
            raise Problem(
                "storage", "The server keeps enough uploads; remove some, or try again later."
            )

    def measure(self, folder: Path) -> int:
        """Count what a folder holds now, unpacked copies and results included."""
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        self._held[folder] = size
        return size

    def folder(self) -> Path:
        """Make a new empty folder."""
        path = self.root / new_id()
        path.mkdir(mode=0o700)
        return path

    def remove(self, folder: Path | None) -> None:
        """Remove a folder and its content, if it is still there."""
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
            self._held.pop(folder, None)

    def close(self) -> None:
        """Remove everything."""
        self.remove(self.root)


def plain_path(path: Path) -> Path:
    """Where the unpacked copy of a compressed file is put."""
    return path.with_name(f"plain-{path.name.removesuffix('.gz')}")


def reading_path(path: Path) -> Path:
    """Where it is stored how a file is to be read, beside the file."""
    return path.with_name(f"{path.name}.reading")


def stored_reading(path: Path) -> dict[str, str | None]:
    """Encoding and delimiter that were chosen for a file, as arguments of `open_table`."""
    kept = reading_path(path)
    chosen: dict[str, str | None] = {"encoding": None, "delimiter": None}
    return {**chosen, **(json.loads(kept.read_text()) if kept.exists() else {})}


def keep_reading(path: Path, reading: Mapping[str, Any]) -> None:
    """Store how a file is to be read."""
    chosen = {name: reading[name] for name in ("encoding", "delimiter")}
    reading_path(path).write_text(json.dumps(chosen))


def new_id() -> str:
    """An identifier that cannot be guessed: only a client that was given it knows it."""
    return secrets.token_hex(16)


def _sweep(parent: Path) -> None:
    """Remove the folders of this user's servers that were killed."""
    for path in parent.glob(f"{_PREFIX}*"):
        match = _NAME.fullmatch(path.name)
        if match and _is_ours(path) and not _is_alive(int(match[1])):
            shutil.rmtree(path, ignore_errors=True)


def _is_ours(path: Path) -> bool:
    try:
        return not path.is_symlink() and path.stat().st_uid == os.getuid()
    except OSError:
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
    n_users : int
        Tasks that use it, or wait to.
    removed : bool
        Whether it goes with its last user.
    """

    name: str
    path: Path
    folder: Path
    size: int
    preview: dict[str, Any]
    id: str = field(default_factory=new_id)
    used: float = field(default_factory=time.time)
    n_users: int = 0
    removed: bool = False

    def shown(self) -> dict[str, Any]:
        """The form in which clients see it."""
        return {"id": self.id, "name": self.name, "bytes": self.size, **self.preview}


class Uploads(Registry[Upload]):
    """All uploads; unused ones are removed after a while.

    Parameters
    ----------
    storage : Storage
    limits : Limits
    """

    missing = "There is no such upload; unused ones are removed in time."

    def __init__(self, storage: Storage, limits: Limits) -> None:
        super().__init__()
        self._storage = storage
        self._limits = limits

    def add(self, name: str, file: Path, preview: dict[str, Any]) -> Upload:
        """Move a file to a folder of its own, and keep it under a new identifier.

        Of a compressed file the unpacked copy is kept, if there is one.
        """
        folder, size = self._storage.folder(), file.stat().st_size
        kept = plain_path(file) if plain_path(file).exists() else file
        path = kept.rename(folder / f"0{''.join(kept.suffixes)}")
        if reading_path(file).exists():
            reading_path(file).rename(reading_path(path))
        self._storage.measure(folder)
        upload = Upload(name, path, folder, size, preview)
        self._entries[upload.id] = upload
        return upload

    def get(self, key: str) -> Upload:
        """The upload of an identifier, which counts as used now, or a refusal."""
        self.touch([key])
        return super().get(key)

    def touch(self, keys: Iterable[str]) -> None:
        """Note that uploads were used, as far as they are still there."""
        for key in keys:
            if key in self:
                self._entries[key].used = time.time()

    @contextmanager
    def in_use(self, keys: Iterable[str]) -> Iterator[None]:
        """Keep the files of uploads while a task uses them, or waits to."""
        used = [self._entries[key] for key in keys if key in self]
        for upload in used:
            upload.n_users += 1
        try:
            yield
        finally:
            for upload in used:
                upload.n_users -= 1
                upload.used = time.time()
                if upload.removed and not upload.n_users:
                    self._storage.remove(upload.folder)

    def remove(self, key: str) -> None:
        """Drop an upload; its file goes as soon as no task needs it."""
        upload = self.get(key)
        del self._entries[key]
        upload.removed = True
        if not upload.n_users:
            self._storage.remove(upload.folder)

    def expire(self) -> None:
        """Drop uploads that nobody has used for long."""
        oldest = time.time() - self._limits.kept_seconds
        for upload in self.all():
            if upload.used < oldest and not upload.n_users:
                self.remove(upload.id)


@dataclass
class ModelEntry:
    """One model.

    Attributes
    ----------
    name : str
        The name that clients use.
    path : Path
        Its file.
    origin : {"given", "trained"}
        Given at the start, or trained here; only trained ones can be removed.
    about : dict
        Labels, training prevalences, columns and the rest, as a worker read them.
    """

    name: str
    path: Path
    origin: Literal["given", "trained"]
    about: dict[str, Any]

    def shown(self) -> dict[str, Any]:
        """The form in which clients see it."""
        return {"id": self.name, "name": self.name, "origin": self.origin, **self.about}


class Models(Registry[ModelEntry]):
    """The models given at the start and those trained here, by name.

    Names from clients are only looked up here; they never become paths.
    """

    missing = "There is no model {!r}; GET /v1/models lists them."

    def __init__(self) -> None:
        super().__init__()
        #: Models that were removed and can be restored, with the time of their removal.
        self.removed: dict[str, tuple[ModelEntry, float]] = {}

    def trained(self) -> list[ModelEntry]:
        """Models trained here."""
        return [entry for entry in self.all() if entry.origin == "trained"]

    def free_name(self, wanted: str) -> str:
        """A name that no model has yet, as close as possible to the one wanted."""
        return _first_free(slug(wanted), self.__contains__)

    def add(self, entry: ModelEntry) -> ModelEntry:
        """Add a model under a free name."""
        entry.name = self.free_name(entry.name)
        self._entries[entry.name] = entry
        return entry

    def remove(self, name: str) -> ModelEntry:
        """Forget a model that was trained here."""
        if self.get(name).origin != "trained":
            raise Problem(
                "forbidden", "Only models trained here can be removed; this one was given."
            )
        entry = self._entries.pop(name)
        self.removed[name] = entry, time.time()
        return entry

    def restore(self, name: str) -> ModelEntry:
        """Bring back a model that was removed, under a free name."""
        if name not in self.removed:
            raise Problem("not_found", f"No model {name!r} was removed lately.")
        entry, _ = self.removed.pop(name)
        return self.add(entry)

    def forget(self, before: float) -> list[ModelEntry]:
        """Forget the models that were removed before a time."""
        old = [name for name, (_, removed) in self.removed.items() if removed < before]
        return [self.removed.pop(name)[0] for name in old]


def slug(name: str) -> str:
    """A name that needs no escaping in addresses and file names.

    Examples
    --------
    >>> slug("Tickets 2025 (new)"), slug("../../etc"), slug("")
    ('Tickets-2025-new', 'etc', 'model')
    """
    return _UNFIT.sub("-", name).strip("-._")[:_LONGEST_NAME] or "model"


def unused_path(folder: Path, name: str) -> Path:
    """A model file that does not exist yet, so that no kept model is overwritten."""
    free = _first_free(name, lambda name: (folder / f"{name}{ENDING}").exists())
    return folder / f"{free}{ENDING}"


def _first_free(name: str, taken: Callable[[str], bool]) -> str:
    """The first of ``name``, ``name-2``, ``name-3``, ... that is not taken."""
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(candidate for candidate in names if not taken(candidate))


def model_files(paths: Iterable[Path]) -> list[Path]:
    """The model files among files and folders, each once."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            files += sorted(file for file in path.iterdir() if file.suffix == ENDING)
        elif path.is_file():
            files.append(path)
        else:
            raise InputError(f"There is no model file and no folder {path}.")
    return list(dict.fromkeys(files))
