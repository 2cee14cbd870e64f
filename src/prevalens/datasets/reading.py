"""read(path): one file of any known format as a collection."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from prevalens.collection import Collection
from prevalens.datasets.formats.arff import parse_arff
from prevalens.datasets.formats.corpora import read_ohsumed, read_reuters
from prevalens.datasets.formats.matlab import read_matlab
from prevalens.datasets.formats.mulan import by_count, label_count, read_meka, read_mulan
from prevalens.datasets.formats.svmlight import read_svmlight
from prevalens.errors import InputError, PrevalensWarning
from prevalens.files import EncodingError, about, damaged, file_ending, locate
from prevalens.tables.cells import finite
from prevalens.tables.labels import label_columns, labels_of_columns, tag_matrix, tag_sets
from prevalens.tables.opening import open_table
from prevalens.tables.table import Chunk, Table
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import check_choice

_Labels = str | Path | Iterable[str] | None

#: Format by the end of the name; compression does not count.
_SUFFIXES = {
    ".arff": "arff",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".libsvm": "svmlight",
    ".mat": "matlab",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".sgm": "reuters",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".tar": "folders",
    ".tgz": "folders",
    ".tsv": "csv",
}


def read(
    path: str | Path,
    *,
    format: str | None = None,
    labels: str | Path | Iterable[str] | None = None,
    tags: str | None = None,
    text: str | None = None,
    features: Iterable[str] | None = None,
    sep: str | None = None,
    delimiter: str | None = None,
) -> Collection:
    r"""Read a file of labelled items, plain or compressed.

    Parameters
    ----------
    path : str or Path
    format : str, optional
        "arff", "meka", "csv" (also tab-separated), "jsonl", "parquet", "svmlight", "matlab",
        "reuters" or "folders" (a folder or tar archive with one folder of documents per
        label). Default: by the file's name.
    labels : str, Path or iterable of str, optional
        Which columns or attributes are labels, by name. For tables also a pattern such as
        ``"label_*"``. For ARFF also Mulan's XML file; if omitted, the XML file in the same
        folder is used, or MEKA's option ``-C`` in the relation name. With `tags`: the codeframe,
        in this order; other tags are left out with a warning.
    tags : str, optional
        For tables: the column with a list of labels, such as ``billing;login`` or
        ``["billing", "login"]``.
    text : str, optional
        For tables: the column with the texts; then no other column is a feature.
    features : iterable of str, optional
        For tables: the feature columns. Default: all that are not labels.
    sep : str, optional
        Separator of tags. Default: comma, semicolon or vertical bar.
    delimiter : str, optional
        Column delimiter of a CSV file. Default: detected in its header.

    Returns
    -------
    Collection

    Raises
    ------
    FormatError
        One sentence with the file, the line and what is wrong.

    Notes
    -----
    Parquet needs pyarrow (``pip install "prevalens[frames]"``); the other formats need no extra.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "tickets.csv"
    ...     _ = path.write_text("body,topics\nCannot log in,login\nPaid twice,billing;login\n")
    ...     tickets = read(path, text="body", tags="topics")
    >>> tickets.labels, tickets.Y.tolist()
    (('billing', 'login'), [[0, 1], [1, 1]])
    """
    path = Path(path)
    chosen = check_choice(_format(path) if format is None else format, "format", sorted(_READERS))
    wanted = {
        "labels": labels,
        "tags": tags,
        "text": text,
        "features": features,
        "sep": sep,
        "delimiter": delimiter,
    }
    given = {name: value for name, value in wanted.items() if value is not None}
    reader, known = _READERS[chosen]
    for name in given:
        if name not in known:
            raise InputError(f"{name}= has no meaning for {chosen} files; got it for {path}.")
    return reader(path, **given)


def _format(path: Path) -> str:
    if path.is_dir():
        return "folders"
    ending = file_ending(path)
    if ending not in _SUFFIXES:
        raise InputError(
            f"The format of {path} is not known by its name; say it with format=, one of "
            f"{', '.join(sorted(_READERS))}."
        )
    return _SUFFIXES[ending]


def _read_arff(path: Path, labels: _Labels = None) -> Collection:
    labels = _xml_of(path) if labels is None else labels
    if labels is not None:
        return read_mulan(path, labels)
    arff = parse_arff(path)
    if label_count(arff.relation) is None:
        raise InputError(
            f"Say which attributes of {path} are labels (labels=[...] or Mulan's XML file); "
            "there is no XML file beside it and no option -C in its relation name."
        )
    return by_count(arff)


def _xml_of(path: Path) -> Path | None:
    """Mulan's XML file has the name of the ARFF file, without -train or -test."""
    stem = path.name.partition(".")[0]
    for name in (stem, re.sub(r"[-_](train|test)\b.*", "", stem, flags=re.IGNORECASE)):
        if (xml := locate(path.parent, f"{name}.xml")) is not None:
            return xml
    return None


