"""Comparisons with the paper laid out for reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from prevalens.records import Result
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
from prevalens.reports.layout import measure_short, measure_title
from prevalens.reports.page import Section
from prevalens.reports.sections import (
    curves_section,
    provenance_section,
    results_section,
    tables_of,
)
from prevalens.reports.summarise import of_one_protocol
from prevalens.reports.table import TableCell
from prevalens.studies.moreo2023.comparison import (
    ALLOWANCES,
    Agreement,
    Compared,
    Comparison,
    Order,
    agreement,
    compare,
    orders,
)
from prevalens.studies.moreo2023.printed import PAPER, PRINTED_TABLES, method_place, printed
from prevalens.validation import InputError

__all__ = [
    "THRESHOLDS",
    "agreement_grid",
    "comparison_grid",
    "comparison_section",
    "orders_grid",
    "outside_grid",
    "paper_sections",
]

#: Shares of the printed value that agreement is counted within.
THRESHOLDS = (0.05, 0.10, 0.15, 0.25, 0.50)


def _percent(within: float) -> str:
    return f"{100 * within:g} %"


def comparison_grid(comparison: Comparison, *, within: float = 0.15) -> Grid:
    """Our values beside the printed ones, with ratios.

    Parameters
    ----------
    comparison : Comparison
    within : float
        Ratios of values that are farther from the printed ones are flagged.
    """
    heads = [head for source in comparison.sources for head in (source, "ratio")] + ["paper"]
    groups = []
    for dataset in comparison.datasets:
        lines = tuple(
            GridLine(shift, _beside(comparison.row(dataset, shift), comparison, within))
            for shift in comparison.regimes
        )
        groups.append(GridGroup(lines, dataset_title(dataset)))
    return Grid(
        caption=f"{measure_title(comparison.metric)}: ours beside the printed values.",
        stub="shift",
        headings=(
            tuple(Heading(method, len(heads)) for method in comparison.methods),
            tuple(Heading(head) for _ in comparison.methods for head in heads),
        ),
        groups=tuple(groups),
        notes=tuple(_comparison_notes(comparison, within)),
    )


def _beside(row: Sequence[Compared], comparison: Comparison, within: float) -> tuple[GridCell, ...]:
    found = {cell.method: cell for cell in row}
    digits = digits_of(comparison.metric)
    known = digits_of(comparison.metric, comparison.digits)
    entries: list[GridCell] = []
    for method in comparison.methods:
        cell = found.get(method)
        for source in range(len(comparison.sources)):
            entries += _ours(cell, source, digits, within)
        entries.append(GridCell(MISSING) if cell is None else _value(cell.printed, known))
    return tuple(entries)


def _ours(cell: Compared | None, source: int, digits: int, within: float) -> list[GridCell]:
    if cell is None:
        return [GridCell(MISSING), GridCell(MISSING, aside=True)]
    flag = cell.agrees(source, within) is False
    ratio = GridCell(number(cell.ratio(source), 2), aside=True, flag=flag)
    return [_value(cell.ours[source], digits), ratio]


def _value(cell: TableCell | None, digits: int) -> GridCell:
    if cell is None:
        return GridCell(MISSING)
    return GridCell(number(cell.value, digits), bold=cell.best, mark=cell.mark)


def _comparison_notes(comparison: Comparison, within: float) -> list[str]:
    notes = [
        "Ratio: our value divided by the printed one. In italics: farther than "
        f"{_percent(within)} from the printed value{_allowed(comparison)}."
    ]
    if len(comparison.sources) > 1:
        notes.append(
            "Where a method was run in one way only, that run stands under each of the headings."
        )
    others = {cell.dataset for cell in comparison.cells if not cell.counted}
    if others:
        named = ", ".join(dataset_title(name) for name in sorted(others))
        notes.append(
            f"{named}: the paper measured on other data, so that the printed values are shown for "
            "orientation and do not count."
        )
    return notes


def _allowed(comparison: Comparison) -> str:
    found = [name for name in comparison.datasets if name in ALLOWANCES]
    return "".join(
        f", on {dataset_title(name)} farther than {number(ALLOWANCES[name])}" for name in found
    )


def agreement_grid(comparison: Comparison, *, thresholds: Sequence[float] = THRESHOLDS) -> Grid:
    """How many cells agree with the printed ones, over all and by method and dataset.

    Parameters
    ----------
    comparison : Comparison
    thresholds : sequence of float
        Shares of the printed value to count within.
    """
    return Grid(
        caption="Share of our cells that agree with the printed ones.",
        stub="of",
        headings=(
            (
                Heading("cells"),
                *(Heading(f"within {_percent(within)}") for within in thresholds),
            ),
        ),
        groups=tuple(
            GridGroup(tuple(_agreement_lines(comparison, source, thresholds)), source)
            for source in comparison.sources
        ),
        notes=tuple(
            f"On {dataset_title(name)}, a difference of at most {number(allowed)} counts as "
            "agreement whatever the ratio."
            for name, allowed in ALLOWANCES.items()
            if name in comparison.datasets
        ),
    )


def _agreement_lines(
    comparison: Comparison, source: str, thresholds: Sequence[float]
) -> list[GridLine]:
    def line(name: str, method: str | None = None, dataset: str | None = None) -> GridLine:
        found = [
            agreement(comparison, source, within=within, method=method, dataset=dataset)
            for within in thresholds
        ]
        return GridLine(name, (GridCell(count(found[0].n_cells)), *map(_share, found)))

    methods = [line(method, method=method) for method in comparison.methods]
    counted = dict.fromkeys(cell.dataset for cell in comparison.cells if cell.counted)
    datasets = [line(dataset_title(name), dataset=name) for name in counted]
    return [line("all cells"), *methods, *datasets]


def _share(found: Agreement) -> GridCell:
    if not found.n_cells:
        return GridCell(MISSING)
    return GridCell(f"{percent(found.share)} ({found.n_agreeing})")


def outside_grid(
    comparison: Comparison,
    source: str,
    *,
    within: float = 0.15,
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
        What to write beside a cell.
    """
    place = comparison.sources.index(source)
    lines = []
    for cell in comparison.cells:
        if cell.counted and cell.agrees(place, within) is False:
            entries = _outside_entries(cell, place, comparison)
            if reasons is not None:
                entries.append(GridCell(reasons.get((cell.dataset, cell.method), "")))
            lines.append(GridLine(f"{dataset_title(cell.dataset)}, {cell.shift}", tuple(entries)))
    heads = [Heading("method", left=True)]
    heads += map(Heading, ("ours", "our seeds", "paper", "ratio"))
    if reasons is not None:
        heads.append(Heading("remark", left=True))
    return Grid(
        caption=f"Cells farther than {_percent(within)} from the printed value, {source}.",
        stub="dataset, shift",
        headings=(tuple(heads),),
        groups=(GridGroup(tuple(lines)),),
        notes=() if lines else ("There are none.",),
    )


