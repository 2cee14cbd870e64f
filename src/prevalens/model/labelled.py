"""Labelled items from files: which columns are items, which are labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from prevalens.errors import InputError, PrevalensWarning, counted
from prevalens.model.annotators import SecondLabels
from prevalens.model.progress import Watch
from prevalens.tables.annotations import RESERVED
from prevalens.tables.cells import is_missing
from prevalens.tables.labellers import MatchedScores, check_distinct, match_scores, stems
from prevalens.tables.labels import (
    WHOLE_CELL,
    answered_rows,
    check_separator,
    label_columns,
    labels_of_columns,
    listed_tags,
    tag_matrix,
    tag_sets,
)
from prevalens.tables.opening import Reading, expand
from prevalens.tables.table import EMBEDDINGS, Chunk, Table, joined_cells
from prevalens.tables.times import TimeColumn
from prevalens.types import Array, Floats, LabelMatrix

#: Usual separators of tags; one that occurs in this share of the cells is worth a warning.
_SEPARATORS = (",", ";", "|", "\t")
_OFTEN = 0.05


@dataclass(frozen=True)
class Labelled:
    """Items with labels, read from files.

    Attributes
    ----------
    items : Chunk
        The columns that are items, all rows.
    Y : 0/1 array, shape (n_items, n_labels)
    labels : tuple of str
    columns : tuple of str
        The columns that are items.
    text : str or None
        The column of texts, if one is named; the items are texts if it is the only column.
    tags : str or None
        The column that names the labels of each item, if there is one.
    source : dict
        Where they came from.
    groups : array of str, shape (n_items,), or None
        The group of each item; items of one group never stand on both sides of a division.
    times : array of dates or floats, shape (n_items,), or None
        When each item arose.
    time : TimeColumn or None
        The column of the times.
    scores : MatchedScores or None
        Whose scores of which label the first columns are, if items are answers of labellers.
    second : array of float, shape (n_items, n_labels), or None
        Answers of a second annotator; NaN in rows that were not labelled twice.
    """

    items: Chunk
    Y: LabelMatrix
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    text: str | None
    tags: str | None
    source: dict[str, Any]
    groups: npt.NDArray[np.str_] | None = None
    times: Array | None = None
    time: TimeColumn | None = None
    scores: MatchedScores | None = None
    second: Floats | None = None

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that are items, without those of scores."""
        scored = () if self.scores is None else self.scores.table_columns()
        return tuple(name for name in self.columns if name not in scored)

    @property
    def only_texts(self) -> bool:
        """Whether the items are texts, without other columns."""
        return self.columns == (self.text,)

    @property
    def file_names(self) -> str:
        """The names of the files, for people."""
        return ", ".join(file["name"] for file in self.source["files"])


class Labellers(NamedTuple):
    """Where the answers of labellers are: patterns of score columns, and columns of answers."""

    scores: list[list[str]]
    tags: list[str]

    @classmethod
    def of(
        cls, scores: Sequence[str | Sequence[str]] | None, tags: Sequence[str] | None
    ) -> Labellers | None:
        """None if no labeller is named."""
        if not scores and not tags:
            return None
        if isinstance(scores, str):
            scores = [scores]
        patterns = [[own] if isinstance(own, str) else list(own) for own in scores or ()]
        return cls(patterns, [tags] if isinstance(tags, str) else list(tags or ()))

    def columns(self, table: Table, labels: Sequence[str]) -> list[str]:
        """The columns of all labellers."""
        table.check_columns(self.tags)
        named = [name for own in self.scores for name in label_columns(table, own)]
        check_distinct([*named, *self.tags], labels)
        return [*named, *self.tags]

    def match(
        self, table: Table, labels: Sequence[str], patterns: Sequence[str] = ()
    ) -> tuple[MatchedScores, list[int]]:
        """The columns of scores, and the numbers of the labels that have some."""
        self.columns(table, ())
        columns = [stems(label_columns(table, own), own) for own in self.scores]
        return match_scores(stems(labels, patterns), columns, self.tags)


