"""Figures of a report on batches: movers, steps, labels that move together, and their drivers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import false_discovery_control, t

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


def focus(report: BatchResult) -> int:
    """The batch to show first: the latest, or the first where there is no order."""
    return len(report.batches) - 1 if report.ordered else 0


def movers(report: BatchResult, batch: int, most: int = 10) -> list[int]:
    """Labels by how far they are from training in a batch, the farthest first.

    Labels whose training prevalence lies outside the interval come before the others.
    """
    change, beyond = np.abs(report.change[batch]), report.beyond[batch]
    return [int(j) for j in np.lexsort((-change, ~beyond))[:most]]


def movers_over_all(report: BatchResult, most: int) -> list[int]:
    """Labels by their farthest distance from training in any batch."""
    reach = np.abs(report.change).max(axis=0)
    return [int(j) for j in np.argsort(-reach, kind="stable")[:most]]


@dataclass(frozen=True)
class LargestChange:
    """A change of a label from one batch to the next.

    Attributes
    ----------
    label, start : int
        The label, and the batch before the change.
    change : float
    clear : bool
        Whether the two intervals do not overlap.
    """

    label: int
    start: int
    change: float
    clear: bool


def steps(report: BatchResult, most: int = 10) -> list[LargestChange]:
    """The largest changes between batches that follow each other, the clear ones first."""
    change = np.diff(report.point, axis=0)
    clear = np.zeros(change.shape, dtype=bool)
    if report.lower is not None and report.upper is not None:
        rises, falls = report.lower[1:] > report.upper[:-1], report.upper[1:] < report.lower[:-1]
        clear = rises | falls
    order = np.lexsort((-np.abs(change).ravel(), ~clear.ravel()))[:most]
    return [
        LargestChange(
            int(label), int(start), float(change[start, label]), bool(clear[start, label])
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
        Correlation of the estimates over the batches.
    of_steps : float or None
        Correlation of the changes from batch to batch, which a common trend does not raise. None
        if the batches have no order.
    chance : float
        False discovery rate (Benjamini and Hochberg).
    """

    first: int
    second: int
    correlation: float
    of_steps: float | None
    chance: float


def moving_together(report: BatchResult, most: int = 12) -> list[Pair]:
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
            int(labels[first[place]]),
            int(labels[second[place]]),
            float(correlations[place]),
            None if of_steps is None else float(of_steps[place]),
            float(chance[place]),
        )
        for place in order
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


def _p_values(correlations: Floats, n: int) -> Floats:
    safe = np.clip(correlations, -1 + 1e-12, 1 - 1e-12)
    return 2 * t.sf(np.abs(safe) * np.sqrt((n - 2) / (1 - safe**2)), n - 2)


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
