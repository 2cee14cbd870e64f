"""Labels from columns of 0/1, or from one column of tags."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from prevalens.errors import InputError
from prevalens.files import damaged
from prevalens.tables.annotations import LABELS
from prevalens.tables.cells import answer_of, is_missing, shown
from prevalens.tables.table import Chunk, Table
from prevalens.types import LabelMatrix

#: Separator of tags that stands for none: each cell is one label, whatever signs it holds.
WHOLE_CELL = "\0"
_SEPARATORS = re.compile(r"[,;|]")
#: Columns in which annotation tools and collections of data keep lists of labels.
_LISTS = (LABELS, "label", "cats")
#: Rows that show whether a column holds lists of labels.
_LOOKED_AT = 200


def label_columns(table: Table, names: Iterable[str]) -> list[str]:
    """The columns that match names or patterns such as ``topic_*``."""
    chosen: dict[str, None] = {}
    for name in names:
        fitting = [column for column in table.columns if fnmatch.fnmatchcase(column, name)]
        if name in table.columns or not fitting:
            table.check_columns([name])
            fitting = [name]
        chosen |= dict.fromkeys(fitting)
    return list(chosen)


def labels_of_columns(chunk: Chunk, names: Sequence[str]) -> LabelMatrix:
    """A matrix of 0/1 from columns that contain 0 or 1, true or false, yes or no."""
    Y = np.empty((len(chunk), len(names)), dtype=np.int8)
    for j, name in enumerate(names):
        answers = [answer_of(cell) for cell in chunk[name]]
        if None in answers:
            row = answers.index(None)
            raise damaged(
                chunk.place(row),
                f"the label {name!r} is {shown(chunk[name][row])}; a label column holds 0 or 1. "
                "A column of tags is named with `tags=`.",
            )
        Y[:, j] = np.array(answers, dtype=np.int8)
    return Y


def check_separator(sep: str | None) -> None:
    """Refuse an empty separator of tags."""
    if sep == "":
        raise InputError("The separator of tags is empty; name one or more characters, as ','.")


def separator_of(cells: Iterable[Any]) -> str | None:
    """The character between the tags of a column; None if its cells are no lists of tags.

    Tags are short and occur repeatedly; sentences with commas are long and mostly differ.
    """
    texts = [str(cell) for cell in cells]
    for mark in (";", "|", ","):
        if not any(mark in text for text in texts):
            continue
        tags = [tag.strip() for text in texts for tag in text.split(mark)]
        few_words = sum(len(tag.split()) for tag in tags) <= 2 * len(tags)
        if few_words and len(set(tags)) <= max(0.6 * len(tags), 3) and max(map(len, tags)) <= 60:
            return mark
    return None


def listed_tags(table: Table) -> str | None:
    """The column of tags of a table that shows by itself where they are, else None.

    That is the export of an annotation tool, or a table with lists of texts in a column called
    ``labels``, ``label`` or ``cats``. An export with several questions is refused.
    """
    asked = [name for name in table.columns if name.startswith(f"{LABELS}.") and "@" not in name]
    if table.item_columns is not None and len(asked) > 1:
        raise InputError(
            f"{table.name} has the answers to {len(asked)} questions; name the column of one of "
            f"them with `tags=`: {', '.join(map(repr, asked))}."
        )
    for name in (column for column in _LISTS if column in table.columns):
        rows = next(table.chunks([name], chunk_rows=_LOOKED_AT), None)
        known = [] if rows is None else [cell for cell in rows[name] if cell is not None]
        if known and all(map(is_list_of_texts, known)) and any(map(len, known)):
            return name
    return None


def is_list_of_texts(cell: Any) -> bool:
    """Whether a cell is a list of texts, such as the labels of an item."""
    return is_list(cell) and all(isinstance(part, str) for part in cell)


def is_list(cell: Any) -> bool:
    """Whether a cell holds several values, and not a text that does."""
    return isinstance(cell, (list, tuple, set, np.ndarray))


def answered_rows(parts: Sequence[Chunk], column: str) -> list[Sequence[int]]:
    """The rows of each chunk that somebody labelled.

    In a column of lists an empty list says that no label applies, so a missing cell says that
    nobody answered. In a column of texts an empty cell says that no label applies.
    """
    if not any(is_list(cell) for part in parts for cell in part[column]):
        return [range(len(part)) for part in parts]
    return [[row for row, cell in enumerate(part[column]) if cell is not None] for part in parts]


def tag_sets(chunk: Chunk, column: str, sep: str | None) -> list[set[str]]:
    """The tags of each row: a list, or a text divided by `sep`.

    A text may be a JSON list such as ``["billing", "login"]``. If `sep` is None, any other text is
    divided by commas, semicolons and vertical bars; if it is `WHOLE_CELL`, no text is divided.
    """
    check_separator(sep)
    return [_tags(chunk, row, column, cell, sep) for row, cell in enumerate(chunk[column])]


def _tags(chunk: Chunk, row: int, column: str, cell: Any, sep: str | None) -> set[str]:
    if isinstance(cell, dict):
        raise damaged(chunk.place(row), f"the tags {column!r} are {shown(cell)}; expected a text.")
    if cell is None or (isinstance(cell, float) and is_missing(cell)):
        return set()
    if is_list(cell):
        tags: Iterable[Any] = cell
    elif sep == WHOLE_CELL:
        tags = [cell]
    elif sep is None:
        tags = _divided(chunk, row, str(cell))
    else:
        parts = json_list(str(cell))
        tags = str(cell).split(sep) if parts is None else parts
    return {tag for part in tags if part is not None and (tag := str(part).strip())}


def json_list(text: str) -> list[str] | None:
    """The texts of a JSON list such as ``["billing", "login"]``; None if a text is none.

    Examples
    --------
    >>> json_list('["billing", "login"]'), json_list("[billing]"), json_list("[1, 2]")
    (['billing', 'login'], None, None)
    """
    if not (text.lstrip().startswith("[") and text.rstrip().endswith("]")):
        return None
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parts if is_list_of_texts(parts) else None


def _divided(chunk: Chunk, row: int, text: str) -> list[Any]:
    if not text.lstrip().startswith("["):
        return _SEPARATORS.split(text)
    try:
        tags: list[Any] = json.loads(text)
    except (ValueError, RecursionError):
        raise damaged(chunk.place(row), f"the tags {text[:40]!r} are not a JSON list.") from None
    return tags


def tag_matrix(chunk: Chunk, sets: Sequence[set[str]], labels: Sequence[str]) -> LabelMatrix:
    """A matrix of 0/1 from sets of tags; a tag that is not among the labels is refused."""
    column = {name: j for j, name in enumerate(labels)}
    Y = np.zeros((len(sets), len(labels)), dtype=np.int8)
    for row, tags in enumerate(sets):
        for tag in tags:
            if tag not in column:
                raise InputError(
                    f"{chunk.place(row)}: the tag {tag!r} is not among the {len(labels)} labels of "
                    "the training."
                )
            Y[row, column[tag]] = 1
    return Y
