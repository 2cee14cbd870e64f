"""Items are known by file, row and content; labels find them while the batch is read."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.errors import InputError
from prevalens.model.labelling import ITEM, ItemKey, LabelledItems, Position
from prevalens.scores import Scores
from prevalens.tables.formats import as_table
from prevalens.tables.table import Table

TEXTS = [f"text {n}" for n in range(10)]


def _batch(name: str = "folder/may.csv", texts: list[str] = TEXTS) -> Table:
    return as_table({"text": texts, "other": list(range(len(texts)))}, name=name)


def _key(row: int) -> str:
    batch = _batch()
    return str(ItemKey.of(batch, batch.read(), row, start=0, columns=["text"]))


def _sheet(rows: list[int], labels: list[object]) -> Table:
    return as_table({"spam": labels, ITEM: [_key(row) for row in rows]}, name="sheet")


def test_a_key_depends_on_row_file_and_what_the_model_reads() -> None:
    batch = _batch()
    chunk = batch.read()
    first = ItemKey.of(batch, chunk, 2, start=0, columns=["text"])
    assert (first.row, first.file) == (3, "may.csv")
    assert first == ItemKey.of(_batch("may.csv"), chunk, 2, start=0, columns=["text"])
    assert first != ItemKey.of(batch, chunk, 2, start=8192, columns=["text"])
    assert first != ItemKey.of(batch, chunk, 3, start=-1, columns=["text"])
    assert first != ItemKey.of(batch, chunk, 2, start=0, columns=["text", "other"])
    assert len(str(first).split(":")) == 3


def test_chunks_of_several_tables_are_counted() -> None:
    position, (first, second) = Position(), (_batch(), _batch("june.csv"))
    chunks = [(table, chunk) for table in (first, second) for chunk in table.chunks(chunk_rows=4)]
    starts = [position.next(table, chunk) for table, chunk in chunks]
    assert starts == [(0, 0), (4, 4), (8, 8), (0, 10), (4, 14), (8, 18)]


def test_labels_find_their_rows_whatever_the_chunks() -> None:
    items = LabelledItems([_sheet([7, 1, 4], ["yes", 0, ""])], ["spam"], ["text", "other"])
    before = _batch("june.csv", ["x"] * 3)
    for table in (before, _batch()):
        for chunk in table.chunks(chunk_rows=4):
            found = items.find(table, chunk, ["text"])
            values = np.array([[n / 10] for n in chunk["other"]])
            codes = np.full(len(chunk), 5 if table is before else 3)
            items.note(found, Scores(values), codes)
    batch, Y, weights, scores = items.matched({5: 0, 3: 1})
    assert batch.tolist() == [1, 1]
    np.testing.assert_allclose(scores, [[0.7], [0.1]])
    assert Y.tolist() == [[1], [0]]
    np.testing.assert_array_equal(weights, [1, 1])


def test_an_item_with_other_content_is_not_the_same() -> None:
    items = LabelledItems([_sheet([7], [1])], ["spam"], ["text"])
    batch = _batch(texts=["changed"] * 10)
    items.find(batch, batch.read(), ["text"])
    with pytest.raises(InputError, match=r"sheet, row 1: .* \(row 8 of may.csv"):
        items.matched({})


def test_several_sheets_are_one() -> None:
    sheets = [_sheet([7], [1]), _sheet([2, 3], [0, 1])]
    items = LabelledItems(sheets, ["spam"], ["text"])
    batch = _batch()
    found = items.find(batch, batch.read(), ["text"])
    assert sorted(found) == [(0, 7), (1, 2), (2, 3)]
    with pytest.raises(InputError, match="labelled twice, first in sheet, row 1"):
        LabelledItems([sheets[0], _sheet([7], [0])], ["spam"], ["text"])
