"""Columns side by side: each as its cells ask for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from prevalens.errors import InputError, PrevalensWarning
from prevalens.tables.columns import ColumnPreparation
from prevalens.tables.preparation import CellError

COLUMNS = {
    "age": ["20", "", "40", "60"] * 10,
    "ward": ["north", "south", "north", "east"] * 10,
    "seen": ["2024-05-31", "2024-06-03", "2024-06-04", ""] * 10,
    "vector": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]] * 10,
}


def test_each_kind() -> None:
    prepared = ColumnPreparation().fit(COLUMNS)
    kinds = [one.kind for one in prepared.encoders_.values()]
    assert kinds == ["number", "category", "date", "vector"]
    X = prepared.transform(COLUMNS)
    names = prepared.get_feature_names_out().tolist()
    assert X.shape == (40, len(names)) == (40, prepared.n_features_)
    by_name = dict(zip(names, X[1], strict=True))
    assert by_name["age is missing"] == by_name["ward = south"] == by_name["seen = month 6"] == 1
    assert by_name["age"] == pytest.approx(0, abs=0.2)
    np.testing.assert_allclose(X[:, names.index("age")].mean(), 0, atol=1e-12)
    assert "4 columns" in prepared.describe()


def test_at_once_is_the_same() -> None:
    at_once = ColumnPreparation().fit_transform(COLUMNS)
    np.testing.assert_array_equal(at_once, ColumnPreparation().fit(COLUMNS).transform(COLUMNS))


def test_unknown_categories_and_numbers_out_of_range() -> None:
    prepared = ColumnPreparation(["age", "ward"]).fit(COLUMNS)
    known = {name: COLUMNS[name] for name in ("age", "ward")}
    assert prepared.unfamiliar(known).share == 0
    found = prepared.unfamiliar({"age": ["500", "30"], "ward": ["west", "north"]})
    assert found.share == 0.5
    assert set(found.examples) == {"age: 500", "ward: west"}
    assert prepared.transform({"age": ["30"], "ward": ["west"]})[0, 2:].sum() == 0


def test_texts_among_columns_make_a_sparse_matrix() -> None:
    texts = [f"the printer number {chr(97 + i)} is on fire again today" for i in range(20)]
    X = ColumnPreparation().fit_transform({"text": texts, "n": [i % 7 for i in range(20)]})
    assert sp.issparse(X)
    assert X.shape[0] == 20


def test_kinds_can_be_named_and_useless_columns_are_dropped_with_a_warning() -> None:
    cells = {"code": [1, 2, 1, 2], "same": ["x"] * 4, "nothing": [None] * 4}
    with pytest.warns(PrevalensWarning, match="2 columns not used: 'same': only one value, 'x'; "):
        prepared = ColumnPreparation(kinds={"code": "category"}).fit(cells)
    assert prepared.get_feature_names_out().tolist() == ["code = 1", "code = 2"]
    assert prepared.dropped_ == ("same", "nothing")
    with pytest.raises(InputError, match="None of the columns can be used"):
        ColumnPreparation().fit({"same": ["x", "x"]})
    with pytest.raises(InputError, match="A column is one of number, decimal-point"):
        ColumnPreparation(kinds={"a": "colour"}).fit({"a": [1, 2]})
    with pytest.raises(InputError, match="The column 'b' is not among the features"):
        ColumnPreparation(kinds={"b": "drop"}).fit({"a": [1, 2]})


def test_batches_are_read_as_the_training_was() -> None:
    price = ["1,234", "0,5", "7,25", "?", "soon", *["2,5"] * 20]
    with pytest.warns(PrevalensWarning, match="1 of 24 values of the column 'price' are no number"):
        prepared = ColumnPreparation().fit({"price": price})
    as_numbers = [1.234, 0.5, 7.25, None, None, *[2.5] * 20]
    same = ColumnPreparation().fit({"price": as_numbers})
    found, expected = prepared.transform({"price": price}), same.transform({"price": as_numbers})
    np.testing.assert_allclose(found, expected)
    # Alone, 1,234 would be more than a thousand.
    batch, copy = {"price": ["1,234", "soon"]}, prepared.unfitted().fit({"price": price})
    np.testing.assert_allclose(copy.transform(batch), same.transform({"price": [1.234, None]}))
    with pytest.raises(CellError, match="the column 'price' holds numbers, but here is 'later'"):
        prepared.transform({"price": ["later"]})


def test_a_refitted_copy_does_not_warn_again() -> None:
    columns = {"code": ["1", "2", "x"] * 4, "m": [1.0, 3.0, 50.0] * 4}
    with pytest.warns(PrevalensWarning, match="67% of the values of the column 'code' are"):
        whole = ColumnPreparation().fit(columns)
    part = whole.unfitted().fit({"code": ["1"] * 3, "m": [1.0, 2.0, 3.0]})
    assert part.dropped_ == ("code",)


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        ({"age": ["old"]}, "Item 1: the column 'age' holds numbers, but here is 'old'"),
        ({"seen": ["soon"]}, "Item 1: the column 'seen' holds dates, but here is 'soon'"),
        ({"vector": [[1.0]]}, "the column 'vector' holds 2 numbers per item, but here is [1.0]"),
    ],
)
def test_cells_of_another_kind(cells: dict, sentence: str) -> None:
    name = next(iter(cells))
    prepared = ColumnPreparation([name]).fit(COLUMNS)
    with pytest.raises(CellError) as error:
        prepared.transform(cells)
    assert sentence in str(error.value)
    with pytest.raises(InputError, match="The items have no column"):
        prepared.transform({"other": [1]})
