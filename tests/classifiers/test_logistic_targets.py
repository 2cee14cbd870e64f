"""Classes of a target and their weights."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.classifiers.logistic import for_all_labels
from prevalens.solvers.multinomial import classes_of, weights_of_classes
from prevalens.validation import InputError


def test_classes_are_distinct_and_in_order() -> None:
    assert classes_of(["b", "a", "b"]).tolist() == ["a", "b"]


def test_measurements_are_no_classes() -> None:
    with pytest.raises(ValueError, match="continuous"):
        classes_of([0.1, 0.2, 0.3])


def test_weights_come_in_the_order_of_the_classes() -> None:
    classes = np.array(["a", "b", "c"])
    assert weights_of_classes({"c": 3, "a": 2}, classes) == [2.0, 1.0, 3.0]
    assert weights_of_classes("balanced", classes) == "balanced"
    assert weights_of_classes(None, classes) is None


def test_weights_of_unknown_classes() -> None:
    with pytest.raises(InputError, match=r"class_weight names \['z'\]"):
        weights_of_classes({"z": 1.0}, np.array(["a"]))


def test_settings_for_all_labels() -> None:
    assert for_all_labels(1.0, None)
    assert for_all_labels(np.float64(1.0), {0: 1.0, 1: 2.0})
    assert not for_all_labels([1.0, 2.0], None)
    assert not for_all_labels(1.0, [None, "balanced"])
