"""The models there are: those given at the start, and those trained here. No others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from prevalens.errors import InputError
from prevalens.service.problems import Problem

__all__ = ["ENDING", "Entry", "Models", "model_files", "slug"]

ENDING = ".prevalens"
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 60


@dataclass
class Entry:
    """One model.

    Attributes
    ----------
    name : str
        Under which clients know it.
    path : Path
        Its file.
    origin : {"given", "trained"}
        Where it came from; only trained ones can be removed.
    about : dict
        Labels, training prevalences, columns and the rest, as a worker read them.
    """

    name: str
    path: Path
    origin: Literal["given", "trained"]
    about: dict[str, Any]

    def shown(self) -> dict[str, Any]:
        """What a client sees."""
        return {"name": self.name, "origin": self.origin, **self.about}


class Models:
    """Models by name; a client's word is only ever looked up here."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def all(self) -> list[Entry]:
        """Every model, oldest first."""
        return list(self._entries.values())

    def trained(self) -> list[Entry]:
        """Models trained here."""
        return [entry for entry in self.all() if entry.origin == "trained"]

    def get(self, name: str) -> Entry:
        """The model of a name, or a refusal."""
        if name not in self._entries:
            raise Problem("not_found", f"There is no model {name!r}; GET /v1/models lists them.")
        return self._entries[name]

    def free_name(self, wanted: str) -> str:
        """A name that no model has yet, as close as possible to the one wanted."""
        base = slug(wanted)
        number, name = 1, base
        while name in self._entries:
            number += 1
            name = f"{base}-{number}"
        return name

    def add(self, entry: Entry) -> Entry:
        """Take in a model under a free name."""
        entry.name = self.free_name(entry.name)
        self._entries[entry.name] = entry
        return entry

    def remove(self, name: str) -> Entry:
        """Forget a model that was trained here."""
        entry = self.get(name)
        if entry.origin != "trained":
            raise Problem(
                "forbidden", "Only models trained here can be removed; this one was given."
            )
        return self._entries.pop(name)


def slug(name: str) -> str:
    """A name that needs no escaping in addresses and file names.

    Examples
    --------
    >>> slug("Tickets 2025 (new)"), slug("../../etc"), slug("")
    ('Tickets-2025-new', 'etc', 'model')
    """
    return _UNFIT.sub("-", name).strip("-._")[:_LONGEST] or "model"


def model_files(paths: Iterable[Path]) -> list[Path]:
    """The model files that files and folders stand for."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(one for one in path.iterdir() if one.suffix == ENDING)
        elif path.is_file():
            found.append(path)
        else:
            raise InputError(f"There is no model file and no folder {path}.")
    return list(dict.fromkeys(found))
