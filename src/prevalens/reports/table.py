"""ResultTable: mean errors by dataset and shift regime, one column per method, as plain data."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import stdev
from typing import Literal

import numpy as np
from scipy.stats import rankdata, wilcoxon

from prevalens.types import Floats

#: Result of the test of a cell against the best of its row; see `mark`.
Mark = Literal["", "dagger", "ddagger", "untested"]

#: Kind of a row: the data of a dataset, or one of three summaries over datasets.
Kind = Literal["data", "pooled", "mean", "rank"]

#: Measures of which larger values are better; of all others, smaller values are.
_GAINS = frozenset({"concordance"})


def larger_is_better(metric: str) -> bool:
    """Whether a larger value of this measure is the better one."""
    return metric in _GAINS


@dataclass(frozen=True)
class TableCell:
    """One method in one row.

    Attributes
    ----------
    value : float
        Mean over samples; with several seeds the mean of their means.
    by_seed : tuple of float
        The mean of each seed, in the order of the seeds.
    n_samples : int
        Number of samples behind it, over all seeds; 0 if unknown.
    best : bool
        Whether no method of the row has a better value.
    mark : {"", "dagger", "ddagger", "untested"}
        Empty for the best method and for methods that are significantly worse.
    p_value : float or None
        Of the test against the best; None if there was no test.
    """

    value: float
    by_seed: tuple[float, ...] = ()
    n_samples: int = 0
    best: bool = False
    mark: Mark = ""
    p_value: float | None = None

    @property
    def spread(self) -> float | None:
        """Standard deviation between seeds; None for fewer than two."""
        return stdev(self.by_seed) if len(self.by_seed) > 1 else None


@dataclass(frozen=True)
class TableRow:
    """The methods on one dataset (or over several) in one shift regime.

    Attributes
    ----------
    dataset : str
        Empty in a summary.
    shift : str
    cells : tuple of TableCell or None
        In the order of the table's columns; None where there is no result.
    kind : {"data", "pooled", "mean", "rank"}
    n_datasets : int
        Number of datasets of a summary.
    """

    dataset: str
    shift: str
    cells: tuple[TableCell | None, ...]
    kind: Kind = "data"
    n_datasets: int = 1

    @property
    def complete(self) -> bool:
        """Whether every method has a value."""
        return all(cell is not None for cell in self.cells)

    @property
    def n_samples(self) -> int:
        """Number of samples of the method that has most."""
        return max((cell.n_samples for cell in self.cells if cell is not None), default=0)


@dataclass(frozen=True)
class ResultTable:
    """Mean errors of methods by dataset and shift regime.

    Attributes
    ----------
    metric, protocol : str
    columns : tuple of str
        Names of the methods.
    rows : tuple of TableRow
        Datasets x shift regimes.
    summaries : tuple of TableRow
        Averages pooled over samples, means of rows, and mean ranks, by shift regime.
    notes : tuple of str
        Sentences for the reader of the table.
    digits : int or None
        Digits after the point that the values are known to; None for all.
    """

    metric: str
    protocol: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    summaries: tuple[TableRow, ...] = ()
    notes: tuple[str, ...] = ()
    digits: int | None = None

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets, in the order of the rows."""
        return tuple(dict.fromkeys(row.dataset for row in self.rows))

    @property
    def regimes(self) -> tuple[str, ...]:
        """The shift regimes, in the order of the rows."""
        return tuple(dict.fromkeys(row.shift for row in self.rows))

    def row(self, dataset: str, shift: str) -> TableRow | None:
        """The row of a dataset in a regime, if there is one."""
        rows = (row for row in self.rows if (row.dataset, row.shift) == (dataset, shift))
        return next(rows, None)

    def summary(self, kind: Kind, shift: str) -> TableRow | None:
        """A summary row of a regime, if there is one."""
        rows = (row for row in self.summaries if (row.kind, row.shift) == (kind, shift))
        return next(rows, None)

    def cell(self, dataset: str, shift: str, column: str) -> TableCell | None:
        """The cell of a dataset, regime and method, if there is one."""
        return self._cell(self.row(dataset, shift), column)

    def average(self, shift: str, column: str, kind: Kind = "pooled") -> TableCell | None:
        """The cell of a method in a summary row of a regime, if there is one."""
        return self._cell(self.summary(kind, shift), column)

    def _cell(self, row: TableRow | None, column: str) -> TableCell | None:
        if row is None or column not in self.columns:
            return None
        return row.cells[self.columns.index(column)]


