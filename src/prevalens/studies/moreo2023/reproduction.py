"""The page on the reproduction of the paper: its sections, from the summaries of its tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from prevalens.records import Result
from prevalens.reports.grid import MISSING, Grid, dataset_title, number
from prevalens.reports.layout import measure_short
from prevalens.reports.page import Section, SectionPart
from prevalens.reports.sections import (
    curves_section,
    provenance_section,
    results_section,
    tables_of,
)
from prevalens.reports.summarise import of_one_protocol
from prevalens.reports.table import ResultTable, TableRow
from prevalens.studies.moreo2023 import comparison_layout as layout
from prevalens.studies.moreo2023.comparison import (
    PRINT,
    Comparison,
    Order,
    agreement,
    compare,
    orders,
)
from prevalens.studies.moreo2023.plan import (
    DESCRIBED,
    DISCUSSED,
    GUARDED,
    PRINTED,
    shared_columns,
)
from prevalens.studies.moreo2023.printed import (
    CAPTIONS,
    PAPER,
    PRINTED_TABLES,
    match_method,
    method_place,
    printed,
)
from prevalens.studies.moreo2023.table_summary import TableSummary, merge_summaries

#: What was run, as paragraphs.
ABOUT: list[str] = [*CAPTIONS["about"], *CAPTIONS["variants"], *CAPTIONS["how"]]
#: Paragraphs on why figures are as they are; see the head of captions.toml on figures in braces.
OBSERVATIONS: list[str] = CAPTIONS["observations"]
#: Why cells of the PCC table, run as printed, are off: by dataset and method.
REASONS: dict[tuple[str, str], str] = {
    (dataset, method): reason
    for dataset, by_method in CAPTIONS["reasons"].items()
    for method, reason in by_method.items()
}
TITLE = "The paper's tables, run again"
#: The datasets whose cells are compared with the printed ones individually.
CHECKED = ("emotions", "scene", "yeast", "birds", "genbase", "medical", "enron")
_CHECKED_TABLE = "pcc_general"
#: The printed tables of relative errors, by our table.
_PRINTED_RAE = {"mlqreg": "mlqreg_mrae"}
#: The tables whose validation and test results correlate, says the paper.
_VALIDATED = ("mlc", "mlq", "mlqreg")
#: The methods of these tables that the paper chose by its results on validation samples.
_REPRESENTATIVES = {"Classifiers": "SG", "Aggregators": "SVR-RQ"}
#: From this value on we call a rank correlation strong.
_STRONG = 0.7
_GROUPS = {"BC+BA", "MLC+BA", "BC+MLA", "MLC+MLA"}
#: A figure in a text; of the PCC table, unless another base quantifier is named first.
_FIGURE = re.compile(
    r"\{((?P<base>\w+)/)?(?P<dataset>\w+) (?P<shift>\w+) (?P<method>\S+) (?P<source>[a-z ]+)\}"
)


def reproduction_sections(summaries: Mapping[str, TableSummary]) -> list[Section]:
    """The sections of the page.

    Parameters
    ----------
    summaries : mapping of str to TableSummary
        By the name of the table; tables that are missing are left out.
    """
    known = _with_shared({name: summaries[name] for name in PRINTED_TABLES if name in summaries})
    by_table = {name: _compared(summary) for name, summary in known.items()}
    comparisons = {_title(name): comparison for name, comparison in by_table.items()}
    groups = {_title(name): by_table[name] for name in known if name.endswith("_general")}
    sections = [
        Section("What was run", tuple(ABOUT)),
        Section("How near we come", (*_nearness(known), layout.agreements_grid(comparisons))),
    ]
    if groups:
        sections.append(_order_section(groups))
    if _CHECKED_TABLE in known:
        sections.append(_checked_section(known[_CHECKED_TABLE]))
    sections.append(Section("Why", tuple(_observations(known))))
    for name, comparison in by_table.items():
        grids = layout.side_by_side_grids(PRINTED_TABLES[name], comparison)
        grids += _guard_grids(known[name])
        sections.append(Section(f"{_title(name)}, AE", tuple(grids)))
    ours = {DISCUSSED: summaries[DISCUSSED]} if DISCUSSED in summaries else {}
    sections += [_discussed_section(summary) for summary in ours.values()]
    sections.append(_relative_section(known))
    return [*sections, *_validation_sections(known), _provenance(known, ours)]


def _with_shared(known: Mapping[str, TableSummary]) -> dict[str, TableSummary]:
    """Fill the columns that tables share with the PCC table from there, as the paper does."""
    pcc = known.get(_CHECKED_TABLE)
    if pcc is None:
        return dict(known)
    return {
        name: _with_columns_of(summary, pcc, columns)
        if (columns := shared_columns(name))
        else summary
        for name, summary in known.items()
    }


def _with_columns_of(
    summary: TableSummary, other: TableSummary, columns: Mapping[str, str]
) -> TableSummary:
    """Fill cells that a summary lacks, on datasets that it has, from columns of another table.

    `columns` maps the names of methods in the other table to those in this one.
    """
    tables = {
        metric: {
            way: _missing_part(table, other.tables[metric][way], columns)
            for way, table in by_way.items()
            if way in other.tables.get(metric, {})
        }
        for metric, by_way in summary.tables.items()
    }
    methods = {
        way: {columns[name]: text for name, text in known.items() if name in columns}
        for way, known in other.methods.items()
    }
    return merge_summaries(TableSummary(summary.name, tables, methods, ()), summary)


def _missing_part(
    table: ResultTable, other: ResultTable, columns: Mapping[str, str]
) -> ResultTable:
    """The cells of another table that this one lacks on its datasets, under its names."""
    names = {name: own for name, own in columns.items() if name in other.columns}
    rows = [
        TableRow(
            row.dataset,
            row.shift,
            tuple(
                None
                if table.cell(row.dataset, row.shift, own)
                else other.cell(row.dataset, row.shift, name)
                for name, own in names.items()
            ),
        )
        for row in table.rows
    ]
    return ResultTable(table.metric, table.protocol, tuple(names.values()), tuple(rows))


def _title(name: str) -> str:
    """Return the title of a table on the page.

    Examples
    --------
    >>> _title("pcc_general"), _title("mlc")
    ('PCC', 'Classifiers')
    """
    others = {"mlc": "Classifiers", "mlq": "Aggregators", "mlqreg": "Regressors"}
    others[DISCUSSED] = "More classifiers"
    return others.get(name, name.removesuffix("_general").upper())


def _compared(summary: TableSummary) -> Comparison:
    return compare(_ways(summary, "ae"), printed(summary.name))


def _ways(summary: TableSummary, metric: str) -> dict[str, ResultTable]:
    """The tables of the two ways that are compared with the paper."""
    tables = summary.tables[metric]
    return {way: tables[way] for way in (DESCRIBED, PRINTED) if way in tables}


def _guard_grids(summary: TableSummary) -> list[Grid]:
    """The figures with the library's guard beside those without it, if there are such."""
    tables = summary.tables["ae"]
    if GUARDED not in tables or DESCRIBED not in tables:
        return []
    title = CAPTIONS["notes"]["guard"].format(base=_title(summary.name))
    return layout.own_grids(title, {way: tables[way] for way in (GUARDED, DESCRIBED)})


