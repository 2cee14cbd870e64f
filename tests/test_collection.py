"""Collections: every way in gives the same thing; bad input gets its sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from prevalens.collection import Collection, label_correlation, statistics
from prevalens.validation import InputError

X = np.arange(6.0).reshape(3, 2)
Y = np.array([[1, 0], [0, 0], [1, 1]], dtype=np.int8)
SETS = [{"a"}, set(), {"a", "b"}]


@pytest.mark.parametrize(
    "items",
    [
        X,
        X.tolist(),
        sp.csr_matrix(X),
        sp.coo_array(X),
        pd.DataFrame(X, columns=["u", "v"]),
        pl.DataFrame(X, schema=["u", "v"]),
    ],
    ids=["array", "list", "csr_matrix", "coo_array", "pandas", "polars"],
)
@pytest.mark.parametrize(
    "labels_of_items",
    [
        Y,
        Y.tolist(),
        sp.csr_matrix(Y),
        pd.DataFrame(Y, columns=["a", "b"]),
        pl.DataFrame(Y.astype(bool), schema=["a", "b"]),
        SETS,
        [["a"], [], ["b", "a", "a"]],
        pd.Series([["a"], [], ["a", "b"]]),
        pl.Series([["a"], [], ["a", "b"]]),
    ],
    ids=["array", "list", "csr", "pandas", "polars", "sets", "lists", "pd.Series", "pl.Series"],
)
def test_every_way_in(items: object, labels_of_items: object) -> None:
    collection = Collection(items, labels_of_items, ["a", "b"])
    dense = collection.X.toarray() if sp.issparse(collection.X) else collection.X
    np.testing.assert_array_equal(dense, X)
    np.testing.assert_array_equal(collection.Y, Y)
    assert collection.labels == ("a", "b")
    assert len(collection) == collection.n_items == 3


def test_names_come_from_frames() -> None:
    frame = pd.DataFrame(X, columns=["u", "v"])
    collection = Collection(frame, pd.DataFrame(Y, columns=["p", "q"]))
    assert collection.features == ("u", "v")
    assert collection.labels == ("p", "q")


@pytest.mark.parametrize(
    "texts", [["x", "y z", ""], np.array(["x", "y z", ""]), pd.Series(["x", "y z", ""])]
)
def test_texts(texts: object) -> None:
    collection = Collection(texts, SETS)
    assert collection.is_text
    assert collection.n_features is None
    assert collection.X.tolist() == ["x", "y z", ""]
    assert "texts" in repr(collection)


def test_one_text_column_of_a_frame() -> None:
    assert Collection(pd.DataFrame({"body": ["x", "y", "z"]}), Y).is_text


@pytest.mark.parametrize(
    ("items", "labels_of_items", "labels", "sentence"),
    [
        (X, Y[:2], None, "X has 3 rows but Y has 2"),
        (X, Y, ["a", "a"], "'a' stands twice"),
        (X, Y, ["a", ""], "position 1 is empty"),
        (X, Y, ["a"], "2 label columns but 1"),
        (X, Y + 1, None, r"0 or 1 everywhere; got .*2.* at row 0, column 0"),
        (X, [{"a"}, {"c"}, set()], ["a", "b"], "Row 1 of Y has the label 'c'"),
        (X, [set(), set(), set()], None, "No item has a label"),
        (X, ["a", "b", "c"], None, "Row 0 of Y is the string 'a'"),
        (X, [{"a"}, 3, set()], None, "Row 1 of Y is 3"),
        ([], np.empty((0, 2)), None, "X"),
        ("text", Y, None, "single string"),
        (["a", None, "c"], Y, None, "row 1 is None"),
        (pd.DataFrame({"u": [1, 2, 3], "v": ["x", "y", "z"]}), Y, None, "Column 'v' of X holds"),
        (pd.DataFrame({"u": [1, np.nan, 3.0]}), Y, None, "nan at row 1, column 'u'"),
        (pd.DataFrame({"u": []}), Y, None, "X has no items"),
    ],
)
def test_bad_input(items: object, labels_of_items: object, labels: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Collection(items, labels_of_items, labels)  # type: ignore[arg-type]


def test_wrong_number_of_feature_names() -> None:
    with pytest.raises(InputError, match="X has 2 columns but 1 feature names"):
        Collection(X, Y, features=["u"])


def test_take_keep_and_stack() -> None:
    collection = Collection(X, Y, ["a", "b"])
    assert collection.take([2, 0]).Y.tolist() == [[1, 1], [1, 0]]
    assert collection.take(slice(0, 1)).n_items == 1
    assert collection.keep_labels(["b"]).labels == ("b",)
    assert collection.keep_labels([False, True]).Y[:, 0].tolist() == [0, 0, 1]
    stacked = Collection.stack(collection.take([0]), collection.take([1, 2]))
    np.testing.assert_array_equal(stacked.X, X)
    with pytest.raises(InputError, match="no label 'c'; there are 'a', 'b'"):
        collection.keep_labels(["c"])
    with pytest.raises(InputError, match="different labels"):
        Collection.stack(collection, Collection(X, Y, ["a", "c"]))
    with pytest.raises(InputError, match="2 and 1 features"):
        Collection.stack(collection, Collection(X[:, :1], Y, ["a", "b"]))


def test_other_features_same_labels() -> None:
    texts = Collection(["x", "y", "z"], Y, ["a", "b"])
    assert texts.with_X(X, features=["u", "v"]).features == ("u", "v")


def test_statistics_by_hand() -> None:
    result = statistics([[1, 0], [1, 0], [0, 0], [1, 1]])
    assert result.cardinality == 1.0
    assert result.density == 0.5
    assert result.diversity == 3
    assert result.normalised_diversity == 1.5
    assert result.puniq == 0.5
    assert result.pmax == 0.5
    assert statistics([[1, 0], [1, 0]], n_reference=1).pmax == 2.0
    with pytest.raises(InputError, match="n_reference"):
        statistics([[1]], n_reference=0)


BINARY = arrays(
    np.int8, st.tuples(st.integers(2, 20), st.integers(1, 12)), elements=st.integers(0, 1)
)


@given(BINARY)
def test_statistics_properties(labels: np.ndarray) -> None:
    result = Collection(np.ones((len(labels), 1)), labels).statistics()
    rows = {tuple(row) for row in labels.tolist()}
    assert result.diversity == len(rows)
    assert 1 / len(labels) <= result.pmax <= 1
    assert 0 <= result.puniq <= 1
    assert result.cardinality == pytest.approx(labels.sum(axis=1).mean())


@given(BINARY)
def test_correlation_matches_numpy(labels: np.ndarray) -> None:
    correlation = label_correlation(labels)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.atleast_2d(np.corrcoef(labels.astype(float), rowvar=False))
    expected = np.nan_to_num(expected)
    np.fill_diagonal(expected, 1.0)
    np.testing.assert_allclose(correlation, expected, atol=1e-12)
    np.testing.assert_array_equal(
        correlation, Collection(np.ones((len(labels), 1)), labels).label_correlation()
    )


TIMES = np.array(["2025-03-01", "2025-01-01", "2025-02-01"], dtype="datetime64[D]")


@pytest.mark.parametrize(
    "times",
    [TIMES, TIMES.astype(str), TIMES.tolist(), TIMES.astype("datetime64[s]")],
    ids=["days", "texts", "dates", "seconds"],
)
def test_times_in_any_form_stay_with_their_items(times: object) -> None:
    whole = Collection(X, Y, times=times)
    np.testing.assert_array_equal(whole.times, TIMES)
    np.testing.assert_array_equal(whole.take([2, 0]).times, TIMES[[2, 0]])
    np.testing.assert_array_equal(whole.take(slice(1)).times, TIMES[:1])
    np.testing.assert_array_equal(whole.keep_labels([0]).times, TIMES)
    np.testing.assert_array_equal(whole.with_X(X[:, :1]).times, TIMES)
    stacked = Collection.stack(whole, whole)
    np.testing.assert_array_equal(stacked.times, [*TIMES, *TIMES])
    assert Collection.stack(whole, Collection(X, Y)).times is None


def test_times_must_be_dates_and_one_per_item() -> None:
    with pytest.raises(InputError, match="times must be dates"):
        Collection(X, Y, times=["soon", "later", "never"])
    with pytest.raises(InputError, match=r"times must be dates such as '2025-03-18'; got .*1985"):
        Collection(X, Y, times=[1985, 1986, 1987])
    with pytest.raises(InputError, match="one entry per item"):
        Collection(X, Y, times=TIMES[:, np.newaxis])
    with pytest.raises(InputError, match="times"):
        Collection(X, Y, times=TIMES[:2])


@pytest.mark.parametrize("at", ["2025-02", "2025-01-15", TIMES[2], 1, 0.34])
def test_a_cut_by_date_number_or_share(at: str | np.datetime64 | float) -> None:
    earlier, later = Collection(X, Y, times=TIMES).cut(at)
    np.testing.assert_array_equal(earlier.X, X[[1]])
    np.testing.assert_array_equal(later.X, X[[0, 2]])


@given(st.lists(st.integers(0, 9), min_size=2, max_size=20), st.data())
def test_a_cut_divides_all_items_by_time(days: list[int], data: st.DataObject) -> None:
    times = np.datetime64("2025-01-01") + np.array(days)
    number = data.draw(st.integers(1, len(days) - 1))
    whole = Collection(np.arange(len(days))[:, np.newaxis], np.ones((len(days), 1)), times=times)
    if np.sort(times)[number] == times.min():
        with pytest.raises(InputError, match="leaves no item on one side"):
            whole.cut(number)
        return
    earlier, later = whole.cut(number)
    assert earlier.times is not None
    assert later.times is not None
    assert earlier.times.max() < later.times.min()
    assert len(earlier) <= number
    rows = np.concatenate([earlier.X, later.X])[:, 0]
    np.testing.assert_array_equal(np.sort(rows), np.arange(len(days)))


def test_cuts_that_cannot_be_made_are_refused() -> None:
    with pytest.raises(InputError, match="without times cannot be cut at '2025'"):
        Collection(X, Y).cut("2025")
    whole = Collection(X, Y, times=TIMES)
    with pytest.raises(InputError, match="from 2025-01-01 to 2025-03-01"):
        whole.cut("2024")
    with pytest.raises(InputError, match="A cut is a date such as"):
        whole.cut("spring")
    with pytest.raises(InputError, match="after 3 items leaves none of 3"):
        whole.cut(3)
    with pytest.raises(InputError, match="at must be"):
        whole.cut(0)
