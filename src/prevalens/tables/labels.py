"""Labels from columns of 0/1, or from one column of tags."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from prevalens.errors import InputError
from prevalens.files import damaged
from prevalens.tables.cells import answer_of, is_missing, shown
from prevalens.tables.table import Chunk, Table
from prevalens.types import LabelMatrix

__all__ = ["label_columns", "labels_of_columns", "tag_matrix", "tag_sets"]


def label_columns(table: Table, names: Iterable[str]) -> list[str]:
    """The columns that names and patterns such as ``topic_*`` stand for."""
    found: list[str] = []
    for name in names:
        fitting = [one for one in table.columns if fnmatch.fnmatchcase(one, name)]
        if name in table.columns or not fitting:
            table.check_columns([name])
            fitting = [name]
        found += [one for one in fitting if one not in found]
    return found


def labels_of_columns(chunk: Chunk, names: Sequence[str]) -> LabelMatrix:
    """A matrix of 0/1 from columns that say 0 or 1, true or false, yes or no."""
    Y = np.empty((len(chunk), len(names)), dtype=np.int8)
    for j, name in enumerate(names):
        answers = [answer_of(cell) for cell in chunk[name]]
        if None in answers:
            row = answers.index(None)
            raise damaged(
                chunk.place(row),
                f"the label {name!r} is {shown(chunk[name][row])}; a label column holds 0 or 1. "
                "A column of tags is named with --tags.",
            )
        Y[:, j] = np.array(answers, dtype=np.int8)
    return Y


def tag_sets(chunk: Chunk, column: str, sep: str) -> list[set[str]]:
    """The tags of each row: a text divided by `sep`, or a list."""
    if not sep:
        raise InputError(
            "The separator of the tags is empty; name the character between them, for example "
            "--sep ';' (sep=';')."
        )
    return [_tags(chunk, row, column, cell, sep) for row, cell in enumerate(chunk[column])]


def _tags(chunk: Chunk, row: int, column: str, cell: Any, sep: str) -> set[str]:
    if isinstance(cell, (list, tuple, set, np.ndarray)):
        return {str(tag).strip() for tag in cell if str(tag).strip()}
    if isinstance(cell, dict):
        raise damaged(chunk.place(row), f"the tags {column!r} are {shown(cell)}; expected a text.")
    if cell is None or (not isinstance(cell, str) and is_missing(cell)):
        return set()
    return {tag.strip() for tag in str(cell).split(sep) if tag.strip()}


def tag_matrix(chunk: Chunk, sets: Sequence[set[str]], labels: Sequence[str]) -> LabelMatrix:
    """A matrix of 0/1 from sets of tags; a tag that is no label is refused with its place."""
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
