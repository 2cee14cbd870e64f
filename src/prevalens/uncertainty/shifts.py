"""Samples of labelled items under a mix of shifts, on which intervals are calibrated."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from prevalens.aggregators.rehearsal import drawn
from prevalens.protocols import MLAPP, LabelsetWeights, LabelTilt, Natural, Protocol
from prevalens.samples import Samples

__all__ = ["draw_shifts"]

#: Samples of at most this many items; half of the pool if that is less.
_LARGE = 100
#: And smaller ones, a fifth of the pool at most, to tell noise from what does not fade with size.
_SMALL = 30


def draw_shifts(
    Y: npt.NDArray[np.int8], n_each: int, rng: np.random.Generator
) -> tuple[Samples, npt.NDArray[np.int64]]:
    """Samples under no shift, one label steered, labels tilted, label sets weighted.

    Parameters
    ----------
    Y : 0/1 array, shape (n_items, n_labels)
    n_each : int
        Samples per kind of shift and size.
    rng : numpy Generator

    Returns
    -------
    samples : Samples
    family : array of int, shape (n_samples,)
        Which kind of shift each sample is of.
    """
    parts, families = [], []
    for size in (min(_LARGE, max(1, len(Y) // 2)), min(_SMALL, max(1, len(Y) // 5))):
        for number, protocol in enumerate(_protocols(size, n_each)):
            found = drawn(protocol, Y, rng)
            if found is not None:
                parts.append(found)
                families.append(np.full(len(found), number, dtype=np.int64))
    return Samples.concat(parts), np.concatenate(families)


def _protocols(size: int, n_each: int) -> list[Protocol]:
    return [
        Natural(size, n_each),
        MLAPP(size, more_than=n_each - 1, max_samples=n_each),
        LabelTilt(size, n_each),
        LabelsetWeights(size, n_each),
    ]
