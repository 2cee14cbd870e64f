"""Columns of scores, their labels, and the preparation that reads them."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from prevalens.errors import InputError, PrevalensWarning
from prevalens.tables.columns import ColumnPreparation
from prevalens.tables.preparation import CellError
from prevalens.tables.scores import ScorePreparation, column_scores, unknown_labels_once


@pytest.mark.parametrize(
    "cells",
    [
        np.array([0.25, np.nan, 1.0]),
        np.array([0.25, np.nan, 1.0], dtype=np.float32),
        [0.25, None, True],
        ["0.25", "", "1"],
        ["0.25", "n/a", "yes"],
        ["0,25", "?", "1,0"],
    ],
)
def test_all_ways_to_write_scores_are_read(cells):
    assert column_scores(cells, "p").tolist() == pytest.approx([0.25, np.nan, 1.0], nan_ok=True)


@pytest.mark.parametrize("cell", ["high", 1.5, -0.1, "inf", float("-inf"), "85%"])
def test_a_cell_that_is_no_score_names_its_row(cell):
    with pytest.raises(CellError, match="Item 2: the score 'p' is") as error:
        column_scores([0.5, cell], "p")
    assert error.value.row == 1


def test_some_labels_of_a_preparation():
    labels = {"a": "a", "b": "b", "c": "c"}
    whole = ScorePreparation(labels, [{"a": "p_a", "c": "p_c"}, {"b": "r_b"}], ["llm"])
    part = whole.for_labels([2, 0])
    assert list(part.labels) == ["c", "a"]
    assert part.table_columns() == ("p_a", "p_c", "llm")
    X = part.fit_transform({"p_a": [0.1, 0.2], "p_c": [0.3, 0.3], "llm": ["a", "c"]})
    assert X.tolist() == [[0.3, 0.1, 0, 1], [0.3, 0.2, 1, 0]]


def test_counts_of_labellers_and_people_stand_side_by_side():
    preparation = ScorePreparation({"a": "a"}, [{"a": "p_a"}], ["llm"])
    preparation.fit_transform(
        {"p_a": [0.9, 0.8, None, 0.1], "llm": ["a"] * 4}, [[1], [0], [0], [0]]
    )
    details = {use.column: use.detail for use in preparation.column_uses(None)}
    assert details["p_a"] == "counts 67%, people 25%; no answer for 25%"
    assert details["llm"] == "counts 100%, people 25%"
    assert preparation.counts_[:, 0] == pytest.approx([2 / 3, 1])
    assert preparation.counted_ == pytest.approx([1.0])


def test_a_labeller_that_never_answers_is_refused():
    preparation = ScorePreparation({"a": "a"}, [{"a": "p_a"}], ["llm"])
    with pytest.raises(InputError, match="No item has an answer in the column 'llm'"):
        preparation.fit({"p_a": [0.3, 0.2], "llm": ["refused", None]})


def test_unknown_labels_of_many_chunks_are_one_sentence_and_other_warnings_stay():
    preparation = ScorePreparation({"a": "a"}, tags=["llm"]).fit({"llm": ["a", ""]})

    def read():
        with unknown_labels_once() as said:
            for _ in range(3):
                preparation.transform({"llm": ["b", "b;c", "a"]})
            warnings.warn("something else", PrevalensWarning, stacklevel=1)
        return said

    with pytest.warns(PrevalensWarning, match="something else") as caught:
        said = read()
    assert len(caught) == 1
    (sentence,) = said
    assert "2 labels" in sentence
    assert "'b' (6 items), 'c' (3 items)" in sentence


@pytest.mark.parametrize("kind", ["text", "number"])
def test_features_follow_the_scores(kind):
    labels = {"billing": "billing", "login": "login"}
    words = ["my invoice", "the password", "my card", "an invoice"]
    items = {
        "llm": ["billing", "login", None, ""],
        "note": words if kind == "text" else [1, 2, 3, 4],
    }
    features = ColumnPreparation(["note"], kinds={"note": kind})
    both = ScorePreparation(labels, tags=["llm"], features=features)
    matrix = both.fit_transform(items)
    alone = ScorePreparation(labels, tags=["llm"]).fit_transform(items)
    own = ColumnPreparation(["note"], kinds={"note": kind}).fit_transform(items)
    assert sp.issparse(matrix) == sp.issparse(own)
    assert matrix.shape == (4, 2 + own.shape[1]) == (4, both.n_features_)
    np.testing.assert_array_equal(both.scores_in(matrix), alone)
    assert abs(matrix[:, 2:] - own).max() == 0
    assert abs(both.transform(items)[:, 2:] - own).max() == 0
    assert len(both.get_feature_names_out()) == both.n_features_
    assert both.table_columns() == ("llm", "note")
    assert [use.column for use in both.column_uses(None)] == ["llm", "note"]
    assert both.for_labels([1]).table_columns() == ("llm", "note")
    assert not hasattr(features, "encoders_")
