"""Frames of pandas and polars."""

from __future__ import annotations

import sys

import pytest

from prevalens.charts import frame
from prevalens.errors import InputError


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_columns_become_a_frame(backend: str) -> None:
    pytest.importorskip(backend)
    table = frame({"label": ["a", "b"], "value": [1.0, 2.0]}, backend)
    assert list(table.columns) == ["label", "value"]
    assert table["value"].to_list() == [1.0, 2.0]
    assert type(table).__module__.startswith(backend)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(
        InputError, match=r'A frame needs polars: pip install "prevalens\[frames\]"'
    ):
        frame({}, "polars")
    with pytest.raises(InputError, match="backend must be one of"):
        frame({}, "arrow")
