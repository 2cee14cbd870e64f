"""From cells to numbers, kind by kind."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.tables.columns import CategoryEncoder, NumberEncoder


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
