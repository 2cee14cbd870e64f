"""What the cells of one column are, and how each kind becomes numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.tables.cells import is_missing, number_of, parse_date, shown
from prevalens.tables.preparation import CellError, Preparation, Unfamiliar
from prevalens.tables.text import TextPreparation
from prevalens.types import Floats
from prevalens.validation import InputError

__all__ = ["ColumnKind", "ColumnPreparation", "Encoder", "encoder_of", "kind_of"]

ColumnKind: TypeAlias = Literal["number", "category", "date", "text", "vector"]

#: Categories beyond this many are not told apart.
_MOST_LEVELS = 1000
#: From this many columns on, a block of categories is sparse.
_SPARSE_FROM = 50


class Encoder:
    """One column to numbers.

    Attributes
    ----------
    kind : str
    name : str
        Of the column, for sentences.
    """

    kind: ColumnKind

    def __init__(self, name: str) -> None:
        self.name = name

    def fit_transform(self, cells: Sequence[Any]) -> Any:
        """Learn, and give the numbers of the cells learnt from."""
        raise NotImplementedError

    def transform(self, cells: Sequence[Any]) -> Any:
        """The numbers of cells, one row each."""
        raise NotImplementedError

    def names(self) -> list[str]:
        """A name for every column of the numbers."""
        raise NotImplementedError

    def unfamiliar(self, cells: Sequence[Any]) -> Unfamiliar:  # noqa: ARG002
        """How many of the cells are unlike those learnt from."""
        return Unfamiliar(0.0, 0.0)


class NumberEncoder(Encoder):
    """Centred and scaled; the median where missing, and a column that says so if it happened."""

    kind: ColumnKind = "number"

    def fit_transform(self, cells: Sequence[Any]) -> Any:
        """Learn, and give the numbers of the cells learnt from."""
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
        """The numbers of cells, one row each."""
        return self._encoded(self._numbers(cells))

    def _encoded(self, values: Floats) -> Floats:
        missing = np.isnan(values)
        columns = []
        if self.scale > 0:
            columns.append((np.where(missing, self.fill, values) - self.mean) / self.scale)
        if self.misses:
            columns.append(missing.astype(np.float64))
        return np.column_stack(columns) if columns else np.zeros((len(values), 0))

    def names(self) -> list[str]:
        """A name for every column of the numbers."""
        return [self.name] * (self.scale > 0) + [f"{self.name} is missing"] * self.misses

    def _numbers(self, cells: Sequence[Any]) -> Floats:
        found = [number_of(cell) for cell in cells]
        for row, number in enumerate(found):
            if number is None:
                raise CellError(
                    row,
                    f"the column {self.name!r} holds numbers, but here is {shown(cells[row])}; "
                    "correct it, or leave it empty if it is missing.",
                )
        return np.array(found, dtype=np.float64)

    def unfamiliar(self, cells: Sequence[Any]) -> Unfamiliar:
        """The share of numbers beyond the smallest and largest of the training."""
        values = self._numbers(cells)
        beyond = values[(values < self.low) | (values > self.high)]
        examples = tuple(f"{value:g}" for value in beyond[:1])
        return Unfamiliar(len(beyond) / max(1, len(values)), 0.0, examples)


class CategoryEncoder(Encoder):
    """A column of 0/1 per category that occurs more than once; others are none of them."""

    kind: ColumnKind = "category"

    def fit_transform(self, cells: Sequence[Any]) -> Any:
        """Learn, and give the numbers of the cells learnt from."""
        words = Counter(map(self._word, cells))
        often = [word for word, count in words.most_common(_MOST_LEVELS) if count > 1]
        few = len(words) <= max(20, len(cells) // 2)
        self.levels = sorted(words if few and len(words) <= 20 else often)
        if len(words) == 1:
            self.levels = []
        known = set(self.levels)
        rare = sum(count for word, count in words.items() if word not in known or count == 1)
        self.usual = rare / max(1, len(cells))
        return self.transform(cells)

    def _word(self, cell: Any) -> str:
        return "" if is_missing(cell) else str(cell).strip()

    def transform(self, cells: Sequence[Any]) -> Any:
        """The numbers of cells, one row each."""
        position = {word: j for j, word in enumerate(self.levels)}
        columns = np.array([position.get(self._word(cell), -1) for cell in cells], dtype=np.int64)
        rows = np.flatnonzero(columns >= 0)
        shape = (len(columns), len(self.levels))
        values = np.ones(len(rows), dtype=np.float32)
        block = sp.csr_matrix((values, (rows, columns[rows])), shape=shape)
        return block if len(self.levels) >= _SPARSE_FROM else block.toarray().astype(np.float64)

    def names(self) -> list[str]:
        """A name for every column of the numbers."""
        return [f"{self.name} = {level or '(missing)'}" for level in self.levels]

    def unfamiliar(self, cells: Sequence[Any]) -> Unfamiliar:
        """The share of categories that the training does not have."""
        known = set(self.levels)
        new = Counter(word for word in map(self._word, cells) if word not in known)
        examples = tuple(word for word, _ in new.most_common(3))
        return Unfamiliar(new.total() / max(1, len(cells)), self.usual, examples)


class DateEncoder(CategoryEncoder):
    """The month and the day of the week, as categories."""

    kind: ColumnKind = "date"

    def fit_transform(self, cells: Sequence[Any]) -> Any:
        """Learn, and give the numbers of the cells learnt from."""
        self.levels = [f"month {m}" for m in range(1, 13)] + [f"weekday {d}" for d in range(7)]
        self.usual = 0.0
        return self.transform(cells)

    def transform(self, cells: Sequence[Any]) -> Any:
        """The numbers of cells, one row each."""
        values = np.zeros((len(cells), len(self.levels)))
        for row, cell in enumerate(cells):
            if is_missing(cell):
                continue
            day = parse_date(cell)
            if day is None:
                raise CellError(
                    row,
                    f"the column {self.name!r} holds dates, but here is {shown(cell)}; write "
                    "dates as 2024-05-31.",
                )
            values[row, day.month - 1] = values[row, 12 + day.weekday()] = 1.0
        return values

    def unfamiliar(self, cells: Sequence[Any]) -> Unfamiliar:  # noqa: ARG002
        """Months and weekdays are never new."""
        return Unfamiliar(0.0, 0.0)


class TextEncoder(Encoder):
    """Terms weighted by tf-idf."""

    kind: ColumnKind = "text"

    def fit_transform(self, cells: Sequence[Any]) -> Any:
        """Learn, and give the numbers of the cells learnt from."""
        self.preparation = TextPreparation()
        return self.preparation.fit_transform(cells)

    def transform(self, cells: Sequence[Any]) -> Any:
        """The numbers of cells, one row each."""
        return self.preparation.transform(cells)

    def names(self) -> list[str]:
        """A name for every column of the numbers."""
        return [f"{self.name}: {term}" for term in self.preparation.get_feature_names_out()]

    def unfamiliar(self, cells: Sequence[Any]) -> Unfamiliar:
        """The share of words that the training does not have."""
        return self.preparation.unfamiliar(cells)


class VectorEncoder(Encoder):
    """A list of numbers per cell, such as an embedding, as it is."""

    kind: ColumnKind = "vector"

    def fit_transform(self, cells: Sequence[Any]) -> Any:
        """Learn, and give the numbers of the cells learnt from."""
        self.width = len(cells[0])
        return self.transform(cells)

    def transform(self, cells: Sequence[Any]) -> Any:
        """The numbers of cells, one row each."""
        for row, cell in enumerate(cells):
            if not _is_vector(cell) or len(cell) != self.width:
                raise CellError(
                    row,
                    f"the column {self.name!r} holds {self.width} numbers per item, but here is "
                    f"{shown(cell)}.",
                )
        return np.array([list(cell) for cell in cells], dtype=np.float64)

    def names(self) -> list[str]:
        """A name for every column of the numbers."""
        return [f"{self.name}[{position}]" for position in range(self.width)]


_ENCODERS: dict[ColumnKind, Callable[[str], Encoder]] = {
    "number": NumberEncoder,
    "category": CategoryEncoder,
    "date": DateEncoder,
    "text": TextEncoder,
    "vector": VectorEncoder,
}


def encoder_of(name: str, cells: Sequence[Any], kind: ColumnKind | None = None) -> Encoder:
    """The encoder that a column's cells ask for."""
    chosen = kind or kind_of(cells)
    if chosen not in _ENCODERS:
        raise InputError(f"A column is one of {', '.join(_ENCODERS)}; got {chosen!r} for {name!r}.")
    return _ENCODERS[chosen](name)


