"""Comparison of our tables with a printed one, cell by cell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product

import numpy as np

from prevalens.reports.table import ResultTable, TableCell, ranks
from prevalens.studies.moreo2023.printed import match_method, printed_dataset
from prevalens.validation import InputError, check_choice

#: Differences that count as agreement whatever the ratio. The paper prints Genbase with one digit
#: that is not zero, so that a ratio says little.
ALLOWANCES: Mapping[str, float] = {"genbase": 0.0005}
#: The source of an order that is the paper's own.
PRINT = "printed"


@dataclass(frozen=True)
class Compared:
    """A printed cell and our cells of the same dataset, shift and method.

    Attributes
    ----------
    dataset, shift, method : str
        The dataset by our name, the method by the paper's.
    printed : TableCell
    ours : tuple of TableCell or None
        In the order of the comparison's sources.
    counted : bool
        Whether both are about the same data.
    """

    dataset: str
    shift: str
    method: str
    printed: TableCell
    ours: tuple[TableCell | None, ...]
    counted: bool = True

    @property
    def complete(self) -> bool:
        """Whether every source has a value, about the same data as the printed one."""
        return self.counted and None not in self.ours

    def ratio(self, source: int) -> float | None:
        """Ours divided by the printed value; None where there is none."""
        cell = self.ours[source]
        if cell is None:
            return None
        if self.printed.value == 0:
            return 1.0 if cell.value == 0 else math.inf
        return cell.value / self.printed.value

    def agrees(self, source: int, within: float) -> bool | None:
        """Whether ours is within a share of the printed value; None where there is none."""
        cell = self.ours[source]
        if cell is None:
            return None
        allowed = max(within * self.printed.value, ALLOWANCES.get(self.dataset, 0.0))
        # The last digit of a difference of decimals is noise.
        return abs(cell.value - self.printed.value) <= allowed * (1 + 1e-9)


@dataclass(frozen=True)
class Comparison:
    """Our tables and a printed one, cell by cell.

    Attributes
    ----------
    metric : str
    sources : tuple of str
        Names of our tables, such as ``as described`` and ``as printed``.
    methods : tuple of str
        By the paper's names, in its order.
    cells : tuple of Compared
        Datasets x shift regimes x methods.
    digits : int or None
        Digits after the point that the printed values are known to.
    pooled : tuple of Compared
        Averages over all samples of a regime; the dataset is empty. Each source has its own
        datasets, so that these are no comparison of like with like.
    n_pooled : tuple of int
        Number of datasets of the pooled averages: of the printed ones, then by source.
    """

    metric: str
    sources: tuple[str, ...]
    methods: tuple[str, ...]
    cells: tuple[Compared, ...]
    digits: int | None = None
    pooled: tuple[Compared, ...] = ()
    n_pooled: tuple[int, ...] = ()

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets, by our names."""
        return tuple(dict.fromkeys(cell.dataset for cell in self.cells))

    @property
    def regimes(self) -> tuple[str, ...]:
        """The shift regimes."""
        return tuple(dict.fromkeys(cell.shift for cell in self.cells))

    def cell(self, dataset: str, shift: str, method: str) -> Compared | None:
        """A cell by its dataset, regime and method."""
        return self._by_place.get((dataset, shift, method))

    @cached_property
    def _by_place(self) -> dict[tuple[str, str, str], Compared]:
        return {(cell.dataset, cell.shift, cell.method): cell for cell in self.cells}

    def value(self, cell: Compared, source: str) -> TableCell:
        """The value of a source, or of `PRINT`, in a complete cell."""
        side = cell.printed if source == PRINT else cell.ours[self.sources.index(source)]
        assert side is not None
        return side

    def row(self, dataset: str, shift: str) -> tuple[Compared, ...]:
        """The cells of a dataset and regime, in the order of the methods."""
        return tuple(c for c in self.cells if (c.dataset, c.shift) == (dataset, shift))


