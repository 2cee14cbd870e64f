"""Some items of every batch: at random, as many as are kept, whatever the chunks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from prevalens.batches import ScoredSamples
from prevalens.datasets import synthetic
from prevalens.model import Model, item_sample, quantify_files
from prevalens.model.item_sample import ItemSample
from prevalens.scores import Scores


def drawn(n_items: int, chunk: int) -> tuple[ItemSample, ScoredSamples]:
    """Items that are numbered, a tenth of them in the second batch and five in the third."""
    sample = ItemSample()
    values = (np.arange(n_items) / n_items)[:, np.newaxis]
    codes = (np.arange(n_items) % 10 == 0).astype(np.int32)
    codes[-5:] = 2
    for start in range(0, n_items, chunk):
        rows = slice(start, start + chunk)
        sample.add(Scores(values[rows]), codes[rows])
    return sample, sample.batches([[0], [2, 1]])


def items_of(batches: ScoredSamples) -> list[set[float]]:
    return [set(batches.scores.values[bag, 0].tolist()) for bag in batches.samples]


def test_the_sample_is_bounded_and_does_not_depend_on_the_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(item_sample, "MOST", 400)
    sample, batches = drawn(10_000, 10_000)
    assert sample.sizes == {0: 8995, 1: 1000, 2: 5}
    assert batches.sizes.tolist() == [400, 405]
    for chunk in (97, 3000):
        assert items_of(drawn(10_000, chunk)[1]) == items_of(batches)
    # Uniform over the batch: the mean of numbers from 0 to 1 is 0.5, with a deviation of 0.0144.
    assert batches.scores.values[batches.samples[0]].mean() == pytest.approx(0.5, abs=0.06)


def test_a_small_batch_is_kept_whole() -> None:
    _, batches = drawn(200, 30)
    assert batches.sizes.tolist() == [175, 25]
    assert len(items_of(batches)[0]) == 175


def test_methods_that_need_items_get_some_of_a_large_batch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(item_sample, "MOST", 300)
    data = synthetic(n_train=200, n_test=2000, n_labels=3, random_state=0)
    frame = pd.DataFrame(data.test.X, columns=[f"f{n}" for n in range(data.test.X.shape[1])])
    model = Model.fit(
        pd.DataFrame(data.train.X, columns=frame.columns),
        data.train.Y,
        columns=list(frame.columns),
        method="lpq(sld)",
    )
    frame.assign(part=["large"] * 1890 + ["small"] * 105 + list("abcde")).to_csv(
        tmp_path / "t.csv", index=False
    )
    result = quantify_files(model, tmp_path / "t.csv", by="part", interval=None)
    assert result.batches == ("large", "small", "5 groups with fewer than 10 items")
    assert list(result.sizes) == [1890, 105, 5]
    small = model.quantify(frame[1890:1995], interval=None)
    np.testing.assert_allclose(result.point[1], small.point, rtol=1e-5)
    whole = model.quantify(frame[:1890], interval=None)
    # Four standard errors of a share among 300 items.
    np.testing.assert_allclose(result.point[0], whole.point, atol=4 * 0.5 / np.sqrt(300))
