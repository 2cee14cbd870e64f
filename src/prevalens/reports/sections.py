"""Sections of reports on results: tables, charts of errors and data, and their provenance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy.typing as npt

from prevalens.collection import Collection
from prevalens.records import Result
from prevalens.reports import charts as draw
from prevalens.reports import layout
from prevalens.reports.grid import MISSING, Grid, Heading, count, dataset_title
from prevalens.reports.page import Figure, Gallery, Section
from prevalens.reports.render import CAPTIONS
from prevalens.reports.summarise import (
    MethodOrder,
    column_of,
    groups_first,
    of_one_protocol,
    ordered_columns,
    ordered_datasets,
    summarise,
    twins_among,
)
from prevalens.reports.table import ResultTable
from prevalens.validation import InputError

# More bands would hide the lines.
_MOST_BANDS = 4


def curves_section(
    results: Sequence[Result], *, metric: str = "ae", order: MethodOrder = groups_first
) -> Section:
    """How errors grow with shift, a chart per dataset.

    Parameters
    ----------
    results : sequence of Result
        Of one protocol.
    metric : str
    order : callable
        Sort key of a method's name, for the order of the lines.
    """
    charts = {}
    for dataset in ordered_datasets(results):
        own = [result for result in results if result.dataset == dataset]
        curves = draw.curves_of(own, metric=metric, order=order)
        charts[f"error-against-shift-{metric}-{dataset}"] = draw.error_against_shift(
            curves,
            title=dataset_title(dataset),
            y_name=layout.measure_long(metric),
            band=(0.1, 0.9) if len(curves) <= _MOST_BANDS else None,
        )
    return _gallery("curves", charts, measure=layout.measure_short(metric))


def _gallery(section: str, charts: Mapping[str, str], **names: str) -> Section:
    """Return charts, by the names of their files, with the title and caption of a section."""
    title, caption = CAPTIONS["galleries"][section]
    figures = tuple(Figure(svg, name=name) for name, svg in charts.items())
    return Section(title.format(**names), (Gallery(figures, caption),))


def prevalence_section(prevalences: Mapping[str, npt.ArrayLike]) -> Section:
    """How frequent labels are, a histogram per dataset.

    Parameters
    ----------
    prevalences : mapping of str to array of float, shape (n_labels,)
        By dataset, in the order to show them.
    """
    charts = {
        f"prevalence-{name}": draw.prevalence_histogram(values, title=dataset_title(name))
        for name, values in prevalences.items()
    }
    return _gallery("prevalence", charts)


def shift_section(shifts: Mapping[str, Mapping[str, npt.ArrayLike]]) -> Section:
    """How far samples have moved under several protocols, a chart per dataset.

    Parameters
    ----------
    shifts : mapping of str to mapping of str to array of float, shape (n_samples,)
        By dataset, and there by protocol; the first protocol sets the regimes.
    """
    charts = {
        f"shift-{name}": draw.shift_distribution(own, title=dataset_title(name))
        for name, own in shifts.items()
    }
    return _gallery("shift", charts)


def correlation_section(collections: Mapping[str, Collection], *, most: int = 40) -> Section:
    """Which labels occur together, a map per dataset.

    Parameters
    ----------
    collections : mapping of str to Collection
        By dataset.
    most : int
        Labels to draw at most.
    """
    charts = {
        f"correlation-{name}": draw.correlation_map(
            own.label_correlation(), own.labels, title=dataset_title(name), most=most
        )
        for name, own in collections.items()
    }
    return _gallery("correlation", charts)


def estimates_section(
    estimates: draw.PairsByMethod, shift: npt.ArrayLike, *, name: str = ""
) -> Section:
    """Estimates against the truth: the diagonal plot and the bias by shift.

    Parameters
    ----------
    estimates : mapping of str to (true, estimated), arrays of float, shape (n_samples, n_labels)
        By method, all on the same samples.
    shift : array of float, shape (n_samples,)
    name : str
        The dataset, for the titles and file names.
    """
    suffix = f"-{name}" if name else ""
    charts = {
        f"diagonal{suffix}": draw.diagonal(estimates),
        f"bias{suffix}": draw.bias(estimates, shift),
    }
    return _gallery("estimates", charts, dataset=f" on {dataset_title(name)}" if name else "")


#: More columns than this side by side are hard to read.
_WIDEST = 18


#: Name of the results without a variant.
PLAIN = "as described"


def by_variant(results: Iterable[Result], *, plain: str = PLAIN) -> dict[str, list[Result]]:
    """Group results by variant, so that each group can fill a table of its own.

    Parameters
    ----------
    results : iterable of Result
    plain : str
        The name of the group without a variant.

    Returns
    -------
    dict of list of Result
        By variant, the results without a variant first. A method that was never run in a variant
        is represented by its results without one. The variants of the results are emptied.
    """
    variants: dict[str, list[Result]] = {}
    for result in results:
        variant = result.variant or plain
        variants.setdefault(variant, []).append(replace(result, variant=""))
    ordinary = variants.get(plain, [])
    names = sorted(variants, key=lambda name: (name != plain, name))
    for name in names:
        methods = {result.method for result in variants[name]}
        variants[name] += [result for result in ordinary if result.method not in methods]
    return {name: variants[name] for name in names}


def tables_of(
    results: Iterable[Result],
    *,
    metric: str = "ae",
    protocol: str | None = None,
    order: MethodOrder = groups_first,
) -> dict[str, ResultTable]:
    """Return a table for each variant of the results.

    If both releases of a dataset are present, the corrected one does not count in averages, as both
    hold the same data.

    Parameters
    ----------
    results : iterable of Result
    metric : str
    protocol : str, optional
        Needed if the results are under several.
    order : callable
        Sort key of a method's name, for the columns.
    """
    tables = {}
    for variant, own in by_variant(results).items():
        left_out = twins_among(result.dataset for result in own)
        tables[variant] = summarise(
            own, metric=metric, protocol=protocol, left_out=left_out, order=order
        )
    return tables


def report_sections(
    results: Iterable[Result], *, metrics: Sequence[str] = ("ae",), protocol: str | None = None
) -> list[Section]:
    """All sections of a report on the results of one table.

    Parameters
    ----------
    results : iterable of Result
        At most one for each dataset, method, variant and seed.
    metrics : sequence of str
    protocol : str, optional
        Needed if the results are under several.

    Examples
    --------
    >>> import numpy as np
    >>> result = Result("own", "ml-app", "PCC", "lr+pcc", 0, np.arange(3.0), {"ae": np.ones(3)})
    >>> [section.title for section in report_sections([result])]
    ['Results, AE', 'Error against shift, AE', 'Where the figures come from']
    """
    if not metrics:
        raise InputError("metrics is empty; name at least one measure.")
    given = list(results)
    sections: list[Section] = []
    for metric in metrics:
        chosen = of_one_protocol(given, metric, protocol)
        tables = tables_of(chosen, metric=metric)
        sections.append(results_section(tables))
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
    given = list(results)
    protocols = list(dict.fromkeys(result.protocol for result in given))
    if len(protocols) < 2:
        return report_sections(given, metrics=metrics)
    return [
        shift_section(_shifts(given)),
        *(
            Section(f"{protocol}: {section.title}", section.parts)
            for protocol in protocols
            for section in report_sections(given, metrics=metrics, protocol=protocol)
        ),
    ]


def _shifts(results: Sequence[Result]) -> dict[str, dict[str, npt.ArrayLike]]:
    """Shifts of the samples by dataset and protocol; methods with the same seed share samples."""
    shifts: dict[str, dict[str, npt.ArrayLike]] = {name: {} for name in ordered_datasets(results)}
    for result in results:
        shifts[result.dataset].setdefault(result.protocol, result.shift)
    return shifts


def results_section(tables: Mapping[str, ResultTable]) -> Section:
    """A section that explains the figures and has a table for each variant."""
    first = next(iter(tables.values()))
    grids = []
    for variant, table in tables.items():
        wide = len(table.columns) * len(table.regimes) <= _WIDEST
        caption = layout.table_caption(table, variant if len(tables) > 1 else "")
        grids.append((layout.wide_grid if wide else layout.long_grid)(table, caption))
    return Section(
        f"Results, {layout.measure_short(first.metric)}", (*layout.explanations(first), *grids)
    )


def provenance_section(
    results: Sequence[Result],
    tables: Mapping[str, ResultTable],
    *,
    order: MethodOrder = groups_first,
) -> Section:
    """Where the figures come from: samples, seeds, methods, versions, data and time."""
    first = next(iter(tables.values()))
    spreads = [
        layout.spread_grid(table, f"Standard deviation between seeds, {name}.")
        for name, table in tables.items()
        if any(cell and cell.spread is not None for row in table.rows for cell in row.cells)
    ]
    return Section(
        "Where the figures come from",
        (layout.samples_grid(first), *spreads, _methods_grid(results, order), _runs_grid(results)),
    )


def _methods_grid(results: Sequence[Result], order: MethodOrder) -> Grid:
    rows = [
        (name, _joined(result.expression for result in results if column_of(result) == name))
        for name in ordered_columns(results, order)
    ]
    headings = [Heading("expression", left=True)]
    return Grid.from_rows("The methods as expressions of the catalogue.", "method", headings, rows)


def _runs_grid(results: Sequence[Result]) -> Grid:
    rows = []
    for dataset in ordered_datasets(results):
        own = [result for result in results if result.dataset == dataset]
        seconds = [
            used for result in own if isinstance(used := result.usage.get("seconds"), (int, float))
        ]
        rows.append(
            (
                dataset_title(dataset),
                _joined(str(result.seed) for result in own),
                count(len(own)),
                f"{sum(seconds):,.0f}" if seconds else MISSING,
                _joined(result.version for result in own),
                _joined(result.data_sha[:12] for result in own),
            )
        )
    headings = ("seeds", "results", "seconds", "version", "data SHA-256")
    return Grid.from_rows("The runs behind the figures.", "dataset", headings, rows)


def _joined(texts: Iterable[str]) -> str:
    return ", ".join(sorted(filter(None, set(texts)))) or MISSING
