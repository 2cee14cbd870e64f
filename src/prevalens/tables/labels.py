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
from prevalens.tables.cells import answer_of, is_missing, shown
from prevalens.tables.table import Chunk, Table
from prevalens.types import LabelMatrix

_SEPARATORS = re.compile(r"[,;|]")


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


def tag_sets(chunk: Chunk, column: str, sep: str | None) -> list[set[str]]:
    """The tags of each row: a list, or a text divided by `sep`.

    If `sep` is None, a text is divided by commas, semicolons and vertical bars, or is a JSON list
    such as ``["billing", "login"]``.
    """
    check_separator(sep)
    return [_tags(chunk, row, column, cell, sep) for row, cell in enumerate(chunk[column])]


def _tags(chunk: Chunk, row: int, column: str, cell: Any, sep: str | None) -> set[str]:
    if isinstance(cell, dict):
        raise damaged(chunk.place(row), f"the tags {column!r} are {shown(cell)}; expected a text.")
    if cell is None or (isinstance(cell, float) and is_missing(cell)):
        return set()
    if isinstance(cell, (list, tuple, set, np.ndarray)):
        tags: Iterable[Any] = cell
    elif sep is None:
        tags = _divided(chunk, row, str(cell))
    else:
        tags = str(cell).split(sep)
    return {tag for part in tags if part is not None and (tag := str(part).strip())}


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