def kind_of(cells: Sequence[Any]) -> ColumnKind:
    """What most people would call the cells of a column.

    Examples
    --------
    >>> kind_of(["1", "2.5", ""]), kind_of(["north", "south", "north"]), kind_of(["2024-05-31"])
    ('number', 'category', 'date')
    """
    known = [cell for cell in cells if not is_missing(cell)]
    if not known:
        return "number"
    if all(map(_is_vector, known)):
        return "vector"
    if all(number_of(cell) is not None for cell in known):
        return "number"
    if all(parse_date(cell) is not None for cell in known):
        return "date"
    return "text" if _reads_like_text(known) else "category"


def _is_vector(cell: Any) -> bool:
    if not isinstance(cell, (list, tuple, np.ndarray)) or not len(cell):
        return False
    return all(isinstance(one, (int, float, np.number)) for one in cell)


def _reads_like_text(cells: Sequence[Any]) -> bool:
    words = [str(cell) for cell in cells]
    distinct = len(set(words)) / len(words)
    spaces = sum(word.count(" ") for word in words) / len(words)
    length = sum(map(len, words)) / len(words)
    return distinct > 0.5 and (spaces >= 2 or length > 40)


class ColumnPreparation(Preparation):
    """Each column as its cells ask for: numbers scaled, categories one-hot, texts as terms.

    Parameters
    ----------
    columns : sequence of str, optional
        Which to use; all if left out.
    kinds : mapping of column to {"number", "category", "date", "text", "vector"}, optional
        For columns whose cells would be taken for something else.

    Attributes
    ----------
    encoders_ : dict of column to its encoder

    Notes
    -----
    Missing numbers become the median, and a column says that they were missing; categories that
    the training does not have become none of them. Of dates only the month and the day of the week
    are used: the year of a later batch would be beyond everything seen.

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
        matrix = _side_by_side(blocks)
        self.n_features_ = int(matrix.shape[1])
        return matrix

    def _transform(self, items: Any) -> Any:
        blocks = [one.transform(_cells(items, name)) for name, one in self.encoders_.items()]
        return _side_by_side(blocks)

    def unfamiliar(self, items: Any) -> Unfamiliar:
        """The share of cells unlike any of the training: new categories, numbers out of range."""
        found = {name: one.unfamiliar(_cells(items, name)) for name, one in self.encoders_.items()}
        share = float(np.mean([one.share for one in found.values()]))
        usual = float(np.mean([one.usual for one in found.values()]))
        worst = sorted(found, key=lambda name: found[name].usual - found[name].share)
        examples = [f"{name}: {word}" for name in worst for word in found[name].examples]
        return Unfamiliar(share, usual, tuple(examples[:10]))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:  # noqa: ARG002
        """The column's name, with the category, word or position where it has several features."""
        names = [name for one in self.encoders_.values() for name in one.names()]
        return np.array(names, dtype=object)

    def describe(self) -> str:
        """What is done, in a short sentence."""
        kinds = [one.kind for one in self.encoders_.values()]
        counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        return f"{len(kinds)} columns ({counted}), {self.n_features_:,} features"


def _cells(items: Any, name: str) -> Sequence[Any]:
    try:
        return items[name]
    except KeyError:
        raise InputError(f"The items have no column {name!r}.") from None


def _side_by_side(blocks: list[Any]) -> Any:
    if not any(sp.issparse(block) for block in blocks):
        return np.hstack(blocks)
    return sp.csr_matrix(sp.hstack(blocks, format="csr"), dtype=np.float32)
