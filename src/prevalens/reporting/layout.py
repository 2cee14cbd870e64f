"""Result tables laid out for reading: regimes side by side, or one below the other."""

from __future__ import annotations

from collections.abc import Sequence

from prevalens.reporting.formatting import MISSING, count, dataset_title, digits_of, number
from prevalens.reporting.grid import Entry, Grid, Group, Heading, Line
from prevalens.reporting.table import ResultTable, TableCell, TableRow, larger_is_better
from prevalens.reporting.words import SUMMARY_TITLES, measure_short, measure_title

__all__ = ["long_grid", "regime_title", "row_entries", "samples_grid", "spread_grid", "wide_grid"]

_RANK_DIGITS = 2


def regime_title(shift: str) -> str:
    """A regime as the head of a row or column."""
    return "all samples" if shift == "all" else f"{shift} shift"


def _caption(table: ResultTable) -> str:
    return f"{measure_title(table.metric)} by dataset and shift, {table.protocol}."


def wide_grid(table: ResultTable, caption: str | None = None) -> Grid:
    """A table as the paper prints it: a row per dataset, the regimes side by side.

    Parameters
    ----------
    table : ResultTable
    caption : str, optional
    """
    columns = tuple(Heading(name) for _ in table.regimes for name in table.columns)
    return Grid(
        caption=_caption(table) if caption is None else caption,
        stub="dataset",
        headings=(
            tuple(Heading(regime_title(s), len(table.columns)) for s in table.regimes),
            columns,
        ),
        groups=(_wide_rows(table), *_wide_summaries(table)),
        notes=table.notes,
    )


def _wide_rows(table: ResultTable) -> Group:
    lines = []
    for dataset in table.datasets:
        rows = [table.row(dataset, shift) for shift in table.regimes]
        lines.append(Line(dataset_title(dataset), _side_by_side(rows, table)))
    return Group(tuple(lines))


def _wide_summaries(table: ResultTable) -> list[Group]:
    lines = []
    for kind, title in SUMMARY_TITLES.items():
        rows = [row for row in table.summaries if row.kind == kind]
        if rows:
            found = {row.shift: row for row in rows}
            aligned = [found.get(shift) for shift in table.regimes]
            lines.append(Line(title, _side_by_side(aligned, table)))
    return [Group(tuple(lines))] if lines else []


def _side_by_side(rows: Sequence[TableRow | None], table: ResultTable) -> tuple[Entry, ...]:
    return tuple(entry for row in rows for entry in row_entries(row, table))


def long_grid(table: ResultTable, caption: str | None = None) -> Grid:
    """A table with a row per dataset and regime: narrow, for many methods or little room.

    Parameters
    ----------
    table : ResultTable
    caption : str, optional
    """
    data = [
        Group(_lines(table, [row for row in table.rows if row.dataset == d]), dataset_title(d))
        for d in table.datasets
    ]
    summaries = [
        Group(_lines(table, [row for row in table.summaries if row.kind == kind]), title)
        for kind, title in SUMMARY_TITLES.items()
    ]
    return Grid(
        caption=_caption(table) if caption is None else caption,
        stub="shift",
        headings=(tuple(map(Heading, table.columns)),),
        groups=tuple(group for group in (*data, *summaries) if group.lines),
        notes=table.notes,
    )


def _lines(table: ResultTable, rows: Sequence[TableRow]) -> tuple[Line, ...]:
    return tuple(Line(row.shift, row_entries(row, table)) for row in rows)


def row_entries(row: TableRow | None, table: ResultTable) -> tuple[Entry, ...]:
    """The cells of a row, shaded from the best to the worst of them."""
    if row is None:
        return (Entry(MISSING),) * len(table.columns)
    digits = _RANK_DIGITS if row.kind == "rank" else digits_of(table.metric, table.digits)
    gain = row.kind != "rank" and larger_is_better(table.metric)
    shades = _shades(row.cells, gain)
    return tuple(
        Entry(MISSING)
        if cell is None
        else Entry(number(cell.value, digits), cell.best, cell.mark, shade)
        for cell, shade in zip(row.cells, shades, strict=True)
    )


def _shades(cells: Sequence[TableCell | None], gain: bool) -> list[float | None]:
    values = [cell.value for cell in cells if cell is not None]
    low, high = min(values, default=0.0), max(values, default=0.0)
    if low == high:
        return [None] * len(cells)
    places = [None if cell is None else (cell.value - low) / (high - low) for cell in cells]
    return [place if place is None or not gain else 1 - place for place in places]


def samples_grid(table: ResultTable) -> Grid:
    """How many samples stand behind each row."""
    lines = []
    for dataset in table.datasets:
        counts = [_n_samples(table.row(dataset, shift)) for shift in table.regimes]
        entries = [Entry(count(n)) for n in (*counts, sum(counts))]
        lines.append(Line(dataset_title(dataset), tuple(entries)))
    return Grid(
        caption="Number of test samples by dataset and shift.",
        stub="dataset",
        headings=(tuple(map(Heading, [*map(regime_title, table.regimes), "together"])),),
        groups=(Group(tuple(lines)),),
    )


def _n_samples(row: TableRow | None) -> int:
    cells = row.cells if row is not None else ()
    return max((cell.n_samples for cell in cells if cell is not None), default=0)


def spread_grid(table: ResultTable, caption: str | None = None) -> Grid:
    """Standard deviations between seeds, laid out as `wide_grid` does.

    Parameters
    ----------
    table : ResultTable
    caption : str, optional
    """
    default = f"Standard deviation of {measure_short(table.metric)} between seeds."
    lines = [
        Line(
            dataset_title(dataset),
            tuple(
                Entry(number(_spread(table, dataset, shift, column), digits_of(table.metric)))
                for shift in table.regimes
                for column in table.columns
            ),
        )
        for dataset in table.datasets
    ]
    return Grid(
        caption=default if caption is None else caption,
        stub="dataset",
        headings=wide_grid(table).headings,
        groups=(Group(tuple(lines)),),
    )


def _spread(table: ResultTable, dataset: str, shift: str, column: str) -> float | None:
    cell = table.cell(dataset, shift, column)
    return None if cell is None else cell.spread
