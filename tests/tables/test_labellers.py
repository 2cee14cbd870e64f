"""Columns of scores, found by the names of labels."""

import numpy as np
import pytest

from prevalens.errors import PrevalensWarning
from prevalens.tables.labellers import match_scores, stems
from prevalens.tables.scores import ScorePreparation


@pytest.mark.parametrize(
    ("columns", "patterns", "expected"),
    [
        (["p_a", "p_b"], ["p_*"], ["a", "b"]),
        (["a_llm", "b_llm"], ["*_llm"], ["a", "b"]),
        (["gpt a score", "gpt b score"], ["gpt * score"], ["a", "b"]),
        (["p_bug", "p_billing"], ["p_bug", "p_billing"], ["bug", "billing"]),
        (["bug", "billing"], [], ["bug", "billing"]),
        (["p_bug"], ["p_bug"], ["p_bug"]),
        (["p_a", "q"], ["p_*", "q"], ["a", "q"]),
    ],
)
def test_stems_are_what_distinguishes_columns(columns, patterns, expected):
    assert list(stems(columns, patterns).values()) == expected


def test_columns_and_labels_are_matched_however_they_are_ordered_and_written():
    labels = {"y_log in": "log in", "y_bug": "bug"}
    scores = [{"p_Bug": "Bug", "p_log_in": "log_in"}, {"r_log-in": "log-in", "r_bug": "bug"}]
    matched, kept = match_scores(labels, scores, [])
    assert kept == [0, 1]
    preparation = ScorePreparation(*matched)
    items = {"p_Bug": [0.1, 0], "p_log_in": [0.2, 0], "r_log-in": ["1", 0], "r_bug": [None, 1]}
    X = preparation.fit_transform(items)
    assert np.array_equal(X, [[0.2, 0.1, 1, np.nan], [0, 0, 0, 1]], equal_nan=True)
    names = preparation.get_feature_names_out().tolist()
    assert names == ["p_log_in", "p_Bug", "r_log-in", "r_bug"]


def test_labels_without_scores_are_left_out_unless_answers_may_name_them():
    labels = {"a": "a", "b": "b"}
    with pytest.warns(PrevalensWarning, match="1 label of people without scores left out: 'b'"):
        matched, kept = match_scores(labels, [{"p_a": "a"}], [])
    assert (kept, list(matched.labels)) == ([0], ["a"])
    with pytest.warns(PrevalensWarning, match="has no scores of 1 label: 'b'; only other"):
        matched, kept = match_scores(labels, [{"p_a": "a"}], ["llm"])
    assert kept == [0, 1]
    preparation = ScorePreparation(*matched)
    X = preparation.fit_transform({"p_a": [0.3, 0.4], "llm": ["b", "a"]})
    assert np.array_equal(X, [[0.3, np.nan, 0, 1], [0.4, np.nan, 1, 0]], equal_nan=True)