def compare(ours: Mapping[str, ResultTable], printed: ResultTable) -> Comparison:
    """Compare our tables with a printed one.

    Parameters
    ----------
    ours : mapping of str to ResultTable
        Tables of ours by what to call them, for example how they were run.
    printed : ResultTable
        As `prevalens.studies.moreo2023.printed` gives it, or an earlier table of ours.

    Notes
    -----
    Datasets and methods that only one side has are left out. Where the paper's data differs from
    ours (the corrected Tmc2007_500), the printed figure is shown but does not count.
    """
    for name, table in ours.items():
        if table.metric != printed.metric:
            raise InputError(
                f"The table {name!r} is of {table.metric} but the printed one of {printed.metric}; "
                f"summarise the results with metric={printed.metric!r}."
            )
    columns = {name: _columns(table, printed) for name, table in ours.items()}
    methods = [m for m in printed.columns if any(m in matched for matched in columns.values())]
    cells = tuple(_cells(ours, columns, printed, methods))
    if not cells:
        raise InputError("The results and the printed table have no dataset and method in common.")
    return Comparison(
        printed.metric,
        tuple(ours),
        tuple(methods),
        cells,
        printed.digits,
        tuple(_pooled(ours, columns, printed, methods)),
        tuple(n_pooled(table) for table in (printed, *ours.values())),
    )


def _pooled(
    ours: Mapping[str, ResultTable],
    columns: Mapping[str, Mapping[str, str]],
    printed: ResultTable,
    methods: list[str],
) -> Iterator[Compared]:
    for shift, method in product(printed.regimes, methods):
        cell = printed.average(shift, method)
        if cell is not None:
            own = tuple(
                table.average(shift, columns[name].get(method, "")) for name, table in ours.items()
            )
            yield Compared("", shift, method, cell, own)


def n_pooled(table: ResultTable) -> int:
    """Number of datasets of a table's averages over samples."""
    return max((row.n_datasets for row in table.summaries if row.kind == "pooled"), default=0)


def _columns(table: ResultTable, printed: ResultTable) -> dict[str, str]:
    """Our name of each printed method."""
    matched = ((match_method(column, printed), column) for column in table.columns)
    return {name: column for name, column in matched if name is not None}


def _cells(
    ours: Mapping[str, ResultTable],
    columns: Mapping[str, Mapping[str, str]],
    printed: ResultTable,
    methods: list[str],
) -> Iterator[Compared]:
    datasets = dict.fromkeys(name for table in ours.values() for name in table.datasets)
    for dataset, shift, method in product(datasets, printed.regimes, methods):
        twin = dataset if dataset in printed.datasets else printed_dataset(dataset)
        cell = printed.cell(twin, shift, method)
        if cell is not None:
            own = tuple(
                table.cell(dataset, shift, columns[name].get(method, ""))
                for name, table in ours.items()
            )
            yield Compared(dataset, shift, method, cell, own, counted=twin == dataset)


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
    """
    check_choice(source, "source", comparison.sources)
    number = comparison.sources.index(source)
    chosen = (
        cell.agrees(number, within)
        for cell in comparison.cells
        if cell.counted and method in (None, cell.method) and dataset in (None, cell.dataset)
    )
    known = [agrees for agrees in chosen if agrees is not None]
    return Agreement(within, sum(known), len(known))


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
    means : dict of float
        Mean value of each method over the same datasets.
    """

    source: str
    shift: str
    ranks: Mapping[str, float]
    n_datasets: int
    means: Mapping[str, float] = field(default_factory=dict)

    @property
    def order(self) -> tuple[str, ...]:
        """The methods, best first."""
        return tuple(sorted(self.ranks, key=lambda method: self.ranks[method]))

    def agrees_with(self, other: Order) -> bool:
        """Whether no pair of methods is ordered differently in the two orders."""
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
    ranked = []
    for shift in comparison.regimes:
        rows = [_complete_row(comparison, name, shift, methods) for name in comparison.datasets]
        rows = [row for row in rows if row]
        if not rows or not methods:
            continue
        for source in (*comparison.sources, PRINT):
            cells = [[comparison.value(cell, source) for cell in row] for row in rows]
            places = np.mean([ranks(row, comparison.metric) for row in cells], axis=0)
            values = np.mean([[cell.value for cell in row] for row in cells], axis=0)
            named = [
                dict(zip(methods, figures.tolist(), strict=True)) for figures in (places, values)
            ]
            ranked.append(Order(source, shift, named[0], len(rows), named[1]))
    return ranked


def _known_everywhere(comparison: Comparison, method: str) -> bool:
    """Whether every source has run the method at all."""
    cells = [cell for cell in comparison.cells if cell.method == method]
    sources = range(len(comparison.sources))
    return all(any(cell.ours[number] is not None for cell in cells) for number in sources)


def _complete_row(
    comparison: Comparison, dataset: str, shift: str, methods: Sequence[str]
) -> list[Compared]:
    row = [cell for cell in comparison.row(dataset, shift) if cell.method in methods]
    return row if all(cell.complete for cell in row) and len(row) == len(methods) else []
