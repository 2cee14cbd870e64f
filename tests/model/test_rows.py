"""Rows as files: what is written is read again, and no text is run as a formula."""

from __future__ import annotations

import io
import json
from datetime import date

import numpy as np
import openpyxl
import pyarrow.parquet as pq
import pytest

from prevalens.errors import InputError
from prevalens.model import rows as module
from prevalens.model.rows import check_ending, rows_bytes, safe_cell, workbook_bytes


@pytest.mark.parametrize("text", ["=1", "+1+A1", "-1-1", "-A1", "@SUM(A1)", "\tx", "\rx"])
def test_no_cell_is_a_formula(text: str) -> None:
    assert safe_cell(text) == f"'{text}"
    assert safe_cell(f"a{text}") == f"a{text}"


@pytest.mark.parametrize("text", ["-5", "+1", "-0.5", "-1,5", "-1e-5", "-.5"])
def test_a_text_that_is_a_number_stays_one(text: str) -> None:
    assert safe_cell(text) == text


def test_endings() -> None:
    check_ending("out.CSV")
    check_ending(".parquet")
    with pytest.raises(InputError, match="'out' ends in none of them"):
        check_ending("out")


@pytest.mark.parametrize(("ending", "extra"), [(".xlsx", "excel"), (".parquet", "frames")])
def test_a_format_that_needs_more_is_refused_before_the_work(
    ending: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=rf"pip install \"prevalens\[{extra}\]\""):
        check_ending(f"out{ending}")


def sheet(rows: list[dict[str, object]]) -> list[list[tuple[object, str]]]:
    """Values and types of the cells of a workbook with these rows, the header first."""
    book = openpyxl.load_workbook(io.BytesIO(rows_bytes(rows, ".xlsx")))
    return [[(cell.value, cell.data_type) for cell in row] for row in book.active.iter_rows()]


def test_a_workbook_keeps_numbers_and_runs_no_text() -> None:
    row = {"=name": "=1+1", "share": 0.25, "n": 3, "alarm": True, "none": None}
    head, cells = sheet([row])
    assert [value for value, _ in head] == list(row)
    assert cells == [("=1+1", "s"), (0.25, "n"), (3, "n"), (True, "b"), (None, "n")]
    assert head[0] == ("=name", "s")


def test_what_a_workbook_cannot_hold_becomes_text() -> None:
    row = {"a": "x\x01y", "b": 10**17 + 1, "c": float("inf"), "d": [1, 2], "e": np.float32(0.5)}
    _, cells = sheet([{**row, "f": date(2024, 5, 31)}])
    assert [value for value, _ in cells[:5]] == ["x\ufffdy", str(10**17 + 1), "inf", "[1, 2]", 0.5]
    assert cells[5][1] == "d"


def test_a_sheet_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_COLUMNS", 1)
    with pytest.raises(InputError, match=r"would have 2 and 2\. Write \.csv or \.parquet"):
        workbook_bytes({"rows": [{"a": 1, "b": 2}]})


def test_empty_columns_of_a_parquet_file_have_a_type() -> None:
    rows = [{"alarm": None, "lower": None, "label": "a"}]
    types = pq.read_schema(io.BytesIO(rows_bytes(rows, ".parquet"))).types
    assert list(map(str, types)) == ["bool", "double", "string"]


def test_json_has_a_line_per_field_and_row() -> None:
    content = {"rows": [{"a": 1.5, "b": "ü"}, {"a": None, "b": date(2026, 1, 2)}], "of": {"c": []}}
    text = module.json_bytes(content).decode()
    assert json.loads(text) == {
        **content,
        "rows": [content["rows"][0], {"a": None, "b": "2026-01-02"}],
    }
    assert text.splitlines()[2] == ' {"a": 1.5, "b": "ü"},'