class LabelledColumns(TypedDict, total=False):
    """Which columns of files are items and labels, and how files are read; see `read_labelled`."""

    text: str | None
    features: Sequence[str] | None
    labels: Sequence[str] | None
    tags: str | None
    sep: str
    id: str | None
    group: str | None
    reading: Reading | None
    scores: Sequence[str | Sequence[str]] | None
    scores_tags: Sequence[str] | None
    second_labels: Sequence[str] | None
    second_tags: str | None


def read_labelled(
    paths: str | Path | Iterable[str | Path],
    *,
    text: str | None = None,
    features: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    tags: str | None = None,
    sep: str = ",",
    known: Sequence[str] = (),
    id: str | None = None,
    group: str | None = None,
    time: str | None = None,
    date_form: str | None = None,
    reading: Reading | None = None,
    scores: Sequence[str | Sequence[str]] | None = None,
    scores_tags: Sequence[str] | None = None,
    second_labels: Sequence[str] | None = None,
    second_tags: str | None = None,
    watch: Watch | None = None,
) -> Labelled:
    """Read labelled items.

    Parameters
    ----------
    paths : path, pattern or folder, or several
    text : str, optional
        The column of texts.
    features : sequence of str, optional
        The columns of features, besides that of the texts. If neither is named, all columns that
        are not labels; of an annotation tool's export, those of the items' data.
    labels : sequence of str, optional
        Columns of 0/1, or patterns such as ``topic_*``.
    tags : str, optional
        The column that names the labels of each item, divided by `sep`. If neither `labels` nor
        `tags` is given, the column of an annotation tool's export, or lists of texts in a column
        called ``labels``, ``label`` or ``cats``. Where cells are lists, items with a missing cell
        were not labelled and are left out.
    known : sequence of str
        Labels of a model: the columns that are called so, if the first file has no other labels.
    id : str, optional
        Identifier column; used neither as feature nor as label.
    group : str, optional
        Column that names the group of each item, such as its author or thread; no feature unless
        it is named as one.
    time : str, optional
        Column that says when each item arose, in dates, years or other numbers (see
        `prevalens.tables.times.TimeColumn`); no feature unless it is named as one.
    date_form : str, optional
        Format of the dates, as in `datetime.strptime`; detected if omitted.
    reading : Reading, optional
        Delimiter, encoding, sheet.
    scores : sequence of str, or of sequences of str, optional
        Scores of labellers, besides texts or features only if these are named: for each labeller
        its columns, as a
        pattern such as ``p_*`` or as several names. Columns and labels are matched by name, apart
        from what the pattern fixes; see `prevalens.tables.labellers.match_scores`.
    scores_tags : sequence of str, optional
        For each further labeller, the column of its answers, which name labels; see
        `prevalens.tables.ScorePreparation`.
    second_labels, second_tags : as `labels` and `tags`, optional
        The answers of a second annotator; cells are empty where there are none, and ``-`` in a
        column of tags means no label.
    watch : Watch, optional
        Reports the progress.
    """
    check_separator(sep)
    labellers = Labellers.of(scores, scores_tags)
    if date_form is not None and time is None and text is not None and not features:
        raise InputError("`date_form=` needs the column of the dates it is about, `time=`.")
    tables = [(reading or Reading()).open(path) for path in expand(paths)]
    second = SecondLabels.of(second_labels, second_tags)
    again = [] if second is None else second.columns(tables[0])
    others = [*(name for name in (id, group, time) if name is not None), *again]
    labels, tags = _where_labels(tables[0], labels, tags, known)
    label_names, columns = _chosen(tables, text, features, labels, tags, others, labellers)
    read = [*(name for name in (group, time) if name is not None), *again]
    wanted = list(dict.fromkeys([*columns, *label_names, *read]))
    parts = [chunk for _, chunk in (watch or Watch(None, None)).over("reading", tables, wanted)]
    if not sum(map(len, parts)):
        raise InputError(f"{tables[0].name} has a header but no rows.")
    if tags is None:
        names = label_names
        Y = np.vstack([labels_of_columns(part, names) for part in parts])
    else:
        parts = _answered(parts, tags)
        names, Y = _from_tags(parts, tags, sep)
    matched = None
    if labellers is not None:
        matched, kept = labellers.match(tables[0], names, labels or ())
        names, Y = [names[j] for j in kept], Y[:, kept]
        scored = labellers.columns(tables[0], label_names)
        columns = [*matched.table_columns(), *(name for name in columns if name not in scored)]
    items = _joined(parts, columns, tables)
    files = [{"name": table.name, "size": table.total} for table in tables]
    source = {"files": files, "rows": len(items)}
    groups = None if group is None else _groups(parts, group)
    times, column = (None, None) if time is None else _times(parts, time, date_form)
    chosen = tuple(names), tuple(columns), text, tags
    other = None if second is None else second.answers(parts, tables[0], names, labels or (), sep)
    return Labelled(items, Y, *chosen, source, groups, times, column, matched, other)


