"""Embeddings in a file beside a table: one row of numbers per item, in a NumPy array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.errors import InputError, counted
from prevalens.files import damaged, file_ending
from prevalens.tables.table import EMBEDDINGS, Chunk, Table


class EmbeddedTable(Table):
    """A table with the rows of an array as one more column, ``embeddings``.

    Parameters
    ----------
    table : Table
    path : Path
        A ``.npy`` file with an array of shape (n_rows, n_dimensions). It is mapped into memory, so
        that only the rows of a chunk are read.
    """

    def __init__(self, table: Table, path: Path) -> None:
        if EMBEDDINGS in table.columns:
            raise InputError(
                f"{table.name} has a column {EMBEDDINGS!r} of its own; leave out {path}, or rename "
                "the column."
            )
        self.name, self.total = table.name, table.total
        self.columns = (*table.columns, EMBEDDINGS)
        if table.item_columns is not None:
            self.item_columns = (*table.item_columns, EMBEDDINGS)
        self._table, self._path = table, path
        self._array = _mapped(path)

    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        # Rows are counted by any column if only the embeddings are asked for.
        inner = [name for name in columns if name != EMBEDDINGS] or [self._table.columns[0]]
        done = 0
        for chunk in self._table.chunks(inner, chunk_rows=chunk_rows):
            start, done = done, done + len(chunk)
            if done > len(self._array):
                raise self._differ(f"more than {len(self._array):,}")
            cells: dict[str, Any] = {name: chunk[name] for name in columns if name != EMBEDDINGS}
            if EMBEDDINGS in columns:
                cells[EMBEDDINGS] = np.asarray(self._array[start:done], dtype=np.float32)
            yield replace(chunk, columns=cells)
        if done < len(self._array):
            raise self._differ(f"{done:,}")

    def _differ(self, rows: str) -> InputError:
        return InputError(
            f"{self._path} has {counted(len(self._array), 'row')}, but {self.name} has {rows}; "
            "embeddings need one row per item, in the same order."
        )


def embeddings_path(pattern: str | Path, table: str | Path) -> Path:
    """The file of a table's embeddings: a star stands for the table's name without its endings.

    Examples
    --------
    >>> embeddings_path("vectors/*.npy", "months/2024-05.csv.gz").as_posix()
    'vectors/2024-05.npy'
    """
    name = Path(table).name
    ending = file_ending(Path(name))
    stem = name[: name.lower().rindex(ending)] if ending else name
    return Path(str(pattern).replace("*", stem))


def _mapped(path: Path) -> npt.NDArray[Any]:
    """An array of two dimensions, of which only the rows that are asked for are read."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except (OSError, ValueError, EOFError) as error:
        what = f"this is no array of numbers in NumPy's format .npy ({error})."
        raise damaged(path, what) from None
    if (
        not isinstance(array, np.ndarray)
        or array.ndim != 2
        or not np.issubdtype(array.dtype, np.number)
        or np.iscomplexobj(array)
    ):
        shape = getattr(array, "shape", "no shape")
        raise damaged(
            path,
            f"expected an array of numbers with one row per item, got {type(array).__name__} of "
            f"shape {shape}.",
        )
    return array
