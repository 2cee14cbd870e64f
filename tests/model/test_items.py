"""Items in any form become what a preparation takes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from prevalens.errors import InputError
from prevalens.model.items import (
    chunk_items,
    chunks_of,
    column_means,
    filled,
    is_table,
    preparation_for,
    refitted,
)
from prevalens.tables.columns import ColumnPreparation
from prevalens.tables.formats import as_table
from prevalens.tables.preparation import ArrayPreparation, GivenPreparation
from prevalens.tables.text import TextPreparation

TABLE = {"a": [1, 2], "b": ["x", "y"]}


@pytest.mark.parametrize(
    ("items", "answer"),
    [
        (TABLE, True),
        (pd.DataFrame(TABLE), True),
        ([{"a": 1}], True),
        (as_table(TABLE), True),
        (["text"], False),
        (pd.Series(["text"]), False),
        (np.eye(2), False),
    ],
)
def test_which_items_have_columns(items: object, answer: bool) -> None:
    assert is_table(items) is answer


def test_which_preparation_suits() -> None:
    assert isinstance(preparation_for(TABLE, None, text=True), TextPreparation)
    assert isinstance(preparation_for(TABLE, None, text=False), ColumnPreparation)
    assert isinstance(preparation_for(["text"], None, text=False), TextPreparation)
    assert isinstance(preparation_for(np.eye(2), None, text=False), ArrayPreparation)


def test_chunks() -> None:
    columns = ColumnPreparation().fit(TABLE)
    assert list(chunks_of(TABLE, columns, ["a", "b"])) == [TABLE]
    text = TextPreparation()
    assert [list(one) for one in chunks_of(TABLE, text, ["b"])] == [["x", "y"]]
    with pytest.raises(InputError, match="The model reads one column; got 2"):
        chunk_items(as_table(TABLE).read(), text, None)


def test_a_preparation_that_is_given_is_taken() -> None:
    own = TextPreparation()
    assert preparation_for(np.eye(2), None, text=False, given=own) is own
    assert isinstance(
        preparation_for(["text"], None, text=False, given=StandardScaler()), GivenPreparation
    )
    assert isinstance(preparation_for(["text"], None, text=False, given=None), TextPreparation)


def test_a_preparation_is_fitted_again_on_some_rows_alone() -> None:
    columns = {"n": ["a", "b", "x", "c"], "m": [1.0, 3.0, 50.0, 7.0]}
    whole = ColumnPreparation().fit(columns)
    past, later = refitted(columns, whole)(np.array([1, 0]), np.array([3, 2]))
    # The mean and the deviation are those of 1 and 3; the kinds are those of all rows.
    assert past[:, -1].tolist() == [1.0, -1.0]
    assert later[:, -1].tolist() == [5.0, 48.0]
    given = GivenPreparation(StandardScaler()).fit([[1.0], [3.0], [50.0]])
    _, last = refitted([[1.0], [3.0], [50.0]], given)(np.array([0, 1]), np.array([2]))
    assert last.tolist() == [[48.0]]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_missing_values_are_filled_with_the_mean_of_their_column(form: type) -> None:
    nan = np.nan
    X = form(np.array([[0.5, nan, 0.0], [nan, nan, 4.0], [0.0, nan, 2.0], [1.0, nan, nan]]))
    assert column_means(X) == pytest.approx([0.5, 0.0, 2.0])
    full = filled(X)
    dense = full.toarray() if sp.issparse(full) else full
    assert dense.tolist() == [[0.5, 0, 0], [0.5, 0, 4], [0, 0, 2], [1, 0, 2]]
    assert np.isnan(X.sum())
    assert filled(full) is full
