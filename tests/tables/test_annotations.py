"""Exports of annotation tools, built after their documented schemas, become plain columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.errors import FormatError, InputError
from prevalens.tables.annotations import majority
from prevalens.tables.formats import as_table
from prevalens.tables.labels import listed_tags
from prevalens.tables.opening import open_table
from prevalens.tables.table import Table


def result(*labels: Any, question: str = "topic", kind: str = "choices", **more: Any) -> Any:
    value = {kind: list(labels)}
    return {"from_name": question, "to_name": "text", "type": kind, "value": value, **more}


def annotation(*results: Any, by: Any = 1, **more: Any) -> dict[str, Any]:
    return {"completed_by": by, "was_cancelled": False, "result": list(results), **more}


def task(text: str, annotations: Any = (), predictions: Any = ()) -> dict[str, Any]:
    parts = {"annotations": list(annotations), "predictions": list(predictions)}
    return {"id": 1, "data": {"text": text}, **parts, "project": 83}


def table_of(*records: Any) -> Table:
    return as_table(list(records), name="export.json")


def column(table: Table, name: str = "labels") -> list[Any]:
    return list(table.read([name])[name])


def test_choices_taxonomies_and_skipped_tasks() -> None:
    table = table_of(
        task("a", [annotation(result("billing", "login"))]),
        task("b", [annotation(result(["Access", "Login"], ["Other"], kind="taxonomy"))]),
        task("c", [annotation()]),
        task("d", [annotation(result("billing"), was_cancelled=True)]),
        task("e"),
    )
    assert table.columns == ("text", "labels")
    assert table.item_columns == ("text",)
    assert column(table) == [["billing", "login"], ["Access/Login", "Other"], [], None, None]


def test_boxes_alone_are_no_answer() -> None:
    box = {"from_name": "box", "type": "rectanglelabels", "value": {"x": 1}}
    table = table_of(task("a", [annotation(box)]), task("b", [annotation(box, result("x"))]))
    assert column(table) == [None, ["x"]]


def test_several_annotators_vote_and_have_columns_of_their_own() -> None:
    anna = {"id": 7, "email": "anna@example.org"}
    table = table_of(
        task("a", [annotation(result("x"), by=anna), annotation(result("x", "y"), by=3)]),
        task("b", [annotation(result("y"), by=3), annotation(result("x"), by=anna)]),
        task("c", [annotation(result("y"), by=3), annotation(by=anna, ground_truth=True)]),
    )
    assert column(table) == [["x"], ["y"], []]
    assert column(table, "labels@3") == [["x", "y"], ["y"], None]
    assert column(table, "labels@anna@example.org") == [["x"], ["x"], []]


def test_predictions_are_scores_by_label() -> None:
    scored = {"model_version": "m1", "score": 0.7, "result": [result("x"), result("y", score=0.2)]}
    table = table_of(
        task("a", [annotation(result("x"))], [scored]),
        task("b", [], [{"model_version": "m1", "result": [result("x")]}]),
        task("c", [], [{"model_version": "m1", "result": []}]),
        task("d"),
    )
    assert column(table, "predictions") == [{"x": 0.7, "y": 0.2}, {"x": 1.0}, {}, None]
    two = [{"model_version": name, "score": 0.5, "result": [result("x")]} for name in ("m1", "m2")]
    assert {"predictions@m1", "predictions@m2"} <= {*table_of(task("a", [], two)).columns}


def test_several_questions_have_a_column_each_and_one_must_be_named() -> None:
    both = annotation(result("x"), result("bad", question="mood"))
    table = table_of(task("a", [both]), task("b", [annotation(result("x"))]))
    assert column(table, "labels.mood") == [["bad"], []]
    with pytest.raises(InputError, match=r"2 questions; .*'labels.topic', 'labels.mood'"):
        listed_tags(table)


def test_the_short_form_of_label_studio() -> None:
    row = {"text": "a", "id": 5, "topic": {"choices": ["x", "y"]}}
    others = {"annotator": 1, "annotation_id": 2, "lead_time": 3.5}
    single = {"text": "b", "id": 6, "topic": "x", **others}
    table = table_of({**row, **others}, single, {"text": "c", "id": 7, **others})
    assert table.columns == ("text", "labels")
    assert column(table) == [["x", "y"], ["x"], []]


def test_a_data_field_called_labels_keeps_its_cells_under_another_name() -> None:
    record = task("a", [annotation(result("x"))])
    record["data"]["labels"] = "old"
    table = table_of(record)
    assert (column(table), column(table, "data.labels")) == ([["x"]], ["old"])


def test_argilla_nested_and_flat_are_the_same() -> None:
    value = {"value": ["x", "y"], "score": [0.9, 0.4], "agent": "m"}
    response = {"value": ["x"], "user_id": "u1"}
    nested = {
        "id": "1",
        "fields": {"text": "a"},
        "metadata": {"month": "May"},
        "suggestions": {"topic": value},
        "responses": {"topic": [response, {"value": ["y"], "user_id": "u2", "status": "draft"}]},
        "vectors": {"mini": [0.1, 0.2]},
        "_server_id": None,
    }
    empty = {**nested, "suggestions": {}, "responses": {}}
    table = table_of(nested, empty)
    assert table.columns == ("text", "mini", "month", "labels", "predictions")
    assert table.item_columns == ("text", "mini")
    flat = {
        "id": "1",
        "status": "completed",
        "text": "a",
        "topic.responses": [["x"], ["y"]],
        "topic.responses.users": ["u1", "u2"],
        "topic.responses.status": ["submitted", "discarded"],
        "topic.suggestion": ["x", "y"],
        "topic.suggestion.score": [0.9, 0.4],
        "topic.suggestion.agent": "m",
    }
    other = table_of(flat, {"text": "b", "topic.responses": None, "topic.suggestion": None})
    assert other.item_columns == ("text",)
    for name, cells in {
        "labels": [["x"], None],
        "predictions": [{"x": 0.9, "y": 0.4}, None],
    }.items():
        assert column(table, name) == column(other, name) == cells


def test_prodigy_choices(tmp_path: Path) -> None:
    options = [{"id": 1, "text": "Billing"}, {"id": "login", "text": "Cannot log in"}]
    shared = {"options": options, "_input_hash": 1, "_task_hash": 2, "meta": {"month": "May"}}
    rows = [
        {"text": "a", "accept": [1, "login"], "answer": "accept", **shared},
        {"text": "b", "accept": [], "answer": "accept", **shared},
        {"text": "c", "accept": ["login"], "answer": "reject", **shared},
        {"text": "d", "accept": [], "answer": "ignore", **shared},
    ]
    path = tmp_path / "prodigy.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = open_table(path)
    assert table.columns == ("text", "month", "labels")
    assert column(table) == [["Billing", "login"], [], None, None]


def test_prodigy_yes_or_no() -> None:
    rows = [
        {"text": text, "label": "urgent", "answer": answer, "_task_hash": 1}
        for text, answer in zip("abc", ("accept", "reject", "ignore"), strict=True)
    ]
    assert column(table_of(*rows)) == [["urgent"], [], None]


@pytest.mark.parametrize("name", ["label", "labels", "cats"])
def test_plain_lists_are_found_by_the_name_of_their_column(name: str) -> None:
    table = table_of({"id": 1, "text": "a", name: ["x"]}, {"id": 2, "text": "b", name: []})
    assert table.item_columns is None
    assert listed_tags(table) == name


def test_spans_and_texts_are_no_lists_of_labels() -> None:
    assert listed_tags(table_of({"text": "a", "label": [[0, 1, "PER"]]})) is None
    assert listed_tags(table_of({"text": "a", "labels": "x,y"})) is None


DAMAGED = [
    (task("a") | {"annotations": "none"}, "'annotations' is 'none', not a list"),
    (task("a", [[]]), r"an entry of 'annotations' is \[\], not an object"),
    (task("a", [annotation(result(True))]), "'choices' holds True, which is no label"),
    (task("a", [], [{"result": [result("x", score="high")]}]), "score of topic is 'high'"),
    ({"fields": {}, "responses": {"q": "x"}}, "the responses to 'q' is 'x', not a list"),
    (
        {"fields": {}, "suggestions": {"q": {"value": ["x"], "score": [0.1, 0.2]}}},
        "1 labels and 2 scores",
    ),
    ({"text": "a", "_task_hash": 1, "answer": "maybe"}, "'answer' is 'maybe', not accept, reject"),
    ({"_task_hash": 1, "accept": [None], "answer": "accept"}, "'accept' holds None"),
]


@pytest.mark.parametrize(("record", "what"), DAMAGED)
def test_damaged_records_are_named_by_tool_and_place(
    tmp_path: Path, record: dict[str, Any], what: str
) -> None:
    with pytest.raises(FormatError, match=rf"^export.json, item 1: this looks like .*{what}"):
        table_of(record)
    path = tmp_path / "export.jsonl"
    path.write_text("\n" + json.dumps(record))
    with pytest.raises(FormatError, match=r"line 2: this looks like an export of \w+"):
        open_table(path)


def test_a_later_record_of_another_kind_is_named() -> None:
    with pytest.raises(FormatError, match="item 2: this looks like an export of Label Studio"):
        table_of(task("a", [annotation(result("x"))]), {"text": "b"})


@pytest.mark.parametrize(
    "row",
    [
        {"question": "2 + 2?", "options": ["3", "4"], "answer": "B"},
        {"data": "a text", "predictions": ["x"]},
        {"fields": 3, "responses": 2},
        {"mail.responses": 4, "text": "a"},
    ],
)
def test_rows_that_only_resemble_an_export_are_plain(row: dict[str, Any]) -> None:
    table = table_of(row, row)
    assert table.columns == tuple(row)
    assert table.item_columns is None


@given(st.lists(st.lists(st.sampled_from("abc"), unique=True), min_size=1, max_size=7))
def test_the_majority_of_answers(answers: list[list[str]]) -> None:
    found = majority(answers)
    assert found is not None
    for label in "abc":
        share = sum(label in answer for answer in answers) / len(answers)
        assert (label in found) == (share > 0.5 or (share == 0.5 and label in answers[0]))
