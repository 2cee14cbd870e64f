"""What a column holds: numbers, categories, dates, texts, vectors, or nothing that helps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from prevalens.errors import InputError, counted
from prevalens.tables.cells import (
    DecimalMark,
    NumberStyle,
    answer_of,
    date_forms,
    is_marker,
    is_missing,
    number_of,
    number_style,
    parse_date,
    shown,
    written_number,
)
from prevalens.tables.labels import is_list_of_texts, separator_of
from prevalens.tables.table import vector_array

#: How a column is encoded.
ColumnKind: TypeAlias = Literal["number", "category", "date", "text", "vector"]
#: What the cells of a column hold.
CellKind: TypeAlias = Literal[
    "empty", "binary", "number", "date", "vector", "tags", "text", "category"
]
#: What may be asked for: a kind, a kind with a decimal mark, or that a column is not used.
CHOICES = (
    "number", "decimal-point", "decimal-comma", "category", "text", "date", "vector", "drop",
)  # fmt: skip
_MARKS: dict[str, DecimalMark] = {"decimal-point": ".", "decimal-comma": ","}
#: A column of which this share are numbers or dates is one of them; the others are missing.
_MOSTLY = 0.9
#: From this share of numbers on, categories are worth a note.
_PARTLY = 0.5
#: Cells that are looked at before all are.
_LOOKED_AT = 200
#: Below this many rows, different values in all of them do not show an identifier.
_FEWEST_ROWS = 20
#: Below this many rows, consecutive whole numbers need not be row numbers.
_FEWEST_NUMBERED = 100
#: If fewer cells than this share have a value that occurs again, categories say nothing.
_REPEATED = 0.1
_IDENTIFIER = re.compile(r"(^|[\W_])(id|ids|uuid|guid|pk)$|[a-z]I[dD]$", re.ASCII)
_NUMBERING = re.compile(
    r"(^|[\W_])(index|idx|key|row|rownum|row_?number|nr|no)$|^unnamed: \d+$", re.ASCII
)


@dataclass(frozen=True)
class ColumnUse:
    """What a column became.

    Attributes
    ----------
    column : str
    use : {"number", "category", "date", "text", "vector", "dropped"}
    detail : str
        How it was read, or why it is not used.
    alternative : str
        What else may be asked for, one of `CHOICES`; empty if nothing else makes sense.
    """

    column: str
    use: str
    detail: str = ""
    alternative: str = ""


@dataclass(frozen=True)
class ColumnReading:
    """How a column is to be read.

    Attributes
    ----------
    use : ColumnUse
    settings : dict
        Arguments of the column's encoder.
    doubt : str
        A sentence for the user if it might be meant differently; else empty.
    """

    use: ColumnUse
    settings: dict[str, Any] = field(default_factory=dict)
    doubt: str = ""


def ask_for(column: str, choice: str) -> str:
    """The argument that decides what a column becomes, for messages."""
    return f"`kinds={{{column!r}: {choice!r}}}`"


def read_column(
    name: str, cells: Sequence[Any], choice: str | None = None, *, date_form: str | None = None
) -> ColumnReading:
    """What a column becomes, by its name and cells or as it was asked for.

    Parameters
    ----------
    name : str
    cells : sequence
    choice : one of `CHOICES`, optional
    date_form : str, optional
        Format of dates, as in `datetime.strptime`.

    Notes
    -----
    A column is a number or a date if nine of ten of its cells are; the others, and marks such as
    ``?``, count as missing. Columns that are empty or constant, row numbers, and identifiers, which
    have another value in almost every row, are not used.

    Examples
    --------
    >>> read_column("price", ["12,5", "7,25", "?"]).use
    ColumnUse(column='price', use='number', detail="decimal comma; 1 missing ('?')", \
alternative='category')
    >>> read_column("same", ["x", "x"]).use.detail
    "only one value, 'x'"
    """
    if choice is not None and choice not in CHOICES:
        raise InputError(f"A column is one of {', '.join(CHOICES)}; got {choice!r} for {name!r}.")
    if choice == "drop":
        return _dropped(name, "as asked for")
    array = vector_array(cells)
    if array is not None:
        return ColumnReading(_vectors(name, array[:1]))
    known = [cell for cell in cells if not is_missing(cell)]
    if not known:
        return _dropped(name, "all cells are empty")
    if choice == "vector" or all(map(is_vector, known)):
        return ColumnReading(_vectors(name, known))
    if all(isinstance(cell, Mapping) for cell in known):
        return _dropped(name, "objects with several values each")
    first = str(known[0]).strip()
    if len(known) == len(cells) and all(str(cell).strip() == first for cell in known):
        return _dropped(name, f"only one value, {shown(known[0])}")
    values = _Values.of(cells, known)
    if choice is not None:
        return _as_asked(name, values, choice, date_form)
    return (
        _number(name, values)
        or _date(name, values, date_form)
        or _text(name, known)
        or _category(name, values)
    )


def _vectors(name: str, known: Any) -> ColumnUse:
    width = len(known[0]) if is_vector(known[0]) else 0
    return ColumnUse(name, "vector", f"{width:,} numbers" if width else "", "drop")


@dataclass(frozen=True)
class _Values:
    """The cells of a column, each different one once.

    Attributes
    ----------
    n_cells : int
    known : sequence
        The cells that are not missing.
    counts : dict of cell to int
        How often each cell occurs that is neither missing nor a mark of missing values.
    marks : dict of str to int
        How often each mark occurs.
    """

    n_cells: int
    known: Sequence[Any]
    counts: dict[Any, int]
    marks: dict[str, int]

    @classmethod
    def of(cls, cells: Sequence[Any], known: Sequence[Any]) -> _Values:
        try:
            counts = Counter(known)
        except TypeError:
            # Lists in cells have no hash; as texts they are neither numbers nor dates.
            counts = Counter(map(str, known))
        marks = {cell: count for cell, count in counts.items() if is_marker(cell)}
        valued = {cell: count for cell, count in counts.items() if cell not in marks}
        return cls(len(cells), known, valued, marks)

    @property
    def total(self) -> int:
        """Number of cells that are neither missing nor a mark."""
        return sum(self.counts.values())

    def others(self, fits: Callable[[Any], bool], least: float) -> Counter[str] | None:
        """The cells that do not fit, as texts, with how often they occur.

        None if no cell fits, or not at least this share of them.
        """
        every = 1 + len(self.known) // _LOOKED_AT
        some = [cell for cell in self.known[::every] if not is_marker(cell)]
        # Some are tried first, which is faster; twice as many as allowed may be off in these.
        if sum(map(fits, some)) < (2 * least - 1) * len(some):
            return None
        off = Counter[str]()
        for cell, count in self.counts.items():
            if not fits(cell):
                off[str(cell).strip()] += count
        fitting = self.total - off.total()
        return off if fitting and fitting >= least * self.total else None

    def missing(self, words: Counter[str]) -> str:
        """How many cells are missing, with marks and words that say so; empty if none are."""
        count = self.n_cells - self.total + words.total()
        examples = ", ".join(
            shown(text) for text, _ in (Counter(self.marks) + words).most_common(3)
        )
        return f"{count:,} missing{f' ({examples})' * bool(examples)}" if count else ""

    def values(self) -> str:
        """How many different values there are, and how many cells are missing."""
        missing = self.n_cells - len(self.known)
        values = counted(len(self.counts) + len(self.marks), "value")
        return f"{values}; {missing:,} missing" if missing else values


def _dropped(name: str, why: str, alternative: str = "") -> ColumnReading:
    return ColumnReading(ColumnUse(name, "dropped", why, alternative))


def _as_asked(name: str, values: _Values, choice: str, date_form: str | None) -> ColumnReading:
    reading: ColumnReading | None
    if choice == "category":
        return ColumnReading(ColumnUse(name, "category", values.values(), "drop"))
    if choice == "text":
        return ColumnReading(ColumnUse(name, "text", "words", "category"))
    if choice == "date":
        reading = _date(name, values, date_form, least=0.0)
    else:
        reading = _as_number(name, values, _MARKS.get(choice), least=0.0)
    if reading is None:
        what = "date" if choice == "date" else "number"
        raise InputError(
            f"The column {name!r} holds no {what}, but for example {shown(values.known[0])}; leave "
            f"out {ask_for(name, choice)}."
        )
    return reading


def _number(name: str, values: _Values) -> ColumnReading | None:
    """A number, unless its name and values are those of an identifier; None if it is none."""
    reading = _as_number(name, values)
    if reading is None:
        return None
    numbers = {number_of(cell, reading.settings["decimal"]) for cell in values.counts}
    whole = [number for number in numbers if number is not None and number.is_integer()]
    different = len(whole) == values.n_cells
    if different and len(whole) >= _FEWEST_ROWS:
        if _IDENTIFIER.search(name) or _NUMBERING.search(name.lower()):
            return _dropped(name, "identifier: another number in every row", "number")
        if len(whole) >= _FEWEST_NUMBERED and max(whole) - min(whole) == len(whole) - 1:
            return _dropped(name, "row numbers", "number")
    if _IDENTIFIER.search(name) and len(whole) == len(numbers) and not different:
        return _category(name, values, "named as an identifier")
    return reading


def _as_number(
    name: str, values: _Values, decimal: DecimalMark | None = None, *, least: float = _MOSTLY
) -> ColumnReading | None:
    """A number, if this share of the cells are some; the others are missing."""
    style = number_style(list(values.counts), decimal)
    mark = style.decimal
    words = values.others(lambda cell: number_of(cell, mark) is not None, least)
    if words is None:
        return None
    parts = [
        "decimal comma" if mark == "," else "",
        "thousands separators" if style.grouped else "",
        "percent signs ignored" if style.percent else "",
        values.missing(words),
    ]
    settings = {"decimal": mark, "words": sorted(words)}
    detail = "; ".join(filter(None, parts))
    if style.doubtful:
        other = "decimal-point" if mark == "," else "decimal-comma"
        doubt = _doubt_of_mark(name, style, other)
        return ColumnReading(ColumnUse(name, "number", detail, other), settings, doubt)
    doubt = _doubt_of_words(name, words, values.total, "number") if least else ""
    return ColumnReading(ColumnUse(name, "number", detail, "category"), settings, doubt)


def _doubt_of_words(name: str, words: Counter[str], count: int, kind: str) -> str:
    if not words:
        return ""
    examples = ", ".join(shown(word) for word, _ in words.most_common(3))
    return (
        f"{words.total():,} of {count:,} values of the column {name!r} are no {kind} ({examples}) "
        f"and count as missing; {ask_for(name, 'category')} makes every value a category."
    )


def _doubt_of_mark(name: str, style: NumberStyle, choice: str) -> str:
    marks = (style.decimal, _MARKS[choice])
    here, there = (written_number(style.doubtful, mark) for mark in marks)
    return (
        f"In the column {name!r}, {style.doubtful!r} is read as {here:g}; if it means {there:g}, "
        f"say {ask_for(name, choice)}."
    )


def _date(
    name: str, values: _Values, form: str | None, *, least: float = _MOSTLY
) -> ColumnReading | None:
    """A date, if this share of the cells are some; the others are missing."""
    forms = [form] if form is not None else date_forms(list(values.counts))
    chosen = forms[0] if forms else None
    words = values.others(lambda cell: _is_day(cell, chosen), least)
    if words is None:
        return None
    detail = f"month and day of the week, not the year; {values.missing(words)}".rstrip("; ")
    doubt = _doubt_of_words(name, words, values.total, "date") if least else ""
    if len(forms) > 1:
        doubt = (
            f"In the dates of the column {name!r} day and month cannot be told apart; they are "
            f"read as {forms[0]}. If the month comes first, say `date_form={forms[1]!r}`."
        )
    use = ColumnUse(name, "date", detail, "drop")
    return ColumnReading(use, {"form": chosen, "words": sorted(words)}, doubt)


def _is_day(cell: Any, form: str | None) -> bool:
    return (form is not None and parse_date(cell, form) is not None) or parse_date(cell) is not None


def _text(name: str, known: Sequence[Any]) -> ColumnReading | None:
    if _text_or_category(known) == "category":
        return None
    return ColumnReading(ColumnUse(name, "text", "words", "category"))


def _category(name: str, values: _Values, why: str = "") -> ColumnReading:
    """A category, unless almost every cell differs; `why` says why it is no number."""
    counts, n_known = values.counts, len(values.known)
    repeated = n_known - sum(count == 1 for count in counts.values())
    if len(counts) > _FEWEST_ROWS and repeated < _REPEATED * n_known:
        often = "every" if not repeated else "almost every"
        example = shown(values.known[0])
        return _dropped(name, f"another value in {often} row, such as {example}", "text")
    word = next((cell for cell in counts if number_of(cell) is None), None)
    numbers = sum(count for cell, count in counts.items() if number_of(cell) is not None)
    partly = numbers >= _PARTLY * max(1, values.total)
    detail = "; ".join(filter(None, (why, values.values())))
    use = ColumnUse(name, "category", detail, "number" if partly else "drop")
    if why or not partly or word is None:
        return ColumnReading(use)
    doubt = (
        f"{numbers / values.total:.0%} of the values of the column {name!r} are numbers, but not "
        f"{shown(word)}, so every value is a category; {ask_for(name, 'number')} makes it a number "
        "and counts the others as missing."
    )
    return ColumnReading(use, {}, doubt)


def kind_of(cells: Sequence[Any]) -> CellKind:
    """What some cells of a column hold.

    Returns
    -------
    {"empty", "binary", "number", "date", "vector", "tags", "text", "category"}
        "binary" is 0 and 1, yes and no, true and false; "tags" several short names in a cell, with
        a separator between them (see `separator_of`), or a list of names.

    Examples
    --------
    >>> kind_of(["1", "2.5", ""]), kind_of(["north", "south", "north"]), kind_of(["2024-05-31"])
    ('number', 'category', 'date')
    >>> kind_of(["0", "1"]), kind_of(["a;b", "b", "a;b;c"]), kind_of(["the printer is on fire"])
    ('binary', 'tags', 'text')
    """
    known = [cell for cell in cells if not is_missing(cell)]
    if not known:
        return "empty"
    if all(map(is_vector, known)):
        return "vector"
    if all(map(is_list_of_texts, known)):
        return "tags"
    if all(answer_of(cell) is not None for cell in known):
        return "binary"
    values = _Values.of(cells, known)
    if _as_number("", values) is not None:
        return "number"
    if _date("", values, None) is not None:
        return "date"
    return "tags" if separator_of(known) is not None else _text_or_category(known)


def is_identifier(name: str, cells: Sequence[Any]) -> bool:
    """Whether a column numbers or names the rows: it is called so, and all its values differ.

    Examples
    --------
    >>> is_identifier("id", ["4", "7"]), is_identifier("id", ["4", "4"]), is_identifier("age", [4])
    (True, False, False)
    """
    if len(set(map(str, cells))) < len(cells):
        return False
    named = _IDENTIFIER.search(name) or _NUMBERING.search(name.lower()) or name.upper() == "ID"
    return bool(named) or read_column(name, cells).use.detail == "row numbers"


def _text_or_category(known: Sequence[Any]) -> Literal["text", "category"]:
    texts = [str(cell) for cell in known]
    distinct = len(set(texts)) / len(texts)
    spaces = sum(text.count(" ") for text in texts) / len(texts)
    length = sum(map(len, texts)) / len(texts)
    return "text" if distinct > 0.5 and (spaces >= 2 or length > 40) else "category"


def is_vector(cell: Any) -> bool:
    """Whether a cell is a list of numbers."""
    if isinstance(cell, np.ndarray):
        return cell.ndim == 1 and len(cell) > 0 and np.issubdtype(cell.dtype, np.number)
    if not isinstance(cell, (list, tuple)) or not cell:
        return False
    # There are far fewer types than numbers.
    return all(issubclass(kind, (int, float, np.number)) for kind in set(map(type, cell)))
