"""Columns of several kinds, and how each kind becomes numbers."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.errors import PrevalensWarning, counted
from prevalens.tables.cells import (
    DecimalMark,
    is_marker,
    is_missing,
    number_of,
    parse_date,
    shown,
)
from prevalens.tables.kinds import ColumnKind, ColumnUse, is_vector, read_column
from prevalens.tables.preparation import CellError, Preparation, Unfamiliar
from prevalens.tables.table import vector_array
from prevalens.tables.text import TextPreparation
from prevalens.types import Floats
from prevalens.validation import InputError

#: Largest number of categories, the most frequent ones, that get a column.
_MOST_LEVELS = 1000
#: From this many columns on, a block of categories is sparse.
_SPARSE_FROM = 50
#: Columns that a message names.
_NAMED = 8


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

    def unfitted(self) -> Encoder:
        """An unfitted copy that reads cells in the same way."""
        return type(self)(self.name)

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
    """Numbers, centred and scaled; missing ones become the median and set an extra 0/1 column.

    Parameters
    ----------
    name : str
    decimal : {".", ","}
        Decimal mark of texts.
    words : sequence of str
        Texts that count as missing, besides the usual ones.
    """

    kind: ColumnKind = "number"

    def __init__(self, name: str, decimal: DecimalMark = ".", words: Sequence[str] = ()) -> None:
        super().__init__(name)
        self.decimal = decimal
        self.words = list(words)

    def unfitted(self) -> NumberEncoder:
        """An unfitted copy that reads cells in the same way."""
        return NumberEncoder(self.name, self.decimal, self.words)

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
        numbers = [number_of(cell, self.decimal) for cell in cells]
        for row in [row for row, number in enumerate(numbers) if number is None]:
            if str(cells[row]).strip() not in self.words:
                remedy = "correct it, or leave it empty if it is missing"
                raise self._error(cells, row, "numbers", remedy)
        # None becomes NaN.
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
    """The month and the day of the week, as categories.

    Parameters
    ----------
    name : str
    form : str, optional
        Format of the dates, as in `datetime.strptime`, besides those that are unambiguous.
    words : sequence of str
        Texts that count as missing, besides the usual ones.
    """

    kind: ColumnKind = "date"

    def __init__(self, name: str, form: str | None = None, words: Sequence[str] = ()) -> None:
        super().__init__(name)
        self.form = form
        self.words = list(words)

    def unfitted(self) -> DateEncoder:
        """An unfitted copy that reads cells in the same way."""
        return DateEncoder(self.name, self.form, self.words)

    def transform(self, cells: Sequence[Any]) -> Any:
        """The numbers of the cells, one row each."""
        values = np.zeros((len(cells), 19))
        for row, cell in enumerate(cells):
            if is_marker(cell) or str(cell).strip() in self.words:
                continue
            day = (parse_date(cell, self.form) if self.form else None) or parse_date(cell)
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
    """A list of numbers per cell, such as an embedding, centred and scaled as a whole.

    Attributes
    ----------
    width : int
        Numbers per cell.

    Notes
    -----
    One factor scales all numbers so that the mean squared length of the centred vectors is 1, as
    long as the rows of weighted terms are. Scaled one by one, hundreds of dimensions would outweigh
    texts and numbers under a ridge penalty. A missing cell, or one with NaN, becomes the mean and
    sets an extra 0/1 column if the training has such cells. O(n_items x width), in float32.
    """

    kind: ColumnKind = "vector"
    #: Models that were saved before vectors were scaled use them as they are.
    mean: npt.NDArray[np.float32] | None = None
    scale = 1.0
    misses = False

    def fit_transform(self, cells: Sequence[Any]) -> Any:
        """Learn from the cells and return their numbers, one row each."""
        self.width = _usual_width(cells)
        values = self._numbers(cells)
        missing = np.isnan(values).any(axis=1)
        self.misses = bool(missing.any())
        known = values[~missing] if self.misses else values
        self.mean = known.mean(axis=0, dtype=np.float64).astype(np.float32)
        centred = values - self.mean
        centred[missing] = 0.0
        spread = float(np.einsum("ij,ij->", centred, centred, dtype=np.float64)) / len(known)
        self.scale = float(1.0 / np.sqrt(spread)) if spread > 0 else 0.0
        centred *= np.float32(self.scale)
        return self._marked(centred, missing)

    def transform(self, cells: Sequence[Any]) -> Any:
        """The numbers of the cells, one row each."""
        values = self._numbers(cells)
        missing = np.isnan(values).any(axis=1)
        if self.mean is not None:
            values = (values - self.mean) * np.float32(self.scale)
        values[missing] = 0.0
        return self._marked(values, missing)

    def _marked(self, values: Any, missing: Any) -> Any:
        return np.column_stack([values, missing.astype(np.float32)]) if self.misses else values

    def names(self) -> list[str]:
        """``column[position]`` for each number, and ``... is missing``."""
        positions = [f"{self.name}[{position}]" for position in range(self.width)]
        return positions + [f"{self.name} is missing"] * self.misses

    def _numbers(self, cells: Sequence[Any]) -> npt.NDArray[np.float32]:
        """Shape (n_items, width); rows of missing cells are NaN."""
        with np.errstate(over="ignore"):
            values: npt.NDArray[np.float32] = np.empty(0, dtype=np.float32)
            with suppress(TypeError, ValueError):
                values = np.array(cells, dtype=np.float32)
            if values.shape != (len(cells), self.width):
                rows = [self._vector(cells, row) for row in range(len(cells))]
                values = np.array(rows, dtype=np.float32).reshape(-1, self.width)
        endless = np.isinf(values).any(axis=1)
        if endless.any():
            row = int(endless.argmax())
            raise self._error(cells, row, "vectors", "infinite numbers cannot be used")
        return values

    def _vector(self, cells: Sequence[Any], row: int) -> Any:
        cell = cells[row]
        if is_missing(cell):
            return np.full(self.width, np.nan, dtype=np.float32)
        if not is_vector(cell) or len(cell) != self.width:
            raise self._error(cells, row, f"{self.width} numbers per item", _length(cell))
        return np.asarray(cell, dtype=np.float32)


def _usual_width(cells: Sequence[Any]) -> int:
    """The most frequent length of the vectors in a column."""
    array = vector_array(cells)
    if array is not None:
        return int(array.shape[1])
    lengths = Counter(len(cell) for cell in cells if is_vector(cell))
    return lengths.most_common(1)[0][0] if lengths else 1


def _length(cell: Any) -> str:
    return f"it has {len(cell):,}" if is_vector(cell) else ""


_ENCODERS: dict[str, type[Encoder]] = {
    encoder.kind: encoder
    for encoder in (NumberEncoder, CategoryEncoder, DateEncoder, TextEncoder, VectorEncoder)
}


class ColumnPreparation(Preparation):
    """Every column by its kind: numbers scaled, categories one-hot, texts as terms.

    Parameters
    ----------
    columns : sequence of str, optional
        The columns to use; all if omitted.
    kinds : mapping of column to str or Encoder, optional
        What columns become that should not be decided by their cells: "number", "decimal-point",
        "decimal-comma" (numbers with that decimal mark), "category", "text", "date", "vector" or
        "drop".
    date_form : str, optional
        Format of dates, as in `datetime.strptime`; detected if omitted.

    Attributes
    ----------
    encoders_ : dict of column to its encoder
    uses_ : tuple of ColumnUse
        What every column became.
    dropped_ : tuple of str
        The columns that are not used.

    Notes
    -----
    Missing numbers become the median, and an extra column marks them; categories that do not occur
    in the training get 0 in all columns. Of dates only the month and the day of the week are used:
    the year of a later batch does not occur in the training. How a column is read is decided once,
    by the training items (see `prevalens.tables.kinds.read_column`). Fails where codes that are
    no quantities are written as numbers: ask for categories then.

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
        kinds: Mapping[str, str | Encoder] | None = None,
        date_form: str | None = None,
    ) -> None:
        self.columns = columns
        self.kinds = kinds
        self.date_form = date_form

    def _learn(self, items: Any) -> Any:
        names = tuple(items) if self.columns is None else tuple(self.columns)
        self._check_kinds(names)
        self.encoders_: dict[str, Encoder] = {}
        blocks, uses = [], []
        for name in names:
            cells = _cells(items, name)
            encoder, use = self._encoder(name, cells)
            if encoder is not None:
                block = encoder.fit_transform(cells)
                if block.shape[1]:
                    self.encoders_[name] = encoder
                    blocks.append(block)
                else:
                    use = replace(use, use="dropped", detail="nothing occurs more than once")
            uses.append(use)
        self.uses_ = tuple(uses)
        self.dropped_ = tuple(name for name in names if name not in self.encoders_)
        if not blocks:
            reasons = "; ".join(f"{use.column!r}: {use.detail}" for use in uses[:_NAMED])
            raise InputError(f"None of the columns can be used ({reasons}).")
        self._warn_of_dropped()
        matrix = _joined(blocks)
        self.n_features_ = int(matrix.shape[1])
        return matrix

    def _warn_of_dropped(self) -> None:
        """Name the columns that are not used, unless it was asked for what they become."""
        asked = self.kinds or {}
        dropped = [use for use in self.uses_ if use.use == "dropped" and use.column not in asked]
        if dropped:
            reasons = "; ".join(f"{use.column!r}: {use.detail}" for use in dropped[:_NAMED])
            more = f"; and {len(dropped) - _NAMED} more" if len(dropped) > _NAMED else ""
            warnings.warn(
                f"{counted(len(dropped), 'column')} not used: {reasons}{more}.",
                PrevalensWarning,
                stacklevel=2,
            )

    def _check_kinds(self, names: Sequence[str]) -> None:
        for name in self.kinds or {}:
            if name not in names:
                raise InputError(
                    f"The column {name!r} is not among the features, so nothing decides what it "
                    f"becomes; the features are {', '.join(map(repr, names[:_NAMED]))}."
                )

    def _encoder(self, name: str, cells: Sequence[Any]) -> tuple[Encoder | None, ColumnUse]:
        """The unfitted encoder of a column, None if it is dropped; warns of what is doubtful."""
        given = (self.kinds or {}).get(name)
        if isinstance(given, Encoder):
            return given.unfitted(), ColumnUse(name, given.kind)
        reading = read_column(name, cells, given, date_form=self.date_form)
        if reading.doubt:
            warnings.warn(reading.doubt, PrevalensWarning, stacklevel=2)
        if reading.use.use == "dropped":
            return None, reading.use
        return _ENCODERS[reading.use.use](name, **reading.settings), reading.use

    def _transform(self, items: Any) -> Any:
        return _joined(
            [encoder.transform(_cells(items, name)) for name, encoder in self.encoders_.items()]
        )

    def unfitted(self) -> ColumnPreparation:
        """An unfitted copy that reads columns in the same way, which some items may not show."""
        return ColumnPreparation(tuple(self.encoders_), kinds=dict(self.encoders_))

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

    def column_uses(self, columns: Sequence[str] | None) -> tuple[ColumnUse, ...]:  # noqa: ARG002
        """What each column became, those that are not used included."""
        return self.uses_

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:  # noqa: ARG002
        """The column's name, with the category, word or position if it has several features."""
        names = [name for encoder in self.encoders_.values() for name in encoder.names()]
        return np.array(names, dtype=object)

    def describe(self) -> str:
        """A short description for people."""
        kinds = [encoder.kind for encoder in self.encoders_.values()]
        each = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        return f"{counted(len(kinds), 'column')} ({each}), {self.n_features_:,} features"


def _cells(items: Any, name: str) -> Sequence[Any]:
    try:
        return items[name]
    except KeyError:
        raise InputError(f"The items have no column {name!r}.") from None


def _joined(blocks: list[Any]) -> Any:
    """One matrix; in float32 if a block is sparse or has vectors, which are large."""
    if not any(sp.issparse(block) for block in blocks):
        types = {block.dtype for block in blocks}
        dtype = np.float32 if np.dtype(np.float32) in types else np.float64
        return np.concatenate(blocks, axis=1, dtype=dtype, casting="same_kind")
    return sp.csr_matrix(sp.hstack(list(map(_as_sparse, blocks)), format="csr"), dtype=np.float32)


def _as_sparse(block: Any) -> Any:
    """A block as a sparse matrix, with the zeros of a full block as entries, which is faster."""
    if sp.issparse(block) or np.count_nonzero(block) < 0.5 * block.size:
        return sp.csr_matrix(block)
    n_rows, width = block.shape
    columns = np.tile(np.arange(width, dtype=np.int32), n_rows)
    ends = np.arange(n_rows + 1, dtype=np.int64) * width
    data = block.astype(np.float32, copy=False).ravel()
    return sp.csr_matrix((data, columns, ends), shape=block.shape)
