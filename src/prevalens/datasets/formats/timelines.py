"""Timelines: texts with dates and tags in one table, and the GoEmotions files, which have no dates.

A timeline is one table in any order; items before the date of the cut are for training, the others
for test. Which labels are used is decided later, on the training part alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prevalens.collection import Collection
from prevalens.datasets.dataset import DatasetParts
from prevalens.files import about, damaged, read_text
from prevalens.tables.labels import tag_sets
from prevalens.tables.opening import open_table

#: Between the columns of a text, such as a title and an abstract.
_BETWEEN = ". "


def timeline_parts(
    items: Path, *, date: str, text: Sequence[str], tags: str, cut: str, sep: str = ";"
) -> DatasetParts:
    """The items of a table before and from the date of a cut.

    Parameters
    ----------
    items : Path
        A table, plain or compressed.
    date : str
        The column of dates, such as ``2025-03-18``.
    text : sequence of str
        The columns whose texts make an item, joined by a full stop.
    tags : str
        The column of labels; an empty cell is an item without a label.
    cut : str
        The date of the first test items.
    sep : str
        Separator of labels.
    """
    table = open_table(items)
    rows = table.read([date, *text, tags])
    texts = [_BETWEEN.join(cells) for cells in zip(*(rows[name] for name in text), strict=True)]
    with about(items):
        whole = Collection(texts, tag_sets(rows, tags, sep), times=rows[date])
        return DatasetParts(*whole.cut(cut))


def goemotions_parts(train: Path, test: Path, labels: Path) -> DatasetParts:
    """The published parts of GoEmotions: comments with the numbers of their emotions.

    Parameters
    ----------
    train, test : Path
        Tab-separated without a header: text, label numbers divided by commas, identifier.
    labels : Path
        The name of an emotion per line.
    """
    names = read_text(labels).split()
    return DatasetParts(_comments(train, names), _comments(test, names))


def _comments(path: Path, names: Sequence[str]) -> Collection:
    texts, emotions = [], []
    known = {str(number): name for number, name in enumerate(names)}
    # Not splitlines: comments contain other characters that Python takes for ends of lines.
    for number, line in enumerate(read_text(path).rstrip("\n").split("\n"), start=1):
        try:
            text, numbers, _ = line.rstrip("\r").split("\t")
            emotions.append({known[label] for label in numbers.split(",")})
        except (ValueError, KeyError):
            what = f"expected a text, numbers below {len(names)} and an identifier."
            raise damaged(path, what, line=number) from None
        texts.append(text)
    return Collection(texts, emotions, names)
