"""Columns of several kinds, and how each kind becomes numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.tables.cells import (
    answer_of,
    is_missing,
    number_of,
    parse_date,
    shown,
    slashed_forms,
)
from prevalens.tables.labels import separator_of
from prevalens.tables.preparation import CellError, Preparation, Unfamiliar
from prevalens.tables.text import TextPreparation
from prevalens.types import Floats
from prevalens.validation import InputError

#: How a column is encoded.
ColumnKind: TypeAlias = Literal["number", "category", "date", "text", "vector"]
#: What the cells of a column hold.
CellKind: TypeAlias = Literal[
    "empty", "binary", "number", "date", "vector", "tags", "text", "category"
]

#: Largest number of categories, the most frequent ones, that get a column.
_MOST_LEVELS = 1000
#: From this many columns on, a block of categories is sparse.
_SPARSE_FROM = 50


class Encoder(ABC):
    """Turns the cells of one column into numbers.

    Attributes
    ----------
    kind : {"number", "category", "date", "text", "vector"}
    name : str
        The column's name, for messages.
    """

    kind: ColumnKind

    def __init__(self, name: str) -> None:
        self.name = name

    def fit_transform(self, cells: Sequence[Any]) -> Any:
        """Learn from the cells, if there is anything to learn, and return their numbers."""
        return self.transform(cells)

    @abstractmethod
    def transform(self, cells: Sequence[Any]) -> Any:
        """The numbers of the cells, one row each."""

    @abstractmethod
    def names(self) -> list[str]:
        """A name for every column of the numbers."""

    def unfamiliar(self, cells: Sequence[Any]) -> Unfamiliar:  # noqa: ARG002
        """The share of cells unlike those of the training; 0 for kinds without such cells."""
        return Unfamiliar(0.0, 0.0)

    def _error(self, cells: Sequence[Any], row: int, holds: str, remedy: str = "") -> CellError:
        """The error for a cell that does not hold what the others of the column hold."""
        what = f"the column {self.name!r} holds {holds}, but here is {shown(cells[row])}"
        return CellError(row, f"{what}; {remedy}." if remedy else f"{what}.")


class NumberEncoder(Encoder):
    """Numbers, centred and scaled; missing ones become the median and set an extra 0/1 column."""

    kind: ColumnKind = "number"

    def fit_transform(self, cells: Sequence[Any]) -> Any:
        """Learn from the cells and return their numbers, one row each."""
        values = self._numbers(cells)
        known = values[~np.isnan(values)]
        if not len(known):
            self.fill, self.scale, self.misses = 0.0, 0.0, False
            return np.zeros((len(values), 0))
        self.fill = float(np.median(known))
        self.misses = len(known) < len(values)
        filled = np.where(np.isnan(values), self.fill, values)
        self.mean, self.scale = float(filled.mean()), float(filled.std())
        self.low, self.high = float(known.min()), float(known.max())
        return self._encoded(values)

    def transform(self, cells: Sequence[Any]) -> Any:
        """The numbers of the cells, one row each."""
        return self._encoded(self._numbers(cells))

    def _encoded(self, values: Floats) -> Floats:
        missing = np.isnan(values)
        columns = [np.zeros((len(values), 0))]
        if self.scale > 0:
            columns.append((np.where(missing, self.fill, values) - self.mean) / self.scale)
        if self.misses:
            columns.append(missing.astype(np.float64))
        return np.column_stack(columns)

    def names(self) -> list[str]:
        """The column's name, and ``... is missing``."""
        return [self.name] * (self.scale > 0) + [f"{self.name} is missing"] * self.misses

    def _numbers(self, cells: Sequence[Any]) -> Floats:
        numbers = [number_of(cell) for cell in cells]
        if None in numbers:
            remedy = "correct it, or leave it empty if it is missing"
            raise self._error(cells, numbers.index(None), "numbers", remedy)
        return np.array(numbers, dtype=np.float64)

    def unfamiliar(self, cells: Sequence[Any]) -> Unfamiliar:
        """The share of numbers outside the range of the training."""
        values = self._numbers(cells)
        outside = values[(values < self.low) | (values > self.high)]
        examples = tuple(f"{value:g}" for value in outside[:1])
        return Unfamiliar(len(outside) / max(1, len(values)), 0.0, examples)


