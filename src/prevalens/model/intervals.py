"""Intervals of batches of any size in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.samples import Samples
from prevalens.scores import Scores

__all__ = ["interval_fields"]

#: Items of a batch that are resampled; of larger batches a part stands for all.
_LARGEST = 20_000
#: Items whose intervals are computed at a time.
_AT_A_TIME = 100_000
_ENDS = ("lower", "upper", "band_lower", "band_upper")

Fields = dict[str, npt.NDArray[np.float64]]


def interval_fields(
    quantifier: Any,
    scores: Scores,
    samples: Samples,
    point: npt.NDArray[np.float64],
    level: float | None,
    names: Sequence[Any],
) -> Fields:
    """Intervals, bands and goodness of fit by their names; nothing without a level.

    A batch larger than 20,000 items is resampled from as many of its items, drawn at random. The
    ends of a plain bootstrap's intervals are then moved towards the estimate by the square root of
    how many times larger the batch is (m out of n). Calibrated intervals keep their width: in
    batches of that size it is that of the training, not of the batch.

    References
    ----------
    Bickel, Götze and van Zwet, "Resampling fewer than n observations", Statistica Sinica 7, 1997.
    """
    if level is None:
        return {}
    own = hasattr(quantifier.aggregator_, "intervals")
    parts: list[Fields] = []
    for where, block in samples.blocks(_AT_A_TIME):
        named = list(names[where])
        if own:
            parts.append(quantifier._interval_fields(scores, block, level, named))
            continue
        smaller, ratio = _thinned(block)
        if getattr(quantifier, "uncertainty_", None) is not None:
            ratio = np.ones(len(ratio))
        parts.append(
            _narrowed(
                quantifier._interval_fields(scores, smaller, level, named),
                point[where],
                _estimate(quantifier, scores, smaller, block, point[where]),
                ratio,
            )
        )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _estimate(
    quantifier: Any,
    scores: Scores,
    smaller: Samples,
    block: Samples,
    point: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    if smaller is block:
        return point
    estimate: npt.NDArray[np.float64] = quantifier.aggregator_.aggregate(scores, smaller)
    return estimate


def _thinned(block: Samples) -> tuple[Samples, npt.NDArray[np.float64]]:
    """The block with large samples cut to a random part, and how many times larger each was."""
    sizes = block.sizes
    if sizes.max() <= _LARGEST:
        return block, np.ones(len(sizes))
    rng = np.random.default_rng(0)
    bags: list[Any] = [
        bag if len(bag) <= _LARGEST else rng.choice(bag, _LARGEST, replace=False) for bag in block
    ]
    return Samples.from_indices(bags, n_items=block.n_items), sizes / np.minimum(sizes, _LARGEST)


def _narrowed(
    fields: Fields,
    point: npt.NDArray[np.float64],
    around: npt.NDArray[np.float64],
    ratio: npt.NDArray[np.float64],
) -> Fields:
    """Ends of intervals around the estimate of all items instead of that of a part."""
    factor = 1 / np.sqrt(ratio)[:, np.newaxis]
    same = np.all(point == around, axis=1)[:, np.newaxis]
    moved = {name: np.clip(point + (fields[name] - around) * factor, 0, 1) for name in _ENDS}
    return {**fields, **{name: np.where(same, fields[name], moved[name]) for name in _ENDS}}
