"""orders: how our figures and the paper's order the methods, by mean rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from prevalens.reporting.comparison import Compared, Comparison
from prevalens.reporting.table import TableCell, ranks

__all__ = ["Order", "orders"]


@dataclass(frozen=True)
class Order:
    """Methods by their mean rank in one shift regime.

    Attributes
    ----------
    source : str
        Whose figures: a source of the comparison, or ``printed``.
    shift : str
    ranks : dict of float
        Mean rank of each method over the datasets; 1 would be best everywhere.
    n_datasets : int
    """

    source: str
    shift: str
    ranks: Mapping[str, float]
    n_datasets: int

    @property
    def order(self) -> tuple[str, ...]:
        """The methods, best first."""
        return tuple(sorted(self.ranks, key=lambda method: self.ranks[method]))

    def agrees_with(self, other: Order) -> bool:
        """Whether no two methods stand one way round here and the other way round there."""
        return not any(
            (self.ranks[a] - self.ranks[b]) * (other.ranks[a] - other.ranks[b]) < 0
            for a, b in combinations(self.ranks, 2)
        )


def orders(comparison: Comparison) -> list[Order]:
    """How each source and the paper order the methods, by mean rank in each shift regime.

    Notes
    -----
    All sources are ranked on the same datasets and methods: those that every source has, and on
    the paper's data. The ranks of the paper are those of its printed cells on these datasets, not
    the ones it prints, which are over all fifteen.
    """
    methods = [m for m in comparison.methods if _known_everywhere(comparison, m)]
    found = []
    for shift in comparison.regimes:
        rows = [_complete_row(comparison, name, shift, methods) for name in comparison.datasets]
        rows = [row for row in rows if row]
        if not rows or not methods:
            continue
        for number, source in enumerate((*comparison.sources, "printed")):
            cells = [[_side(cell, number) for cell in row] for row in rows]
            means = np.mean([ranks(row, comparison.metric) for row in cells], axis=0)
            named = dict(zip(methods, means.tolist(), strict=True))
            found.append(Order(source, shift, named, len(rows)))
    return found


def _known_everywhere(comparison: Comparison, method: str) -> bool:
    """Whether every source has run the method at all."""
    cells = [cell for cell in comparison.cells if cell.method == method]
    sources = range(len(comparison.sources))
    return all(any(cell.ours[number] is not None for cell in cells) for number in sources)


def _complete_row(
    comparison: Comparison, dataset: str, shift: str, methods: Sequence[str]
) -> list[Compared]:
    row = [cell for cell in comparison.row(dataset, shift) if cell.method in methods]
    whole = all(cell.counted and None not in cell.ours for cell in row)
    return row if whole and len(row) == len(methods) else []


def _side(cell: Compared, number: int) -> TableCell:
    side = (*cell.ours, cell.printed)[number]
    assert side is not None  # only complete rows are ranked
    return side
