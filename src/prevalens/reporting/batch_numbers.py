"""Figures that the report on batches derives: movers, steps, labels that move together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import false_discovery_control, t

from prevalens.reporting.batch_data import BatchReport

__all__ = [
    "FEWEST_BATCHES",
    "Pair",
    "Step",
    "focus",
    "movers",
    "movers_over_all",
    "moving_together",
    "overlap",
    "steps",
]

#: Fewer batches than this say nothing about what moves together.
FEWEST_BATCHES = 5
#: Without intervals, labels that vary less than this are taken as standing still.
_STILL = 0.005


def focus(report: BatchReport) -> int:
    """The batch to show first: the latest, or the first where there is no order."""
    return len(report.batches) - 1 if report.ordered else 0


def movers(report: BatchReport, batch: int, most: int = 10) -> list[int]:
    """Labels by how far they are from training in a batch, the farthest first.

    Labels whose training prevalence lies outside the interval stand before the others.
    """
    change, beyond = np.abs(report.change[batch]), report.beyond[batch]
    return [int(j) for j in np.lexsort((-change, ~beyond))[:most]]


def movers_over_all(report: BatchReport, most: int) -> list[int]:
    """Labels by their farthest distance from training in any batch."""
    reach = np.abs(report.change).max(axis=0)
    return [int(j) for j in np.argsort(-reach, kind="stable")[:most]]


@dataclass(frozen=True)
class Step:
    """A move of a label from one batch to the next.

    Attributes
    ----------
    label, start : int
        The label, and the batch before the move.
    change : float
    clear : bool
        Whether the two intervals do not overlap.
    """

    label: int
    start: int
    change: float
    clear: bool


def steps(report: BatchReport, most: int = 10) -> list[Step]:
    """The largest moves between batches that follow each other."""
    found = [
        Step(label, start, float(change), not overlap(report, label, start, stop))
        for start, stop in pairwise(range(len(report.batches)))
        for label, change in enumerate(report.point[stop] - report.point[start])
    ]
    found.sort(key=lambda step: (-step.clear, -abs(step.change)))
    return found[:most]


def overlap(report: BatchReport, label: int, first: int, second: int) -> bool:
    """Whether the intervals of a label in two batches overlap; True without intervals."""
    if report.lower is None or report.upper is None:
        return True
    low, high = report.lower[:, label], report.upper[:, label]
    return bool(low[first] <= high[second] and low[second] <= high[first])


@dataclass(frozen=True)
class Pair:
    """Two labels whose estimates move together, or against each other.

    Attributes
    ----------
    first, second : int
    correlation : float
        Of the estimates over the batches.
    of_steps : float or None
        Of the moves from batch to batch: what is left when both follow a trend. None without
        an order.
    chance : float
        Share of such findings that are expected to be chance (Benjamini and Hochberg).
    """

    first: int
    second: int
    correlation: float
    of_steps: float | None
    chance: float


def moving_together(report: BatchReport, most: int = 12) -> list[Pair]:
    """The pairs of labels with the strongest correlation over the batches.

    Only labels that vary more than their intervals are wide take part; none with fewer than
    `FEWEST_BATCHES` batches.

    Notes
    -----
    O(n_labels^2 x n_batches). The test treats batches as independent, which months with a trend
    are not; `of_steps` is the more careful figure then.
    """
    labels = _varying(report)
    if len(report.batches) < FEWEST_BATCHES or len(labels) < 2:
        return []
    values = report.point[:, labels]
    first, second = np.triu_indices(len(labels), k=1)
    correlations = _correlations(values)[first, second]
    moves = np.diff(values, axis=0)
    of_steps = _correlations(moves)[first, second] if report.ordered else None
    chance = false_discovery_control(_p_values(correlations, len(values)))
    order = np.argsort(-np.abs(correlations), kind="stable")[:most]
    return [
        Pair(
            int(labels[first[one]]),
            int(labels[second[one]]),
            float(correlations[one]),
            None if of_steps is None else float(of_steps[one]),
            float(chance[one]),
        )
        for one in order
    ]


def _varying(report: BatchReport) -> npt.NDArray[np.int64]:
    spread = report.point.std(axis=0)
    if report.lower is None or report.upper is None or report.level is None:
        return np.flatnonzero(spread > _STILL)
    deviations = float(ndtri(0.5 + report.level / 2))
    noise = (report.upper - report.lower).mean(axis=0) / (2 * deviations)
    return np.flatnonzero((spread > noise) & (spread > 1e-9))


def _correlations(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Correlations of columns; 0 where a column does not vary."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(np.asarray(np.corrcoef(values, rowvar=False)))


def _p_values(correlations: npt.NDArray[np.float64], n: int) -> npt.NDArray[np.float64]:
    safe = np.clip(correlations, -1 + 1e-12, 1 - 1e-12)
    return 2 * t.sf(np.abs(safe) * np.sqrt((n - 2) / (1 - safe**2)), n - 2)
