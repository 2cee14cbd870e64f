"""What a column becomes, and what is said about it."""

from __future__ import annotations

import uuid

import numpy as np
import pytest

from prevalens.errors import InputError
from prevalens.tables.kinds import kind_of, read_column


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([1, 2.5, None], "number"),
        (["1", "NA", "-3e4"], "number"),
        ([True, False, "yes"], "binary"),
        (["1", "0", ""], "binary"),
        ([None, ""], "empty"),
        ([], "empty"),
        (["a", "b", "a"], "category"),
        (["2024-05-31", "31.05.2024"], "date"),
        ([np.array([1.0, 2.0]), [3.0, 4.0]], "vector"),
        ([["billing", "login"], []], "tags"),
        (["a text of several words", "and another one of them"], "text"),
        (["1", "two"], "category"),
        (["31/05/2024", "03/04/2024"], "date"),
        (["a;b", "b;c", "a"], "tags"),
        (["red,blue", "blue", "red", "red,blue"], "tags"),
        (["My order, which I paid, has not come.", "Hello, I cannot log in, please."], "text"),
    ],
)
def test_kinds(cells: list, kind: str) -> None:
    assert kind_of(cells) == kind


ROWS = range(60)


@pytest.mark.parametrize(
    ("name", "cells", "use", "detail"),
    [
        ("n", ["12,5", "7,25", "3"], "number", "decimal comma"),
        ("n", ["12.5%", "7%", "3%"], "number", "percent signs ignored"),
        ("n", ["1 234", "999", "12 000"], "number", "thousands separators"),
        ("n", ["1", "2", "?", "unknown", ""], "number", "3 missing ('?', 'unknown')"),
        ("n", ["yes", "no", None], "number", "1 missing"),
        ("n", ["1", "2.5", "x"], "category", "3 values"),
        ("ward", ["north", "south", "?"] * 9, "category", "3 values"),
        ("ward", ["north", None] * 9, "category", "1 value; 9 missing"),
        ("list", ["a;b", "b;c", "a"], "category", "3 values"),
        ("seen", ["2024-05-31", "31.05.2024", "unknown"], "date", "not the year; 1 missing"),
        ("seen", ["31/05/2024", "03/04/2024"], "date", "month and day of the week"),
        ("v", [[1.0, 2.0], [2.0, 3.0]], "vector", ""),
        ("t", ["the printer is on fire", "I cannot log in"], "text", "words"),
        ("n", [None, ""], "dropped", "all cells are empty"),
        ("n", ["7", "7"], "dropped", "only one value, '7'"),
        ("id", [7 * i for i in ROWS], "dropped", "identifier: another number in every row"),
        ("userId", [str(7 * i) for i in ROWS], "dropped", "identifier"),
        ("Unnamed: 0", [7 * i for i in ROWS], "dropped", "identifier"),
        ("x", [i + 100 for i in range(150)], "dropped", "row numbers"),
        ("x", [i + 100 for i in ROWS], "number", ""),
        ("x", [7 * i for i in ROWS], "number", ""),
        ("x", [i + 0.5 for i in ROWS], "number", ""),
        ("customer_id", [i % 9 for i in ROWS], "category", "named as an identifier; 9 values"),
        ("key", [str(uuid.UUID(int=i)) for i in ROWS], "dropped", "another value in every row"),
        ("name", [f"n{i}" for i in ROWS] + ["n1"], "dropped", "another value in almost every row"),
        ("word", ["paid", "grid"] * 9, "category", "2 values"),
        ("marks", ["?", "unknown"] * 9, "category", "2 values"),
        ("lists", [["a"], ["b", "c"]] * 9, "category", "2 values"),
    ],
)  # fmt: skip
def test_uses(name: str, cells: list, use: str, detail: str) -> None:
    reading = read_column(name, cells)
    assert reading.use.use == use
    assert detail in reading.use.detail
    assert reading.use.column == name


@pytest.mark.parametrize(
    ("cells", "choice", "sentence"),
    [
        (["1,234", "999"], "decimal-comma", "'1,234' is read as 1234; if it means 1.234"),
        (["1.234", "999"], "decimal-comma", "'1.234' is read as 1.234; if it means 1234"),
        (["1", "2", "3", "x"], "number", "75% of the values of the column 'c' are numbers, but"),
        (["3", *["1"] * 18, "old"], "category", "1 of 20 values of the column 'c' are no number"),
        (["2024-01-02", *["2024-01-03"] * 18, "soon"], "category", "are no date ('soon')"),
    ],
)
def test_doubts_name_what_decides(cells: list, choice: str, sentence: str) -> None:
    doubt = read_column("c", cells).doubt
    assert sentence in doubt
    assert f"`kinds={{'c': '{choice}'}}`" in doubt
    # What was asked for is not doubted.
    assert read_column("c", cells, choice).doubt == ""


def test_dates_that_can_be_read_in_two_ways() -> None:
    reading = read_column("seen", ["03/04/2024", "05/06/2024"])
    assert reading.settings["form"] == "%d/%m/%Y"
    assert "say `date_form='%m/%d/%Y'`" in reading.doubt
    chosen = read_column("seen", ["03/04/2024", "05/06/2024"], date_form="%m/%d/%Y")
    assert (chosen.settings["form"], chosen.doubt) == ("%m/%d/%Y", "")


def test_choices() -> None:
    cells = ["1,234", "999", "x", "2024-05-31"]
    uses = {
        choice: read_column("c", cells, choice).use.use
        for choice in ("number", "decimal-comma", "category", "text", "date", "drop")
    }
    assert uses == {
        "number": "number",
        "decimal-comma": "number",
        "category": "category",
        "text": "text",
        "date": "date",
        "drop": "dropped",
    }
    comma = read_column("c", cells, "decimal-comma")
    assert comma.settings["decimal"] == ","
    assert "decimal comma" in comma.use.detail
    assert "thousands" not in comma.use.detail
    assert read_column("id", list(ROWS), "number").use.use == "number"
    for choice, what in (("number", "number"), ("date", "date")):
        with pytest.raises(InputError, match=f"The column 'c' holds no {what}, but for exam"):
            read_column("c", ["x", "y"], choice)
