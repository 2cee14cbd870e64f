from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from prevalens.service.schemas import QuantifyBody, TrainBody, refused


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "exactly one of texts, rows and uploads"),
        ({"texts": ["a"], "rows": [{"a": 1}]}, "exactly one of"),
        ({"texts": []}, "Texts: "),
        ({"texts": ["a"], "by": "x", "by_time": "y"}, "one of groups, by and by_time"),
        ({"uploads": ["0" * 32], "groups": ["a"]}, "Groups go with texts or rows"),
        ({"uploads": ["../etc"]}, "Uploads.0"),
        ({"texts": ["a"], "interval": 1.0}, "Interval"),
        ({"texts": ["a"], "intervall": 0.9}, "Intervall"),
        ({"texts": ["a"], "interval": "0.9"}, "Interval"),
        ({"texts": ["a"], "freq": "H"}, "Freq"),
        ({"rows": [{"a": [1]}]}, "Rows.0.a"),
    ],
)
def test_a_bad_request_is_one_sentence(body: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as raised:
        QuantifyBody.model_validate(body)
    assert refused(raised.value).status == 422
    sentence = refused(raised.value).message
    assert words in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


@pytest.mark.parametrize(
    "body", ["", "{", '{"texts": ["a"]', "[" * 10_000, '{"texts": ["\\ud800"]}']
)
def test_damaged_json_is_told_from_what_does_not_fit(body: str) -> None:
    with pytest.raises(ValidationError) as raised:
        QuantifyBody.model_validate_json(body)
    assert refused(raised.value).status == 400


@pytest.mark.parametrize(
    "more", [{"drift": -0.1}, {"drift": 2.0}, {"time": ""}, {"date_form": "x" * 61}, {"when": "d"}]
)
def test_times_and_drift_are_checked(more: dict[str, Any]) -> None:
    assert TrainBody(upload="0" * 32, time="day", date_form="%Y").drift is None
    with pytest.raises(ValidationError):
        TrainBody.model_validate({"upload": "0" * 32, **more})


@pytest.mark.parametrize("name", ["../x", ".hidden", "a/b", "a b", "x" * 61])
def test_a_model_is_named_plainly(name: str) -> None:
    with pytest.raises(ValidationError):
        TrainBody(upload="0" * 32, name=name)


def test_an_upload_and_a_name_are_enough_to_ask_for_training() -> None:
    body = TrainBody(upload="0" * 32, name="tickets-2025")
    assert (body.method, body.sep, body.text) == ("auto", ",", None)
