"""Tables of the page on the paper's reproduction: printed and ours side by side, wins, runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prevalens.reports.grid import (
    MISSING,
    Grid,
    GridCell,
    GridGroup,
    GridLine,
    Heading,
    count,
    dataset_title,
    digits_of,
    number,
    percent,
)
from prevalens.reports.table import ResultTable, TableCell
from prevalens.studies.moreo2023.comparison import Compared, Comparison, Order, agreement, orders
from prevalens.studies.moreo2023.table_summary import Run

__all__ = [
    "agreements_grid",
    "orders_of",
    "own_grids",
    "runs_grid",
    "side_by_side_grids",
    "wins_grid",
]

#: Methods side by side in one table; more would not fit a page.
_ABREAST = 4
_WITHIN = 0.15
_PAPER = "paper"


def side_by_side_grids(title: str, comparison: Comparison) -> list[Grid]:
    """The printed values and ours, four methods to a table.

    Parameters
    ----------
    title : str
        What the table is about.
    comparison : Comparison
    """
    chunks = [
        comparison.methods[start : start + _ABREAST]
        for start in range(0, len(comparison.methods), _ABREAST)
    ]
    return [_side_by_side(title, comparison, methods) for methods in chunks]


def _side_by_side(title: str, comparison: Comparison, methods: Sequence[str]) -> Grid:
    # What was run to match the print stands next to it.
    sources = comparison.sources[::-1]
    groups = []
    for dataset in comparison.datasets:
        lines = [
            GridLine(shift, _beside(comparison, comparison.row(dataset, shift), methods))
            for shift in comparison.regimes
        ]
        groups.append(GridGroup(tuple(lines), dataset_title(dataset)))
    heads = (_PAPER, *sources)
    return Grid(
        caption=f"{title}: {', '.join(methods)}.",
        stub="shift",
        headings=(
            tuple(Heading(method, len(heads)) for method in methods),
            tuple(Heading(head) for _ in methods for head in heads),
        ),
        groups=tuple(groups),
    )


def _beside(
    comparison: Comparison, row: Sequence[Compared], methods: Sequence[str]
) -> tuple[GridCell, ...]:
    found = {cell.method: cell for cell in row}
    digits = digits_of(comparison.metric)
    known = digits_of(comparison.metric, comparison.digits)
    entries = []
    for method in methods:
        cell = found.get(method)
        entries.append(_value(None if cell is None else cell.printed, known))
        for place in reversed(range(len(comparison.sources))):
            ours = None if cell is None else cell.ours[place]
            off = cell is not None and cell.counted and cell.agrees(place, _WITHIN) is False
            entries.append(_value(ours, digits, flag=off))
    return tuple(entries)


def _value(cell: TableCell | None, digits: int, *, flag: bool = False) -> GridCell:
    if cell is None:
        return GridCell(MISSING)
    return GridCell(number(cell.value, digits), cell.best, cell.mark, flag=flag)


def own_grids(title: str, tables: Mapping[str, ResultTable]) -> list[Grid]:
    """Our values alone, by the way they were run, four methods to a table.

    Parameters
    ----------
    title : str
    tables : mapping of str to ResultTable
        By the way they were run, all of one measure.
    """
    first = next(iter(tables.values()))
    columns = list(dict.fromkeys(name for table in tables.values() for name in table.columns))
    chunks = [columns[start : start + _ABREAST] for start in range(0, len(columns), _ABREAST)]
    names = tuple(tables)[::-1]
    return [
        Grid(
            caption=f"{title}: {', '.join(chunk)}.",
            stub="shift",
            headings=(
                tuple(Heading(method, len(names)) for method in chunk),
                tuple(Heading(name) for _ in chunk for name in names),
            ),
            groups=tuple(
                GridGroup(
                    tuple(
                        GridLine(shift, tuple(_own(tables, chunk, names, dataset, shift)))
                        for shift in first.regimes
                    ),
                    dataset_title(dataset),
                )
                for dataset in first.datasets
            ),
        )
        for chunk in chunks
    ]


def _own(
    tables: Mapping[str, ResultTable],
    methods: Sequence[str],
    names: Sequence[str],
    dataset: str,
    shift: str,
) -> list[GridCell]:
    digits = digits_of(next(iter(tables.values())).metric)
    return [
        _value(tables[name].cell(dataset, shift, method), digits)
        for method in methods
        for name in names
    ]


def agreements_grid(comparisons: Mapping[str, Comparison]) -> Grid:
    """How many of our cells are near the printed ones, table by table.

    Parameters
    ----------
    comparisons : mapping of str to Comparison
        By the title of the table.
    """
    lines = []
    for title, comparison in comparisons.items():
        for source in comparison.sources[::-1]:
            found = [agreement(comparison, source, within=within) for within in (0.15, 0.25)]
            if found[0].n_cells:
                shares = [GridCell(f"{one.n_agreeing} ({percent(one.share)})") for one in found]
                datasets = len({cell.dataset for cell in comparison.cells if cell.counted})
                figures = (GridCell(count(datasets)), GridCell(count(found[0].n_cells)))
                lines.append(GridLine(f"{title}, {source}", (*figures, *shares)))
    return Grid(
        caption="Cells that are near the printed ones.",
        stub="table",
        headings=(tuple(map(Heading, ("datasets", "cells", "within 15 %", "within 25 %"))),),
        groups=(GridGroup(tuple(lines)),),
        notes=(
            "On Genbase, which is printed with one digit that is not zero, a difference of .0005 "
            "counts as near. The corrected Tmc2007_500 does not count: the paper has other data.",
        ),
    )


def wins_grid(comparisons: Mapping[str, Comparison]) -> Grid:
    """On how many datasets each method is the best, ours beside the paper's.

    Parameters
    ----------
    comparisons : mapping of str to Comparison
        By title, for example the base quantifier. Their methods must be the same.
    """
    methods = next(iter(comparisons.values())).methods
    groups = [
        GridGroup(tuple(_win_lines(comparison, methods)), title)
        for title, comparison in comparisons.items()
    ]
    return Grid(
        caption="Datasets on which a method has the smallest error, by shift.",
        stub="shift, source",
        headings=((*map(Heading, methods), Heading("datasets")),),
        groups=tuple(group for group in groups if group.lines),
        notes=("Methods that share the smallest printed value each count.",),
    )


def _win_lines(comparison: Comparison, methods: Sequence[str]) -> list[GridLine]:
    lines = []
    sources = (_PAPER, *comparison.sources[::-1])
    for shift in comparison.regimes:
        rows = [comparison.row(dataset, shift) for dataset in comparison.datasets]
        whole = [r for r in rows if r and all(c.counted and None not in c.ours for c in r)]
        for source in sources if whole else ():
            wins = _wins(comparison, whole, source)
            figures = tuple(GridCell(count(wins[method])) for method in methods)
            lines.append(GridLine(f"{shift}, {source}", (*figures, GridCell(count(len(whole))))))
    return lines


def _wins(
    comparison: Comparison, rows: Sequence[Sequence[Compared]], source: str
) -> dict[str, int]:
    wins = dict.fromkeys(comparison.methods, 0)
    for row in rows:
        values = {cell.method: _side(comparison, cell, source) for cell in row}
        best = min(values.values())
        for method, value in values.items():
            wins[method] += value == best
    return wins


def _side(comparison: Comparison, cell: Compared, source: str) -> float:
    if source == _PAPER:
        return cell.printed.value
    ours = cell.ours[comparison.sources.index(source)]
    assert ours is not None  # only complete rows are counted
    return ours.value


def orders_of(comparisons: Mapping[str, Comparison], source: str) -> list[tuple[Order, Order]]:
    """Our orders and the paper's, over all comparisons and regimes."""
    pairs = []
    for comparison in comparisons.values():
        found = orders(comparison)
        papers = {order.shift: order for order in found if order.source == "printed"}
        pairs += [(order, papers[order.shift]) for order in found if order.source == source]
    return pairs


