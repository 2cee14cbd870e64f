"""agreement: how many of our cells are near the printed ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from prevalens.reporting.comparison import ALLOWANCES, Comparison
from prevalens.validation import check_choice

__all__ = ["Agreement", "agreement"]


@dataclass(frozen=True)
class Agreement:
    """How many cells agree with the printed ones.

    Attributes
    ----------
    within : float
        How far a value may be from the printed one, as a share of it.
    n_agreeing, n_cells : int
    """

    within: float
    n_agreeing: int
    n_cells: int

    @property
    def share(self) -> float:
        """Share of the cells that agree; NaN if there are none."""
        return self.n_agreeing / self.n_cells if self.n_cells else math.nan


def agreement(
    comparison: Comparison,
    source: str,
    *,
    within: float = 0.15,
    method: str | None = None,
    dataset: str | None = None,
    allowances: Mapping[str, float] = ALLOWANCES,
) -> Agreement:
    """Count the cells that are within a share of the printed value.

    Parameters
    ----------
    comparison : Comparison
    source : str
        Which of our tables.
    within : float
        0.15 means at most 15 % from the printed value.
    method, dataset : str, optional
        Only these cells.
    allowances : mapping of str to float
        Differences that count as agreement on a dataset whatever their ratio.
    """
    check_choice(source, "source", comparison.sources)
    number = comparison.sources.index(source)
    chosen = (
        cell.agrees(number, within, allowances)
        for cell in comparison.cells
        if cell.counted and method in (None, cell.method) and dataset in (None, cell.dataset)
    )
    known = [agrees for agrees in chosen if agrees is not None]
    return Agreement(within, sum(known), len(known))
