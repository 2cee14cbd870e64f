"""The answers of a second annotator in files.

This module imports no estimator, so that columns can be checked at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from prevalens.errors import InputError, PrevalensWarning
from prevalens.tables.cells import is_missing
from prevalens.tables.labellers import stems
from prevalens.tables.labels import label_columns, labels_of_columns, tag_sets
from prevalens.tables.table import Chunk, Table
from prevalens.types import Floats

#: Cells of a column of tags which mean that an annotator saw no label.
_NO_LABEL = {"-", "none", "[]"}


class SecondLabels(NamedTuple):
    """Where the answers of a second annotator are: columns of 0/1, or a column of tags."""

    labels: Sequence[str] | None
    tags: str | None

    @classmethod
    def of(cls, labels: Sequence[str] | None, tags: str | None) -> SecondLabels | None:
        """None if there is no second annotator."""
        if labels and tags is not None:
            raise InputError(
                "Name either columns of 0/1 (`second_labels=`) or a column of tags "
                "(`second_tags=`) of the second annotator."
            )
        return cls(labels, tags) if labels or tags is not None else None

    def columns(self, table: Table) -> list[str]:
        """The columns to read."""
        if self.tags is None:
            return label_columns(table, self.labels or ())
        table.check_columns([self.tags])
        return [self.tags]

    def answers(
        self,
        parts: Sequence[Chunk],
        table: Table,
        names: Sequence[str],
        patterns: Sequence[str],
        sep: str,
    ) -> Floats:
        """Answers by row and label; NaN in rows that the second annotator did not label."""
        if self.tags is not None:
            return np.vstack([_from_tags(part, self.tags, sep, names) for part in parts])
        own = self.columns(table)
        by_stem = {stem: column for column, stem in stems(own, self.labels or ()).items()}
        columns = {name: by_stem.get(stem) for name, stem in stems(names, patterns).items()}
        lacking = [name for name, column in columns.items() if column is None]
        if lacking:
            raise InputError(
                f"The label {lacking[0]!r} has no column of the second annotator; {len(own)} are "
                f"named: {', '.join(own[:10])}. Columns are matched by name."
            )
        return np.vstack(
            [_from_columns(part, [str(columns[name]) for name in names]) for part in parts]
        )


def _from_columns(chunk: Chunk, columns: Sequence[str]) -> Floats:
    read = [not all(is_missing(chunk[name][row]) for name in columns) for row in range(len(chunk))]
    # Rows without answers are not looked at, and those that are labelled in part are refused.
    cells = {
        name: [cell if known else 0 for cell, known in zip(chunk[name], read, strict=True)]
        for name in columns
    }
    answers = labels_of_columns(replace(chunk, columns=cells), columns)
    return np.where(np.array(read)[:, np.newaxis], answers, np.nan)


def _from_tags(chunk: Chunk, column: str, sep: str, names: Sequence[str]) -> Floats:
    place = {name: j for j, name in enumerate(names)}
    found = np.full((len(chunk), len(names)), np.nan)
    unknown: dict[str, None] = {}
    for row, tags in enumerate(tag_sets(chunk, column, sep)):
        cell = chunk[column][row]
        # A dash is an answer here, though it means a missing value in other columns.
        if not (cell.strip() if isinstance(cell, str) else not is_missing(cell)):
            continue
        found[row] = 0.0
        if len(tags) == 1 and next(iter(tags)).lower() in _NO_LABEL:
            continue
        unknown |= dict.fromkeys(sorted(tags - set(place)))
        found[row, [place[tag] for tag in tags if tag in place]] = 1.0
    if unknown:
        warnings.warn(
            f"{chunk.source}: only the second annotator gave {', '.join(map(repr, unknown))}; the "
            "first gave it to no item, so it is left out.",
            PrevalensWarning,
            stacklevel=4,
        )
    return found
