"""Tables that are in memory already: frames, lists of records, columns, texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import narwhals as nw

from prevalens.errors import InputError
from prevalens.inputs.json_table import names_of
from prevalens.inputs.table import Chunk, Table, check_header

__all__ = ["FrameTable", "as_table"]


class FrameTable(Table):
    """Columns in memory.

    Parameters
    ----------
    columns : mapping of name to sequence
    name : str
        What to call it in sentences.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]], name: str) -> None:
        self.name = name
        self.columns = check_header(name, list(columns))
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise InputError(f"The columns of {name} differ in length: {sorted(lengths)}.")
        self._cells = columns
        self.total = lengths.pop()

    def _chunks(self, columns: tuple[str, ...], chunk_rows: int) -> Iterator[Chunk]:
        assert self.total is not None
        for start in range(0, self.total, chunk_rows):
            stop = min(start + chunk_rows, self.total)
            cells = {name: self._cells[name][start:stop] for name in columns}
            yield Chunk(cells, stop - start, start + 1, self.name, stop)


def as_table(data: Any, *, name: str = "the data") -> Table:
    """A table of what is in memory.

    Parameters
    ----------
    data : data frame, mapping of columns, list of records, or list of texts
        Frames of pandas, polars and whatever narwhals knows. A list of texts becomes a table with
        the one column ``text``. A Table stays as it is.
    name : str
        What to call it in sentences.

    Examples
    --------
    >>> as_table([{"text": "printer on fire", "urgent": 1}]).columns
    ('text', 'urgent')
    """
    if isinstance(data, Table):
        return data
    frame = nw.from_native(data, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(frame, nw.Series):
        return FrameTable({frame.name or "text": frame.to_list()}, name)
    if isinstance(frame, nw.DataFrame):
        cells = {str(one): frame.get_column(one).to_list() for one in frame.columns}
        return FrameTable(cells, name)
    if isinstance(data, Mapping):
        return FrameTable({str(one): list(column) for one, column in data.items()}, name)
    return _from_list(data, name)


def _from_list(data: Any, name: str) -> Table:
    rows = list(data) if isinstance(data, Sequence) and not isinstance(data, str) else []
    if not rows:
        raise InputError(
            f"A table is a data frame, columns, or a list of records or texts with at least one "
            f"item; got {type(data).__name__}."
        )
    if all(isinstance(row, str) for row in rows):
        return FrameTable({"text": rows}, name)
    if all(isinstance(row, Mapping) for row in rows):
        return FrameTable({one: [row.get(one) for row in rows] for one in names_of(rows)}, name)
    raise InputError(f"{name} must hold records (dicts) only or texts only.")
