"""Grids of comparisons with the paper, and of our own tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.stats import spearmanr

from prevalens.reports.grid import (
    MISSING,
    Grid,
    GridCell,
    GridRow,
    Heading,
    count,
    dataset_title,
    digits_of,
    grid_group,
    number,
    percent,
)
from prevalens.reports.layout import measure_title
from prevalens.reports.summarise import ordered_names
from prevalens.reports.table import ResultTable, TableCell
from prevalens.studies.moreo2023.comparison import (
    ALLOWANCES,
    PRINT,
    Compared,
    Comparison,
    Order,
    agreement,
    n_pooled,
    orders,
)
from prevalens.studies.moreo2023.printed import CAPTIONS
from prevalens.studies.moreo2023.table_summary import Run, Validated
from prevalens.validation import InputError

#: Shares of the printed value that agreement is counted within.
THRESHOLDS = (0.05, 0.10, 0.15, 0.25, 0.50)
_WITHIN = 0.15
#: Number of methods in a table of the page on the reproduction; more would not fit.
_ABREAST = 4
_PAPER = "paper"
_RANK_DIGITS = 2
#: Number of methods from which on a rank correlation is computed.
_FEWEST_METHODS = 3
#: The cells of a dataset, regime and method.
_Cells: TypeAlias = Callable[[str, str, str], Iterable[GridCell]]
_NOTES: dict[str, str] = CAPTIONS["notes"]


def comparison_grid(comparison: Comparison, *, within: float = _WITHIN) -> Grid:
    """Our values next to the printed ones, with ratios.

    Parameters
    ----------
    comparison : Comparison
    within : float
        Ratios of values that are farther from the printed ones are flagged.
    """
    digits, known = _digits(comparison)
    sources = range(len(comparison.sources))

    def cells(dataset: str, shift: str, method: str) -> list[GridCell]:
        cell = comparison.cell(dataset, shift, method)
        if cell is None:
            blank = [GridCell(MISSING), GridCell(MISSING, aside=True)]
            return [*blank * len(sources), GridCell(MISSING)]
        ours = []
        for source in sources:
            ratio = number(cell.ratio(source), 2)
            off = cell.agrees(source, within) is False
            ours += [_value(cell.ours[source], digits), GridCell(ratio, aside=True, flag=off)]
        return [*ours, _value(cell.printed, known)]

    return _by_method(
        f"{measure_title(comparison.metric)}: ours beside the printed values.",
        comparison,
        comparison.methods,
        [*(head for source in comparison.sources for head in (source, "ratio")), _PAPER],
        cells,
        _comparison_notes(comparison, within),
    )


def _by_method(
    caption: str,
    shown: Comparison | ResultTable,
    methods: Sequence[str],
    heads: Sequence[str],
    cells: _Cells,
    notes: Iterable[str] = (),
    averages: Mapping[str, _Cells] | None = None,
) -> Grid:
    """A group per dataset with a row per shift; for each method the cells under some heads.

    The averages, by the titles of their groups, come last; their dataset is empty.
    """
    data = {dataset_title(dataset): (dataset, cells) for dataset in shown.datasets}
    last = {title: ("", figures) for title, figures in (averages or {}).items()}
    groups = [
        grid_group(
            (
                (shift, *(cell for method in methods for cell in figures(dataset, shift, method)))
                for shift in shown.regimes
            ),
            title,
        )
        for title, (dataset, figures) in (data | last).items()
    ]
    headings = (
        tuple(Heading(method, len(heads)) for method in methods),
        tuple(Heading(head) for _ in methods for head in heads),
    )
    return Grid(caption, "shift", headings, tuple(groups), tuple(notes))


def _digits(comparison: Comparison) -> tuple[int, int]:
    """Digits of our values, and of the printed ones."""
    metric = comparison.metric
    return digits_of(metric), digits_of(metric, comparison.digits)


def _value(cell: TableCell | None, digits: int, *, flag: bool = False) -> GridCell:
    if cell is None:
        return GridCell(MISSING)
    return GridCell(number(cell.value, digits), cell.best, cell.mark, flag=flag)


def _comparison_notes(comparison: Comparison, within: float) -> list[str]:
    allowed = "".join(
        f", on {dataset_title(name)} farther than {number(ALLOWANCES[name])}"
        for name in comparison.datasets
        if name in ALLOWANCES
    )
    notes = [_NOTES["ratio"].format(within=100 * within, allowed=allowed)]
    if len(comparison.sources) > 1:
        notes.append(_NOTES["one_way"])
    others = {cell.dataset for cell in comparison.cells if not cell.counted}
    if others:
        titles = ", ".join(map(dataset_title, sorted(others)))
        notes.append(_NOTES["other_data"].format(datasets=titles))
    return notes


def side_by_side_grids(title: str, comparison: Comparison) -> list[Grid]:
    """The printed values and ours, four methods to a table.

    Parameters
    ----------
    title : str
        What the table is about.
    comparison : Comparison
    """
    digits, known = _digits(comparison)
    # The run that imitates the paper's code is shown next to the printed values.
    places = range(len(comparison.sources))[::-1]

    def cells(dataset: str, shift: str, method: str) -> list[GridCell]:
        cell = comparison.cell(dataset, shift, method)
        if cell is None:
            return [GridCell(MISSING)] * (1 + len(places))
        ours = (
            _value(cell.ours[i], digits, flag=cell.counted and cell.agrees(i, _WITHIN) is False)
            for i in places
        )
        return [_value(cell.printed, known), *ours]

    heads = (_PAPER, *comparison.sources[::-1])
    averages, notes = _compared_averages(comparison)
    return [
        _by_method(
            f"{title}: {', '.join(methods)}.", comparison, methods, heads, cells, notes, averages
        )
        for methods in _abreast(comparison.methods)
    ]


def _compared_averages(comparison: Comparison) -> tuple[dict[str, _Cells], list[str]]:
    """The averages below a comparison, and what they are over."""
    digits, known = _digits(comparison)
    ranked = orders(comparison)
    sources = (PRINT, *comparison.sources[::-1])
    by_place = {(order.source, order.shift): order for order in ranked}
    pooled = {(cell.shift, cell.method): cell for cell in comparison.pooled}

    def over_samples(_: str, shift: str, method: str) -> list[GridCell]:
        cell = pooled.get((shift, method))
        if cell is None:
            return [GridCell(MISSING)] * len(sources)
        return [_value(cell.printed, known), *(_value(own, digits) for own in cell.ours[::-1])]

    def over_datasets(_: str, shift: str, method: str) -> list[GridCell]:
        means = [by_place[source, shift].means for source in sources]
        return [_best_of(mean, method, digits) for mean in means]

    def of_ranks(_: str, shift: str, method: str) -> list[GridCell]:
        places = [by_place[source, shift].ranks for source in sources]
        return [_best_of(place, method, _RANK_DIGITS) for place in places]

    averages: dict[str, _Cells] = {}
    notes = []
    if pooled:
        averages["Average over samples"] = over_samples
        counts = zip(comparison.sources[::-1], comparison.n_pooled[:0:-1], strict=True)
        ours = " and ".join(f"over {n} {source}" for source, n in counts)
        notes.append(_NOTES["pooled"].format(printed=comparison.n_pooled[0], ours=ours))
    if ranked:
        averages |= {"Average over datasets": over_datasets, "Average rank": of_ranks}
        notes.append(_NOTES["averages"].format(n=ranked[0].n_datasets))
    return averages, notes


def _best_of(figures: Mapping[str, float], method: str, digits: int) -> GridCell:
    """The figure of a method, bold if it is the smallest."""
    if method not in figures:
        return GridCell(MISSING)
    return GridCell(number(figures[method], digits), figures[method] == min(figures.values()))


def own_grids(title: str, tables: Mapping[str, ResultTable]) -> list[Grid]:
    """Our values alone, by the way they were run, four methods to a table, eight if in one way.

    Parameters
    ----------
    title : str
    tables : mapping of str to ResultTable
        By the way they were run, all of one measure.
    """
    # The table of most datasets names the rows; ways that lack one show dashes.
    first = max(tables.values(), key=lambda table: len(table.datasets))
    names = tuple(tables)[::-1]
    digits = digits_of(first.metric)

    def cells(dataset: str, shift: str, method: str) -> list[GridCell]:
        return [_value(tables[name].cell(dataset, shift, method), digits) for name in names]

    def over_samples(_: str, shift: str, method: str) -> list[GridCell]:
        return [_value(tables[name].average(shift, method), digits) for name in names]

    columns = list(dict.fromkeys(name for table in tables.values() for name in table.columns))
    counts = [(name, n_pooled(tables[name])) for name in names]
    note = _NOTES["own_pooled"].format(ours=" and ".join(f"{n} {name}" for name, n in counts))
    averages, notes = ({"Average over samples": over_samples}, [note]) if counts[0][1] else ({}, [])
    return [
        _by_method(f"{title}: {', '.join(chunk)}.", first, chunk, names, cells, notes, averages)
        for chunk in _abreast(columns, 2 * _ABREAST if len(names) == 1 else _ABREAST)
    ]


def _abreast(methods: Sequence[str], number: int = _ABREAST) -> list[Sequence[str]]:
    return [methods[start : start + number] for start in range(0, len(methods), number)]


def agreement_grid(comparison: Comparison, *, thresholds: Sequence[float] = THRESHOLDS) -> Grid:
    """How many cells agree with the printed ones, over all and by method and dataset.

    Parameters
    ----------
    comparison : Comparison
    thresholds : sequence of float
        Shares of the printed value to count within.
    """
    counted = dict.fromkeys(cell.dataset for cell in comparison.cells if cell.counted)
    chosen: list[tuple[str, dict[str, str]]] = [
        ("all cells", {}),
        *((method, {"method": method}) for method in comparison.methods),
        *((dataset_title(name), {"dataset": name}) for name in counted),
    ]

    def row(name: str, source: str, only: Mapping[str, str]) -> GridRow:
        counts = [agreement(comparison, source, within=within, **only) for within in thresholds]
        shares = [
            f"{percent(near.share)} ({near.n_agreeing})" if near.n_cells else MISSING
            for near in counts
        ]
        return (name, count(counts[0].n_cells), *shares)

    return Grid(
        caption="Share of our cells that agree with the printed ones.",
        stub="of",
        headings=(tuple(map(Heading, ("cells", *(f"within {100 * t:g} %" for t in thresholds)))),),
        groups=tuple(
            grid_group((row(name, source, only) for name, only in chosen), source)
            for source in comparison.sources
        ),
        notes=tuple(
            _NOTES["allowance"].format(dataset=dataset_title(name), allowed=number(allowed))
            for name, allowed in ALLOWANCES.items()
            if name in comparison.datasets
        ),
    )


def agreements_grid(comparisons: Mapping[str, Comparison]) -> Grid:
    """How many of our cells are close to the printed ones, by table.

    Parameters
    ----------
    comparisons : mapping of str to Comparison
        By the title of the table.
    """
    rows = []
    for title, comparison in comparisons.items():
        for place, source in reversed([*enumerate(comparison.sources)]):
            run = {c.dataset for c in comparison.cells if c.counted and c.ours[place] is not None}
            counts = [agreement(comparison, source, within=within) for within in (0.15, 0.25)]
            if counts[0].n_cells:
                shares = [f"{near.n_agreeing} ({percent(near.share)})" for near in counts]
                sizes = (count(len(run)), count(counts[0].n_cells))
                rows.append((f"{title}, {source}", *sizes, *shares))
    caption = "Cells that are near the printed ones."
    headings = ("datasets", "cells", "within 15 %", "within 25 %")
    return Grid.from_rows(caption, "table", headings, rows, [_NOTES["near"]])


def outside_grid(
    comparison: Comparison,
    source: str,
    *,
    within: float = _WITHIN,
    reasons: Mapping[tuple[str, str], str] | None = None,
) -> Grid:
    """The cells that do not agree with the printed ones, with the range of our seeds.

    Parameters
    ----------
    comparison : Comparison
    source : str
        Which of our tables.
    within : float
        How far a value may be from the printed one, as a share of it.
    reasons : mapping of (dataset, method) to str, optional
        Remarks on cells.
    """
    place = comparison.sources.index(source)
    rows = []
    for cell in comparison.cells:
        if cell.counted and cell.agrees(place, within) is False:
            remark = [] if reasons is None else [reasons.get((cell.dataset, cell.method), "")]
            name = f"{dataset_title(cell.dataset)}, {cell.shift}"
            rows.append((name, *_outside_texts(cell, place, comparison), *remark))
    remarks = [] if reasons is None else [Heading("remark", left=True)]
    return Grid.from_rows(
        f"Cells farther than {100 * within:g} % from the printed value, {source}.",
        "dataset, shift",
        [Heading("method", left=True), "ours", "our seeds", "paper", "ratio", *remarks],
        rows,
        () if rows else ["There are none."],
    )


def _outside_texts(cell: Compared, source: int, comparison: Comparison) -> list[str]:
    digits, known = _digits(comparison)
    ours = cell.ours[source]
    assert ours is not None  # a cell that disagrees is there
    values = ours.by_seed or (ours.value,)
    low, high = number(min(values), digits), number(max(values), digits)
    return [
        cell.method,
        number(ours.value, digits),
        f"{len(values)}: {low if low == high else f'{low} to {high}'}",
        number(cell.printed.value, known),
        number(cell.ratio(source), 2),
    ]


def orders_grid(comparisons: Mapping[str, Comparison]) -> Grid:
    """How we and the paper order the methods, by mean rank in each regime.

    Parameters
    ----------
    comparisons : mapping of str to Comparison
        By title, for example the base quantifier. Their methods must be the same.
    """
    if not comparisons:
        raise InputError("There is no comparison to take an order from.")
    methods = next(iter(comparisons.values())).methods
    groups = [
        grid_group(_order_rows(orders(comparison), methods), title)
        for title, comparison in comparisons.items()
    ]
    heads = [*map(Heading, methods), Heading("best first", left=True)]
    return Grid(
        caption="Mean rank of the methods by shift, ours beside the paper's.",
        stub="shift, source",
        headings=((*heads, Heading("same order"), Heading("datasets")),),
        groups=tuple(group for group in groups if group.lines),
        notes=(_NOTES["ranks"],),
    )


def _order_rows(known: Sequence[Order], methods: Sequence[str]) -> Iterable[GridRow]:
    papers = {order.shift: order for order in known if order.source == PRINT}
    for order in known:
        printed = order.source == PRINT
        same = "yes" if order.agrees_with(papers[order.shift]) else "no"
        yield (
            f"{order.shift}, {_PAPER if printed else order.source}",
            *_rank_cells(order, methods),
            ", ".join(order.order),
            MISSING if printed else same,
            count(order.n_datasets),
        )


def _rank_cells(order: Order, methods: Sequence[str]) -> list[GridCell]:
    best = min(order.ranks.values())
    span = max(order.ranks.values()) - best
    return [
        GridCell(MISSING)
        if rank is None
        else GridCell(number(rank, 2), rank == best, shade=(rank - best) / span if span else None)
        for rank in map(order.ranks.get, methods)
    ]


def wins_grid(comparisons: Mapping[str, Comparison]) -> Grid:
    """On how many datasets each method is the best, ours beside the paper's.

    Parameters
    ----------
    comparisons : mapping of str to Comparison
        By title, for example the base quantifier. Their methods must be the same.
    """
    methods = next(iter(comparisons.values())).methods
    groups = [
        grid_group(_win_rows(comparison, methods), title)
        for title, comparison in comparisons.items()
    ]
    return Grid(
        caption="Datasets on which a method has the smallest error, by shift.",
        stub="shift, source",
        headings=((*map(Heading, methods), Heading("datasets")),),
        groups=tuple(group for group in groups if group.lines),
        notes=(_NOTES["wins"],),
    )


def _win_rows(comparison: Comparison, methods: Sequence[str]) -> Iterable[GridRow]:
    for shift in comparison.regimes:
        rows = [comparison.row(dataset, shift) for dataset in comparison.datasets]
        whole = [row for row in rows if row and all(cell.complete for cell in row)]
        for source in (PRINT, *comparison.sources[::-1]) if whole else ():
            wins = dict.fromkeys((*methods, *comparison.methods), 0)
            for row in whole:
                values = {cell.method: comparison.value(cell, source).value for cell in row}
                best = min(values.values())
                for method, value in values.items():
                    wins[method] += value == best
            name = _PAPER if source == PRINT else source
            figures = (count(wins[method]) for method in methods)
            yield (f"{shift}, {name}", *figures, count(len(whole)))


@dataclass(frozen=True)
class ValidationCheck:
    """How well the losses of model selection foretell the errors on test samples, on one dataset.

    Attributes
    ----------
    n_methods : int
    correlation : float
        Spearman's rank correlation of loss and error over the methods.
    chosen : str
        The method with the smallest loss.
    ratio : float
        Its error, divided by the smallest error of any method.
    """

    n_methods: int
    correlation: float
    chosen: str
    ratio: float


def check_validation(pairs: Sequence[Validated]) -> dict[str, ValidationCheck]:
    """Compare losses and errors of methods, dataset by dataset.

    Parameters
    ----------
    pairs : list of Validated
        Of one table and way; means over seeds are compared. A dataset needs three methods.

    Notes
    -----
    Datasets are not pooled: their errors differ by orders of magnitude, so that losses and errors
    of all of them correlate even if no method can be told from another.
    """
    checks = {}
    for dataset in ordered_names(pair.dataset for pair in pairs):
        own: dict[str, list[tuple[float, float]]] = {}
        for pair in pairs:
            if pair.dataset == dataset:
                own.setdefault(pair.method, []).append((pair.validation, pair.test))
        if len(own) < _FEWEST_METHODS:
            continue
        loss, error = np.array([np.mean(values, axis=0) for values in own.values()]).T
        first = int(np.argmin(loss))
        correlation = float(spearmanr(loss, error).statistic)
        ratio = float(error[first] / error.min())
        checks[dataset] = ValidationCheck(len(own), correlation, list(own)[first], ratio)
    return checks


def validation_grid(checks: Mapping[str, Mapping[str, ValidationCheck]]) -> Grid:
    """Rank correlations of validation losses and test errors, by dataset and table.

    Parameters
    ----------
    checks : mapping of str to mapping of str to ValidationCheck
        By the title of the table, then by dataset.
    """
    heads = ("methods", "correlation", "chosen", "ratio")
    rows = []
    for dataset in ordered_names(name for known in checks.values() for name in known):
        cells: list[str] = []
        for known in checks.values():
            check = known.get(dataset)
            cells += (
                [MISSING] * len(heads)
                if check is None
                else [
                    count(check.n_methods),
                    number(check.correlation, 2),
                    check.chosen,
                    number(check.ratio, 2),
                ]
            )
        rows.append((dataset_title(dataset), *cells))
    return Grid(
        "Model selection and test samples: rank correlation over methods, by dataset.",
        "dataset",
        (
            tuple(Heading(title, len(heads)) for title in checks),
            tuple(Heading(head, left=head == "chosen") for _ in checks for head in heads),
        ),
        (grid_group(rows),),
        (_NOTES["validation"],),
    )


def runs_grid(runs: Mapping[str, Sequence[Run]]) -> Grid:
    """Which tables were run on which datasets and with which seeds.

    Parameters
    ----------
    runs : mapping of str to list of Run
        By the title of the table.
    """
    known = [run for table_runs in runs.values() for run in table_runs]
    rows = []
    for dataset in dict.fromkeys(run.dataset for run in known):
        own = [next((r for r in part if r.dataset == dataset), None) for part in runs.values()]
        seeds = [MISSING if run is None else ", ".join(map(str, run.seeds)) for run in own]
        checksums = ", ".join(sorted({run.data_sha for run in own if run is not None}))
        rows.append((dataset_title(dataset), *seeds, checksums[:12]))
    versions = ", ".join(sorted({name for run in known for name in run.version.split(", ")}))
    caption = "Seeds with which each table was run, by dataset."
    notes = [f"Made with prevalens {versions}."]
    if any(len(run.seeds) > 1 for run in known):
        notes.append(_NOTES["seeds"])
    return Grid.from_rows(caption, "dataset", (*runs, "data SHA-256"), rows, notes)
