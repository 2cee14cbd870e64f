"""Scores of many chunks put together without holding them twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.errors import InputError
from prevalens.quantifier import Quantifier
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.types import Floats
from prevalens.validation import count_items

__all__ = ["estimate_fields", "joined"]


def joined(parts: Iterable[Scores]) -> Scores:
    """One set of scores from those of consecutive items, in single precision."""
    kind = None
    rows, members, features = _Rows(), _Rows(), []
    for part in parts:
        kind = part.kind
        if kind == "features":
            features.append(part.values)
        else:
            rows.add(part.values)
        if part.members is not None:
            members.add(part.members)
    if kind is None or not (len(rows) or sum(map(count_items, features))):
        raise InputError("There are no items to quantify.")
    values = _stacked(features) if features else rows.values()
    return Scores(values, kind, members.values() if len(members) else None)


class _Rows:
    """Rows that are added block by block; their room grows by a fifth, where it lies."""

    def __init__(self) -> None:
        self._values: npt.NDArray[np.float32] | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, block: npt.NDArray[Any]) -> None:
        """Put rows behind those that are there."""
        if self._values is None:
            self._values = np.empty((len(block), block.shape[1]), dtype=np.float32)
        end = self._count + len(block)
        if end > len(self._values):
            self._resize(max(end, len(self._values) + len(self._values) // 5))
        self._values[self._count : end] = block
        self._count = end

    def values(self) -> npt.NDArray[np.float32]:
        """All rows."""
        assert self._values is not None
        self._resize(self._count)
        return self._values

    def _resize(self, rows: int) -> None:
        assert self._values is not None
        # Nobody else has seen the array, so it may move.
        self._values.resize((rows, self._values.shape[1]), refcheck=False)


def _stacked(blocks: list[Any]) -> Any:
    if sp.issparse(blocks[0]):
        return sp.vstack(blocks, format="csr")
    return np.concatenate(blocks)


#: Items of a batch that intervals are computed from; of larger batches a part stands for all.
_LARGEST = 10_000
#: Items whose intervals are computed at a time.
_AT_A_TIME = 100_000
_ENDS = ("lower", "upper", "band_lower", "band_upper")

#: Parts of an estimate by their names.
Fields = dict[str, Floats]


def estimate_fields(
    quantifier: Quantifier,
    scores: Scores,
    samples: Samples,
    level: float | None,
    names: Sequence[Any],
) -> Fields:
    """Estimates and, with a level, intervals, bands and goodness of fit, by their names.

    Of a batch larger than 10,000 items as many are drawn at random, and stand for it. The ends of
    a plain bootstrap's intervals are then moved towards the estimate by the square root of how many
    times larger the batch is (m out of n). Other intervals keep their width: in batches of that
    size it is that of the training more than that of the batch.

    References
    ----------
    Bickel, Götze and van Zwet, "Resampling fewer than n observations", Statistica Sinica 7, 1997.
    """
    if level is None:
        return {"point": quantifier.aggregate(scores, samples).point}
    parts: list[Fields] = []
    for where, block in samples.blocks(_AT_A_TIME):
        smaller, ratio = _thinned(block)
        own, alone = _alone(scores, smaller)
        estimate = quantifier.aggregate(own, alone, level, index=list(names[where]))
        known = {name: vars(estimate)[name] for name in ("point", *_ENDS, "p_value")}
        fields = {name: value for name, value in known.items() if value is not None}
        if smaller is not block:
            point = quantifier.aggregate(scores, block).point
            # A plain bootstrap knows the noise of the items only, which is less in a larger batch.
            calibrated = quantifier.has_calibrated_intervals
            factor = np.ones(len(ratio)) if calibrated else 1 / np.sqrt(ratio)
            fields = _moved(fields, point, factor)
        parts.append(fields)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _alone(scores: Scores, samples: Samples) -> tuple[Scores, Samples]:
    """The scores of the samples' items only, so that whoever looks at all of them is done soon."""
    rows, places = np.unique(samples.flat, return_inverse=True)
    return scores.take(rows), Samples(places, samples.offsets, n_items=len(rows))


def _thinned(block: Samples) -> tuple[Samples, Floats]:
    """The block with large samples cut to a random part, and how many times larger each was."""
    sizes = block.sizes
    if sizes.max() <= _LARGEST:
        return block, np.ones(len(sizes))
    rng = np.random.default_rng(0)
    bags: list[Any] = [
        bag if len(bag) <= _LARGEST else rng.choice(bag, _LARGEST, replace=False) for bag in block
    ]
    return Samples.from_indices(bags, n_items=block.n_items), sizes / np.minimum(sizes, _LARGEST)


def _moved(fields: Fields, point: Floats, factor: Floats) -> Fields:
    """Ends of intervals around the estimate of all items instead of that of a part of them."""
    move = point - fields["point"]
    narrowed = {
        name: point + (fields[name] + move - point) * factor[:, np.newaxis] for name in _ENDS
    }
    ends = {name: np.clip(end, 0, 1) for name, end in narrowed.items()}
    return {**fields, **ends, "point": point}
