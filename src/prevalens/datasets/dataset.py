"""Dataset: a training and a test collection, with their source."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from prevalens.collection import Collection, Statistics, statistics
from prevalens.types import Times


class DatasetParts(NamedTuple):
    """Training and test items of a dataset as a format reader returns them."""

    train: Collection
    test: Collection


@dataclass(frozen=True, eq=False)
class Dataset:
    """A named dataset, split into training and test items.

    Attributes
    ----------
    name : str
    train, test : Collection
        With the same labels and the same features.
    description : str
        One sentence on what the items and labels are.
    source : str
        Where the data come from.
    sha : str
        SHA-256 of the files' uncompressed contents, or of the values if there are no files.
    vectoriser : scikit-learn Pipeline or None
        Pipeline, fitted on `train`, that turned texts into tf-idf features; it can be applied to
        further texts.

    Examples
    --------
    >>> from prevalens.datasets import synthetic
    >>> data = synthetic(n_train=50, n_test=40)
    >>> data
    Dataset('synthetic': 50 training and 40 test items, 12 labels)
    """

    name: str
    train: Collection
    test: Collection
    description: str
    source: str
    sha: str
    vectoriser: Any = None

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}: {self.train.n_items} training and {self.test.n_items} test "
            f"items, {self.train.n_labels} labels)"
        )

    @property
    def train_times(self) -> Times | None:
        """When each training item was written, if the data contain it."""
        return self.train.times

    @property
    def test_times(self) -> Times | None:
        """When each test item was written, if the data contain it."""
        return self.test.times

    def statistics(self) -> Statistics:
        """Label statistics over training and test items together, as in Moreo et al.

        The paper's table counts labelsets over both parts, but divides PUniq and PMax by the
        number of training items; only this rule gives its printed figures.
        """
        stacked = np.concatenate([self.train.Y, self.test.Y])
        return statistics(stacked, n_reference=self.train.n_items)


def content_sha(*collections: Collection) -> str:
    """SHA-256 of the items and labels of generated data."""
    total = hashlib.sha256()
    for collection in collections:
        X = collection.X
        total.update(
            "\0".join(X).encode() if collection.is_text else np.ascontiguousarray(X).tobytes()
        )
        total.update(collection.Y.tobytes())
    return total.hexdigest()
