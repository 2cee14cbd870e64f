"""Reporting: tables, comparisons with the paper and charts, from results alone.

    from prevalens.reporting import page, report_sections

    sections = report_sections(results, paper_tables=["pcc_general"])
    html = page("Four groups with PCC", sections)

Results go through four steps, each of plain data: `summarise` makes a table, `compare` puts it
beside a printed one, a layout (`wide_grid`, `comparison_grid`, ...) decides what is shown, and a
renderer (`to_html`, `to_latex`, `to_markdown`) writes it down.
"""

from prevalens.reporting import plots
from prevalens.reporting.agreement import Agreement, agreement
from prevalens.reporting.chart_sections import (
    correlation_section,
    curves_section,
    estimates_section,
    prevalence_section,
    shift_section,
)
from prevalens.reporting.comparison import Comparison, by_variant, compare
from prevalens.reporting.comparison_layout import (
    agreement_grid,
    comparison_grid,
    orders_grid,
    outside_grid,
)
from prevalens.reporting.digest import TableDigest, digest, read_digests, write_digest
from prevalens.reporting.grid import Entry, Grid, Group, Heading, Line
from prevalens.reporting.joining import join_digests, save_digest
from prevalens.reporting.layout import long_grid, samples_grid, spread_grid, wide_grid
from prevalens.reporting.ordering import Order, orders
from prevalens.reporting.page import (
    Figure,
    Gallery,
    Section,
    figure_files,
    grids_of,
    markdown_page,
    page,
)
from prevalens.reporting.printed import PAPER, PRINTED_TABLES, printed
from prevalens.reporting.render_html import to_html
from prevalens.reporting.render_latex import latex_document, to_latex
from prevalens.reporting.render_markdown import to_markdown
from prevalens.reporting.reproduction import TITLE as REPRODUCTION_TITLE
from prevalens.reporting.reproduction import reproduction_sections
from prevalens.reporting.sections import (
    comparison_section,
    protocol_sections,
    provenance_section,
    report_sections,
    results_section,
    tables_of,
)
from prevalens.reporting.summarise import summarise
from prevalens.reporting.table import ResultTable, TableCell, TableRow
from prevalens.reporting.theme import standalone

__all__ = [
    "PAPER",
    "PRINTED_TABLES",
    "REPRODUCTION_TITLE",
    "Agreement",
    "Comparison",
    "Entry",
    "Figure",
    "Gallery",
    "Grid",
    "Group",
    "Heading",
    "Line",
    "Order",
    "ResultTable",
    "Section",
    "TableCell",
    "TableDigest",
    "TableRow",
    "agreement",
    "agreement_grid",
    "by_variant",
    "compare",
    "comparison_grid",
    "comparison_section",
    "correlation_section",
    "curves_section",
    "digest",
    "estimates_section",
    "figure_files",
    "grids_of",
    "join_digests",
    "latex_document",
    "long_grid",
    "markdown_page",
    "orders",
    "orders_grid",
    "outside_grid",
    "page",
    "plots",
    "prevalence_section",
    "printed",
    "protocol_sections",
    "provenance_section",
    "read_digests",
    "report_sections",
    "reproduction_sections",
    "results_section",
    "samples_grid",
    "save_digest",
    "shift_section",
    "spread_grid",
    "standalone",
    "summarise",
    "tables_of",
    "to_html",
    "to_latex",
    "to_markdown",
    "wide_grid",
    "write_digest",
]
