"""The door: what passes, and the sentence of each refusal."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from prevalens.validation import (
    InputError,
    check_binary_matrix,
    check_choice,
    check_fraction,
    check_int,
    check_label_names,
    check_matrix,
    check_prevalences,
    check_rng,
    is_texts,
)


@pytest.mark.parametrize("value", [1.5, "3", True, None])
def test_check_int_names_the_value(value: object) -> None:
    with pytest.raises(InputError, match=r"size must be a whole number; got"):
        check_int(value, "size")


def test_check_int_keeps_numpy_integers_and_bounds() -> None:
    assert check_int(np.int64(4), "size", minimum=4) == 4
    with pytest.raises(InputError, match=r"size must be at least 4; got 3"):
        check_int(3, "size", minimum=4)


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.1, float("nan")])
def test_check_fraction_open(value: float) -> None:
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        check_fraction(value, "fraction")


def test_check_fraction_closed_and_type() -> None:
    assert check_fraction(1, "fraction", open_ends=False) == 1.0
    with pytest.raises(InputError, match="must be a number between 0 and 1; got 'half'"):
        check_fraction("half", "fraction")


def test_check_choice() -> None:
    assert check_choice("a", "kind", ("a", "b")) == "a"
    with pytest.raises(InputError, match=r"kind must be one of 'a', 'b'; got 'c'"):
        check_choice("c", "kind", ("a", "b"))


def test_same_seed_same_stream() -> None:
    assert check_rng(7).integers(1 << 30) == check_rng(7).integers(1 << 30)
    legacy = check_rng(np.random.RandomState(1))
    again = check_rng(np.random.RandomState(1))
    assert legacy.integers(1 << 30) == again.integers(1 << 30)
    with pytest.raises(InputError, match="A seed must be a whole number"):
        check_rng("seven")


def test_matrix_is_not_copied_when_in_form() -> None:
    X = np.ones((3, 2), dtype=np.float32)
    assert check_matrix(X) is X
    assert check_matrix([[1, 2]]).dtype == np.float64


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        ([1.0, 2.0], "two dimensions"),
        (np.empty((0, 3)), "X has no items"),
        (np.empty((3, 0)), "X has no features"),
        ([[1, 2], [3]], "rows differ in length"),
        ([["a", "b"]], "must hold numbers"),
        (np.array([[1, "x"]], dtype=object), r"got 'x' at row 0, column 1"),
        ([[0.0, 1.0], [np.nan, 2.0]], r"nan at row 1, column 0"),
        ([[0.0, np.inf]], r"inf at row 0, column 1"),
    ],
)
def test_bad_matrix(X: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check_matrix(X)


def test_bad_sparse_matrix_names_the_place() -> None:
    X = sp.lil_matrix((4, 5))
    X[1, 1] = 1.0
    X[2, 3] = np.nan
    with pytest.raises(InputError, match="nan at row 2, column 3"):
        check_matrix(X)
    with pytest.raises(InputError, match="nan at row 2, column 'd'"):
        check_matrix(X.tocoo(), columns=list("abcde"))


def test_sum_that_overflows_is_no_error() -> None:
    X = np.full((2, 2), np.finfo(float).max)
    assert check_matrix(X) is X


def test_infinities_of_both_signs_get_the_sentence() -> None:
    with pytest.raises(InputError, match="-inf at row 0, column 0"):
        check_matrix([[-np.inf, np.inf]])


@pytest.mark.parametrize(
    ("Y", "sentence"),
    [
        ([0, 1], "two dimensions"),
        (np.empty((0, 2)), "Y has no items"),
        (np.empty((2, 0)), "Y has no labels"),
        ([[0, 2]], r"got .*2.* at row 0, column 1"),
        ([[0, 1], [0, np.nan]], r"nan.* at row 1, column 1"),
        ([[0, 1], [0]], "rows differ in length"),
    ],
)
def test_bad_labels(Y: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check_binary_matrix(Y)


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=8))
def test_every_form_of_labels_gives_the_same(rows: list[list[bool]]) -> None:
    expected = np.array(rows, dtype=np.int8)
    for form in (rows, expected.astype(float), sp.csr_matrix(expected), sp.coo_array(expected)):
        checked = check_binary_matrix(form)
        assert checked.dtype == np.int8
        np.testing.assert_array_equal(checked, expected)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["a"], "2 label columns but 1 label names"),
        (["a", "a"], "'a' stands twice, at positions 0 and 1"),
        (["a", "  "], "position 1 is empty"),
        ("ab", "not the single string 'ab'"),
    ],
)
def test_bad_label_names(names: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check_label_names(names, 2)  # type: ignore[arg-type]


def test_default_label_names() -> None:
    assert check_label_names(None, 2) == ("label_0", "label_1")


def test_prevalences() -> None:
    assert check_prevalences([0.5, 1.0], "true").shape == (1, 2)
    with pytest.raises(InputError, match="got nan in sample 1, label 0"):
        check_prevalences([[0.5], [np.nan]], "true")
    with pytest.raises(InputError, match="shape"):
        check_prevalences(np.zeros((1, 1, 1)), "true")


def test_is_texts() -> None:
    assert is_texts(["a", "b"])
    assert is_texts(np.array(["a", "b"], dtype=object))
    assert not is_texts(["a", None])
    assert not is_texts([])
    assert not is_texts(np.ones(2))


@pytest.mark.parametrize(("value", "meant"), [(90, "0.9"), (99.5, "0.995")])
def test_percent_are_taken_for_a_mistake(value: float, meant: str) -> None:
    with pytest.raises(InputError, match=f"got {value:g}; did you mean {meant}"):
        check_fraction(value, "interval")
    with pytest.raises(InputError, match=r"got -1\."):
        check_fraction(-1, "interval")


def test_labels_are_named() -> None:
    with pytest.raises(InputError, match="got 2 at row 1, label 'urgent'"):
        check_binary_matrix([[0, 1], [1, 2]], labels=["account", "urgent"])
