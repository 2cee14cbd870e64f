"""Scores: two kinds of evidence, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from prevalens.scores import Scores
from prevalens.validation import InputError


def test_float32_is_kept() -> None:
    assert Scores(np.zeros((2, 1), dtype=np.float32)).values.dtype == np.float32
    assert Scores([[0, 1]], kind="votes").values.dtype == np.float64


@pytest.mark.parametrize(
    ("values", "kind", "sentence"),
    [
        ([[0.5]], "votes", "Votes must be 0 or 1; got 0.5 for item 0, column 0"),
        ([[0.5, 1.5]], "posteriors", "got 1.5 for item 0, column 1"),
        ([[np.nan]], "posteriors", "got nan for item 0"),
        ([0.5], "posteriors", "shape"),
        ([[0.5]], "odds", "kind must be one of"),
    ],
)
def test_bad_scores(values: object, kind: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Scores(values, kind=kind)  # type: ignore[arg-type]


def test_rounding_is_put_back_into_range() -> None:
    scores = Scores([[1 + 1e-9, -1e-9]], members=np.array([[1 + 1e-9, 0.5]]))
    assert scores.values.tolist() == [[1.0, 0.0]]
    assert scores.members is not None
    assert scores.members.tolist() == [[1.0, 0.5]]
    with pytest.raises(InputError, match="between 0 and 1"):
        Scores([[1.001]])


def test_take_and_labels() -> None:
    scores = Scores(np.array([[0.1, 0.2], [0.3, 0.4]]))
    assert scores.take([1]).values.tolist() == [[0.3, 0.4]]
    assert scores.labels([1]).values.tolist() == [[0.2], [0.4]]


@pytest.mark.parametrize(
    "X",
    [
        np.ones((3, 2)),
        sp.csr_matrix(np.ones((3, 2))),
        ["a", "b", "c"],
        pd.DataFrame({"u": [1, 2, 3]}),
        pl.DataFrame({"u": [1, 2, 3]}),
    ],
    ids=["array", "csr", "texts", "pandas", "polars"],
)
def test_features_pass_as_they_are(X: object) -> None:
    scores = Scores(X, kind="features")
    assert scores.values is X
    assert scores.take(np.array([True, False, True])).n_items == 2
