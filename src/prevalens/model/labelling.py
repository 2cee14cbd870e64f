"""Labels that people gave to items of a batch: which item is meant, and what they wrote."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from prevalens.errors import InputError, PrevalensWarning, counted
from prevalens.files import damaged
from prevalens.tables.annotations import RESERVED
from prevalens.tables.cells import answer_of, finite, is_missing, shown
from prevalens.tables.labels import listed_tags
from prevalens.tables.table import Chunk, Table
from prevalens.types import Floats, LabelMatrix

#: Column that says which item of the batch a row is.
ITEM = f"{RESERVED}item"
#: Column of the weights, if the items were not drawn uniformly.
WEIGHT = f"{RESERVED}weight"
#: The column in which doccano exports labels.
_DOCCANO = "label"
#: Hexadecimal digits of a fingerprint.
_DIGITS = 12


class ItemKey(NamedTuple):
    """An item of a batch.

    Attributes
    ----------
    row : int
        Its row in the file, from 1.
    fingerprint : str
        Of the cells that the model reads.
    file : str
        Name of the file without folders, which may differ from place to place.

    Examples
    --------
    >>> str(ItemKey(7, "0a1b2c3d4e5f", "may.csv"))
    '7:0a1b2c3d4e5f:may.csv'
    """

    row: int
    fingerprint: str
    file: str

    def __str__(self) -> str:
        # The number comes first: no spreadsheet takes this for a formula.
        return f"{self.row}:{self.fingerprint}:{self.file}"

    @classmethod
    def of(
        cls, table: Table, chunk: Chunk, row: int, *, start: int, columns: Sequence[str]
    ) -> ItemKey:
        """The key of a row of a chunk that begins at row `start` (from 0) of its table."""
        content = json.dumps([chunk[name][row] for name in columns], default=_plain)
        digits = hashlib.sha256(content.encode()).hexdigest()[:_DIGITS]
        return cls(start + row + 1, digits, Path(table.name).name)


def _plain(cell: Any) -> Any:
    """A cell that JSON does not have: a vector as a list, others as texts."""
    return cell.tolist() if isinstance(cell, np.ndarray) else str(cell)


class Position:
    """Where the chunks of several tables begin: in their table, and in all tables together."""

    def __init__(self) -> None:
        self._in_table: Counter[int] = Counter()
        self._in_all = 0

    def next(self, table: Table, chunk: Chunk) -> tuple[int, int]:
        """The two starts of the next chunk."""
        starts = self._in_table[id(table)], self._in_all
        self._in_table[id(table)] += len(chunk)
        self._in_all += len(chunk)
        return starts


class LabelledItems:
    """Labels that people filled in, matched with the items of a batch while these are read.

    Parameters
    ----------
    tables : sequence of Table
        What `prevalens.model.sample_files` wrote, filled in; or the export of an annotation tool
        that labelled the tasks it wrote. Rows without any label, and tasks that nobody answered,
        are not labelled yet and are left out.
    labels : sequence of str
        The labels of the model.
    columns : iterable of str
        The columns of the batch.

    Notes
    -----
    An item is known by its file, its row and what the model reads of it, so that labels of other
    items, of another batch or of a batch that has changed since are refused.
    """

    def __init__(
        self, tables: Sequence[Table], labels: Sequence[str], columns: Iterable[str]
    ) -> None:
        known = {*labels, *columns, ITEM, WEIGHT}
        self._keys: dict[ItemKey, int] = {}
        self._places: list[str] = []
        parts = [self._read(table, labels, known) for table in tables]
        Y, weights = zip(*parts, strict=True)
        self._Y: LabelMatrix = np.concatenate(Y)
        self._weights: Floats = np.concatenate(weights)
        if not self._keys:
            raise InputError(
                f"No row of {', '.join(table.name for table in tables)} is labelled; write 0 or 1 "
                "under every label of an item."
            )
        self._rows: npt.NDArray[np.intp] = np.full(len(self._keys), -1)
        self._position = Position()

    def _read(
        self, table: Table, labels: Sequence[str], known: set[str]
    ) -> tuple[LabelMatrix, Floats]:
        if ITEM not in table.columns:
            raise InputError(
                f"{table.name} has no column {ITEM!r}, which tells the items apart; label a file "
                "that `prevalens sample` wrote, and keep that column."
            )
        tags = None if {*labels} <= {*table.columns} else listed_tags(table)
        if tags is None:
            table.check_columns(labels)
        sheet = table.read()
        if tags is None:
            _check_columns(sheet, known)
        elif tags == _DOCCANO:
            _warn_of_empty(sheet)
        Y, weights = [], []
        for row in range(len(sheet)):
            answers = (
                _answers(sheet, row, labels) if tags is None else _chosen(sheet, row, tags, labels)
            )
            if answers is not None:
                self._add(sheet, row)
                Y.append(answers)
                weights.append(_weight(sheet, row))
        return np.array(Y, dtype=np.int8).reshape(-1, len(labels)), np.array(weights)

    def _add(self, sheet: Chunk, row: int) -> None:
        """Note the item of a row."""
        text, place = str(sheet[ITEM][row]).strip(), sheet.place(row)
        number, *rest = text.split(":", 2)
        if len(rest) != 2 or not number.isdecimal():
            raise damaged(
                place,
                f"the column {ITEM!r} holds {shown(text)}, which names no item; leave it as "
                "`prevalens sample` wrote it.",
            )
        key = ItemKey(int(number), *rest)
        if key in self._keys:
            first = self._places[self._keys[key]]
            raise damaged(place, f"this item is labelled twice, first in {first}; keep one.")
        self._keys[key] = len(self._places)
        self._places.append(place)

    def find(self, table: Table, chunk: Chunk, columns: Sequence[str]) -> None:
        """Look for labelled items among the next rows of the batch."""
        start, first = self._position.next(table, chunk)
        file = Path(table.name).name
        numbers = {key.row - 1 - start for key in self._keys if key.file == file}
        for row in sorted(number for number in numbers if 0 <= number < len(chunk)):
            key = ItemKey.of(table, chunk, row, start=start, columns=columns)
            place = self._keys.get(key)
            if place is not None and self._rows[place] < 0:
                self._rows[place] = first + row

    def matched(self) -> tuple[npt.NDArray[np.intp], LabelMatrix, Floats]:
        """Rows of the batch, their labels and their weights, once the whole batch was read."""
        for key, place in self._keys.items():
            if self._rows[place] < 0:
                raise InputError(
                    f"{self._places[place]}: the batch does not have this item (row {key.row} of "
                    f"{key.file} with the same content); give the batch that it was drawn from."
                )
        return self._rows, self._Y, self._weights


def _answers(sheet: Chunk, row: int, labels: Sequence[str]) -> list[int] | None:
    """The labels of a row; None if it is not labelled. One that is labelled in part is refused."""
    empty = [name for name in labels if is_missing(sheet[name][row])]
    if len(empty) == len(labels):
        return None
    if empty:
        raise damaged(
            sheet.place(row),
            f"the label {empty[0]!r} is empty and others are not; write 0 where an item does not "
            "have a label, or leave all labels of the item empty.",
        )
    answers = []
    for name in labels:
        answer = answer_of(sheet[name][row])
        if answer is None:
            text = shown(sheet[name][row])
            raise damaged(sheet.place(row), f"the label {name!r} is {text}; write 0 or 1.")
        answers.append(answer)
    return answers


def _chosen(sheet: Chunk, row: int, tags: str, labels: Sequence[str]) -> list[int] | None:
    """The labels that were chosen for a row in an annotation tool; None if nobody answered."""
    cell = sheet[tags][row]
    if cell is None:
        return None
    for tag in cell:
        if tag not in labels:
            raise damaged(
                sheet.place(row),
                f"the label {tag!r} is not among the {counted(len(labels), 'label')} of the model.",
            )
    return [int(name in cell) for name in labels]


def _warn_of_empty(sheet: Chunk) -> None:
    """Warn of items without labels, which doccano exports whether or not somebody saw them."""
    empty = sum(cell is not None and not len(cell) for cell in sheet[_DOCCANO])
    if empty:
        warnings.warn(
            f"{counted(empty, 'item')} of {len(sheet):,} in {sheet.source} without labels count as "
            "seen; an export of doccano does not tell, unless only approved documents are "
            "exported.",
            PrevalensWarning,
            stacklevel=2,
        )


def _weight(sheet: Chunk, row: int) -> float:
    if WEIGHT not in sheet.columns:
        return 1.0
    weight = finite(str(sheet[WEIGHT][row]).replace(",", "."))
    if weight is None or weight <= 0:
        raise damaged(
            sheet.place(row),
            f"the weight is {shown(sheet[WEIGHT][row])}; leave the column {WEIGHT!r} as "
            "`prevalens sample` wrote it.",
        )
    return weight


def _check_columns(sheet: Chunk, known: set[str]) -> None:
    """Refuse a column that looks like a label which the model does not know."""
    for name, cells in sheet.columns.items():
        filled = [cell for cell in cells if not is_missing(cell)]
        if name not in known and filled and all(answer_of(cell) is not None for cell in filled):
            raise InputError(
                f"{sheet.source} has labels in the column {name!r}, which is not among the labels "
                "of the model; remove it."
            )
