"""Records survive the way to rows and back."""

from __future__ import annotations

import pytest

from prevalens.records import Record, to_rows
from prevalens.validation import InputError

RECORD = Record("emotions", "lr+pcc", "ml-app", 0, "low", "ae", 0.05, 10, "0.1", "abc")


def test_round_trip() -> None:
    assert [Record.from_row(row) for row in to_rows([RECORD])] == [RECORD]


def test_missing_and_unknown_columns_are_named() -> None:
    row = to_rows([RECORD])[0]
    with pytest.raises(InputError, match="lacks metric"):
        Record.from_row({name: value for name, value in row.items() if name != "metric"})
    with pytest.raises(InputError, match="unknown column 'colour'"):
        Record.from_row(row | {"colour": "red"})
