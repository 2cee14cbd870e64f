from __future__ import annotations

from typing import Any

import pytest

from prevalens.experiments.specs import PlanTable, suggestion
from prevalens.validation import InputError


def table(**values: Any) -> PlanTable:
    return PlanTable(values, "plan.toml", "top")


def test_values_are_taken_by_type() -> None:
    plan = table(a="x", b=["x", "y"], c=[0, 1], d={"e": 1}, f=[{"g": 2}])
    assert plan.text("a") == "x"
    assert plan.texts("b") == ("x", "y")
    assert plan.wholes("c") == (0, 1)
    assert plan.table("d").take("e") == 1
    assert plan.tables("f")[0].take("g") == 2
    plan.close()


def test_defaults_stand_for_missing_keys() -> None:
    assert table().text("a", "") == ""
    assert table().wholes("a", (0,)) == (0,)
    assert table().table("a").values == {}


@pytest.mark.parametrize(
    ("read", "values", "sentence"),
    [
        ("text", {}, "top.a is missing."),
        ("text", {"a": 3}, "top.a must be a text; got 3."),
        ("text", {"a": " "}, "top.a must be a text; got ' '."),
        ("texts", {"a": "x"}, "top.a must be a list of texts; got 'x'."),
        ("texts", {"a": []}, r"top.a must be a list of texts; got \[\]."),
        ("texts", {"a": ["x", 1]}, "top.a must be a list of texts; it holds 1."),
        ("texts", {"a": ["x", "x"]}, "top.a names 'x' twice."),
        ("wholes", {"a": [1.5]}, "top.a must be a list of whole numbers; it holds 1.5."),
        ("wholes", {"a": [True]}, "top.a must be a list of whole numbers; it holds True."),
        ("wholes", {"a": [-1]}, "top.a must hold no negative number; got -1."),
        ("table", {"a": 1}, "top.a must be a table; got 1."),
        ("tables", {"a": {}}, r"top.a must be a list of tables, as in \[\[a\]\]; got {}."),
        ("tables", {"a": [1]}, r"top.a\[0\] must be a table; got 1."),
    ],
)
def test_a_refusal_names_file_key_and_value(
    read: str, values: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=f"^plan.toml: {sentence}$"):
        getattr(table(**values), read)("a")


def test_an_unknown_key_is_named_with_the_nearest_known_one() -> None:
    plan = table(expresion="lr+cc")
    plan.text("expression", "")
    with pytest.raises(
        InputError, match=r"top.expresion is not known; did you mean 'expression'\?"
    ):
        plan.close()


def test_without_a_near_word_all_are_named() -> None:
    assert suggestion("zzz", ["b", "a"]) == "known are a, b."
