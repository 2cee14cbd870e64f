"""Natural prevalence: samples as the pool would give them by itself."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from prevalens.protocols.base import FixedNumber
from prevalens.protocols.drawing import draw_from_groups, empty_indices
from prevalens.samples import Samples
from prevalens.types import LabelMatrix

__all__ = ["Natural"]


class Natural(FixedNumber):
    """Draw every sample uniformly and without replacement: no shift but that of chance.

    Parameters
    ----------
    size : int
        Items per sample.
    n_samples : int
        Number of samples.

    Notes
    -----
    O(n_samples x size) time and memory. Says nothing about shift: a quantifier that always
    answers the training prevalence looks good here.

    References
    ----------
    The natural prevalence protocol of Esuli, Fabris, Moreo and Sebastiani, "Learning to
    quantify", Springer 2023.

    Examples
    --------
    >>> import numpy as np
    >>> Natural(size=2, n_samples=3).draw(np.eye(4), 0)
    Samples(3 of 2 from 4 items)
    """

    name: ClassVar[str] = "natural"

    def __init__(self, size: int = 100, n_samples: int = 1000) -> None:
        self.size = size
        self.n_samples = n_samples

    def _draw(self, Y: LabelMatrix, rng: np.random.Generator) -> Samples:
        counts = np.full((self._count(Y), 1), self.size)
        drawn = empty_indices(len(counts), self.size, n_items=len(Y))
        draw_from_groups(drawn, [np.arange(len(Y))], counts, rng)
        return Samples.from_indices(drawn, n_items=len(Y))