def _read_stories(path: Path) -> Collection:
    stories = read_reuters(path)
    with about(path):
        return Collection(
            [story.text for story in stories], [set(story.topics) for story in stories]
        )


def _read_svmlight(path: Path, labels: Iterable[str] | None = None) -> Collection:
    return read_svmlight(path, labels=None if labels is None else list(labels))


def _read_table(
    path: Path, *, format: str = "csv", delimiter: str | None = None, **choice: Any
) -> Collection:
    if format == "csv" and file_ending(path) == ".tsv":
        format = "tsv"
    opened = partial(open_table, path, format=format, delimiter=delimiter)
    try:
        return _collection(opened(), **choice)
    except EncodingError:
        # Like `read_text`: a file that is not UTF-8 is read as Latin-1.
        return _collection(opened(encoding="latin-1"), **choice)


def _collection(
    table: Table,
    *,
    labels: str | Iterable[str] | None = None,
    tags: str | None = None,
    text: str | None = None,
    features: Iterable[str] | None = None,
    sep: str | None = None,
) -> Collection:
    names = [tags] if tags is not None else _label_names(table, labels)
    columns = [text] if text is not None else _feature_names(table, features, names)
    rows = table.read([*names, *columns])
    if not len(rows):
        raise damaged(table.name, "there are no items.")
    if tags is None:
        Y = labels_of_columns(rows, names)
    else:
        Y, names = _from_tags(rows, tags, labels, sep)
    with about(table.name):
        if text is not None:
            return Collection(_texts(rows, text), Y, names)
        X = np.column_stack([_numbers(rows, name) for name in columns])
        return Collection(X, Y, names, features=columns)


def _label_names(table: Table, labels: str | Iterable[str] | None) -> list[str]:
    if labels is None:
        raise InputError(
            f"Say which columns of {table.name} are labels (labels=[...]) or which one holds the "
            f"tags (tags='...'); it has {table.shown()}."
        )
    names = label_columns(table, [labels] if isinstance(labels, str) else labels)
    if not names:
        raise InputError(f"No label columns of {table.name} are named.")
    return names


def _feature_names(
    table: Table, features: Iterable[str] | None, labels: Sequence[str]
) -> list[str]:
    others = [name for name in table.columns if name not in labels]
    chosen = others if features is None else list(features)
    if not chosen:
        raise InputError(f"{table.name} has no feature columns; name the text column with text=.")
    return chosen


def _from_tags(
    rows: Chunk, column: str, labels: str | Iterable[str] | None, sep: str | None
) -> tuple[LabelMatrix, list[str]]:
    """Labels of the rows and their names; tags that are not among `labels` are left out."""
    sets = tag_sets(rows, column, sep)
    occurring = set().union(*sets)
    if labels is None:
        names = sorted(occurring)
    else:
        names = [labels] if isinstance(labels, str) else list(labels)
        others = sorted(occurring.difference(names))
        if others:
            warnings.warn(
                f"{len(others)} tags in column {column!r} of {rows.source} are not among the "
                f"labels and are left out, such as {others[0]!r}.",
                PrevalensWarning,
                stacklevel=5,
            )
    if not names:
        raise damaged(rows.source, f"no row has a tag in column {column!r}.")
    return tag_matrix(rows, [tags.intersection(names) for tags in sets], names), names


def _texts(rows: Chunk, column: str) -> Sequence[str]:
    for row, cell in enumerate(rows[column]):
        if not isinstance(cell, str):
            what = f"the text in column {column!r} is {cell!r}; fill missing texts with ''."
            raise damaged(rows.place(row), what)
    return rows[column]


def _numbers(rows: Chunk, column: str) -> Floats:
    cells = rows[column]
    try:
        values = np.asarray(cells, dtype=np.float64)
        if values.ndim == 1 and np.isfinite(values).all():
            return values
    except (TypeError, ValueError, OverflowError):
        pass
    for row, cell in enumerate(cells):
        if finite(cell) is None:
            what = (
                f"the feature {column!r} is {str(cell)[:40]!r}, not a number; name the columns to "
                "use with features=[...], or a text column with text=."
            )
            raise damaged(rows.place(row), what)
    raise damaged(rows.source, f"the feature {column!r} is not a column of numbers.")


_TABLE = ("labels", "tags", "text", "features", "sep")
#: The reader of each format, and the arguments that it takes.
_READERS: dict[str, tuple[Callable[..., Collection], tuple[str, ...]]] = {
    "arff": (_read_arff, ("labels",)),
    "csv": (_read_table, (*_TABLE, "delimiter")),
    "folders": (read_ohsumed, ()),
    "jsonl": (partial(_read_table, format="jsonl"), _TABLE),
    "matlab": (read_matlab, ()),
    "meka": (read_meka, ()),
    "parquet": (partial(_read_table, format="parquet"), _TABLE),
    "reuters": (_read_stories, ()),
    "svmlight": (_read_svmlight, ("labels",)),
}