def _only(comparison: Comparison, datasets: Sequence[str]) -> Comparison:
    cells = tuple(cell for cell in comparison.cells if cell.dataset in datasets)
    return replace(comparison, cells=cells)


def _nearness(known: Mapping[str, TableSummary]) -> list[str]:
    if _CHECKED_TABLE not in known:
        return []
    checked = _only(_compared(known[_CHECKED_TABLE]), CHECKED)
    counts = []
    for source in checked.sources[::-1]:
        near = agreement(checked, source)
        counts.append(f"{near.n_agreeing} of {near.n_cells} {source}")
    titles = ", ".join(map(dataset_title, checked.datasets))
    return [CAPTIONS["notes"]["near_pcc"].format(datasets=titles, counts=" and ".join(counts))]


def orders_of(comparisons: Mapping[str, Comparison], source: str) -> list[tuple[Order, Order]]:
    """Our orders and the paper's, over all comparisons and regimes."""
    pairs = []
    for comparison in comparisons.values():
        known = orders(comparison)
        papers = {order.shift: order for order in known if order.source == PRINT}
        pairs += [(order, papers[order.shift]) for order in known if order.source == source]
    return pairs


def _order_section(groups: Mapping[str, Comparison]) -> Section:
    """How the four groups are ordered, and how often the paper's order is ours."""
    pairs = {
        # Only orders of all four groups are compared.
        source: [pair for pair in orders_of(groups, source) if pair[0].ranks.keys() >= _GROUPS]
        for source in (PRINTED, DESCRIBED)
    }
    sentences = [
        f"Run {source}, {_standing([ours for ours, _ in known])}. "
        f"{sum(ours.agrees_with(paper) for ours, paper in known)} have all four groups in the "
        "order of the printed figures."
        for source, known in pairs.items()
        if known
    ]
    # The paper is ranked on the datasets and methods of all sources, so any source gives its ranks.
    papers = next(([paper for _, paper in known] for known in pairs.values() if known), [])
    if papers:
        sentences.insert(0, f"As the paper prints them, {_standing(papers)}.")
    parts: list[SectionPart] = [*sentences, layout.orders_grid(groups), layout.wins_grid(groups)]
    return Section("The order of the four groups", tuple(parts))


