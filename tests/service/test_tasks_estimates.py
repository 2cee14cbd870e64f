from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prevalens.errors import InputError
from prevalens.model import Model
from prevalens.model.quantify import quantify_files
from prevalens.service.problems import Problem
from prevalens.service.schemas import QuantifyAnswer
from prevalens.service.settings import Limits
from prevalens.service.tasks import asked_for, estimate

LIMITS = Limits()


@pytest.fixture(scope="module")
def model(model_file: Path) -> Model:
    return Model.load(model_file)


def _task(folder: Path, **more: Any) -> dict[str, Any]:
    return {"folder": str(folder), "limits": LIMITS, "uploads": {}, "name": "small", **more}


def _ask(model: Model, folder: Path, body: Any, **more: Any) -> dict[str, Any]:
    (folder / "body.json").write_text(json.dumps(body))
    estimate(model, _task(folder, formats=["csv"], **more), lambda step: None)
    return dict(json.loads((folder / "answer.json").read_text()))


def _texts(tickets_folder: Path) -> list[str]:
    path = tickets_folder / "months" / "2026-01.csv"
    return [line.split(",", 2)[2].strip('"') for line in path.read_text().splitlines()[1:]]


def test_texts_rows_and_a_form_give_what_the_workflow_gives(
    model: Model, tickets_folder: Path, tmp_path: Path
) -> None:
    path = tickets_folder / "months" / "2026-01.csv"
    expected = quantify_files(model, [path]).to_bytes(".csv")
    task = _task(tmp_path, files=[[str(path), path.name]], fields={}, formats=["csv", "json"])
    estimate(model, task, lambda step: None)
    assert (tmp_path / "result.csv").read_bytes() == expected
    texts = _texts(tickets_folder)
    from_texts = _ask(model, tmp_path, {"texts": texts})
    from_rows = _ask(
        model, tmp_path, {"rows": [{"body": t} for t in texts], "columns": {"text": "body"}}
    )
    numbers = [row["prevalence"] for row in from_texts["rows"]]
    assert numbers == [row["prevalence"] for row in from_rows["rows"]]
    assert [one["name"] for one in from_texts["groups"]] == ["texts"]
    assert from_texts["command"] is None


def test_groups_divide_the_items(model: Model, tickets_folder: Path, tmp_path: Path) -> None:
    texts = _texts(tickets_folder)
    groups = ["b" if number % 3 else "a" for number in range(len(texts))]
    answer = _ask(model, tmp_path, {"texts": texts, "groups": groups, "interval": None})
    assert [(one["name"], one["n_items"]) for one in answer["groups"]] == [("a", 20), ("b", 40)]
    assert [(one["n_labelled"], one["more_labels"]) for one in answer["groups"]] == [(0, None)] * 2
    assert answer["level"] is None
    alone = _ask(model, tmp_path, {"texts": texts[::3], "interval": None})
    first = [row["prevalence"] for row in answer["rows"] if row["group"] == "a"]
    assert first == pytest.approx([row["prevalence"] for row in alone["rows"]])


def test_an_answer_says_how_far_to_trust_it(
    model: Model, tickets_folder: Path, tmp_path: Path
) -> None:
    body = {"texts": ["utterly novel vocabulary"] * 30 + _texts(tickets_folder)}
    answer = _ask(model, tmp_path, body)
    # The described form has exactly the fields of the answer.
    assert QuantifyAnswer.model_validate(answer).model_dump() == answer
    (group,), row = answer["groups"], answer["rows"][0]
    assert group["alarm"] == (group["p_value"] < 0.01)
    assert (row["alarm"], row["p_value"]) == (group["alarm"], group["p_value"])
    assert row["band_lower"] <= row["lower"] <= row["upper"] <= row["band_upper"]
    assert "were not seen in training" in group["notes"]
    assert row["notes"] == group["notes"]


