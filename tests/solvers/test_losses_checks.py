"""What the logistic solvers refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from prevalens.solvers.losses import check_sample_weight, check_stopping, check_strengths
from prevalens.validation import InputError


def test_one_strength_is_repeated() -> None:
    assert check_strengths(2, 3).tolist() == [2.0, 2.0, 2.0]
    assert check_strengths([1, 2, 3], 3).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("C", "sentence"),
    [
        ([1.0, 2.0], r"C must be one number or 3 of them; its shape is \(2,\)"),
        (0.0, "C must be positive and finite; got 0.0"),
        ([1.0, np.inf, 1.0], "got inf"),
        (np.nan, "got nan"),
    ],
)
def test_bad_strengths(C: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check_strengths(C, 3)


def test_weights_of_items() -> None:
    assert check_sample_weight(None, 2) is None
    weights = check_sample_weight([0, 2], 2)
    assert weights is not None
    assert weights.dtype == np.float64


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ([1.0], r"one number per item \(2\); its shape is \(1,\)"),
        ([1.0, -1.0], "not negative"),
        ([0.0, 0.0], "not zero everywhere"),
        ([1.0, np.nan], "finite"),
    ],
)
def test_bad_weights_of_items(weights: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check_sample_weight(weights, 2)


def test_stopping() -> None:
    assert check_stopping(1e-3, 5) == (1e-3, 5)
    with pytest.raises(InputError, match="max_iter"):
        check_stopping(1e-3, 0)
    with pytest.raises(InputError, match="tol"):
        check_stopping(-1.0, 5)
