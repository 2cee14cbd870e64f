"""JSON lines and arrays."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.errors import FormatError
from prevalens.tables.opening import open_table

VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
RECORDS = st.lists(
    st.fixed_dictionaries({"a": VALUES}, optional={"b": VALUES}), min_size=1, max_size=12
)


@given(RECORDS, st.booleans())
def test_what_is_written_is_read(records: list[dict], lines: bool) -> None:
    content = "\n".join(map(json.dumps, records)) if lines else json.dumps(records)
    table = open_table(io.BytesIO(content.encode()), name="t.json")
    assert set(table.columns) == {name for record in records for name in record}
    for name in table.columns:
        read = [cell for chunk in table.chunks([name], chunk_rows=5) for cell in chunk[name]]
        assert read == [record.get(name) for record in records]


def test_places_are_lines() -> None:
    table = open_table(io.BytesIO(b'{"a": 1}\n{"a": 2}\n'), name="t.jsonl")
    assert table.read().place(1) == "t.jsonl, line 2"
    spaced = open_table(io.BytesIO(b'{"a": 1}\n\n{"a": 2}\n'), name="t.jsonl")
    assert spaced.read().place(1) == "t.jsonl, row 2"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"a": 1}\n{"a": }\n', "t.jsonl, line 2: this is not JSON"),
        ('{"a": 1}\n[1]\n', "t.jsonl, line 2: expected a JSON object, got '[1]'"),
        (" \n", "there are no items"),
        ("{}\n", "the columns have no names"),
    ],
)
def test_damaged_lines_get_a_sentence(content: str, sentence: str) -> None:
    with pytest.raises(FormatError) as error:
        open_table(io.BytesIO(content.encode()), name="t.jsonl").read()
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[1]", "t.json, item 1: expected an object, got '1'"),
        ("[]", "expected a JSON array of objects with at least one item"),
        ("[" * 100_000, "this is not JSON"),
    ],
)
def test_damaged_arrays_get_a_sentence(content: str, sentence: str) -> None:
    with pytest.raises(FormatError) as error:
        open_table(io.BytesIO(content.encode()), name="t.json")
    assert sentence in str(error.value)
