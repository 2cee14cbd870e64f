"""What every table offers."""

from __future__ import annotations

import pytest

from prevalens.errors import InputError
from prevalens.files import damaged
from prevalens.tables.formats import as_table


def test_missing_columns_are_named_with_a_guess() -> None:
    table = as_table({"text": ["a"], "date": ["b"]}, name="t.csv")
    with pytest.raises(InputError, match=r"t\.csv has no column 'txt'; .*Did you mean 'text'\?"):
        table.chunks(["txt"])
    many = as_table({f"column {j}": [1] for j in range(20)}, name="t.csv")
    assert many.shown().endswith("(20 in all)")


def test_read_joins_the_chunks() -> None:
    table = as_table({"a": list(range(20_000))})
    assert list(table.read(["a", "a"])["a"]) == list(range(20_000))
    assert "1 columns" in repr(table)


def test_damage_is_one_line() -> None:
    assert str(damaged("t.csv", "two\n  lines")) == "t.csv: two lines"


def test_long_names_of_columns_are_cut_in_messages() -> None:
    table = as_table({"x" * 500: [1], "b": [2]})
    with pytest.raises(InputError, match="has no column 'c'") as error:
        table.check_columns(["c"])
    assert len(str(error.value)) < 150
