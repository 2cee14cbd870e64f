"""Table and Chunk: named columns, read some thousand rows at a time."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prevalens.errors import InputError
from prevalens.files import damaged
from prevalens.tables.cells import shown

#: Rows of a chunk: enough to make the overhead per chunk negligible, few enough for any memory.
CHUNK_ROWS = 8192
#: Largest number of columns that a message names.
_NAMED = 12


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a table.

    Attributes
    ----------
    columns : mapping of name to sequence
        Lists or arrays of equal length.
    n_rows : int
    first : int
        Number of the first row, in the unit of `word`.
    source : str
        The table's name.
    position : int
        How much of the table's `total` has been read, this chunk included.
    word : str
        What `first` counts: "line" of the file, or "row" of the table from 1.
    """

    columns: Mapping[str, Sequence[Any]]
    n_rows: int
    first: int
    source: str
    position: int = 0
    word: str = "row"

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, name: str) -> Sequence[Any]:
        return self.columns[name]

    def place(self, row: int) -> str:
        """The place of a row of this chunk, for messages: ``tickets.csv, line 17``."""
        return f"{self.source}, {self.word} {self.first + row}"


def _without_nul(chunk: Chunk) -> Chunk:
    """The chunk; NUL characters, which no text holds, are refused by their line."""
    for name, cells in chunk.columns.items():
        if not _may_have_nul(cells):
            continue
        for row, cell in enumerate(cells):
            if isinstance(cell, str) and "\0" in cell:
                raise damaged(
                    chunk.place(row),
                    f"the column {name!r} holds a NUL character; the file is damaged, or in "
                    "another encoding (`encoding=`).",
                )
    return chunk


def _may_have_nul(cells: Sequence[Any]) -> bool:
    """Whether a text may have a NUL character; certain if all cells are texts, as in CSV files."""
    try:
        return "\0" in "".join(cells)
    except TypeError:
        return True


class Table(ABC):
    """Named columns that are read in chunks of rows.

    Attributes
    ----------
    name : str
        The file's name, for messages.
    columns : tuple of str
    total : int or None
        Total number of bytes or rows, if known; a chunk's `position` has the same unit.
    """

    name: str
    columns: tuple[str, ...]
    total: int | None = None

    def chunks(
        self, columns: Iterable[str] | None = None, *, chunk_rows: int = CHUNK_ROWS
    ) -> Iterator[Chunk]:
        """Read the rows in order, and only the columns asked for.

        Parameters
        ----------
        columns : iterable of str, optional
            All if omitted.
        chunk_rows : int
        """
        chosen = self.columns if columns is None else tuple(dict.fromkeys(columns))
        self.check_columns(chosen)
        return map(_without_nul, self._chunks(chosen, chunk_rows))

    @abstractmethod
    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        """Read columns that exist."""

    def read(self, columns: Iterable[str] | None = None) -> Chunk:
        """All rows as one chunk."""
        chosen = self.columns if columns is None else tuple(dict.fromkeys(columns))
        parts = list(self.chunks(chosen))
        n_rows = sum(map(len, parts))
        joined = {name: [cell for part in parts for cell in part[name]] for name in chosen}
        first = parts[0] if parts else Chunk({}, 0, 1, self.name)
        # Line numbers hold only if every chunk counts lines.
        word = first.word if len({part.word for part in parts}) <= 1 else "row"
        start = first.first if word == first.word else 1
        return Chunk(joined, n_rows, start, self.name, self.total or 0, word)

    def check_columns(self, names: Iterable[str]) -> None:
        """Refuse columns that do not exist."""
        for name in names:
            if name not in self.columns:
                raise InputError(self._missing(name))

    def _missing(self, name: str) -> str:
        close = difflib.get_close_matches(name, self.columns, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        if not hint and len(self.columns) == 1 and any(c in self.columns[0] for c in ",;\t|"):
            hint = " All of it is one column: name another delimiter with `delimiter=`."
        return f"{self.name} has no column {name!r}; it has {self.shown()}.{hint}"

    def shown(self) -> str:
        """The names of the columns, for messages."""
        more = f", ... ({len(self.columns)} in all)" if len(self.columns) > _NAMED else ""
        return ", ".join(map(shown, self.columns[:_NAMED])) + more

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {len(self.columns)} columns)"


def check_header(name: str, header: Sequence[str]) -> tuple[str, ...]:
    """The names of the columns, without empty ones, which are columns of row numbers."""
    named = [column for column in header if column]
    if not named:
        raise damaged(name, "the columns have no names; the first line must name them.")
    for column, count in Counter(named).items():
        if count > 1:
            raise damaged(name, f"two columns are called {column!r}; give each its own name.")
    return tuple(named)
