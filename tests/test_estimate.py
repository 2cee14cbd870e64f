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
    single, many = ONE.to_frame(), MANY.to_frame("polars")
    assert isinstance(single, pd.DataFrame)
    assert single["prevalence"].tolist() == [0.25, 0.5]
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


def test_one_sample_with_intervals() -> None:
    single = PrevalenceEstimate(
        [0.25, 0.5], ["a", "b"], lower=[0.2, 0.4], upper=[0.3, 0.6], level=0.9, p_value=0.5
    )
    assert single.to_frame().columns.tolist() == ["label", "prevalence", "lower", "upper"]
    assert single.to_frame()["upper"].tolist() == [0.3, 0.6]
    assert single.to_frame(form="wide").to_dict("list") == {"a": [0.25], "b": [0.5]}
    assert single.to_dict() == {"a": 0.25, "b": 0.5}
    assert repr(single) == (
        "PrevalenceEstimate(a=0.2500 [0.2000, 0.3000], b=0.5000 [0.4000, 0.6000], level=0.9)"
    )
    assert (single.p_value, single.band_lower) == (0.5, None)
    assert "<th>upper</th>" in single._repr_html_()


def test_several_samples_in_long_form() -> None:
    low, high = np.full((2, 2), 0.0), np.full((2, 2), 1.0)
    many = PrevalenceEstimate(
        MANY.point, MANY.labels, index=MANY.index, level=0.9, lower=low, upper=high,
        band_lower=low, band_upper=high, p_value=[0.5, 0.1],
    )  # fmt: skip
    frame = many.to_frame(form="long")
    assert frame.columns.tolist() == ["sample", "label", "prevalence", "lower", "upper"]
    assert frame["sample"].tolist() == ["may", "may", "june", "june"]
    assert frame["label"].tolist() == ["spam", "urgent"] * 2
    assert frame["prevalence"].tolist() == [0.25, 0.5, 0.0, 1.0]
    assert many.to_frame().columns.tolist() == ["sample", "spam", "urgent"]
    assert MANY.to_frame("polars", form="long").columns == ["sample", "label", "prevalence"]
    assert repr(many) == "PrevalenceEstimate(2 samples, 2 labels, level=0.9)"
    assert many.p_value.tolist() == [0.5, 0.1]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"lower": [0.1], "level": 0.9}, "needs lower, upper and the level"),
        ({"lower": [0.1], "upper": [0.4]}, "the level they are of"),
        ({"band_lower": [0.1], "level": 0.9}, "needs band_lower, band_upper"),
        ({"lower": [0.1], "upper": [0.4, 0.5], "level": 0.9}, "upper must be shaped"),
        ({"lower": [0.5], "upper": [0.4], "level": 0.9}, "must be ordered"),
        ({"lower": [0.1], "upper": [np.nan], "level": 0.9}, "must be ordered"),
        ({"level": 90}, "level must lie strictly between 0 and 1"),
        ({"p_value": [0.5]}, "one entry per sample"),
        ({"p_value": 1.5}, "p_value must lie between 0 and 1"),
    ],
)
def test_bad_intervals(fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        PrevalenceEstimate([0.25], ["a"], **fields)


def test_form_is_long_or_wide() -> None:
    with pytest.raises(InputError, match="form must be one of 'long', 'wide'"):
        ONE.to_frame(form="tall")


def test_one_sample_is_drawn_with_its_intervals() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    single = PrevalenceEstimate(
        [0.2, 0.4], ["a", "b"], lower=[0.1, 0.3], upper=[0.3, 0.6], level=0.9
    )
    axes = single.plot(reference=[0.5, 0.5])
    np.testing.assert_allclose(axes.lines[0].get_xdata(), single.point)
    np.testing.assert_allclose(axes.lines[1].get_xdata(), [0.5, 0.5])
    ends = [path.vertices[:, 0].tolist() for path in axes.collections[0].get_paths()]
    assert ends == [[0.1, 0.3], [0.3, 0.6]]
    assert [layer["mark"]["type"] for layer in single.plot("altair").to_dict()["layer"]] == [
        "bar",
        "point",
    ]
    only = single.plot(labels=["b"])
    assert [text.get_text() for text in only.get_yticklabels()] == ["b"]


def test_several_samples_are_drawn_as_lines() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    point = np.zeros((3, 10))
    point[1] = np.linspace(0, 0.9, 10)
    many = PrevalenceEstimate(point, [f"l{i}" for i in range(10)], index=["x", "y", "z"])
    axes = many.plot()
    # The eight that vary most.
    assert [line.get_label() for line in axes.lines] == [f"l{i}" for i in range(9, 1, -1)]
    np.testing.assert_allclose(many.plot(labels=["l3"]).lines[0].get_ydata(), point[:, 3])


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InputError, match="no label 'x'"):
        ONE.plot(labels=["x"])
    with pytest.raises(InputError, match="beside one sample"):
        MANY.plot(reference=[0.1, 0.2])
    with pytest.raises(InputError, match="a value for each of the 2 labels"):
        ONE.plot(reference=[0.1])
    with pytest.raises(InputError, match="backend must be one of"):
        ONE.plot("plotly")


def test_ends_of_intervals_and_bands() -> None:
    low, high = np.array([0.1]), np.array([0.4])
    ends = {"lower": low, "upper": high, "level": 0.9}
    estimate = PrevalenceEstimate([0.2], ["a"], **ends, band_lower=low / 2, band_upper=high * 2)
    assert [[end.tolist() for end in pair] for pair in estimate.ends] == [
        [[0.1], [0.4]],
        [[0.05], [0.8]],
    ]
    with pytest.raises(InputError, match="no bands"):
        _ = PrevalenceEstimate([0.2], ["a"], **ends).ends
    with pytest.raises(InputError, match=r"ask for them with interval=0\.9"):
        _ = PrevalenceEstimate([0.2], ["a"]).ends
