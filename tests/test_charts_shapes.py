"""What charts show, as data."""

from __future__ import annotations

import numpy as np

from prevalens.charts import Dots, Lines


def test_the_top_is_above_everything_that_is_drawn() -> None:
    values = np.array([0.1, 0.3])
    assert Dots(["a", "b"], values).top == 0.3
    assert Dots(["a", "b"], values, values, np.array([0.2, 0.6])).top == 0.6
    assert Dots(["a", "b"], values, reference=np.array([0.9, 0.0])).top == 0.9
    assert Dots(["a"], np.zeros(1)).top == 1.0


def test_places_are_numbers_or_names() -> None:
    assert Lines([1, 2.5, np.float64(3)], []).numeric
    assert not Lines(["1", 2], []).numeric