def _standing(rankings: Sequence[Order]) -> str:
    """Describe how often each group is first or last."""
    leads = [ranking.ranks["BC+MLA"] - ranking.ranks["MLC+MLA"] for ranking in rankings]
    text: str = CAPTIONS["notes"]["standing"]
    return text.format(
        n=len(rankings),
        last=sum(ranking.order[-1] == "BC+BA" for ranking in rankings),
        joint=sum(ranking.order[0].endswith("+MLA") for ranking in rankings),
        first=sum(ranking.order[0] == "MLC+MLA" for ranking in rankings),
        ahead=sum(lead > 0 for lead in leads),
        lead=number(sum(leads) / len(leads), 2),
    )


def _checked_section(summary: TableSummary) -> Section:
    """The cells of the PCC table that differ from the print, with reasons."""
    checked = _only(_compared(summary), CHECKED)
    grids = [
        layout.outside_grid(checked, name, reasons=REASONS if name == PRINTED else None)
        for name in checked.sources[::-1]
    ]
    return Section("PCC: cells that are off by more than 15 %", tuple(grids))


def _observations(known: Mapping[str, TableSummary]) -> list[str]:
    """The observations whose figures are all known, with the figures filled in."""

    def fill(figure: re.Match[str]) -> str:
        name = f"{figure['base']}_general" if figure["base"] else _CHECKED_TABLE
        if name not in known:
            return MISSING
        table = {"paper": printed(name), **known[name].tables["ae"]}.get(figure["source"])
        cell = table and table.cell(figure["dataset"], figure["shift"], figure["method"])
        return number(cell.value) if cell else MISSING

    filled = [_FIGURE.sub(fill, text) for text in OBSERVATIONS]
    return [text for text in filled if MISSING not in text]


def _relative_section(known: Mapping[str, TableSummary]) -> Section:
    grids: list[Grid] = []
    for name, summary in known.items():
        if "rae" not in summary.tables:
            continue
        title, tables = f"RAE, {_title(name)}", _ways(summary, "rae")
        if name in _PRINTED_RAE:
            grids += layout.side_by_side_grids(title, compare(tables, printed(_PRINTED_RAE[name])))
        else:
            grids += layout.own_grids(title, tables)
    return Section("Relative absolute error", tuple(grids))


def _validation_sections(known: Mapping[str, TableSummary]) -> list[Section]:
    """Whether results of model selection and on test samples agree, where both are known."""
    checks = {
        _title(name): layout.check_validation(
            [pair for pair in known[name].validated if pair.variant == DESCRIBED]
        )
        for name in _VALIDATED
        if name in known
    }
    every = [check for by_dataset in checks.values() for check in by_dataset.values()]
    if not every:
        return []
    correlations = [check.correlation for check in every]
    text = CAPTIONS["notes"]["validated"].format(
        n=len(every),
        positive=sum(value > 0 for value in correlations),
        strong=sum(value >= _STRONG for value in correlations),
        mean=number(sum(correlations) / len(every), 2),
        low=number(min(correlations), 2),
        high=number(max(correlations), 2),
        best=sum(check.ratio == 1 for check in every),
        ratio=number(sum(check.ratio for check in every) / len(every), 2),
        representatives="".join(
            CAPTIONS["notes"]["representative"].format(
                method=method,
                table=table.lower(),
                chosen=sum(check.chosen == method for check in checks[table].values()),
                n=len(checks[table]),
            )
            for table, method in _REPRESENTATIVES.items()
            if checks.get(table)
        ),
    )
    parts = (text, layout.validation_grid(checks))
    return [Section("Do validation and test results correlate?", parts)]


