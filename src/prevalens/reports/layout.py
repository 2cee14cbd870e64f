"""Layouts of result tables: the grids that show them, and the paragraphs that explain them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prevalens.reports.grid import (
    MISSING,
    Grid,
    GridCell,
    Heading,
    count,
    dataset_title,
    digits_of,
    grid_group,
    number,
)
from prevalens.reports.render import CAPTIONS, render_text
from prevalens.reports.table import ResultTable, TableCell, TableRow, larger_is_better

_MEASURES: dict[str, tuple[str, str]] = CAPTIONS["measures"]
_SUMMARIES = {
    "pooled": "Average over samples",
    "mean": "Average over datasets",
    "rank": "Average rank",
}
_RANK_DIGITS = 2


def measure_short(metric: str) -> str:
    """Abbreviation of a measure."""
    return _MEASURES.get(metric, (metric,))[0]


def measure_long(metric: str) -> str:
    """Name of a measure with its abbreviation.

    Examples
    --------
    >>> measure_long("ae")
    'absolute error (AE)'
    """
    return "{1} ({0})".format(*_MEASURES[metric]) if metric in _MEASURES else metric


def measure_title(metric: str) -> str:
    """Name of a measure, with a capital, for the beginning of a caption."""
    long = measure_long(metric)
    return long[0].upper() + long[1:]


def explanations(table: ResultTable) -> list[str]:
    """Paragraphs on the measure, the samples, the regimes, the marks and the averages."""
    n_samples = [
        sum(row.n_samples for row in table.rows if row.dataset == dataset)
        for dataset in table.datasets
    ]
    text = render_text(
        "results.txt",
        metric=table.metric,
        measure=measure_title(table.metric),
        more_is_better=larger_is_better(table.metric),
        n_samples=_range(n_samples),
        kinds=list(dict.fromkeys(row.kind for row in table.summaries)),
        n_datasets=_range([row.n_datasets for row in table.summaries]),
    )
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n") if paragraph.strip()]


def _range(numbers: Iterable[int]) -> str:
    ends = sorted(set(numbers))
    return " to ".join(map(count, ends[:: max(len(ends) - 1, 1)]))


def table_caption(table: ResultTable, variant: str = "") -> str:
    """Return the caption of a table of results, with the way they were run if it is given."""
    way = f", {variant}" if variant else ""
    return f"{measure_title(table.metric)} by dataset and shift, {table.protocol}{way}."


def _regime_titles(table: ResultTable) -> list[str]:
    return ["all samples" if shift == "all" else f"{shift} shift" for shift in table.regimes]


def _wide_headings(table: ResultTable) -> tuple[tuple[Heading, ...], ...]:
    columns = tuple(map(Heading, table.columns))
    upper = tuple(Heading(title, len(columns)) for title in _regime_titles(table))
    return upper, columns * len(upper)


def wide_grid(table: ResultTable, caption: str | None = None) -> Grid:
    """A table as the paper prints it: a row per dataset, the regimes side by side.

    Parameters
    ----------
    table : ResultTable
    caption : str, optional
    """
    data = [_wide_row(table, title, rows) for title, rows in _data_rows(table)]
    summaries = [_wide_row(table, title, rows) for title, rows in _summary_rows(table)]
    return Grid(
        caption=table_caption(table) if caption is None else caption,
        stub="dataset",
        headings=_wide_headings(table),
        groups=tuple(grid_group(rows) for rows in (data, summaries) if rows),
        notes=table.notes,
    )


def _data_rows(table: ResultTable) -> list[tuple[str, list[TableRow]]]:
    return [
        (dataset_title(dataset), [row for row in table.rows if row.dataset == dataset])
        for dataset in table.datasets
    ]


def _summary_rows(table: ResultTable) -> list[tuple[str, list[TableRow]]]:
    kinds = {row.kind for row in table.summaries}
    return [
        (title, [row for row in table.summaries if row.kind == kind])
        for kind, title in _SUMMARIES.items()
        if kind in kinds
    ]


def _wide_row(table: ResultTable, name: str, rows: Sequence[TableRow]) -> list[str | GridCell]:
    by_shift = {row.shift: row for row in rows}
    cells = (row_cells(by_shift.get(shift), table) for shift in table.regimes)
    return [name, *(cell for regime in cells for cell in regime)]


def long_grid(table: ResultTable, caption: str | None = None) -> Grid:
    """A table with a row per dataset and regime: narrow, for many methods or little room.

    Parameters
    ----------
    table : ResultTable
    caption : str, optional
    """
    groups = [
        grid_group(([row.shift, *row_cells(row, table)] for row in rows), title)
        for title, rows in (*_data_rows(table), *_summary_rows(table))
    ]
    return Grid(
        caption=table_caption(table) if caption is None else caption,
        stub="shift",
        headings=(tuple(map(Heading, table.columns)),),
        groups=tuple(groups),
        notes=table.notes,
    )


def row_cells(row: TableRow | None, table: ResultTable) -> tuple[GridCell, ...]:
    """The cells of a row, shaded from the best to the worst of them."""
    if row is None:
        return (GridCell(MISSING),) * len(table.columns)
    digits = _RANK_DIGITS if row.kind == "rank" else digits_of(table.metric, table.digits)
    gain = row.kind != "rank" and larger_is_better(table.metric)
    return tuple(
        GridCell(MISSING)
        if cell is None
        else GridCell(number(cell.value, digits), cell.best, cell.mark, shade)
        for cell, shade in zip(row.cells, _shades(row.cells, gain), strict=True)
    )


def _shades(cells: Sequence[TableCell | None], gain: bool) -> list[float | None]:
    values = [cell.value for cell in cells if cell is not None]
    low, high = min(values, default=0.0), max(values, default=0.0)
    if low == high:
        return [None] * len(cells)
    places = [None if cell is None else (cell.value - low) / (high - low) for cell in cells]
    return [place if place is None or not gain else 1 - place for place in places]


def samples_grid(table: ResultTable) -> Grid:
    """Number of samples of each row."""
    rows = []
    for dataset in table.datasets:
        own = [table.row(dataset, shift) for shift in table.regimes]
        counts = [0 if row is None else row.n_samples for row in own]
        rows.append((dataset_title(dataset), *map(count, (*counts, sum(counts)))))
    headings = [*_regime_titles(table), "together"]
    caption = "Number of test samples by dataset and shift."
    return Grid.from_rows(caption, "dataset", headings, rows)


def spread_grid(table: ResultTable, caption: str | None = None) -> Grid:
    """Standard deviations between seeds, laid out as `wide_grid` does.

    Parameters
    ----------
    table : ResultTable
    caption : str, optional
    """
    default = f"Standard deviation of {measure_short(table.metric)} between seeds."
    digits = digits_of(table.metric)
    rows = []
    for dataset in table.datasets:
        cells = [table.cell(dataset, s, column) for s in table.regimes for column in table.columns]
        spreads = (number(cell.spread if cell else None, digits) for cell in cells)
        rows.append((dataset_title(dataset), *spreads))
    return Grid(
        caption=default if caption is None else caption,
        stub="dataset",
        headings=_wide_headings(table),
        groups=(grid_group(rows),),
    )
