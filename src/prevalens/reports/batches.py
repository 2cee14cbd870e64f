"""Figures of a report on batches: movers, steps, labels that move together, and their drivers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from prevalens.model.groups import NONE
from prevalens.model.model import Model
from prevalens.model.result import BatchResult, Driver, Drivers
from prevalens.tables.column_guard import guard_of
from prevalens.tables.text import TextPreparation
from prevalens.types import Floats

_MOST_FEATURES = 10
#: With fewer batches than this, correlations over batches are not shown.
FEWEST_BATCHES = 5
#: Without intervals, labels with a smaller standard deviation over the batches are left out.
_STILL = 0.005
#: Shuffles of the test of labels that move together, and the chance it allows.
_SHUFFLES, _CHANCE = 199, 0.05


def by_size(report: BatchResult) -> BatchResult:
    """Groups with the largest first, items without a group and folded groups last.

    Batches that follow each other in time keep their order.
    """
    return report if report.ordered else report.select(size_order(report))


def size_order(report: BatchResult) -> npt.NDArray[np.int64]:
    """The order of `by_size`."""
    if report.ordered:
        return np.arange(len(report.batches))
    last = np.array([name == NONE or is_folded(name) for name in report.batches])
    return np.lexsort((-report.sizes, last))


def shown(report: BatchResult, most: int) -> BatchResult:
    """At most so many batches: the latest, or the largest groups and those farthest from training.

    The report is the same if it has no more batches.
    """
    n = len(report.batches)
    if n <= most:
        return report
    if report.ordered:
        return report.select(np.arange(n - most, n))
    largest = size_order(report)[: most // 2]
    farthest = np.argsort(-reach(report).max(axis=1), kind="stable")
    others = farthest[~np.isin(farthest, largest)][: most - len(largest)]
    return by_size(report.select(np.concatenate([largest, others])))


def is_folded(batch: str) -> bool:
    """Whether a batch holds the items of several small groups."""
    return re.fullmatch(r"\d[\d,]* groups? with fewer than \d[\d,]* items", batch) is not None


def focus(report: BatchResult) -> int:
    """The batch to show first: the latest, or the largest where there is no order."""
    return len(report.batches) - 1 if report.ordered else int(size_order(report)[0])


def reach(report: BatchResult) -> Floats:
    """How far each band lies from the training prevalence, shape (n_batches, n_labels).

    0 where the band holds it, and in batches that get no verdict.
    """
    lower, upper = report.bands
    if lower is None or upper is None:
        return np.zeros(report.point.shape)
    outside = np.maximum(lower - report.training, report.training - upper)
    return np.where(report.moved != 0, outside, 0.0)


def movers(report: BatchResult, batch: int, most: int | None = None) -> list[int]:
    """Labels by what matters: supported moves first, by how far their bands are from training.

    The others follow by the distance of their estimates from training.
    """
    change, far = np.abs(report.change[batch]), reach(report)[batch]
    return [int(j) for j in np.lexsort((-change, -far))[:most]]


def movers_over_all(report: BatchResult, most: int | None = None) -> list[int]:
    """Labels in the order of `movers`, by the farthest move in any batch."""
    change, far = np.abs(report.change).max(axis=0), reach(report).max(axis=0)
    return [int(j) for j in np.lexsort((-change, -far))[:most]]


@dataclass(frozen=True)
class LargestChange:
    """A change of a label from one batch to the next.

    Attributes
    ----------
    label, start : int
        The label, and the batch before the change.
    change, lower, upper : float
        The difference and its interval; NaN without intervals.
    clear : bool
        Whether the band of the difference excludes 0.
    """

    label: int
    start: int
    change: float
    lower: float
    upper: float
    clear: bool


def steps(report: BatchResult, most: int = 10) -> list[LargestChange]:
    """The largest changes between batches that follow each other, the clear ones first."""
    found = [report.difference(*names) for names in pairwise(report.batches)]
    change = np.array([step.point for step in found])
    clear = np.array([step.supported for step in found]) != 0
    unknown = np.full(len(report.labels), np.nan)
    lower = [unknown if step.lower is None else step.lower for step in found]
    upper = [unknown if step.upper is None else step.upper for step in found]
    order = np.lexsort((-np.abs(change).ravel(), ~clear.ravel()))[:most]
    return [
        LargestChange(
            int(label),
            int(start),
            float(change[start, label]),
            float(lower[start][label]),
            float(upper[start][label]),
            bool(clear[start, label]),
        )
        for start, label in zip(*np.unravel_index(order, change.shape), strict=True)
    ]


@dataclass(frozen=True)
class Pair:
    """Two labels whose estimates move together, or against each other.

    Attributes
    ----------
    first, second : int
    correlation : float
        Of the changes from batch to batch, or of the estimates where batches have no order.
    chance : float
        Share of shuffles in which the strongest of all pairs is at least as strong.
    """

    first: int
    second: int
    correlation: float
    chance: float


def moving_together(report: BatchResult, most: int = 12) -> list[Pair]:
    """The pairs of labels that are correlated over the batches by more than chance.

    Only labels that vary more than their intervals are wide take part, and batches that get a
    verdict; none with fewer than `FEWEST_BATCHES` of those. In time, changes from batch to batch
    are correlated, because a common trend correlates any two labels.

    Notes
    -----
    A permutation test of the largest correlation (Westfall and Young 1993): the values of each
    label are shuffled over the batches, which keeps how they vary and destroys what they have in
    common. Pairs are shown that are stronger than the strongest of all pairs in 95 % of the
    shuffles, so that one report in twenty shows a pair by chance.
    O(n_labels^2 x n_batches x shuffles).
    """
    labels, rows = _varying(report), np.flatnonzero(report.judged)
    if len(rows) < FEWEST_BATCHES or len(labels) < 2:
        return []
    values = report.point[np.ix_(rows, labels)]
    values = np.diff(values, axis=0) if report.ordered else values
    first, second = np.triu_indices(len(labels), k=1)
    correlations = _correlations(values)[first, second]
    rng = np.random.default_rng(0)
    strongest = np.array(
        [np.abs(_correlations(rng.permuted(values, axis=0))[first, second]).max()
         for _ in range(_SHUFFLES)]
    )  # fmt: skip
    # The data count as one of the shuffles, so that no chance is 0.
    chance = (1 + (strongest >= np.abs(correlations)[:, np.newaxis]).sum(axis=1)) / (1 + _SHUFFLES)
    order = np.argsort(-np.abs(correlations), kind="stable")[:most]
    return [
        Pair(int(labels[first[k]]), int(labels[second[k]]), float(correlations[k]), chance[k])
        for k in order
        if chance[k] <= _CHANCE
    ]


def _varying(report: BatchResult) -> npt.NDArray[np.int64]:
    spread = report.point.std(axis=0)
    if report.lower is None or report.upper is None or report.level is None:
        return np.flatnonzero(spread > _STILL)
    deviations = float(ndtri(0.5 + report.level / 2))
    noise = (report.upper - report.lower).mean(axis=0) / (2 * deviations)
    return np.flatnonzero((spread > noise) & (spread > 1e-9))


def _correlations(values: Floats) -> Floats:
    """Correlations of columns; 0 where a column does not vary."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(np.asarray(np.corrcoef(values, rowvar=False)))


