"""The door of plans: a table of a TOML file, read key by key, with a sentence for each refusal."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from prevalens.validation import InputError

__all__ = ["Table", "suggestion"]

_NOTHING: Any = object()


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about a word: which known one was meant, or which there are."""
    choices = sorted(known)
    close = difflib.get_close_matches(word, choices, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(choices)}."


class Table:
    """A table of a plan and where it stands; whoever reads it says which keys there may be.

    Parameters
    ----------
    values : mapping
    where : str
        The file's name, or what to call the plan if it has none.
    key : str
        Path of the table in the file, empty at the top.
    """

    def __init__(self, values: Any, where: str, key: str = "") -> None:
        self.where = where
        self.key = key
        if not isinstance(values, Mapping):
            raise InputError(f"{where}: {key or 'a plan'} must be a table; got {values!r}.")
        self.values = dict(values)
        self._asked: set[str] = set()

    def fail(self, name: str, sentence: str) -> NoReturn:
        """Refuse the value of a key."""
        raise InputError(f"{self.where}: {self.path(name)} {sentence}")

    def path(self, name: str) -> str:
        """The key with those above it."""
        return f"{self.key}.{name}" if self.key else name

    def take(self, name: str, default: Any = _NOTHING) -> Any:
        """The value of a key, whatever it is."""
        self._asked.add(name)
        value = self.values.get(name, default)
        if value is _NOTHING:
            self.fail(name, "is missing.")
        return value

    def text(self, name: str, default: Any = _NOTHING) -> str:
        """A text that is not empty, unless the default is."""
        value = self.take(name, default)
        if not isinstance(value, str) or (name in self.values and not value.strip()):
            self.fail(name, f"must be a text; got {value!r}.")
        return value

    def texts(self, name: str, default: Any = _NOTHING) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self._list(name, default, str, "texts"))

    def wholes(self, name: str, default: Any = _NOTHING) -> tuple[int, ...]:
        """A list of whole numbers, 0 or more."""
        values = self._list(name, default, int, "whole numbers")
        if any(value < 0 for value in values):
            self.fail(name, f"must hold no negative number; got {min(values)}.")
        return tuple(values)

    def table(self, name: str) -> Table:
        """A table inside this one; empty if it is not there."""
        return Table(self.take(name, {}), self.where, self.path(name))

    def tables(self, name: str, default: Any = _NOTHING) -> list[Table]:
        """A list of tables."""
        values = self.take(name, default)
        if not isinstance(values, (list, tuple)) or not values:
            self.fail(name, f"must be a list of tables, as in [[{name}]]; got {values!r}.")
        return [
            Table(value, self.where, f"{self.path(name)}[{position}]")
            for position, value in enumerate(values)
        ]

    def options(self, names: Iterable[str]) -> dict[str, Any]:
        """The values of those keys that are there, whatever they are."""
        names = list(names)
        self._asked.update(names)
        return {name: self.values[name] for name in names if name in self.values}

    def close(self) -> None:
        """Refuse keys that nobody has asked for."""
        for name in self.values:
            if name not in self._asked:
                self.fail(name, f"is not known; {suggestion(name, self._asked)}")

    def _list(self, name: str, default: Any, kind: type, what: str) -> list[Any]:
        values = self.take(name, default)
        if not isinstance(values, (list, tuple)) or not values:
            self.fail(name, f"must be a list of {what}; got {values!r}.")
        for value in values:
            if not isinstance(value, kind) or isinstance(value, bool):
                self.fail(name, f"must be a list of {what}; it holds {value!r}.")
        repeated = [value for value in values if values.count(value) > 1]
        if repeated:
            self.fail(name, f"names {repeated[0]!r} twice.")
        return list(values)