def _discussed_section(summary: TableSummary) -> Section:
    """The classifiers that the paper discusses without figures, next to those it has."""
    notes = CAPTIONS["notes"]
    tables = {DESCRIBED: summary.tables["ae"][DESCRIBED]}
    grids = layout.own_grids(notes["discussed_title"], tables)
    return Section(f"{_title(DISCUSSED)}, AE", (notes["discussed"], *grids))


def _provenance(known: Mapping[str, TableSummary], ours: Mapping[str, TableSummary]) -> Section:
    runs = {_title(name): summary.runs for name, summary in {**known, **ours}.items()}
    return Section(
        "Where the figures come from, and what is missing",
        (layout.runs_grid(runs), *CAPTIONS["not_run"], *_missing(known)),
    )


def _missing(known: Mapping[str, TableSummary]) -> list[str]:
    """For each printed table and way, its datasets and methods that were not run."""
    sentences = []
    for name in PRINTED_TABLES:
        wanted = printed(name)
        if wanted.metric != "ae":
            continue
        if name not in known:
            sentences.append(f"{_title(name)}: not run on any dataset.")
            continue
        by_way = {way: _not_run(table, wanted) for way, table in _ways(known[name], "ae").items()}
        if len(by_way) > 1 and len(set(by_way.values())) == 1:
            by_way = {"both ways": by_way[DESCRIBED]}
        sentences += [f"{_title(name)}, {way}: {sentence}" for way, sentence in by_way.items()]
    return sentences


def _not_run(table: ResultTable, wanted: ResultTable) -> str:
    """Which datasets of a printed table ours lacks, and which methods on the others."""
    missing = [dataset for dataset in wanted.datasets if dataset not in table.datasets]
    titles = ", ".join(map(dataset_title, missing)) or "no dataset of the paper that is missing"
    sentence = f"not run on {titles}."
    partly = {
        dataset: [
            method
            for method in table.columns
            if match_method(method, wanted) and table.cell(dataset, "low", method) is None
        ]
        for dataset in table.datasets
        if dataset in wanted.datasets
    }
    for dataset, methods in partly.items():
        if methods:
            sentence += f" On {dataset_title(dataset)} without {', '.join(methods)}."
    return sentence


def paper_sections(
    results: Iterable[Result],
    *,
    metrics: Sequence[str] = ("ae",),
    tables: Sequence[str] = (),
    reasons: Mapping[tuple[str, str], str] | None = None,
) -> list[Section]:
    """All sections of a report that compares results with the paper's tables.

    Parameters
    ----------
    results : iterable of Result
        At most one for each dataset, method, variant and seed, of one protocol.
    metrics : sequence of str
    tables : sequence of str
        The printed tables to compare with, from `PRINTED_TABLES`, each for its measure.
    reasons : mapping of (dataset, method) to str, optional
        Remarks on cells that differ from the printed ones.
    """
    given = list(results)
    sections: list[Section] = []
    for metric in metrics:
        chosen = of_one_protocol(given, metric)
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
    """A section on a comparison: all cells, how many agree, which do not, and the order."""
    source = f"The printed values are those of {PAPER}: {PRINTED_TABLES[table]}."
    outside = [
        layout.outside_grid(comparison, name, within=within, reasons=reasons)
        for name in comparison.sources
    ]
    return Section(
        f"Beside the paper, {measure_short(comparison.metric)}",
        (
            source,
            layout.comparison_grid(comparison, within=within),
            layout.agreement_grid(comparison),
            *outside,
            layout.orders_grid({"": comparison}),
        ),
    )
