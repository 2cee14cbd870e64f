from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.service.schemas import Column
from prevalens.service.screening import preview
from prevalens.tables.formats import as_table


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], "empty"),
        (["", None, "  "], "empty"),
        (["0", "1", ""], "binary"),
        ([True, False], "binary"),
        ([0, 1, 1.0], "binary"),
        (["0", "2"], "number"),
        ([-1.5, "1e3", None], "number"),
        (["2026-01-31", "2026-02-01T10:00"], "time"),
        (["31.12.2025", "01.01.2026"], "time"),
        ([datetime(2026, 1, 1)], "time"),
        (["a;b", "b;c", "a"], "tags"),
        (["red,blue", "blue", "red", "red,blue"], "tags"),
        ([["red", "blue"], [], None], "tags"),
        (['["red"]', "[]", '["blue"]'], "tags"),
        (["no wheel", "too late", "two wheels"], "text"),
        (["red", "blue", "red"], "category"),
        (["m1", "m2", "m3"], "category"),
        (["My order, which I paid, has not come.", "Hello, I cannot log in, please help."], "text"),
    ],
)
def test_columns_are_what_they_seem(values: list[Any], kind: str) -> None:
    (column,) = preview(as_table({"x": values}))["columns"]
    assert (column["name"], column["kind"]) == ("x", kind)


@pytest.mark.parametrize(
    ("values", "separator"),
    [
        (["a;b", "", "b;a"], ";"),
        (["a|b", "a", "b|a"], "|"),
        (["a;b", *[None] * 9], ";"),
        (["red", "blue", "red"], None),
        (['["red, or pink", "blue"]', '["blue"]'], None),
    ],
)
def test_the_separator_of_tags_is_told(values: list[str], separator: str | None) -> None:
    assert preview(as_table({"x": values}))["columns"][0]["separator"] == separator


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("id", ["t1", "t2", "t3"], "id"),
        ("customer_id", [4, 7, 9], "id"),
        ("customer_id", [4, 4, 9], "number"),
        ("ID", ["a b", "c d", "e f"], "id"),
        ("age", [4, 7, 9], "number"),
        ("n", list(range(100)), "id"),
    ],
)
def test_identifiers_are_no_features(name: str, values: list[Any], kind: str) -> None:
    (column,) = preview(as_table({name: values}))["columns"]
    assert column["kind"] == kind


@given(st.lists(st.one_of(st.none(), st.text(), st.floats(), st.integers(), st.booleans())))
def test_any_values_have_a_kind(values: list[Any]) -> None:
    (column,) = preview(as_table({"x": values}))["columns"]
    assert Column.model_validate(column).kind == column["kind"]


def test_a_preview_shows_the_first_rows_cut_to_size() -> None:
    rows = [{"text": "x" * 1000, "n": float("nan"), "day": datetime(2026, 1, 1)}] * 600
    found = preview(as_table(rows))
    assert [column["name"] for column in found["columns"]] == ["text", "n", "day"]
    assert found["rows"] == [["x" * 300, None, "2026-01-01 00:00:00"]] * 6
    assert not found["complete"]
    assert preview(as_table(rows[:3]))["complete"]


def test_an_export_of_an_annotation_tool_is_shown_as_plain_columns() -> None:
    result = {"from_name": "t", "type": "choices", "value": {"choices": ["login"]}}
    task = {"data": {"text": "I cannot log in, help"}, "annotations": [{"result": [result]}]}
    shown = preview(as_table([task, task]))
    assert [(c["name"], c["kind"]) for c in shown["columns"]] == [
        ("text", "category"),
        ("labels", "tags"),
    ]
    assert shown["rows"][0] == ["I cannot log in, help", "['login']"]
