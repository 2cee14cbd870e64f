"""The contract of a protocol: from the labels of a pool to samples drawn from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from prevalens.samples import Samples
from prevalens.types import LabelMatrix
from prevalens.validation import InputError, check_binary_matrix, check_int, check_rng


class Protocol(BaseEstimator, ABC):  # type: ignore[misc]
    """A rule for drawing samples from a pool of labelled items.

    A protocol is a value: its constructor remembers parameters, `get_params` and
    ``sklearn.base.clone`` work, and the same parameters, labels and seed give the same samples.
    A subclass sets `name` and writes `_count` and `_draw`, which may trust `Y`.

    Attributes
    ----------
    name : str
        Short name for tables and file names, such as ``"ml-app"``.
    """

    name: ClassVar[str]

    def draw(self, Y: Any, rng: object = None) -> Samples:
        """Draw samples from the items that `Y` labels.

        Parameters
        ----------
        Y : 0/1 array or sparse matrix, shape (n_items, n_labels)
        rng : int, numpy Generator or None
            Random state; None gives different samples each time.

        Returns
        -------
        Samples
            Row numbers of `Y`; each sample carries the label or labels it was steered by.
        """
        return self._draw(check_binary_matrix(Y), check_rng(rng))

    def count(self, Y: Any) -> int:
        """Return the number of samples that `draw` would give for these labels."""
        return self._count(check_binary_matrix(Y))

    def with_items(self, X: Any) -> Protocol:  # noqa: ARG002 - most protocols need no items
        """Return a protocol that has the items of the pool; only `CovariateTilt` uses them."""
        return self

    @abstractmethod
    def _draw(self, Y: LabelMatrix, rng: np.random.Generator) -> Samples:
        """Draw; the labels have been checked."""

    @abstractmethod
    def _count(self, Y: LabelMatrix) -> int:
        """Count; the labels have been checked."""


class FixedNumber(Protocol):
    """A protocol that draws `n_samples` samples of `size` items, whatever the labels are."""

    def __init__(self, size: int = 100, n_samples: int = 1000) -> None:
        self.size = size
        self.n_samples = n_samples

    def _count(self, Y: LabelMatrix) -> int:
        check_size(self.size, len(Y))
        return check_int(self.n_samples, "n_samples", minimum=1)


def check_size(size: object, n_items: int) -> int:
    """Return a sample size that a pool of `n_items` can serve without replacement."""
    number = check_int(size, "size", minimum=1)
    if number > n_items:
        raise InputError(
            f"A sample of {number} items cannot be drawn without replacement from a pool of "
            f"{n_items}; choose size={n_items} or smaller, or give more items."
        )
    return number