def _outside_entries(cell: Compared, source: int, comparison: Comparison) -> list[GridCell]:
    digits = digits_of(comparison.metric)
    known = digits_of(comparison.metric, comparison.digits)
    ours = cell.ours[source]
    assert ours is not None  # a cell that disagrees is there
    values = ours.by_seed or (ours.value,)
    low, high = number(min(values), digits), number(max(values), digits)
    seeds = f"{len(values)}: {low if low == high else f'{low} to {high}'}"
    return [
        GridCell(cell.method),
        GridCell(number(ours.value, digits)),
        GridCell(seeds),
        GridCell(number(cell.printed.value, known)),
        GridCell(number(cell.ratio(source), 2)),
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
    heads = [*map(Heading, methods), Heading("best first", left=True)]
    heads += map(Heading, ("same order", "datasets"))
    groups = [
        GridGroup(tuple(_order_lines(orders(comparison), methods)), title)
        for title, comparison in comparisons.items()
    ]
    return Grid(
        caption="Mean rank of the methods by shift, ours beside the paper's.",
        stub="shift, source",
        headings=(tuple(heads),),
        groups=tuple(group for group in groups if group.lines),
        notes=(
            "Rank 1 is the best method of a dataset. The paper's ranks are those of its printed "
            "values on the datasets that we have run, not on all fifteen.",
        ),
    )


def _order_lines(found: Sequence[Order], methods: Sequence[str]) -> list[GridLine]:
    papers = {order.shift: order for order in found if order.source == "printed"}
    return [
        GridLine(
            f"{order.shift}, {'paper' if order.source == 'printed' else order.source}",
            (*_rank_entries(order, methods), *_order_entries(order, papers[order.shift])),
        )
        for order in found
    ]


def _rank_entries(order: Order, methods: Sequence[str]) -> list[GridCell]:
    best = min(order.ranks.values())
    span = max(order.ranks.values()) - best
    return [
        GridCell(MISSING)
        if rank is None
        else GridCell(number(rank, 2), rank == best, shade=(rank - best) / span if span else None)
        for rank in map(order.ranks.get, methods)
    ]


def _order_entries(order: Order, paper: Order) -> list[GridCell]:
    same = MISSING if order is paper else "yes" if order.agrees_with(paper) else "no"
    return [
        GridCell(", ".join(order.order)),
        GridCell(same),
        GridCell(count(order.n_datasets)),
    ]


def paper_sections(
    results: Iterable[Result],
    *,
    metrics: Sequence[str] = ("ae",),
    tables: Sequence[str] = (),
    reasons: Mapping[tuple[str, str], str] | None = None,
) -> list[Section]:
    """All sections of a report on results beside the paper's tables.

    Parameters
    ----------
    results : iterable of Result
        At most one for each dataset, method, variant and seed, of one protocol.
    metrics : sequence of str
    tables : sequence of str
        The printed tables to put them beside, of `PRINTED_TABLES`, each for its measure.
    reasons : mapping of (dataset, method) to str, optional
        What to write beside cells that differ from the printed ones.
    """
    found = list(results)
    sections: list[Section] = []
    for metric in metrics:
        chosen = of_one_protocol(found, metric)
        ours = tables_of(chosen, metric=metric, order=method_place)
        sections.append(results_section(ours))
        sections += [
            comparison_section(compare(ours, printed(name)), name, reasons=reasons)
            for name in tables
            if printed(name).metric == metric
        ]
        sections.append(curves_section(chosen, metric=metric, order=method_place))
    return [*sections, provenance_section(chosen, ours, order=method_place)]


def comparison_section(
    comparison: Comparison,
    table: str,
    *,
    within: float = 0.15,
    reasons: Mapping[tuple[str, str], str] | None = None,
) -> Section:
    """Ours beside the paper's: cell by cell, how many agree, which do not, and the order."""
    source = f"The printed values are those of {PAPER}: {PRINTED_TABLES[table]}."
    outside = [
        outside_grid(comparison, name, within=within, reasons=reasons)
        for name in comparison.sources
    ]
    return Section(
        f"Beside the paper, {measure_short(comparison.metric)}",
        (
            source,
            comparison_grid(comparison, within=within),
            agreement_grid(comparison),
            *outside,
            orders_grid({"": comparison}),
        ),
    )
