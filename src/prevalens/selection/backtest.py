"""Backtests over time: how well earlier items would have estimated later batches.

The training items are sorted by time and cut into blocks. At each origin, classifier and
aggregators learn from the items before it alone, and estimate batches after it, whose labels
are known.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from sklearn.base import clone

from prevalens.aggregators import (
    PCC,
    RQ,
    SLD,
    Aggregator,
    ScenarioMixture,
    TrainingPrevalence,
)
from prevalens.batches import Batches, ScoredSamples
from prevalens.crossfit import Scheme
from prevalens.errors import PrevalensWarning
from prevalens.expression import expression_of, to_text
from prevalens.response import response
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.selection.automatic import lighter, validation_loss
from prevalens.types import Classifier, Floats, Groups, Ints, Items, LabelMatrix, Progress
from prevalens.uncertainty.drift import (
    FEWEST_POSITIVES,
    Backtest,
    LaterBatches,
    TimeAxis,
    as_numbers,
    label_noise,
)
from prevalens.uncertainty.goodness_of_fit import Misfit, fit_alarm
from prevalens.validation import InputError, check_same_length, take_items
from prevalens.validation_shifts import shifted_splits

#: Blocks of about as many items, and the least number of items in each.
_BLOCKS, _FEWEST_ITEMS = 6, 30
#: Blocks before the first origin, if there are as many.
_BEFORE = 2
#: A later block is one batch, two and four, unless these would have fewer items than the second.
_PARTS, _SMALLEST_BATCH = (1, 2, 4), 10

#: Items before an origin and after it, from their row numbers.
Prepare: TypeAlias = Callable[[Ints, Ints], tuple[Items, Items]]


class TooShortError(InputError):
    """The training period cannot be divided by time."""


@dataclass(frozen=True)
class Timeline:
    """Training items in order of time, cut into blocks at changes of the time.

    Attributes
    ----------
    times : array of float, shape (n_items,)
    dates : bool
        Whether the times are dates, counted in days.
    order : array of int, shape (n_items,)
        Row numbers by time.
    edges : array of int, shape (n_blocks + 1,)
        Where the blocks start and end in that order.

    Examples
    --------
    >>> timeline = Timeline.of(np.arange(240), 240)
    >>> timeline.edges.tolist(), timeline.origins()
    ([0, 40, 80, 120, 160, 200, 240], [5, 4, 3, 2])
    """

    times: Floats
    dates: bool
    order: Ints
    edges: Ints

    @classmethod
    def of(cls, times: object, n_items: int) -> Timeline:
        """Cut the items into blocks; items of the same time stay together.

        Raises
        ------
        InputError
            If the times are not times.
        TooShortError
            If they leave no two blocks of enough items, or no span before the last one.
        """
        numbers, dates = as_numbers(times)
        check_same_length(len(numbers), "time", n_items, "X")
        order = np.argsort(numbers, kind="stable")
        ascending = numbers[order]
        if ascending[0] == ascending[-1]:
            raise TooShortError("all items have the same time")
        cuts = np.arange(1, _BLOCKS) * n_items // _BLOCKS
        starts = np.searchsorted(ascending, ascending[cuts], side="left")
        edges = _spaced(np.unique([0, *starts.tolist(), n_items]))
        if len(edges) < 3:
            raise TooShortError(
                f"{n_items} items with {len(np.unique(ascending))} different times leave no two "
                f"periods of {_FEWEST_ITEMS} items or more"
            )
        timeline = cls(numbers, dates, order, edges)
        if not timeline.origins():
            raise TooShortError(
                f"the earlier of {len(edges) - 1} periods has a single time, so that nothing shows "
                "how long it lasted"
            )
        return timeline

    @property
    def axis(self) -> TimeAxis:
        """The axis of all items."""
        return TimeAxis.of(self.times, dates=self.dates)

    def origins(self) -> list[int]:
        """Numbers of the blocks that the origins are before; the last, most relevant one first."""
        n_blocks = len(self.edges) - 1
        first = min(_BEFORE, n_blocks - 1)
        return [
            block
            for block in range(n_blocks - 1, first - 1, -1)
            if np.ptp(self.times[self.order[: self.edges[block]]]) > 0
        ]

    def batches(self, block: int) -> Iterator[tuple[Ints, float]]:
        """Row numbers and weights of the batches after the origin before a block.

        Origins with more items before them, nearer batches and larger batches weigh more.
        """
        for later in range(block, len(self.edges) - 1):
            rows = self.order[self.edges[later] : self.edges[later + 1]]
            for n_parts in _PARTS:
                if n_parts > 1 and len(rows) < n_parts * _SMALLEST_BATCH:
                    continue
                weight = block**2 / np.sqrt(later - block + 1) / n_parts
                for part in np.array_split(rows, n_parts):
                    yield part, float(weight)


def _spaced(edges: Ints) -> Ints:
    """The edges without those that would leave a block with too few items."""
    kept = [int(edges[0])]
    for edge in edges[1:-1].tolist():
        if edge - kept[-1] >= _FEWEST_ITEMS and edges[-1] - edge >= _FEWEST_ITEMS:
            kept.append(edge)
    return np.array([*kept, edges[-1]])


@dataclass(frozen=True)
class Candidates:
    """The methods that a backtest compares: aggregators on the scores of one classifier.

    Attributes
    ----------
    classifier : classifier, or None if the aggregators read the items
    aggregators : tuple of Aggregator
        Unfitted, or to be cloned.
    names : tuple of str
    drawn : array of float, shape (n_candidates,)
        Validation losses under drawn shifts; NaN where they are not known.
    """

    classifier: Classifier | None
    aggregators: tuple[Aggregator, ...]
    names: tuple[str, ...]
    drawn: Floats


def rivals(
    chosen: Aggregator, classifier: Classifier, scores: Scores, Y: LabelMatrix, groups: Groups
) -> Candidates:
    """What is compared over time besides the method that drawn shifts have chosen.

    Parameters
    ----------
    chosen : Aggregator
        It is the candidate of its kind.
    classifier : classifier
    scores : Scores
        Out-of-fold posteriors.
    Y : 0/1 array, shape (n_items, n_labels)
    groups : array, shape (n_items,), or None
    """
    kinds = [
        TrainingPrevalence(),
        PCC(point="median"),
        ScenarioMixture(),
        SLD(),
        RQ(PCC(), "ridge"),
    ]
    aggregators = tuple(chosen if type(each) is type(chosen) else each for each in kinds)
    splits = shifted_splits(Y, groups=groups)
    drawn = [validation_loss(each, scores, Y, splits)[0] for each in aggregators]
    names = tuple(to_text(expression_of(each)) for each in aggregators)
    return Candidates(lighter(classifier), aggregators, names, np.array(drawn))


def run_backtest(
    candidates: Candidates,
    scheme: Scheme,
    timeline: Timeline,
    X: Items,
    Y: LabelMatrix,
    *,
    groups: Groups = None,
    prepare: Prepare | None = None,
    seconds: float = float("inf"),
    progress: Progress | None = None,
) -> Backtest:
    """Estimate later batches at every origin and learn from the errors.

    Parameters
    ----------
    candidates : Candidates
    scheme : Scheme
        Makes out-of-fold scores of the items before an origin.
    timeline : Timeline
    X : items
    Y : 0/1 array of int8, shape (n_items, n_labels)
    groups : array, shape (n_items,), optional
    prepare : callable, optional
        Called with the rows before and after an origin; returns the items of both as a preparation
        makes them that was fitted on the first alone. Default: the rows of X.
    seconds : float
        No further origin is begun after this time; the backtest then says so.
    progress : callable, optional
        Called with a short message before each origin.

    Notes
    -----
    Costs about as much as two to three fits of the candidates. The classifiers that the automatic
    choice has found are trained here with fewer trees and a looser tolerance.
    """
    start = time.perf_counter()
    origins, blocks = [], timeline.origins()
    for number, block in enumerate(blocks):
        if number and time.perf_counter() - start > seconds:
            break
        if progress is not None:
            progress(f"backtest over time, origin {number + 1} of {len(blocks)}")
        origins.append(_origin(candidates, scheme, timeline, block, X, Y, groups, prepare))
    notes = []
    if len(origins) < len(blocks):
        notes.append(
            f"The time budget ended the backtest after {len(origins)} of {len(blocks)} origins."
        )
    return Backtest.of(origins, candidates.drawn, candidates.names, timeline.axis, notes)


def _origin(
    candidates: Candidates,
    scheme: Scheme,
    timeline: Timeline,
    block: int,
    X: Items,
    Y: LabelMatrix,
    groups: Groups,
    prepare: Prepare | None,
) -> LaterBatches:
    """The batches after one origin, estimated by all candidates."""
    edge = timeline.edges[block]
    past, later = timeline.order[:edge], timeline.order[edge:]
    if prepare is None:
        X_past, X_later = take_items(X, past), take_items(X, later)
    else:
        X_past, X_later = prepare(past, later)
    own_groups = None if groups is None else np.asarray(groups)[past]
    with warnings.catch_warnings():
        # Few items before an origin lack some labels; the labels that count are chosen below.
        warnings.simplefilter("ignore", PrevalensWarning)
        fitted, scores, alarm = _learn(candidates, scheme, X_past, Y[past], X_later, own_groups)
    parts, weights = zip(*timeline.batches(block), strict=True)
    position = np.empty(len(Y), dtype=np.int64)
    position[later] = np.arange(len(later))
    samples = Samples.from_indices([position[rows] for rows in parts], n_items=len(later))
    batches = ScoredSamples(scores, samples)
    estimated = np.stack([estimate_with(each, batches) for each in fitted])
    axis = TimeAxis.of(timeline.times[past], dates=timeline.dates)
    middle = np.array([timeline.times[rows].mean() for rows in parts])
    counted = Y[past].sum(axis=0, dtype=np.int64) >= FEWEST_POSITIVES
    true = samples.mean(Y[later])
    return LaterBatches(
        estimated=estimated,
        true=true,
        noise=label_noise(batches, np.median(estimated, axis=0)),
        horizon=axis.horizon(middle),
        ahead=middle - axis.last,
        weight=np.array(weights),
        counted=np.tile(counted if counted.any() else np.ones_like(counted), (len(true), 1)),
        excess=np.zeros(len(true)) if alarm is None else alarm.excess(batches),
    )


def _learn(
    candidates: Candidates,
    scheme: Scheme,
    X: Items,
    Y: LabelMatrix,
    X_later: Items,
    groups: Groups,
) -> tuple[list[Aggregator], Scores, Misfit | None]:
    """The candidates and the alarm, fitted before an origin, and the scores of the items after."""
    classifier, aggregators = candidates.classifier, candidates.aggregators
    alarm = None
    if classifier is None:
        scores, later = Scores(X, "features"), Scores(X_later, "features")
    else:
        kind = next(each.consumes for each in aggregators if each.consumes != "features")
        labelled = scheme.fit(clone(classifier), X, Y, kind, groups=groups)
        scores, Y = labelled.scores, Y[labelled.rows]
        groups = None if groups is None else groups[labelled.rows]
        later = response(labelled.classifier, X_later, kind, Y.shape[1])
        alarm = fit_alarm(scores, Y, labelled.folds)
    fitted = [clone(each).fit(as_read(each, scores), Y, groups=groups) for each in aggregators]
    return fitted, later, alarm


def as_read(aggregator: Aggregator, scores: Scores) -> Scores:
    """The scores in the kind that an aggregator reads: the training prevalence reads any."""
    if aggregator.consumes == "features" and scores.kind != "features":
        return Scores(scores.values, "features")
    return scores


def estimate_with(aggregator: Aggregator, batches: Batches) -> Floats:
    """Estimates of a candidate, shape (n_batches, n_labels)."""
    if isinstance(batches, ScoredSamples):
        batches = ScoredSamples(as_read(aggregator, batches.scores), batches.samples)
    return aggregator.read(batches)
