"""From cells to numbers, kind by kind."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.classifiers import PerLabel
from prevalens.tables.columns import (
    CategoryEncoder,
    ColumnPreparation,
    NumberEncoder,
    VectorEncoder,
)
from prevalens.tables.preparation import CellError


def test_numbers_are_scaled_and_the_median_fills_in() -> None:
    encoder = NumberEncoder("n")
    values = encoder.fit_transform([1, 2, 3, None])
    np.testing.assert_allclose(values[:, 0].mean(), 0, atol=1e-12)
    np.testing.assert_allclose(values[:, 0].std(), 1)
    assert values[3, 0] == values[1, 0]
    assert values[:, 1].tolist() == [0, 0, 0, 1]


def test_many_categories_keep_the_frequent_ones() -> None:
    cells = [f"c{i}" for i in range(100)] + ["often"] * 50
    encoder = CategoryEncoder("c")
    encoder.fit_transform(cells)
    assert encoder.levels == ["often"]
    assert encoder.usual == pytest.approx(100 / 150)


def _vectors(count: int, width: int, seed: int = 0) -> np.ndarray:
    """Embeddings of length 1 around a common direction."""
    rng = np.random.default_rng(seed)
    raw = rng.normal(size=(count, width)) + 3.0
    return (raw / np.linalg.norm(raw, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("factor", [1.0, 1000.0])
@pytest.mark.parametrize("listed", [False, True])
def test_vectors_have_a_mean_squared_length_of_one(factor: float, listed: bool) -> None:
    vectors = factor * _vectors(200, 16)
    encoder = VectorEncoder("v")
    block = encoder.fit_transform(vectors.tolist() if listed else vectors)
    assert block.dtype == np.float32
    assert np.square(block).sum(axis=1).mean() == pytest.approx(1.0, rel=1e-4)
    np.testing.assert_allclose(block.mean(axis=0), 0.0, atol=1e-5)
    # One factor for all: angles between centred vectors stay.
    centred = vectors - vectors.mean(axis=0)
    np.testing.assert_allclose(block / block[0, 0], centred / centred[0, 0], rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(encoder.transform(vectors[:5]), block[:5], atol=1e-6)


def test_missing_vectors_become_the_mean_and_are_marked() -> None:
    cells = [[1.0, 0.0], None, [3.0, 4.0], [float("nan"), 1.0]]
    encoder = VectorEncoder("v")
    block = encoder.fit_transform(cells)
    assert encoder.names() == ["v[0]", "v[1]", "v is missing"]
    assert block[:, 2].tolist() == [0.0, 1.0, 0.0, 1.0]
    assert not block[[1, 3], :2].any()
    without = VectorEncoder("v")
    without.fit_transform([cells[0], cells[2]])
    assert without.transform([None]).tolist() == [[0.0, 0.0]]


def test_vectors_of_another_length_or_without_end() -> None:
    with pytest.raises(CellError, match=r"Item 1: .* holds 2 numbers per item, .*; it has 3"):
        VectorEncoder("v").fit_transform([[1.0, 2.0, 3.0], [1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(CellError, match=r"Item 2: .*infinite"):
        VectorEncoder("v").fit_transform([[1.0, 2.0], [float("inf"), 2.0]])
    with pytest.raises(CellError, match=r"Item 2: .* but here is 'x'"):
        VectorEncoder("v").fit_transform([[1.0, 2.0], "x"])


def test_vectors_do_not_outweigh_texts_and_numbers() -> None:
    """One scale for the block predicts better than a scale per dimension."""
    rng = np.random.default_rng(0)
    n, width = 600, 200
    latent, noise = rng.normal(size=(n, 6)), 0.7 * rng.normal(size=(n, width))
    vectors = 50.0 * (latent @ rng.normal(size=(6, width)) + noise + 2.0)
    numbers = rng.normal(size=(n, 2))
    texts = [" ".join(rng.choice(["alpha", "beta", "gamma"], 4)) for _ in range(n)]
    logits = latent[:, :2] + numbers - 0.5 + [[text.count("alpha")] for text in texts]
    Y = (rng.random((n, 2)) < 1 / (1 + np.exp(-logits))).astype(int)
    columns = {"text": texts, "v": vectors, "x": numbers[:, 0], "y": numbers[:, 1]}

    def loss(kinds: dict[str, object], items: dict) -> float:
        train, test = ({k: v[part] for k, v in items.items()} for part in (half, other))
        prepared = ColumnPreparation(tuple(items), kinds=kinds).fit(train)
        fitted = PerLabel().fit(prepared.transform(train), Y[half])
        p = np.clip(fitted.predict_proba(prepared.transform(test)), 1e-9, 1 - 1e-9)
        return float(-np.log(np.where(Y[other] == 1, p, 1 - p)).mean())

    half, other = slice(0, 300), slice(300, None)
    block = loss({"text": "text"}, columns)
    single = {f"v{j}": vectors[:, j] for j in range(width)}
    each = loss({"text": "text"}, {**{k: columns[k] for k in ("text", "x", "y")}, **single})
    assert block < 0.8 * each
