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
    """A rule by which samples are drawn from a pool of labelled items.

    A protocol is a value: its constructor remembers parameters, `get_params` and
    ``sklearn.base.clone`` work, and the same parameters, labels and seed give the same samples.
    A subclass names itself in `name` and writes `_count` and `_draw`, which may trust `Y`.

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
            The seed; None draws anew each time.

        Returns
        -------
        Samples
            Row numbers of `Y`; each sample carries the labels it was steered by.
        """
        return self._draw(check_binary_matrix(Y), check_rng(rng))

    def count(self, Y: Any) -> int:
        """Number of samples that `draw` would give for these labels, without drawing them."""
        return self._count(check_binary_matrix(Y))

    def with_items(self, X: Any) -> Protocol:  # noqa: ARG002 - most protocols need no items
        """A protocol that knows the items of the pool; only `CovariateTilt` uses them."""
        return self

    @abstractmethod
    def _draw(self, Y: LabelMatrix, rng: np.random.Generator) -> Samples:
        """Draw; the labels have been checked."""

    @abstractmethod
    def _count(self, Y: LabelMatrix) -> int:
        """Count; the labels have been checked."""


class FixedNumber(Protocol):
    """A protocol that draws `n_samples` samples of `size` items, whatever the labels are."""

    size: int
    n_samples: int

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
