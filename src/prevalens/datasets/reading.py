"""read(path): one file of any known format as a collection."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from prevalens.collection import Collection
from prevalens.datasets.formats.arff import parse_arff
from prevalens.datasets.formats.corpora import read_ohsumed, read_reuters
from prevalens.datasets.formats.matlab import read_matlab
from prevalens.datasets.formats.mulan import by_count, by_names, label_count, label_names, read_meka
from prevalens.datasets.formats.svmlight import read_svmlight
from prevalens.datasets.formats.tables import csv_table, jsonl_table, parquet_table
from prevalens.files import about, locate
from prevalens.validation import InputError, check_choice

__all__ = ["read"]

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
_COMPRESSED = (".gz", ".bz2", ".xz")


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
        label). Left out: by the file's name.
    labels : str, Path or iterable of str, optional
        Which columns or attributes are labels, by name. For tables also a pattern such as
        ``"label_*"``. For ARFF also Mulan's XML file; left out, the XML file beside the ARFF
        file is used, or MEKA's option ``-C`` in the relation name. With `tags`: the codeframe,
        in this order; other tags are left out with a warning.
    tags : str, optional
        For tables: the column with a list of labels, such as ``billing;login`` or
        ``["billing", "login"]``.
    text : str, optional
        For tables: the column with the texts; then no other column is a feature.
    features : iterable of str, optional
        For tables: the feature columns. Left out: all that are not labels.
    sep : str, optional
        What stands between tags. Left out: comma, semicolon or vertical bar.
    delimiter : str, optional
        What stands between the columns of a CSV file. Left out: read from its header.

    Returns
    -------
    Collection

    Raises
    ------
    FormatError
        One sentence with the file, the line and what is wrong.

    Notes
    -----
    Parquet needs pyarrow (``pip install "prevalens[frames]"``), nothing else needs more than the
    core.

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
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in _COMPRESSED]
    found = _SUFFIXES.get(suffixes[-1]) if suffixes else None
    if found is None:
        raise InputError(
            f"The format of {path} is not known by its name; say it with format=, one of "
            f"{', '.join(sorted(_READERS))}."
        )
    return found


def _read_arff(path: Path, labels: _Labels = None) -> Collection:
    arff = parse_arff(path)
    if labels is None:
        labels = _xml_beside(path)
    if labels is None:
        if label_count(arff.relation) is None:
            raise InputError(
                f"Say which attributes of {path} are labels (labels=[...] or Mulan's XML file); "
                "there is no XML file beside it and no option -C in its relation name."
            )
        return by_count(arff)
    names = label_names(labels) if isinstance(labels, (str, Path)) else list(labels)
    return by_names(arff, names)


def _xml_beside(path: Path) -> Path | None:
    """Mulan's XML file has the name of the ARFF file, without -train or -test."""
    stem = path.name.partition(".")[0]
    for name in (stem, re.sub(r"[-_](train|test)\b.*", "", stem, flags=re.IGNORECASE)):
        found = locate(path.parent, f"{name}.xml")
        if found is not None:
            return found
    return None


def _read_stories(path: Path) -> Collection:
    stories = read_reuters(path)
    with about(path):
        return Collection([one.text for one in stories], [set(one.topics) for one in stories])


def _read_svmlight(path: Path, labels: Iterable[str] | None = None) -> Collection:
    return read_svmlight(path, labels=None if labels is None else list(labels))


def _read_csv(path: Path, delimiter: str | None = None, **choice: Any) -> Collection:
    return csv_table(path, delimiter=delimiter).collection(**choice)


def _read_jsonl(path: Path, **choice: Any) -> Collection:
    return jsonl_table(path).collection(**choice)


def _read_parquet(path: Path, **choice: Any) -> Collection:
    return parquet_table(path).collection(**choice)


_TABLE = ("labels", "tags", "text", "features", "sep")
#: The reader of each format, and the arguments that mean something to it.
_READERS: dict[str, tuple[Callable[..., Collection], tuple[str, ...]]] = {
    "arff": (_read_arff, ("labels",)),
    "csv": (_read_csv, (*_TABLE, "delimiter")),
    "folders": (read_ohsumed, ()),
    "jsonl": (_read_jsonl, _TABLE),
    "matlab": (read_matlab, ()),
    "meka": (read_meka, ()),
    "parquet": (_read_parquet, _TABLE),
    "reuters": (_read_stories, ()),
    "svmlight": (_read_svmlight, ("labels",)),
}
