"""Parquet, row group by row group; needs pyarrow."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prevalens.errors import InputError
from prevalens.inputs.streams import Bytes, Stored
from prevalens.inputs.table import Chunk, Table, check_header, damaged

__all__ = ["ParquetTable"]


class ParquetTable(Table):
    """A Parquet file.

    Parameters
    ----------
    source : Bytes
    """

    def __init__(self, source: Bytes) -> None:
        self.source = source
        self.name = source.name
        with self._file() as file:
            self.total = file.metadata.num_rows
            self.columns = check_header(self.name, file.schema_arrow.names)

    @contextmanager
    def _file(self) -> Iterator[Any]:
        try:
            arrow = importlib.import_module("pyarrow")
            parquet = importlib.import_module("pyarrow.parquet")
        except ImportError:
            raise InputError(
                f'{self.name} needs pyarrow to be read: pip install "prevalens[frames]".'
            ) from None
        try:
            yield parquet.ParquetFile(self._place(arrow))
        except InputError:
            raise
        # The parser answers a damaged file with errors of several kinds.
        except Exception as error:
            raise damaged(self.name, f"this is no readable Parquet file ({error}).") from None

    def _place(self, arrow: Any) -> Any:
        """The file itself if it is not compressed as a whole: then only what is needed is read.

        Never a Python file: Arrow's threads may let go of one only when Python is ending, and
        abort it.
        """
        with self.source.opened() as (stream, raw):
            if isinstance(self.source, Stored) and stream is raw:
                return self.source.path
            return arrow.BufferReader(stream.read())

    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        done = 0
        with self._file() as file:
            for batch in file.iter_batches(batch_size=chunk_rows, columns=list(columns)):
                cells = {name: batch.column(name).to_pylist() for name in columns}
                done += batch.num_rows
                yield Chunk(cells, batch.num_rows, done - batch.num_rows + 1, self.name, done)
