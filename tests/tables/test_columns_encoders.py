"""What the cells of a column are."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.tables.columns import CategoryEncoder, NumberEncoder, encoder_of, kind_of


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([1, 2.5, None], "number"),
        (["1", "NA", "-3e4"], "number"),
        ([True, False, "yes"], "binary"),
        (["1", "0", ""], "binary"),
        ([None, ""], "empty"),
        ([], "empty"),
        (["a", "b", "a"], "category"),
        (["2024-05-31", "31.05.2024"], "date"),
        ([np.array([1.0, 2.0]), [3.0, 4.0]], "vector"),
        (["a text of several words", "and another one of them"], "text"),
        (["1", "two"], "category"),
        (["31/05/2024", "03/04/2024"], "date"),
        (["a;b", "b;c", "a"], "tags"),
        (["red,blue", "blue", "red", "red,blue"], "tags"),
        (["My order, which I paid, has not come.", "Hello, I cannot log in, please."], "text"),
    ],
)
def test_kinds(cells: list, kind: str) -> None:
    assert kind_of(cells) == kind


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([None, ""], "number"),
        (["yes", "no", None], "number"),
        (["31/05/2024", "03/04/2024"], "category"),
        (["a;b", "b;c", "a"], "category"),
        (["2024-05-31", "31.05.2024"], "date"),
    ],
)
def test_kinds_of_encoders(cells: list, kind: str) -> None:
    assert encoder_of("c", cells).kind == kind


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
