"""Labels from columns and from tags."""

from __future__ import annotations

import pytest

from prevalens.errors import FormatError, InputError
from prevalens.tables.formats import as_table
from prevalens.tables.labels import (
    WHOLE_CELL,
    label_columns,
    labels_of_columns,
    separator_of,
    tag_matrix,
    tag_sets,
)


def test_columns_and_patterns() -> None:
    table = as_table({"text": ["a"], "topic_x": [1], "topic_y": [0], "z": [1]})
    assert label_columns(table, ["topic_*", "z", "topic_x"]) == ["topic_x", "topic_y", "z"]
    with pytest.raises(InputError, match="has no column 'nope_"):
        label_columns(table, ["nope_*"])


def test_yes_and_no_in_the_usual_words() -> None:
    chunk = as_table({"a": ["1", "no", True, 0.0], "b": [0, "Yes", "false", 1]}).read()
    assert labels_of_columns(chunk, ["a", "b"]).tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]


@pytest.mark.parametrize("cell", ["2", "", None, "maybe", 0.5])
def test_other_words_are_refused_with_their_place(cell: object) -> None:
    chunk = as_table({"a": [1, cell]}, name="t.csv").read()
    with pytest.raises(FormatError, match=r"t\.csv, row 2: the label 'a' is .*holds 0 or 1"):
        labels_of_columns(chunk, ["a"])


def test_tags() -> None:
    cells = ["x, y", "", None, ["y", "z"], "x,,x"]
    chunk = as_table({"tags": cells}, name="t.csv").read()
    sets = tag_sets(chunk, "tags", ",")
    assert sets == [{"x", "y"}, set(), set(), {"y", "z"}, {"x"}]
    Y = tag_matrix(chunk, sets, ["x", "y", "z"])
    assert Y.tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 0], [0, 1, 1], [1, 0, 0]]
    with pytest.raises(InputError, match=r"t\.csv, row 4: the tag 'z' is not among the 2 labels"):
        tag_matrix(chunk, sets, ["x", "y"])
    with pytest.raises(FormatError, match=r"row 1: the tags 'tags' are \{'a': 1\}"):
        tag_sets(as_table({"tags": [{"a": 1}]}, name="t.csv").read(), "tags", ",")


def test_json_lists_are_tags_and_whole_cells_are_not_divided() -> None:
    cells = ['["x, y", "z"]', "[]", "[x", "a, b", None]
    chunk = as_table({"tags": cells}).read()
    assert tag_sets(chunk, "tags", ",") == [{"x, y", "z"}, set(), {"[x"}, {"a", "b"}, set()]
    whole = tag_sets(chunk, "tags", WHOLE_CELL)
    assert whole == [{'["x, y", "z"]'}, {"[]"}, {"[x"}, {"a, b"}, set()]


def test_an_empty_separator_is_refused() -> None:
    chunk = as_table({"tags": ["x;y"]}).read()
    with pytest.raises(InputError, match="separator of tags is empty; name one"):
        tag_sets(chunk, "tags", "")


@pytest.mark.parametrize(
    "cells",
    [
        ["a;b", "", "b"],
        ["a, b", " ", "b,b"],
        ["a|b", "|", "b|"],
        ['["a", "b"]', "[]", '["b", null]'],
        [["a", "b"], None, ("b", None)],
    ],
)
def test_tags_without_a_separator(cells: list[object]) -> None:
    chunk = as_table({"t": cells}).read()
    assert tag_sets(chunk, "t", None) == [{"a", "b"}, set(), {"b"}]


def test_tags_that_are_no_json_list() -> None:
    chunk = as_table({"t": ["a", "[1"]}, name="t.csv").read()
    with pytest.raises(FormatError, match=r"t\.csv, row 2: the tags '\[1' are not a JSON list"):
        tag_sets(chunk, "t", None)


def test_the_separator_of_tags_is_found() -> None:
    assert separator_of(["a;b", "a", "b;a"]) == ";"
    assert separator_of(["a|b", "a", "b|a"]) == "|"
    assert separator_of(["one text, with commas and words", "another one, quite long"]) is None
    assert separator_of([]) is None