def check_labelled(
    paths: str | Path | Iterable[str | Path],
    *,
    time: str | None = None,
    others: Iterable[str] = (),
    **columns: Unpack[LabelledColumns],
) -> None:
    """Refuse files that lack a column that is named, from their headers alone.

    Standard input is not looked at, since it can be read only once.

    Parameters
    ----------
    paths, time, columns : as in `read_labelled`
    others : iterable of str
        Further columns that the files must have.
    """
    files = [path for path in expand(paths) if str(path) != "-"]
    reading = columns.get("reading") or Reading()
    named = [name for name in (columns.get("id"), columns.get("group"), time) if name is not None]
    if files:
        tables = [reading.open(path) for path in files]
        labels = _where_labels(tables[0], columns.get("labels"), columns.get("tags"))
        labellers = Labellers.of(columns.get("scores"), columns.get("scores_tags"))
        second = SecondLabels.of(columns.get("second_labels"), columns.get("second_tags"))
        named += [] if second is None else second.columns(tables[0])
        items = (columns.get("text"), columns.get("features"))
        _chosen(tables, *items, *labels, named, labellers)
        tables[0].check_columns(others)


def _where_labels(
    table: Table, labels: Sequence[str] | None, tags: str | None, known: Sequence[str] = ()
) -> tuple[Sequence[str] | None, str | None]:
    """The columns of labels or of tags; those that a table shows by itself if none is named."""
    if labels or tags is not None:
        return labels, tags
    if known and all(name in table.columns for name in known):
        return known, None
    tags = listed_tags(table)
    return (known or labels) if tags is None else None, tags


def _answered(parts: Sequence[Chunk], tags: str) -> list[Chunk]:
    """The rows that somebody labelled; warns of others, which are left out."""
    rows = answered_rows(parts, tags)
    missing = sum(map(len, parts)) - sum(map(len, rows))
    if missing and not sum(map(len, rows)):
        raise InputError(f"No item of {parts[0].source} was labelled: {tags!r} is empty.")
    if missing:
        warnings.warn(
            f"{counted(missing, 'item')} of {parts[0].source} left out, because nobody labelled "
            f"{'it' if missing == 1 else 'them'} or the answer was skipped ({tags!r} is empty).",
            PrevalensWarning,
            stacklevel=3,
        )
    return [part.take(kept) for part, kept in zip(parts, rows, strict=True)]


def _chosen(
    tables: Sequence[Table],
    text: str | None,
    features: Sequence[str] | None,
    labels: Sequence[str] | None,
    tags: str | None,
    others: Sequence[str],
    labellers: Labellers | None = None,
) -> tuple[list[str], list[str]]:
    """The columns of labels and of items, which all tables must have, as well as the others."""
    label_names = _label_names(tables[0], labels, tags)
    columns = [] if labellers is None else labellers.columns(tables[0], label_names)
    if labellers is None or text is not None or features or EMBEDDINGS in tables[0].columns:
        named = features or ([EMBEDDINGS] if labellers is not None and text is None else None)
        items = _item_columns(tables[0], text, named, label_names, others)
        for name in items:
            if name in columns:
                raise InputError(f"The column {name!r} cannot be a score and a feature at once.")
        columns = [*columns, *items]
    for table in tables:
        table.check_columns([*columns, *label_names, *others])
    return label_names, columns


