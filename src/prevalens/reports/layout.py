"""The sentences that explain a table to someone who sees one for the first time."""

from __future__ import annotations

from collections.abc import Sequence

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
)
from prevalens.reports.table import ResultTable, TableCell, TableRow, larger_is_better

__all__ = [
    "SUMMARY_TITLES",
    "about_marks",
    "about_samples",
    "about_shift",
    "about_summaries",
    "long_grid",
    "measure_long",
    "measure_short",
    "measure_title",
    "measure_words",
    "regime_title",
    "row_entries",
    "samples_grid",
    "spread_grid",
    "wide_grid",
]

_MEASURES = {
    "ae": (
        "AE",
        "absolute error",
        "the distance between the estimated and the true share of a label, averaged over labels; "
        ".05 means that estimates are off by five percentage points on average",
    ),
    "rae": (
        "RAE",
        "relative absolute error",
        "the absolute error of each label relative to its true share (and to the share without "
        "it), averaged over labels; 1 means that errors are as large as the shares themselves, and "
        "rare labels weigh as much as frequent ones",
    ),
    "se": ("SE", "squared error", "the squared distance of shares, averaged over labels"),
    "nae": (
        "NAE",
        "normalised absolute error",
        "the absolute error divided by the largest one possible for the true shares, from 0 to 1",
    ),
    "nrae": (
        "NRAE",
        "normalised relative absolute error",
        "the relative absolute error divided by the largest one possible, from 0 to 1",
    ),
    "kld": (
        "KLD",
        "Kullback-Leibler divergence",
        "how badly the estimated shares describe the true ones, in nats, averaged over labels",
    ),
    "concordance": (
        "CR",
        "concordance ratio",
        "the smaller of the estimated and the true share divided by the larger one, averaged over "
        "labels; 1 is perfect",
    ),
}

#: What the summaries of a table are called.
SUMMARY_TITLES = {
    "pooled": "Average over samples",
    "mean": "Average over datasets",
    "rank": "Average rank",
}

_KINDS = {
    "pooled": "Average over samples counts every sample once, so that datasets with more samples "
    "in a regime weigh more; it is the average that the paper prints",
    "mean": "average over datasets counts every dataset once",
    "rank": "average rank is the mean place of a method among the others, 1 for the best",
}


def measure_short(metric: str) -> str:
    """Abbreviation of a measure."""
    return _MEASURES[metric][0] if metric in _MEASURES else metric


def measure_long(metric: str) -> str:
    """Name of a measure with its abbreviation.

    Examples
    --------
    >>> measure_long("ae")
    'absolute error (AE)'
    """
    if metric not in _MEASURES:
        return metric
    short, long, _ = _MEASURES[metric]
    return f"{long} ({short})"


def measure_title(metric: str) -> str:
    """Name of a measure, with a capital, for the beginning of a caption."""
    long = measure_long(metric)
    return long[0].upper() + long[1:]


def measure_words(metric: str) -> str:
    """A sentence or two on what a measure measures."""
    better = "More is better." if larger_is_better(metric) else "Less is better."
    if metric not in _MEASURES:
        return f"Figures are {metric}. {better}"
    return f"{measure_title(metric)}: {_MEASURES[metric][2]}. {better}"


def about_samples(table: ResultTable) -> str:
    """What a figure is the mean of."""
    totals = {
        dataset: sum(
            max((cell.n_samples for cell in row.cells if cell is not None), default=0)
            for row in table.rows
            if row.dataset == dataset
        )
        for dataset in table.datasets
    }
    fewest, most = min(totals.values()), max(totals.values())
    how_many = count(most) if fewest == most else f"{count(fewest)} to {count(most)}"
    return (
        f"Every figure is a mean over test samples, {how_many} per dataset. A sample is a batch of "
        "items, drawn from the test part so that its label mix is not the training part's; a "
        "method sees the items and estimates the share of each label."
    )


def about_shift() -> str:
    """What the shift regimes are."""
    return (
        "Shift is how far a sample's label shares have moved from those of the training part, as "
        "mean absolute difference. Low, mid and high are the three equal parts of the range of "
        "shifts that occur on a dataset."
    )


