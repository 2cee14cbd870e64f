"""Table and Chunk: named columns, read some thousand rows at a time."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.errors import InputError
from prevalens.files import damaged
from prevalens.tables.cells import shown

#: Rows of a chunk: enough to make the overhead per chunk negligible, few enough for any memory.
CHUNK_ROWS = 8192
#: The column of vectors that stand in a file beside the table.
EMBEDDINGS = "embeddings"
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
    offsets : sequence of int, optional
        How many rows after the first each row stands; consecutive if omitted.
    """

    columns: Mapping[str, Sequence[Any]]
    n_rows: int
    first: int
    source: str
    position: int = 0
    word: str = "row"
    offsets: Sequence[int] | None = None

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, name: str) -> Sequence[Any]:
        return self.columns[name]

    def place(self, row: int) -> str:
        """The place of a row of this chunk, for messages: ``tickets.csv, line 17``."""
        return f"{self.source}, {self.word} {self.first + self.rows()[row]}"

    def rows(self) -> Sequence[int]:
        """How many rows after the first each row stands."""
        return range(self.n_rows) if self.offsets is None else self.offsets

    def take(self, rows: Sequence[int]) -> Chunk:
        """Some of the rows, which keep their places."""
        if len(rows) == self.n_rows:
            return self
        cells: dict[str, Any] = {}
        for name, column in self.columns.items():
            array = vector_array(column)
            cells[name] = [column[row] for row in rows] if array is None else array[list(rows)]
        offsets = [self.rows()[row] for row in rows]
        return replace(self, columns=cells, n_rows=len(rows), offsets=offsets)


def vector_array(cells: Any) -> npt.NDArray[Any] | None:
    """The cells of a column of vectors as one array, if they are one; else None."""
    return cells if isinstance(cells, np.ndarray) and cells.ndim == 2 else None


def joined_cells(parts: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """The cells of a column in several chunks as one; arrays of vectors stay one array."""
    arrays = [array for part in parts if (array := vector_array(part)) is not None]
    if parts and len(arrays) == len(parts) and len({array.shape[1] for array in arrays}) == 1:
        joined: Any = np.concatenate(arrays)
        return joined
    return [cell for part in parts for cell in part]


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


def _may_have_nul(cells: Any) -> bool:
    """Whether a text may have a NUL character; certain if all cells are texts, as in CSV files."""
    if isinstance(cells, np.ndarray) and cells.dtype != object:
        return False
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
    item_columns : tuple of str or None
        The columns that describe the items, if the file says so; else None, and all columns may.
    """

    name: str
    columns: tuple[str, ...]
    total: int | None = None
    item_columns: tuple[str, ...] | None = None

    def chunks(
        self,
        columns: Iterable[str] | None = None,
        *,
        chunk_rows: int = CHUNK_ROWS,
        scores: Collection[str] = (),
    ) -> Iterator[Chunk]:
        """Read the rows in order, and only the columns asked for.

        Parameters
        ----------
        columns : iterable of str, optional
            All if omitted.
        chunk_rows : int
        scores : collection of str
            Columns of which only the numbers are wanted, from 0 to 1 or missing. Where the format
            allows, they are arrays of numbers with NaN for missing ones, and chunks may be longer.
            Cells that are no such numbers are as they would be otherwise.
        """
        chosen = self.columns if columns is None else tuple(dict.fromkeys(columns))
        self.check_columns(chosen)
        own = frozenset(scores).intersection(chosen)
        found = self._score_chunks(chosen, own, chunk_rows) if own else None
        return map(_without_nul, self._chunks(chosen, chunk_rows) if found is None else found)

    @abstractmethod
    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        """Read columns that exist."""

    def _score_chunks(
        self,
        columns: tuple[str, ...],  # noqa: ARG002
        scores: frozenset[str],  # noqa: ARG002
        chunk_rows: int,  # noqa: ARG002
    ) -> Iterator[Chunk] | None:
        """As `_chunks`, with arrays for some columns; None if the format has no such way."""
        return None

    def read(self, columns: Iterable[str] | None = None) -> Chunk:
        """All rows as one chunk."""
        chosen = self.columns if columns is None else tuple(dict.fromkeys(columns))
        parts = list(self.chunks(chosen))
        n_rows = sum(map(len, parts))
        joined = {name: joined_cells([part[name] for part in parts]) for name in chosen}
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
        if name == EMBEDDINGS:
            hint = " If they are in a file of their own, name it with `embeddings=`."
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
