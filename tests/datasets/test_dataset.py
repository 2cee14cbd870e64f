from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from prevalens.collection import Collection
from prevalens.datasets.dataset import Dataset, DatasetParts

TRAIN = Collection(np.eye(4), np.array([[1, 0], [1, 0], [0, 1], [0, 0]]))
TEST = Collection(np.eye(4)[:2], np.array([[1, 0], [1, 1]]))
DATA = Dataset("small", TRAIN, TEST, description="d", source="s", sha="0")


def test_statistics_count_over_both_parts_and_divide_by_training_items() -> None:
    found = DATA.statistics()
    assert found.cardinality == 6 / 6
    assert found.density == 1 / 2
    assert found.diversity == 4
    assert found.normalised_diversity == 2
    assert found.puniq == 3 / 4
    assert found.pmax == 3 / 4


def test_it_is_a_value() -> None:
    with pytest.raises(FrozenInstanceError):
        DATA.name = "other"  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(DATA)).name == "small"
    assert repr(DATA) == "Dataset('small': 4 training and 2 test items, 2 labels)"


def test_parts_are_the_fields_of_a_dataset() -> None:
    parts = DatasetParts(TRAIN, TEST)
    again = Dataset("small", **parts._asdict(), description="d", source="s", sha="0")
    assert again.train is TRAIN
    assert again.train_times is again.test_times is None