def _times(parts: Sequence[Chunk], name: str, form: str | None) -> tuple[Array, TimeColumn]:
    """When each item arose, and the column that says it."""
    column = TimeColumn.of(name, [cell for part in parts for cell in part[name]], form)
    return column.times(np.concatenate([column.read(part) for part in parts])), column


def _groups(parts: Sequence[Chunk], column: str) -> npt.NDArray[np.str_]:
    """The group of each row; a row without one is a group of its own."""
    cells = [cell for part in parts for cell in part[column]]
    return np.array(
        [f"\0{row}" if is_missing(cell) else str(cell).strip() for row, cell in enumerate(cells)]
    )


def _label_names(table: Table, labels: Sequence[str] | None, tags: str | None) -> list[str]:
    if (labels is None or not labels) == (tags is None):
        problem = "Both label columns and a column of tags are named" if tags else "No labels named"
        raise InputError(
            f"{problem}: give either the columns of 0/1 (`labels=`) or the column of tags "
            f"(`tags=`); {table.name} has {table.shown()}."
        )
    if tags is None:
        return label_columns(table, labels or ())
    table.check_columns([tags])
    return [tags]


def _item_columns(
    table: Table,
    text: str | None,
    features: Sequence[str] | None,
    labels: Sequence[str],
    others: Sequence[str],
) -> list[str]:
    chosen = [*([] if text is None else [text]), *(features or ())]
    if text is not None and EMBEDDINGS in table.columns:
        # Whoever gives embeddings besides texts wants both.
        chosen.append(EMBEDDINGS)
    chosen = list(dict.fromkeys(chosen))
    for name in chosen:
        table.check_columns([name])
        if name in labels:
            raise InputError(f"The column {name!r} cannot be a feature and a label at once.")
    possible = table.columns if table.item_columns is None else table.item_columns
    no_items = {*labels, *others}
    chosen = chosen or [
        name for name in possible if name not in no_items and not name.startswith(RESERVED)
    ]
    if not chosen:
        raise InputError(f"{table.name} has no columns besides the labels, so there are no items.")
    return chosen


def _from_tags(parts: Sequence[Chunk], column: str, sep: str) -> tuple[list[str], LabelMatrix]:
    _hint_at_sep(parts, column, sep)
    sets = [tag_sets(part, column, sep) for part in parts]
    names = sorted({tag for part in sets for tags in part for tag in tags})
    if not names:
        raise InputError(f"No item has a tag in the column {column!r}; there is nothing to learn.")
    Y = [tag_matrix(part, tags, names) for part, tags in zip(parts, sets, strict=True)]
    return names, np.vstack(Y)


def _hint_at_sep(parts: Sequence[Chunk], column: str, sep: str) -> None:
    """Warn if the separator never occurs in the tags, but another usual separator often does."""
    texts = [cell for part in parts for cell in part[column] if isinstance(cell, str)]
    if sep == WHOLE_CELL or any(sep in text for text in texts):
        return
    counts = {sign: sum(sign in text for text in texts) for sign in _SEPARATORS}
    sign = max(counts, key=counts.__getitem__)
    if counts[sign] >= _OFTEN * len(texts) > 0:
        warnings.warn(
            f"No tag of the column {column!r} holds {sep!r}, but {counts[sign]:,} of "
            f"{len(texts):,} hold {sign!r}; if that divides the tags, say "
            f"`sep={sign!r}`.",
            PrevalensWarning,
            stacklevel=2,
        )


def _joined(parts: Sequence[Chunk], columns: Sequence[str], tables: Sequence[Table]) -> Chunk:
    cells = {name: joined_cells([part[name] for part in parts]) for name in columns}
    single = len(tables) == 1 and len({part.word for part in parts}) == 1
    name = tables[0].name if len(tables) == 1 else f"{len(tables)} files"
    first, word = (parts[0].first, parts[0].word) if single else (1, "row")
    offsets = None
    if single and any(part.offsets is not None for part in parts):
        offsets = [part.first + offset - first for part in parts for offset in part.rows()]
    return Chunk(cells, sum(map(len, parts)), first, name, word=word, offsets=offsets)
