"""Drift in models: what training showed of it, and how far batches are ahead of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from prevalens.batches import Batches, ScoredSamples
from prevalens.model.groups import ByTime, Grouping
from prevalens.model.manifest import DriftSummary
from prevalens.model.result import Notice
from prevalens.quantifier import Quantifier
from prevalens.samples import Samples
from prevalens.tables.table import Chunk, Table
from prevalens.tables.times import TimeColumn
from prevalens.types import Array, Floats
from prevalens.uncertainty.drift import DEFAULT_DRIFT, Backtest, as_numbers

#: Batches, and items of each, in which the price of the allowance is measured.
_MOST_BATCHES, _MOST_ITEMS = 3, 2_000


def drift_summary(quantifier: Quantifier, time: Any, column: TimeColumn | None) -> DriftSummary:
    """What a fitted quantifier knows of drift.

    Parameters
    ----------
    quantifier : fitted Quantifier
    time : array-like, one entry per training item, or None
    column : TimeColumn or None
        Where the times are from.
    """
    first, last = ("", "") if time is None else _period(time)
    source_column = None if column is None else asdict(column)
    backtest: Backtest | None = quantifier.backtest_
    if not quantifier.has_intervals:
        return DriftSummary(column=source_column, first=first, last=last)
    if backtest is None:
        measured = "default" if quantifier.drift_ == DEFAULT_DRIFT else "groups"
        source = measured if quantifier.drift is None else "given"
        return DriftSummary(quantifier.drift_, source, source_column, first, last)
    deviation = backtest.deviation(np.zeros((1, 1)), np.array([backtest.reference]))
    return DriftSummary(
        float(deviation[0, 0]),
        "backtest",
        source_column,
        first,
        last,
        _usual_horizon(backtest),
        " ".join([backtest.describe(), *backtest.notes, *_candidates(backtest)]),
    )


def _candidates(backtest: Backtest) -> list[str]:
    """A sentence on the weights of several candidates; none if one method was named."""
    if len(backtest.names) == 1:
        return []
    weights = backtest.weights(np.array([backtest.reference]))[0]
    shares = 100 * weights / weights.sum()
    listed = ", ".join(
        f"{backtest.names[number]} ({shares[number]:.0f} %)"
        for number in np.argsort(-shares, kind="stable")
        if shares[number] >= 0.5
    )
    return [f"Estimates are the weighted median of {listed}."]


def _period(time: Any) -> tuple[str, str]:
    """The first and the last of some times, for people."""
    numbers, dates = as_numbers(time)
    first, last = (
        str(np.datetime64(int(end), "D")) if dates else f"{end:g}"
        for end in (numbers.min(), numbers.max())
    )
    return first, last


def _usual_horizon(backtest: Backtest) -> str:
    return backtest.axis.words(backtest.reference * backtest.axis.span)


class BatchTimes:
    """Collects when the items of batches arose, for a model that was fitted with times.

    The times are those of the column that divides the batches, else of the model's own time column
    if all tables have it. A cell that cannot be read counts as unknown.

    Parameters
    ----------
    quantifier : fitted Quantifier
    column : TimeColumn or None
        The time column of the training, if it is known.
    tables : sequence of Table
    grouping : Grouping
    """

    def __init__(
        self,
        quantifier: Quantifier,
        column: TimeColumn | None,
        tables: Sequence[Table],
        grouping: Grouping,
    ) -> None:
        self._backtest: Backtest | None = quantifier.backtest_
        self._grouping = grouping
        self._means: Floats = np.empty(0)
        needed = self._backtest is not None and not isinstance(grouping, ByTime)
        known = column is not None and all(column.name in table.columns for table in tables)
        self._column = column if needed and known else None

    @property
    def columns(self) -> tuple[str, ...]:
        """What to read besides the items and the columns of the grouping."""
        return () if self._column is None else (self._column.name,)

    def of_rows(self, chunk: Chunk) -> Floats:
        """The times of a chunk's rows, as numbers; call it after the grouping has the chunk."""
        if self._column is not None:
            numbers = map(self._column.number, chunk[self._column.name])
            return np.array([np.nan if number is None else number for number in numbers])
        backtest = self._backtest
        if isinstance(self._grouping, ByTime) and backtest is not None and backtest.axis.dates:
            return self._grouping.days
        return np.full(len(chunk), np.nan)

    def of(self, means: Floats) -> Array | None:
        """The mean time of each batch, as `Model.aggregate` takes it; None without a backtest.

        A batch without times gets the time at which its horizon is the mean one of the backtest.

        Parameters
        ----------
        means : array of float, shape (n_batches,)
            As numbers; NaN where no item has a time.
        """
        backtest = self._backtest
        if backtest is None:
            return None
        self._means = means
        usual = backtest.axis.last + backtest.reference * backtest.axis.span
        filled = np.where(np.isnan(self._means), usual, self._means)
        return TimeColumn("", numbers=not backtest.axis.dates).times(filled)

    def notices(self, names: Sequence[str]) -> tuple[Notice, ...]:
        """A note if batches have no time; call it after `of`."""
        unknown = np.flatnonzero(np.isnan(self._means))
        if self._backtest is None or not len(unknown):
            return ()
        ahead = _usual_horizon(self._backtest)
        which = f"{len(unknown)} of {len(names)} batches have no time ({names[unknown[0]]} first)"
        if len(unknown) == len(names):
            which = "The batches have no time" if len(names) > 1 else "The batch has no time"
        text = f"{which}; intervals assume {ahead} ahead of the last training item."
        return (Notice.on([names[i] for i in unknown.tolist()], text, "note"),)


def price_of_drift(quantifier: Quantifier, batches: Batches, level: float | None, time: Any) -> str:
    """How much of the width of intervals is the allowance for drift, in one sentence.

    It is measured in at most three of the batches, and 2,000 items of each if the items are at
    hand. Empty without intervals or allowance.
    """
    if level is None or not quantifier.has_intervals:
        return ""
    chosen = np.unique(np.linspace(0, len(batches) - 1, _MOST_BATCHES).astype(np.int64))
    at = None if time is None else np.asarray(time)[chosen]
    without, width = quantifier.interval_widths(_smaller(batches[chosen]), level, time=at)
    if not width > without:
        return ""
    over = "" if len(chosen) == 1 else f", on average over {len(chosen)} batches"
    return (
        f"Without the allowance they would be about {100 * (1 - without / width):.0f} % narrower: "
        f"{100 * without:.1f} instead of {100 * width:.1f} points{over}."
    )


def _smaller(batches: Batches) -> Batches:
    """At most 2,000 items of each batch if the items are at hand: more would take long."""
    if not isinstance(batches, ScoredSamples):
        return batches
    bags = [bag[:_MOST_ITEMS] for bag in batches.samples]
    ends = np.cumsum([0, *map(len, bags)])
    some = Samples(np.arange(ends[-1]), ends, n_items=int(ends[-1]))
    return ScoredSamples(batches.scores.take(np.concatenate(bags)), some)