def runs_grid(runs: Mapping[str, Sequence[Run]]) -> Grid:
    """Which tables were run on which datasets, with which seeds, and what that took.

    Parameters
    ----------
    runs : mapping of str to list of Run
        By the title of the table.
    """
    datasets = list(dict.fromkeys(run.dataset for found in runs.values() for run in found))
    lines = []
    for dataset in datasets:
        own = [{run.dataset: run for run in found}.get(dataset) for found in runs.values()]
        known = [run for run in own if run is not None]
        entries = [GridCell(MISSING if run is None else _seeds(run)) for run in own]
        lines.append(
            GridLine(dataset_title(dataset), (*entries, GridCell(_joined(known, "data_sha")[:12])))
        )
    return Grid(
        caption="Seeds with which each table was run, by dataset.",
        stub="dataset",
        headings=((*map(Heading, runs), Heading("data SHA-256")),),
        groups=(GridGroup(tuple(lines)),),
        notes=(f"Made with prevalens {_versions(runs)}.",),
    )


def _seeds(run: Run) -> str:
    return ", ".join(map(str, run.seeds))


def _joined(runs: Sequence[Run], name: str) -> str:
    return ", ".join(sorted({getattr(run, name) for run in runs}))


def _versions(runs: Mapping[str, Sequence[Run]]) -> str:
    return _joined([run for found in runs.values() for run in found], "version")