def drivers_of(
    model: Model, means: Floats, *, labels: Sequence[int], batch: str, most: int = _MOST_FEATURES
) -> tuple[Drivers, ...]:
    """The features that push the scores of some labels up or down in a batch.

    Parameters
    ----------
    model : Model
    means : array of float, shape (n_features,)
        Means of the batch's prepared items, as the classifier sees them.
    labels : sequence of int
    batch : str
    most : int
        Features per label.

    Returns
    -------
    tuple of Drivers
        Empty if the classifier is not linear, or the features have no names.

    Notes
    -----
    The pushes of all features add up to the change of the label's mean log-odds since training.
    That is not the change of its estimate: posteriors are not linear in log-odds, and the
    aggregator corrects them.
    """
    weights, preparation = label_weights(model), model.preparation
    names = preparation.terms_ if isinstance(preparation, TextPreparation) else None
    if weights is None or names is None:
        return ()
    before = model.feature_means
    change = np.asarray(means, dtype=np.float64) - before
    drivers = []
    for label in labels:
        push = weights[label] * change
        order = np.argsort(-np.abs(push), kind="stable")[:most]
        strongest = tuple(
            Driver(names[j], float(push[j]), float(before[j]), float(means[j]))
            for j in order
            if push[j] != 0
        )
        drivers.append(Drivers(model.labels[label], batch, strongest))
    return tuple(drivers)


def label_weights(model: Model) -> Floats | None:
    """Weights of the features for each label, shape (n_labels, n_features); None if not linear."""
    classifier: Any = model.quantifier.classifier_
    if guard_of(classifier) is not None and len(classifier) == 2:
        classifier = classifier[-1]
    try:
        weights = np.asarray(classifier.coef_, dtype=np.float64)
    except AttributeError:
        return None
    fits = weights.shape == (len(model.labels), len(model.feature_means))
    return weights if fits else None
