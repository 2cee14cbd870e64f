"""The sections of a report on results: what is shown, tables, comparison, curves, provenance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.records import Result
from prevalens.reporting.chart_sections import curves_section, shift_section
from prevalens.reporting.checking import (
    column_of,
    of_one_protocol,
    ordered_columns,
    ordered_datasets,
    twins_among,
)
from prevalens.reporting.comparison import Comparison, by_variant, compare
from prevalens.reporting.comparison_layout import (
    agreement_grid,
    comparison_grid,
    orders_grid,
    outside_grid,
)
from prevalens.reporting.formatting import MISSING, count, dataset_title
from prevalens.reporting.grid import Entry, Grid, Group, Heading, Line
from prevalens.reporting.layout import long_grid, samples_grid, spread_grid, wide_grid
from prevalens.reporting.page import Part, Section
from prevalens.reporting.printed import PAPER, PRINTED_TABLES, printed
from prevalens.reporting.summarise import summarise
from prevalens.reporting.table import ResultTable
from prevalens.reporting.words import (
    about_marks,
    about_samples,
    about_shift,
    about_summaries,
    measure_short,
    measure_title,
    measure_words,
)
from prevalens.validation import InputError

__all__ = [
    "comparison_section",
    "protocol_sections",
    "provenance_section",
    "report_sections",
    "results_section",
    "tables_of",
]

#: More columns than this side by side are hard to read.
_WIDEST = 18


def tables_of(
    results: Iterable[Result], *, metric: str = "ae", protocol: str | None = None
) -> dict[str, ResultTable]:
    """One table for each way the results were run.

    The corrected Tmc2007_500 does not count in averages where the release that the paper used is
    there too, as it is the same data.
    """
    tables = {}
    for variant, found in by_variant(results).items():
        left_out = twins_among(result.dataset for result in found)
        tables[variant] = summarise(found, metric=metric, protocol=protocol, left_out=left_out)
    return tables


def report_sections(
    results: Iterable[Result],
    *,
    metrics: Sequence[str] = ("ae",),
    protocol: str | None = None,
    paper_tables: Sequence[str] = (),
    reasons: Mapping[tuple[str, str], str] | None = None,
) -> list[Section]:
    """All sections of a report on the results of one table.

    Parameters
    ----------
    results : iterable of Result
        At most one for each dataset, method, variant and seed.
    metrics : sequence of str
    protocol : str, optional
        Needed if the results are under several.
    paper_tables : sequence of str
        The printed tables to put them beside, of `PRINTED_TABLES`, each for its measure.
    reasons : mapping of (dataset, method) to str, optional
        What to write beside cells that differ from the printed ones.

    Examples
    --------
    >>> import numpy as np
    >>> result = Result("own", "ml-app", "PCC", "lr+pcc", 0, np.arange(3.0), {"ae": np.ones(3)})
    >>> [section.title for section in report_sections([result])]
    ['Results, AE', 'Error against shift, AE', 'Where the figures come from']
    """
    if not metrics:
        raise InputError("metrics is empty; name at least one measure.")
    found = list(results)
    sections: list[Section] = []
    for metric in metrics:
        chosen = of_one_protocol(found, metric, protocol)
        tables = tables_of(chosen, metric=metric)
        sections.append(results_section(tables))
        sections += [
            comparison_section(compare(tables, printed(name)), name, reasons=reasons)
            for name in paper_tables
            if printed(name).metric == metric
        ]
        sections.append(curves_section(chosen, metric=metric))
    return [*sections, provenance_section(chosen, tables)]


def protocol_sections(
    results: Iterable[Result], *, metrics: Sequence[str] = ("ae",)
) -> list[Section]:
    """The sections of a report for each protocol, and how far samples moved under each.

    Parameters
    ----------
    results : iterable of Result
        At most one for each dataset, method, variant, protocol and seed.
    metrics : sequence of str

    Examples
    --------
    >>> import numpy as np
    >>> results = [
    ...     Result("own", name, "PCC", "lr+pcc", 0, np.arange(3.0), {"ae": np.ones(3)})
    ...     for name in ("ml-app", "natural")
    ... ]
    >>> [section.title for section in protocol_sections(results)][:2]
    ['How far samples have moved', 'ml-app: Results, AE']
    """
    found = list(results)
    protocols = list(dict.fromkeys(result.protocol for result in found))
    if len(protocols) < 2:
        return report_sections(found, metrics=metrics)
    return [
        shift_section(_shifts(found)),
        *(
            Section(f"{protocol}: {section.title}", section.parts)
            for protocol in protocols
            for section in report_sections(found, metrics=metrics, protocol=protocol)
        ),
    ]


def _shifts(results: Sequence[Result]) -> dict[str, dict[str, npt.NDArray[np.floating[Any]]]]:
    """By dataset and protocol, the shifts of the samples; methods with one seed share theirs."""
    found: dict[str, dict[str, npt.NDArray[np.floating[Any]]]] = {}
    for dataset in ordered_datasets(results):
        own: dict[str, npt.NDArray[np.floating[Any]]] = {}
        for result in results:
            if result.dataset == dataset:
                own.setdefault(result.protocol, result.shift)
        found[dataset] = own
    return found


def results_section(tables: Mapping[str, ResultTable]) -> Section:
    """What the figures mean, and one table for each way the results were run."""
    first = next(iter(tables.values()))
    words = [
        measure_words(first.metric),
        about_samples(first),
        about_shift(),
        about_marks(),
        about_summaries(first),
    ]
    grids: list[Part] = []
    for name, table in tables.items():
        how = f", {name}" if len(tables) > 1 else ""
        caption = f"{measure_title(table.metric)} by dataset and shift, {table.protocol}{how}."
        grids.append(_fitting(table, caption))
    return Section(f"Results, {measure_short(first.metric)}", (*filter(None, words), *grids))


def _fitting(table: ResultTable, caption: str) -> Grid:
    side_by_side = len(table.columns) * len(table.regimes) <= _WIDEST
    return wide_grid(table, caption) if side_by_side else long_grid(table, caption)


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


def provenance_section(results: Sequence[Result], tables: Mapping[str, ResultTable]) -> Section:
    """Where the figures come from: samples, seeds, methods, versions, data and time."""
    first = next(iter(tables.values()))
    spreads = [
        spread_grid(table, f"Standard deviation between seeds, {name}.")
        for name, table in tables.items()
        if any(cell and cell.spread is not None for row in table.rows for cell in row.cells)
    ]
    return Section(
        "Where the figures come from",
        (samples_grid(first), *spreads, _methods_grid(results), _runs_grid(results)),
    )


def _methods_grid(results: Sequence[Result]) -> Grid:
    lines = [
        Line(name, (Entry(_joined(r.expression for r in results if column_of(r) == name)),))
        for name in ordered_columns(results)
    ]
    return Grid(
        caption="The methods in the words of the catalogue.",
        stub="method",
        headings=((Heading("expression", words=True),),),
        groups=(Group(tuple(lines)),),
    )


def _runs_grid(results: Sequence[Result]) -> Grid:
    heads = ("seeds", "results", "seconds", "version", "data SHA-256")
    lines = []
    for dataset in ordered_datasets(results):
        own = [result for result in results if result.dataset == dataset]
        entries = (
            Entry(_joined(str(result.seed) for result in own)),
            Entry(count(len(own))),
            Entry(_seconds(own)),
            Entry(_joined(result.version for result in own)),
            Entry(_joined(result.data_sha[:12] for result in own)),
        )
        lines.append(Line(dataset_title(dataset), entries))
    return Grid(
        caption="The runs behind the figures.",
        stub="dataset",
        headings=(tuple(map(Heading, heads)),),
        groups=(Group(tuple(lines)),),
    )


def _joined(words: Iterable[str]) -> str:
    return ", ".join(sorted(filter(None, set(words)))) or MISSING


def _seconds(results: Sequence[Result]) -> str:
    known = [
        r.usage["seconds"] for r in results if isinstance(r.usage.get("seconds"), (int, float))
    ]
    return f"{sum(known):,.0f}" if known else MISSING
