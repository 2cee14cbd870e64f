"""Frames, records, columns and texts go through the same door as files."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest

from prevalens.errors import InputError
from prevalens.tables.formats import as_table

COLUMNS = {"text": ["a", "b", "c"], "n": [1, 2, 3]}


@pytest.mark.parametrize(
    "data",
    [
        COLUMNS,
        pd.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS),
        [{"text": t, "n": n} for t, n in zip("abc", [1, 2, 3], strict=True)],
    ],
    ids=["columns", "pandas", "polars", "records"],
)
def test_every_form_gives_the_same_table(data: object) -> None:
    table = as_table(data)
    assert table.columns == ("text", "n")
    assert table.total == 3
    chunks = list(table.chunks(chunk_rows=2))
    assert [list(chunk["n"]) for chunk in chunks] == [[1, 2], [3]]
    assert chunks[1].place(0) == "the data, row 3"
    assert as_table(table) is table


def test_texts_and_series() -> None:
    assert as_table(["a", "b"]).columns == ("text",)
    assert as_table(pd.Series(["a"], name="body")).columns == ("body",)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"a": [1], "b": [1, 2]}, "differ in length"),
        ([], "at least one item; got list"),
        (7, "got int"),
        (["a", {"b": 1}], "records (dicts) only or texts only"),
    ],
)
def test_refusals(data: object, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        as_table(data)
    assert sentence in str(error.value)


def test_missing_cells_of_pandas_are_none() -> None:
    frame = pd.DataFrame(
        {
            "day": pd.to_datetime(["2024-05-31", None]),
            "whole": pd.array([1, None], dtype="Int64"),
            "word": pd.array(["a", None], dtype="string"),
            "number": [0.5, float("nan")],
        }
    )
    read = as_table(frame).read()
    assert all(read[name][1] is None for name in frame)
    assert [read[name][0] for name in ("whole", "word", "number")] == [1, "a", 0.5]