def about_marks() -> str:
    """What bold type and daggers mean."""
    return (
        "The best method of each dataset and regime is in bold. † and ‡ mark methods that are not "
        "clearly different from it by a Wilcoxon signed-rank test on the errors of the same "
        "samples: † stands for .001 < p < .05, ‡ for p ≥ .05. Without a mark, p < .001."
    )


def about_summaries(table: ResultTable) -> str:
    """What the averages at the end of a table are; empty if it has none."""
    kinds = dict.fromkeys(row.kind for row in table.summaries)
    if not kinds:
        return ""
    sizes = sorted({row.n_datasets for row in table.summaries})
    datasets = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else str(sizes[0])
    plural = "dataset" if datasets == "1" else "datasets"
    sentence = "; ".join(_KINDS[kind] for kind in kinds)
    return f"{sentence[0].upper()}{sentence[1:]}. They are over {datasets} {plural}."


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


def _wide_rows(table: ResultTable) -> GridGroup:
    lines = []
    for dataset in table.datasets:
        rows = [table.row(dataset, shift) for shift in table.regimes]
        lines.append(GridLine(dataset_title(dataset), _side_by_side(rows, table)))
    return GridGroup(tuple(lines))


def _wide_summaries(table: ResultTable) -> list[GridGroup]:
    lines = []
    for kind, title in SUMMARY_TITLES.items():
        rows = [row for row in table.summaries if row.kind == kind]
        if rows:
            found = {row.shift: row for row in rows}
            aligned = [found.get(shift) for shift in table.regimes]
            lines.append(GridLine(title, _side_by_side(aligned, table)))
    return [GridGroup(tuple(lines))] if lines else []


def _side_by_side(rows: Sequence[TableRow | None], table: ResultTable) -> tuple[GridCell, ...]:
    return tuple(entry for row in rows for entry in row_entries(row, table))


def long_grid(table: ResultTable, caption: str | None = None) -> Grid:
    """A table with a row per dataset and regime: narrow, for many methods or little room.

    Parameters
    ----------
    table : ResultTable
    caption : str, optional
    """
    data = [
        GridGroup(_lines(table, [row for row in table.rows if row.dataset == d]), dataset_title(d))
        for d in table.datasets
    ]
    summaries = [
        GridGroup(_lines(table, [row for row in table.summaries if row.kind == kind]), title)
        for kind, title in SUMMARY_TITLES.items()
    ]
    return Grid(
        caption=_caption(table) if caption is None else caption,
        stub="shift",
        headings=(tuple(map(Heading, table.columns)),),
        groups=tuple(group for group in (*data, *summaries) if group.lines),
        notes=table.notes,
    )


def _lines(table: ResultTable, rows: Sequence[TableRow]) -> tuple[GridLine, ...]:
    return tuple(GridLine(row.shift, row_entries(row, table)) for row in rows)


def row_entries(row: TableRow | None, table: ResultTable) -> tuple[GridCell, ...]:
    """The cells of a row, shaded from the best to the worst of them."""
    if row is None:
        return (GridCell(MISSING),) * len(table.columns)
    digits = _RANK_DIGITS if row.kind == "rank" else digits_of(table.metric, table.digits)
    gain = row.kind != "rank" and larger_is_better(table.metric)
    shades = _shades(row.cells, gain)
    return tuple(
        GridCell(MISSING)
        if cell is None
        else GridCell(number(cell.value, digits), cell.best, cell.mark, shade)
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
        entries = [GridCell(count(n)) for n in (*counts, sum(counts))]
        lines.append(GridLine(dataset_title(dataset), tuple(entries)))
    return Grid(
        caption="Number of test samples by dataset and shift.",
        stub="dataset",
        headings=(tuple(map(Heading, [*map(regime_title, table.regimes), "together"])),),
        groups=(GridGroup(tuple(lines)),),
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
        GridLine(
            dataset_title(dataset),
            tuple(
                GridCell(number(_spread(table, dataset, shift, column), digits_of(table.metric)))
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
        groups=(GridGroup(tuple(lines)),),
    )


def _spread(table: ResultTable, dataset: str, shift: str, column: str) -> float | None:
    cell = table.cell(dataset, shift, column)
    return None if cell is None else cell.spread
