"""Estimates: an array with names on it."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd
import polars as pl
import pytest

from prevalens.estimate import PrevalenceEstimate
from prevalens.validation import InputError

ONE = PrevalenceEstimate([0.25, 0.5], ["spam", "<b>"])
MANY = PrevalenceEstimate([[0.25, 0.5], [0.0, 1.0]], ["spam", "urgent"], index=["may", "june"])


def test_reads_like_an_array() -> None:
    np.testing.assert_array_equal(np.asarray(ONE), [0.25, 0.5])
    np.testing.assert_array_equal(np.abs(ONE - [0.5, 0.5]), [0.25, 0.0])
    assert ((1 - ONE) > 0.5).tolist() == [True, False]
    assert ONE[1] == 0.5
    assert list(ONE) == [0.25, 0.5]
    assert len(MANY) == 2
    assert MANY.shape == (2, 2)
    assert (ONE.ndim, MANY.ndim) == (1, 2)


def test_by_label_name() -> None:
    assert ONE["spam"] == 0.25
    assert MANY["urgent"].tolist() == [0.5, 1.0]
    with pytest.raises(InputError, match="no label 'ham'"):
        ONE["ham"]


def test_to_dict() -> None:
    assert ONE.to_dict() == {"spam": 0.25, "<b>": 0.5}
    assert MANY.to_dict()["june"] == {"spam": 0.0, "urgent": 1.0}


def test_to_frame() -> None:
    one, many = ONE.to_frame(), MANY.to_frame("polars")
    assert isinstance(one, pd.DataFrame)
    assert one["prevalence"].tolist() == [0.25, 0.5]
    assert isinstance(many, pl.DataFrame)
    assert many.columns == ["sample", "spam", "urgent"]
    with pytest.raises(InputError, match="backend must be one of"):
        ONE.to_frame("excel")


def test_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(InputError, match=r"prevalens\[frames\]"):
        ONE.to_frame()


def test_html_is_escaped() -> None:
    page = ONE._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "0.2500" in page


def test_repr_names_labels_and_stays_short() -> None:
    assert repr(ONE) == "PrevalenceEstimate(spam=0.2500, <b>=0.5000)"
    assert "2 samples" in repr(MANY)
    long = PrevalenceEstimate(np.zeros(20), [f"l{i}" for i in range(20)])
    assert "20 labels" in repr(long)


def test_default_index_is_plain_numbers() -> None:
    index = PrevalenceEstimate(np.zeros((2, 1)), ["a"], index=np.array([3, 4])).index
    assert index == [3, 4]
    assert type(index[0]) is int
    assert PrevalenceEstimate(np.zeros((2, 1)), ["a"]).index == [0, 1]


@pytest.mark.parametrize(
    ("point", "index", "sentence"),
    [(np.zeros((1, 1, 1)), None, "dimensions"), (np.zeros((2, 1)), ["a"], "2 samples but 1 names")],
)
def test_bad_estimates(point: np.ndarray, index: list[str] | None, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        PrevalenceEstimate(point, ["a"], index=index)