class CategoryEncoder(Encoder):
    """A 0/1 column for each category that occurs more than once; all 0 for other cells."""

    kind: ColumnKind = "category"

    def fit_transform(self, cells: Sequence[Any]) -> Any:
        """Learn from the cells and return their numbers, one row each."""
        counts = Counter(map(_category, cells))
        often = [level for level, count in counts.most_common(_MOST_LEVELS) if count > 1]
        # Few categories are all kept; a single one carries no information.
        self.levels = [] if len(counts) == 1 else sorted(counts if len(counts) <= 20 else often)
        known = set(self.levels)
        rare = sum(count for level, count in counts.items() if level not in known or count == 1)
        self.usual = rare / max(1, len(cells))
        return self.transform(cells)

    def transform(self, cells: Sequence[Any]) -> Any:
        """The numbers of the cells, one row each."""
        position = {level: j for j, level in enumerate(self.levels)}
        columns = np.array([position.get(_category(cell), -1) for cell in cells], dtype=np.int64)
        rows = np.flatnonzero(columns >= 0)
        shape = (len(columns), len(self.levels))
        values = np.ones(len(rows), dtype=np.float32)
        block = sp.csr_matrix((values, (rows, columns[rows])), shape=shape)
        return block if len(self.levels) >= _SPARSE_FROM else block.toarray().astype(np.float64)

    def names(self) -> list[str]:
        """``column = category`` for each category."""
        return [f"{self.name} = {level or '(missing)'}" for level in self.levels]

    def unfamiliar(self, cells: Sequence[Any]) -> Unfamiliar:
        """The share of cells whose category does not occur in the training."""
        known = set(self.levels)
        new = Counter(level for level in map(_category, cells) if level not in known)
        examples = tuple(level for level, _ in new.most_common(3))
        return Unfamiliar(new.total() / max(1, len(cells)), self.usual, examples)


def _category(cell: Any) -> str:
    return "" if is_missing(cell) else str(cell).strip()


class DateEncoder(Encoder):
    """The month and the day of the week, as categories."""

    kind: ColumnKind = "date"

    def transform(self, cells: Sequence[Any]) -> Any:
        """The numbers of the cells, one row each."""
        values = np.zeros((len(cells), 19))
        for row, cell in enumerate(cells):
            if is_missing(cell):
                continue
            day = parse_date(cell)
            if day is None:
                raise self._error(cells, row, "dates", "write dates as 2024-05-31")
            values[row, day.month - 1] = values[row, 12 + day.weekday()] = 1.0
        return values

    def names(self) -> list[str]:
        """``column = month 1`` to ``column = weekday 6``."""
        months = [f"{self.name} = month {month}" for month in range(1, 13)]
        return months + [f"{self.name} = weekday {day}" for day in range(7)]


class TextEncoder(Encoder):
    """Terms weighted by tf-idf."""

    kind: ColumnKind = "text"

    def fit_transform(self, cells: Sequence[Any]) -> Any:
        """Learn from the cells and return their numbers, one row each."""
        self.preparation = TextPreparation()
        return self.preparation.fit_transform(cells)

    def transform(self, cells: Sequence[Any]) -> Any:
        """The numbers of the cells, one row each."""
        return self.preparation.transform(cells)

    def names(self) -> list[str]:
        """``column: term`` for each term."""
        return [f"{self.name}: {term}" for term in self.preparation.get_feature_names_out()]

    def unfamiliar(self, cells: Sequence[Any]) -> Unfamiliar:
        """The share of words that do not occur in the training."""
        return self.preparation.unfamiliar(cells)


class VectorEncoder(Encoder):
    """A list of numbers per cell, such as an embedding, as it is."""

    kind: ColumnKind = "vector"

    def fit_transform(self, cells: Sequence[Any]) -> Any:
        """Learn from the cells and return their numbers, one row each."""
        self.width = len(cells[0])
        return self.transform(cells)

    def transform(self, cells: Sequence[Any]) -> Any:
        """The numbers of the cells, one row each."""
        for row, cell in enumerate(cells):
            if not _is_vector(cell) or len(cell) != self.width:
                raise self._error(cells, row, f"{self.width} numbers per item")
        return np.array([list(cell) for cell in cells], dtype=np.float64)

    def names(self) -> list[str]:
        """``column[position]`` for each number."""
        return [f"{self.name}[{position}]" for position in range(self.width)]


_ENCODERS: dict[ColumnKind, type[Encoder]] = {
    encoder.kind: encoder
    for encoder in (NumberEncoder, CategoryEncoder, DateEncoder, TextEncoder, VectorEncoder)
}


def encoder_of(name: str, cells: Sequence[Any], kind: ColumnKind | None = None) -> Encoder:
    """The encoder for a column, by its cells if no kind is given."""
    chosen = kind or _encoded_as(cells)
    if chosen not in _ENCODERS:
        raise InputError(f"A column is one of {', '.join(_ENCODERS)}; got {chosen!r} for {name!r}.")
    return _ENCODERS[chosen](name)


def _encoded_as(cells: Sequence[Any]) -> ColumnKind:
    known = [cell for cell in cells if not is_missing(cell)]
    kind = _certain_kind(known)
    if kind == "empty" or kind == "binary":
        return "number"
    return kind or _text_or_category(known)


def kind_of(cells: Sequence[Any]) -> CellKind:
    """What some cells of a column hold.

    Returns
    -------
    {"empty", "binary", "number", "date", "vector", "tags", "text", "category"}
        "binary" is 0 and 1, yes and no, true and false; "tags" several short names in a cell, with
        a separator between them (see `separator_of`).

    Examples
    --------
    >>> kind_of(["1", "2.5", ""]), kind_of(["north", "south", "north"]), kind_of(["2024-05-31"])
    ('number', 'category', 'date')
    >>> kind_of(["0", "1"]), kind_of(["a;b", "b", "a;b;c"]), kind_of(["the printer is on fire"])
    ('binary', 'tags', 'text')
    """
    known = [cell for cell in cells if not is_missing(cell)]
    certain = _certain_kind(known)
    if certain is not None:
        return certain
    # A preparation treats such dates as categories: only the whole column shows which is the day.
    if all(isinstance(cell, str) and slashed_forms([cell]) for cell in known):
        return "date"
    return "tags" if separator_of(known) is not None else _text_or_category(known)


