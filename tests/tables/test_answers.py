"""Answers that name labels, in all forms that labellers write them."""

import json
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from prevalens.tables.answers import answer_scores, separator_of_answers
from prevalens.tables.labellers import LabelNames
from prevalens.tables.preparation import CellError

LABELS = {"y_billing": "billing", "y_log in": "log in", "a:1": "a:1"}
NAMES = LabelNames(LABELS)


def _scores(cell, separator=";"):
    scores, unknown = answer_scores([cell], "llm", NAMES, len(LABELS), separator)
    return scores[0].tolist(), dict(unknown)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("billing", [1, 0, 0]),
        ("billing:0.9; log in", [0.9, 1, 0]),
        ("Billing : 0.25 ;LOG_IN", [0.25, 1, 0]),
        ("a:1", [0, 0, 1]),
        ("a:1:0.5", [0, 0, 0.5]),
        ("billing:0.2;billing:0.7", [0.7, 0, 0]),
        ("", [0, 0, 0]),
        ("None", [0, 0, 0]),
        ("[]", [0, 0, 0]),
        ("{}", [0, 0, 0]),
        ([], [0, 0, 0]),
        (["billing", "log-in:0.5", None, ""], [1, 0.5, 0]),
        (np.array(["billing"]), [1, 0, 0]),
        ({"billing": 0.3, "log in": True}, [0.3, 1, 0]),
        ('{"billing": 0.3}', [0.3, 0, 0]),
        ("['billing', 'log in']", [1, 1, 0]),
        ({"label": "billing", "score": 0.4}, [0.4, 0, 0]),
        ([{"label": "billing", "confidence": "0.4"}, {"name": "log in"}], [0.4, 1, 0]),
        ({"labels": ["log in", "billing"], "scores": [0.8, 0.1]}, [0.1, 0.8, 0]),
    ],
)
def test_forms_of_an_answer(cell, expected):
    assert _scores(cell) == (expected, {})


@pytest.mark.parametrize("cell", [None, math.nan, "null", "N/A", " refused ", "NaN", "timeout"])
def test_no_answer_is_missing_for_all_labels(cell):
    scores, unknown = _scores(cell)
    assert np.isnan(scores).all()
    assert not unknown


def test_a_score_of_null_is_missing_for_its_label_only():
    scores, _ = _scores({"billing": None, "log in": 0.2})
    assert math.isnan(scores[0])
    assert scores[1:] == [0.2, 0]


def test_labels_that_are_not_known_are_counted():
    cells = ["weather", "weather:0.3;billing", {"rain": 1}]
    scores, unknown = answer_scores(cells, "llm", NAMES, 3, ";")
    assert dict(unknown) == {"weather": 2, "rain": 1}
    assert scores[:, 0].tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ('["billing"', "broken or cut off"),
        ("{'billing'", "broken or cut off"),
        ("billing:90", "the score 90 is outside; .* divide percentages by 100"),
        ("billing:-1", "the score -1 is outside; scores lie between 0 and 1"),
        ({"billing": "sure"}, "'sure' is no score"),
        ({"labels": ["billing"], "scores": []}, "not as many scores"),
        (17, "expected labels, such as"),
        ("[17", "broken or cut off"),
    ],
)
def test_answers_that_cannot_be_read_name_their_row(cell, says):
    with pytest.raises(CellError, match=f"Item 3: the answer 'llm' is .*; .*{says}") as error:
        answer_scores(["", None, cell], "llm", NAMES, 3, ";")
    assert error.value.row == 2


@pytest.mark.parametrize("separator", [";", "|", ",", "\n"])
def test_the_separator_is_seen_from_known_labels(separator):
    cells = [separator.join(["billing:0.3", "log in"]), None, "[]", "billing"]
    assert separator_of_answers(cells, NAMES) == separator


def test_commas_within_labels_do_not_divide_them():
    names = LabelNames({"billing, refunds": "billing, refunds", "bugs": "bugs"})
    cells = ["billing, refunds;bugs", "billing, refunds"]
    assert separator_of_answers(cells, names) == ";"


def test_names_that_differ_in_case_only_are_told_apart():
    names = LabelNames({"IT": "IT", "it": "it"})
    assert (names.find("IT"), names.find("it"), names.find("It")) == (0, 1, None)


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from(["billing", "log in"]), st.floats(0, 1)))
def test_texts_lists_and_mappings_agree(answer):
    text = ";".join(f"{name}:{score!r}" for name, score in answer.items())
    entries = [f"{name}:{score!r}" for name, score in answer.items()]
    expected = _scores(answer)
    assert _scores(text) == _scores(entries) == _scores(json.dumps(answer)) == expected