def test_small_groups_are_put_together_if_that_is_asked_for(
    model: Model, tickets_folder: Path, tmp_path: Path
) -> None:
    texts = _texts(tickets_folder)[:30]
    body = {"texts": texts, "groups": [*("a" * 26), "b", "b", "c", "d"], "interval": None}
    assert len(_ask(model, tmp_path, body)["groups"]) == 4
    answer = _ask(model, tmp_path, {**body, "min_items": 3})
    folded = "3 groups with fewer than 3 items"
    assert [(one["name"], one["n_items"]) for one in answer["groups"]] == [("a", 26), (folded, 4)]
    assert "(b, c, d) stand together" in answer["groups"][1]["notes"]


def test_uploads_are_found_by_identifier_and_named_as_the_client_does(
    model: Model, tickets_folder: Path, tmp_path: Path
) -> None:
    path = tickets_folder / "months" / "2026-02.csv"
    keys = {"a" * 32: [str(path), "spring & co.csv"]}
    body = {"uploads": ["a" * 32], "by_time": "date", "freq": "W"}
    answer = _ask(model, tmp_path, body, uploads=keys)
    assert answer["ordered"]
    assert len(answer["groups"]) == 5
    assert answer["command"] == (
        "prevalens quantify small.prevalens 'spring & co.csv' --by-time date --freq W "
        "--interval 0.9 -o prevalence.csv"
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"uploads": ["b" * 32]}, "There is no upload"),
        ({"texts": ["a", "b"], "groups": ["x"]}, "There are 2 texts but 1 groups"),
        ({"rows": [{}]}, "The rows have no columns"),
        ({"rows": [{"message": "hi"}]}, "rows has no column 'text'"),
        ({"rows": [{"text": "hi"}], "columns": {"subject": "text"}}, "does not ask for a column"),
        ({"rows": [{"text": "hi"}], "columns": {"text": "body"}}, "has no column 'body'"),
        ({"texts": ["hi"], "by": "month"}, "has no column 'month'"),
        ([], "should be an object"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    model: Model, tmp_path: Path, body: Any, words: str
) -> None:
    with pytest.raises((Problem, InputError), match=words):
        _ask(model, tmp_path, body)


def test_what_is_no_json_is_a_sentence(model: Model, tmp_path: Path) -> None:
    (tmp_path / "body.json").write_bytes(b"\xff{")
    with pytest.raises(Problem, match="Invalid JSON"):
        estimate(model, _task(tmp_path, formats=[]), lambda step: None)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"group": "x"}, "There is no field 'group'"),
        ({"interval": "a lot"}, "'interval' is not a number"),
        ({"min_items": "few"}, "'min_items' is not a number"),
        ({"interval": "1.5"}, "Interval"),
        ({"columns": "{"}, "'columns' is not JSON"),
        ({"columns": "[1]"}, "Columns"),
        ({"by": "a", "by_time": "b"}, "at most one"),
    ],
)
def test_bad_fields_of_a_form_are_sentences(fields: dict[str, str], words: str) -> None:
    with pytest.raises(Problem, match=f"(?i){words}"):
        asked_for({"files": [["/x", "x"]], "fields": fields})


def test_fields_of_a_form_are_understood() -> None:
    fields = {"by_time": "day", "freq": "Q", "interval": "", "by": "", "columns": '{"text": "t"}'}
    asked, files, labelled = asked_for({"files": [("/x", "x.csv")], "fields": fields})
    assert (asked.by_time, asked.freq, asked.interval, asked.by) == ("day", "Q", None, None)
    assert asked.columns == {"text": "t"}
    assert files == [("/x", "x.csv")]
    assert labelled == []


def test_too_many_rows_are_refused(model: Model, tmp_path: Path) -> None:
    (tmp_path / "body.json").write_text(json.dumps({"texts": ["a"] * 11}))
    task = _task(tmp_path, formats=[]) | {"limits": replace(LIMITS, rows=10)}
    with pytest.raises(Problem, match="11 rows or more"):
        estimate(model, task, lambda step: None)