def ranks(cells: Sequence[TableCell], metric: str) -> Floats:
    """Rank of each cell in its row, 1 for the best; equal cells share the mean of their ranks.

    Of equal values, the cell that is marked as best ranks first, because a printed table marks the
    best before rounding.

    Examples
    --------
    >>> ranks([TableCell(0.2), TableCell(0.1, best=True), TableCell(0.1)], "ae").tolist()
    [3.0, 1.0, 2.0]
    """
    sign = -1.0 if larger_is_better(metric) else 1.0
    keys = [(sign * cell.value, not cell.best) for cell in cells]
    places = {key: place for place, key in enumerate(sorted(set(keys)))}
    return np.asarray(rankdata([places[key] for key in keys]), dtype=np.float64)


#: At most this p-value: clearly different from the best, no mark.
WORSE_BELOW = 0.001
#: Below this p-value: hardly different from the best, a dagger; above it, a double dagger.
DAGGER_BELOW = 0.05

# Shifts are a function of the samples, so equal shifts mean equal samples; a store may have
# rounded them to single precision.
_SAME_SHIFT = 1e-6


@dataclass(frozen=True)
class SeedSamples:
    """Errors of a method on some samples of one seed, and the samples' shifts."""

    shift: Floats
    errors: Floats


def p_value(best: Floats, other: Floats) -> float:
    """Two-sided p-value of the Wilcoxon signed-rank test on paired errors.

    Parameters
    ----------
    best, other : array of float, shape (n_samples,)
        Errors on the same samples, in the same order.

    Notes
    -----
    If all errors are equal, the test is not defined, and the p-value is 1.

    Examples
    --------
    >>> import numpy as np
    >>> errors = np.linspace(0.01, 0.1, 40)
    >>> p_value(errors, errors)
    1.0
    >>> p_value(errors, errors + 0.01) < 0.001
    True
    """
    difference = np.asarray(best, dtype=np.float64) - np.asarray(other, dtype=np.float64)
    if not difference.any():
        return 1.0
    with warnings.catch_warnings():
        # With a handful of samples and ties there is only the normal approximation.
        warnings.filterwarnings("ignore", "Sample size too small", UserWarning)
        return float(wilcoxon(difference).pvalue)


def mark(p: float | None) -> Mark:
    """The mark of a p-value against the best; None stands for no test.

    Examples
    --------
    >>> mark(0.0004), mark(0.02), mark(0.3), mark(None)
    ('', 'dagger', 'ddagger', 'untested')
    """
    if p is None:
        return "untested"
    if p <= WORSE_BELOW:
        return ""
    return "dagger" if p < DAGGER_BELOW else "ddagger"


def pair(
    best: Mapping[Hashable, SeedSamples], other: Mapping[Hashable, SeedSamples]
) -> tuple[Floats, Floats] | None:
    """Errors of two methods on the same samples, seeds one after the other.

    None if they have no seed in common, or if the samples of a common seed are not the same.
    """
    common = [key for key in best if key in other]
    if not common or not all(_same_samples(best[key], other[key]) for key in common):
        return None
    left = np.concatenate([best[key].errors for key in common])
    right = np.concatenate([other[key].errors for key in common])
    return left, right


def _same_samples(left: SeedSamples, right: SeedSamples) -> bool:
    if left.shift.shape != right.shift.shape:
        return False
    return bool(np.allclose(left.shift, right.shift, rtol=0.0, atol=_SAME_SHIFT))
