"""The sentence about samples that alarm: which ones, what it means, what to do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from prevalens.uncertainty import warn_of_misfit
from prevalens.validation import PrevalensWarning


@pytest.mark.parametrize(
    ("p_value", "names", "sentence"),
    [
        (
            [0.001],
            None,
            r"The batch differs from the training data in more than .* in 0\.1 % of batches",
        ),
        ([0.5, 0.001], ["may", "june"], "Batch 'june' differs from"),
        ([1e-5] * 7, list(range(7)), "Batches 0, 1, 2, 3, 4 and 2 more differ from"),
    ],
)
def test_names_the_samples(p_value: list[float], names: list[object], sentence: str) -> None:
    with pytest.warns(PrevalensWarning, match=sentence):
        warn_of_misfit(np.array(p_value), names)


def test_says_what_to_do_and_judges_no_estimate() -> None:
    with pytest.warns(PrevalensWarning, match=r"errors may be larger.*Label about 50 items"):
        warn_of_misfit(np.array([0.002]), None)


def test_silent_when_explained() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_misfit(np.array([0.01, 0.8]), None)
    assert caught == []
