"""Reports: tables, charts and pages, from records and results alone.

    from prevalens.reports import page, protocol_sections

    html = page("Four groups with PCC", protocol_sections(results))

Results go through three steps, each of plain data: `summarise` makes a table, a layout
(`wide_grid`, `long_grid`, ...) decides what is shown, and a renderer (`to_html`, `to_latex`,
`to_markdown`) writes it down.
"""

from prevalens.reports.batch_page import report_html, report_of
from prevalens.reports.grid import Grid
from prevalens.reports.layout import long_grid, samples_grid, spread_grid, wide_grid
from prevalens.reports.page import Figure, Gallery, Section, figure_files, markdown_page, page
from prevalens.reports.render import latex_document, to_html, to_latex, to_markdown
from prevalens.reports.sections import protocol_sections, report_sections
from prevalens.reports.summarise import summarise
from prevalens.reports.table import ResultTable

__all__ = [
    "Figure",
    "Gallery",
    "Grid",
    "ResultTable",
    "Section",
    "figure_files",
    "latex_document",
    "long_grid",
    "markdown_page",
    "page",
    "protocol_sections",
    "report_html",
    "report_of",
    "report_sections",
    "samples_grid",
    "spread_grid",
    "summarise",
    "to_html",
    "to_latex",
    "to_markdown",
    "wide_grid",
]