def _certain_kind(
    known: Sequence[Any],
) -> Literal["empty", "vector", "binary", "number", "date"] | None:
    if not known:
        return "empty"
    if all(map(_is_vector, known)):
        return "vector"
    if all(answer_of(cell) is not None for cell in known):
        return "binary"
    if all(number_of(cell) is not None for cell in known):
        return "number"
    return "date" if all(parse_date(cell) is not None for cell in known) else None


def _text_or_category(known: Sequence[Any]) -> Literal["text", "category"]:
    texts = [str(cell) for cell in known]
    distinct = len(set(texts)) / len(texts)
    spaces = sum(text.count(" ") for text in texts) / len(texts)
    length = sum(map(len, texts)) / len(texts)
    return "text" if distinct > 0.5 and (spaces >= 2 or length > 40) else "category"


def _is_vector(cell: Any) -> bool:
    if not isinstance(cell, (list, tuple, np.ndarray)) or not len(cell):
        return False
    return all(isinstance(number, (int, float, np.number)) for number in cell)


class ColumnPreparation(Preparation):
    """Every column by its kind: numbers scaled, categories one-hot, texts as terms.

    Parameters
    ----------
    columns : sequence of str, optional
        The columns to use; all if omitted.
    kinds : mapping of column to {"number", "category", "date", "text", "vector"}, optional
        Kinds of columns that should not be detected from their cells.

    Attributes
    ----------
    encoders_ : dict of column to its encoder

    Notes
    -----
    Missing numbers become the median, and an extra column marks them; categories that do not occur
    in the training get 0 in all columns. Of dates only the month and the day of the week are used:
    the year of a later batch does not occur in the training.

    Examples
    --------
    >>> prepared = ColumnPreparation().fit({"age": [20, 40], "ward": ["north", "south"]})
    >>> prepared.transform({"age": [30], "ward": ["east"]}).tolist()
    [[0.0, 0.0, 0.0]]
    """

    kind = "columns"

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        *,
        kinds: Mapping[str, ColumnKind] | None = None,
    ) -> None:
        self.columns = columns
        self.kinds = kinds

    def _learn(self, items: Any) -> Any:
        names = tuple(items) if self.columns is None else tuple(self.columns)
        kinds = self.kinds or {}
        self.encoders_ = {}
        blocks = []
        for name in names:
            encoder = encoder_of(name, _cells(items, name), kinds.get(name))
            block = encoder.fit_transform(_cells(items, name))
            if block.shape[1]:
                self.encoders_[name] = encoder
                blocks.append(block)
        if not blocks:
            raise InputError(
                f"None of the columns {', '.join(map(repr, names))} can be used: each is empty, "
                "has one value only, or a different one in every row."
            )
        self.dropped_ = tuple(name for name in names if name not in self.encoders_)
        matrix = _joined(blocks)
        self.n_features_ = int(matrix.shape[1])
        return matrix

    def _transform(self, items: Any) -> Any:
        return _joined(
            [encoder.transform(_cells(items, name)) for name, encoder in self.encoders_.items()]
        )

    def unfitted(self) -> ColumnPreparation:
        """An unfitted copy with the same kinds of columns, which some items may not show."""
        kinds = {name: encoder.kind for name, encoder in self.encoders_.items()}
        return ColumnPreparation(tuple(kinds), kinds=kinds)

    def unfamiliar(self, items: Any) -> Unfamiliar:
        """The share of cells unlike any of the training: new categories, numbers out of range."""
        shares = {
            name: encoder.unfamiliar(_cells(items, name))
            for name, encoder in self.encoders_.items()
        }
        share = float(np.mean([column.share for column in shares.values()]))
        usual = float(np.mean([column.usual for column in shares.values()]))
        worst = sorted(shares, key=lambda name: shares[name].usual - shares[name].share)
        examples = [f"{name}: {word}" for name in worst for word in shares[name].examples]
        return Unfamiliar(share, usual, tuple(examples[:10]))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:  # noqa: ARG002
        """The column's name, with the category, word or position if it has several features."""
        names = [name for encoder in self.encoders_.values() for name in encoder.names()]
        return np.array(names, dtype=object)

    def describe(self) -> str:
        """A short description for people."""
        kinds = [encoder.kind for encoder in self.encoders_.values()]
        counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        return f"{len(kinds)} columns ({counted}), {self.n_features_:,} features"


def _cells(items: Any, name: str) -> Sequence[Any]:
    try:
        return items[name]
    except KeyError:
        raise InputError(f"The items have no column {name!r}.") from None


def _joined(blocks: list[Any]) -> Any:
    if not any(sp.issparse(block) for block in blocks):
        return np.hstack(blocks)
    return sp.csr_matrix(sp.hstack(blocks, format="csr"), dtype=np.float32)
