"""Scores of many items as distinct scores and their numbers.

What depends on the score alone, such as its calibration, is then computed once per distinct score
instead of once per item. Scores with up to three digits, as people and language models write them,
have 1,001 distinct values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from prevalens.solvers.compiled import just_in_time
from prevalens.types import Floats

try:
    import numba
except ImportError:
    numba = None

#: Scores of up to three digits, and a missing one.
_STEPS = 1000
_GRID: Floats = np.append(np.arange(_STEPS + 1) / _STEPS, np.nan)
_GRID.flags.writeable = False
#: With fewer scores than this, counting is no gain.
_FEWEST = 4 * len(_GRID)


class DistinctScores(NamedTuple):
    """Scores of one label, and the number of items with each; None if it is one."""

    values: Floats
    counts: Floats | None

    def number(self, chosen: npt.NDArray[np.bool_]) -> float:
        """The number of items with the chosen scores."""
        counted = np.count_nonzero(chosen) if self.counts is None else self.counts @ chosen
        return float(counted)


@dataclass(frozen=True)
class ScoreCounts:
    """The scores that one labeller has given to a batch of items.

    Parameters
    ----------
    columns : tuple of DistinctScores, one per label
        Scores between 0 and 1, or NaN.
    n_items : int
    """

    columns: tuple[DistinctScores, ...]
    n_items: int

    def votes(self) -> Floats:
        """Number of items whose score is above one half, shape (n_labels,)."""
        return np.array([column.number(column.values > 0.5) for column in self.columns])

    def answers(self) -> Floats:
        """Number of items whose score is not missing, shape (n_labels,)."""
        # The smallest is NaN if any is; usually none is, and nothing is left to count.
        missing = [
            column.number(np.isnan(column.values)) if np.isnan(column.values.min()) else 0.0
            for column in self.columns
        ]
        return self.n_items - np.array(missing)


def distinct_scores(column: Any) -> DistinctScores | None:
    """Count the distinct scores of a column; about 1 ns for each, without memory.

    Returns
    -------
    DistinctScores or None
        None if the column is not an array of many scores between 0 and 1 with up to three digits,
        or if numba is not installed.

    Examples
    --------
    >>> distinct_scores(np.linspace(0, 1, 100_000)) is None
    True
    """
    array = isinstance(column, np.ndarray) and column.dtype == np.float64
    if numba is None or not array or len(column) < _FEWEST:
        return None
    counts = np.zeros((len(_GRID), 8), dtype=np.int32)
    if not _counted(column, _STEPS, counts):
        return None
    return DistinctScores(_GRID, counts.sum(axis=1, dtype=np.float64))


def _counted(column: Any, steps: int, counts: npt.NDArray[np.int32]) -> bool:
    """Add the number of each score of the grid; False if there is another score."""
    places = np.empty(1024, dtype=np.int32)
    for start in range(0, len(column), len(places)):
        block = column[start : start + len(places)]
        others = 0
        for i in range(len(block)):
            # What no place has, NaN among it, becomes the smallest integer.
            place = np.int32(block[i] * steps + 0.5)
            places[i] = place
            others += (place < 0) | (place > steps) | (place / steps != block[i])
        if others and not _with_missing(block, steps, places):
            return False
        for i in range(len(block)):
            # Eight counters in turn: one alone would wait for itself where a score repeats.
            counts[places[i], i & 7] += 1
    return True


def _with_missing(block: Any, steps: int, places: Any) -> bool:
    """Give missing scores the last place; False if there is a score without a place."""
    for i in range(len(block)):
        missing = np.isnan(block[i])
        if missing:
            places[i] = steps + 1
        elif not (0 <= places[i] <= steps and places[i] / steps == block[i]):
            return False
    return True


_with_missing = just_in_time(numba, _with_missing)
_counted = just_in_time(numba, _counted)
