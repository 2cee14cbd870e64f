"""Intervals in bounded memory: the same for small batches, narrower for large ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prevalens import Quantifier
from prevalens.aggregators import PCC
from prevalens.classifiers import PerLabel
from prevalens.datasets import synthetic
from prevalens.model import Model
from prevalens.model import model as scoring
from prevalens.samples import Samples


@pytest.fixture(scope="module")
def plain() -> tuple[Model, np.ndarray]:
    data = synthetic(n_train=200, n_test=400, n_labels=3, random_state=0)
    model = Model.fit(data.train.X, data.train.Y, method=Quantifier(PerLabel(), PCC()))
    return model, data.test.X


def test_small_batches_are_as_the_quantifier_says(plain: tuple) -> None:
    model, X = plain
    ours = model.quantify(X)
    theirs = model.quantifier.quantify(X, interval=0.9)
    np.testing.assert_allclose(ours.lower, theirs.lower, atol=1e-6)


def test_blocks_change_no_shape(plain: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = plain
    groups = np.arange(400) % 10
    monkeypatch.setattr(scoring, "_AT_A_TIME", 80)
    found = model.quantify(X, groups=groups)
    assert found.lower.shape == (10, 3)
    assert np.all((found.lower <= found.point) & (found.point <= found.upper))


def test_a_part_stands_for_a_large_batch(plain: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = plain
    scores = model.score(X)
    # Each item a hundred times: the noise of sampling is a tenth.
    many = Samples(np.tile(np.arange(400), 100), [0, 40_000], n_items=400)
    whole = model.aggregate(scores, many, interval=0.9)
    monkeypatch.setattr(scoring, "_LARGEST", 2000)
    part = model.aggregate(scores, many, interval=0.9)
    np.testing.assert_allclose(part.point, whole.point, rtol=1e-12)
    width, exact = part.upper - part.lower, whole.upper - whole.lower
    assert np.all(width < 2 * exact + 1e-3)
    assert np.all(width > exact / 3)


@pytest.mark.filterwarnings("ignore:Batch 0 differs")
def test_a_large_batch_that_alarms_is_shrunk_as_a_small_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = synthetic(n_train=120, n_test=400, n_labels=2, random_state=0)
    model = Model.fit(data.train.X, data.train.Y, method=Quantifier(time_budget=0.01))
    scores = model.score(data.test.X)
    strange = replace(scores, values=0.5 + 0.1 * (scores.values - 0.5), members=None)
    batch = Samples.from_indices([np.tile(np.arange(400), 2)], n_items=400)
    usual = model.aggregate(strange, batch, interval=0.9)
    assert usual.p_value < 0.01
    bold = model.quantifier.aggregator_.aggregate(strange, batch)
    assert np.any(usual.point != bold)
    np.testing.assert_array_equal(usual, model.aggregate(strange, batch))
    monkeypatch.setattr(scoring, "_LARGEST", 700)
    thinned = model.aggregate(strange, batch, interval=0.9)
    np.testing.assert_allclose(thinned.point, usual.point, atol=0.02)
    assert np.all((thinned.lower <= thinned.point) & (thinned.point <= thinned.upper))
