"""Model: every form of items, chunks, groups, intervals, and the way through a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

from prevalens import Quantifier
from prevalens.aggregators import CC, PCC
from prevalens.classifiers import PerLabel
from prevalens.datasets import synthetic
from prevalens.errors import InputError
from prevalens.model import Model
from prevalens.model import items as items_module
from prevalens.model.model import quantifier_of
from prevalens.protocols import Natural
from prevalens.samples import Samples
from prevalens.selection.grid_search import GridSearch


@pytest.mark.filterwarnings("ignore:Batch 0 differs")
def test_estimates_are_near_the_truth(model: Model, labelled: tuple) -> None:
    texts, sets = labelled
    found = model.quantify(texts)
    truth = [np.mean([name in one for one in sets]) for name in model.labels]
    np.testing.assert_allclose(found.point, truth, atol=0.05)
    assert np.all(found.lower <= found.point)
    assert np.all(found.point <= found.upper)
    assert found.level == 0.9
    assert model.summary.n_items == 120
    assert model.prevalence.tolist() == truth


def test_groups_are_estimated_alone(model: Model, labelled: tuple) -> None:
    texts, _ = labelled
    groups = np.array(["b", "a"])[np.arange(120) % 2]
    both = model.quantify(texts, groups=groups, interval=None)
    assert both.index == ["a", "b"]
    alone = model.quantify(
        [t for t, g in zip(texts, groups, strict=True) if g == "a"], interval=None
    )
    np.testing.assert_allclose(both.point[0], alone.point, atol=1e-7)
    samples = Samples.from_indices([[0, 1, 2]], n_items=120)
    assert model.quantify(texts, groups=samples, interval=None).shape == (1, 3)
    with pytest.raises(InputError, match="The items has 120 rows but groups has 2"):
        model.quantify(texts, groups=["a", "b"])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, dict])
def test_columns_of_frames(frame: type, labelled: tuple) -> None:
    texts, sets = labelled
    table = frame({"body": texts, "n": list(range(len(texts)))})
    model = Model.fit(table, sets, text="body", method="lr+pcc")
    assert model.columns == ("body",)
    by_frame = model.quantify(table, interval=None)
    by_list = Model.fit(texts, sets, method="lr+pcc").quantify(texts, interval=None)
    np.testing.assert_array_equal(by_frame.point, by_list.point)


def test_series_and_arrays_of_texts(labelled: tuple) -> None:
    texts, sets = labelled
    for form in (pd.Series, np.asarray):
        model = Model.fit(form(texts), sets, method="lr+pcc")
        assert model.summary.kind == "text"
        assert model.quantify(form(texts), interval=None).shape == (3,)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, pd.DataFrame])
def test_numbers(form: object) -> None:
    data = synthetic(n_train=100, n_test=60, n_labels=3, random_state=0)
    X = data.train.X.toarray() if sp.issparse(data.train.X) else data.train.X
    model = Model.fit(form(X), data.train.Y, method="lr+pcc")
    assert model.summary.kind == ("columns" if form is pd.DataFrame else "array")
    assert model.quantify(form(X), interval=None).shape == (3,)


def test_chunks_change_nothing(
    model: Model, labelled: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = model.score(labelled[0])
    monkeypatch.setattr(items_module, "CHUNK_ROWS", 7)
    chunked = model.score(labelled[0])
    assert chunked.values.dtype == np.float32
    np.testing.assert_array_equal(whole.values, chunked.values)


def test_transformers_of_users(labelled: tuple, tmp_path: Path) -> None:
    model = Model.fit(*labelled, method="lr+pcc", preparation=CountVectorizer(binary=True))
    model.save(tmp_path / "m.prevalens")
    again = Model.load(tmp_path / "m.prevalens")
    np.testing.assert_array_equal(
        again.quantify(labelled[0], interval=None).point,
        model.quantify(labelled[0], interval=None).point,
    )


def test_a_quantifier_of_the_user_is_taken_as_it_is(labelled: tuple) -> None:
    model = Model.fit(*labelled, method=Quantifier(PerLabel(), CC(), uncertainty=None))
    assert model.summary.method == "lr+cc"
    assert not model.quantifier.has_intervals
    assert "lr+cc" in repr(model)
    with pytest.raises(InputError, match="A method is 'auto', an expression"):
        Model.fit(*labelled, method=PCC())


@pytest.mark.filterwarnings("ignore:Batch 0 differs")
def test_the_automatic_choice(labelled: tuple, tmp_path: Path) -> None:
    model = Model.fit(*labelled, time_budget=1)
    model.save(tmp_path / "m.prevalens")
    again = Model.load(tmp_path / "m.prevalens")
    assert model.summary.method == model.quantifier.choice_.name != "auto"
    found, same = model.quantify(labelled[0]), again.quantify(labelled[0])
    np.testing.assert_array_equal(found.point, same.point)
    np.testing.assert_array_equal(found.lower, same.lower)


def test_different_lengths(labelled: tuple) -> None:
    with pytest.raises(InputError, match="has 119 rows but Y has 120"):
        Model.fit(labelled[0][1:], labelled[1], method="lr+pcc")


def test_progress_is_told_and_ends_the_fit(labelled: tuple) -> None:
    told: list[str] = []
    Model.fit(*labelled, method="lr+pacc", progress=told.append)
    assert told == [
        "preparing items",
        "training the classifier",
        "fitting the aggregator",
        "preparing intervals",
    ]

    def stop(words: str) -> None:
        raise KeyboardInterrupt(words)

    with pytest.raises(KeyboardInterrupt, match="preparing items"):
        Model.fit(*labelled, method="lr+pacc", progress=stop)


def test_a_search_is_told_of_as_far_as_it_tells(labelled: tuple) -> None:
    told: list[str] = []
    search = GridSearch(Quantifier(PerLabel(), CC()), {"classifier__C": [1.0]}, progress=False)
    model = Model.fit(*labelled, method=search, progress=told.append)
    assert told == ["preparing items"]
    assert model.summary.method.endswith("+cc")


def test_methods_without_a_classifier_get_calibrated_intervals() -> None:
    data = synthetic(n_train=400, n_test=400, n_labels=3)
    quantifier = quantifier_of("rq(hdx,ridge)").fit(data.train.X, data.train.Y)
    samples = Natural(size=100, n_samples=40).draw(data.train.Y, np.random.default_rng(0))
    truth = samples.mean(data.train.Y)
    estimate = quantifier.aggregate(quantifier.score(data.train.X), samples, 0.9)
    assert np.mean((estimate.lower <= truth) & (truth <= estimate.upper)) >= 0.85
