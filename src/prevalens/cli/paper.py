"""`prevalens paper`: run the paper's experiments and compare our figures with the printed ones."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from prevalens.cli.outputs import DOCUMENT
from prevalens.cli.plans import (
    FAILED,
    FILE,
    Pages,
    chosen_cells,
    page_options,
    run_options,
    run_with_messages,
    write_text,
)
from prevalens.errors import InputError
from prevalens.experiments.cells import Cell
from prevalens.experiments.runner import RunOutcome, finished_cells, plan_results
from prevalens.experiments.store import Store
from prevalens.records import Result
from prevalens.reports.page import Section, markdown_page
from prevalens.reports.render import to_markdown
from prevalens.reports.sections import tables_of
from prevalens.studies.moreo2023.comparison import compare
from prevalens.studies.moreo2023.comparison_layout import agreement_grid
from prevalens.studies.moreo2023.plan import AT_HAND, TABLES, paper_plan, table_results
from prevalens.studies.moreo2023.printed import PRINTED_TABLES, method_place, printed
from prevalens.studies.moreo2023.reproduction import TITLE as REPRODUCTION_TITLE
from prevalens.studies.moreo2023.reproduction import paper_sections, reproduction_sections
from prevalens.studies.moreo2023.table_summary import (
    TableSummary,
    read_summaries,
    save_summary,
    summarise_table,
)


@click.command()
@click.option(
    "--tables", default="all", help=f"Tables, separated by commas: {', '.join(TABLES)}; or all."
)
@click.option("--datasets", default="all", help="Datasets, separated by commas; or all.")
@click.option(
    "--fast", is_flag=True, help="Small grids and about 1,000 samples, to try the command out."
)
@click.option("--seeds", default="0", show_default=True, help="Seeds, separated by commas.")
@run_options("paper-results, or paper-fast-results with --fast")
@page_options
@click.option(
    "--save-records",
    "records",
    type=click.Path(file_okay=False, path_type=Path),
    help="Save means and p-values, without samples, in this folder; records there are merged.",
)
@click.option(
    "--from-records",
    "saved",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Compute nothing; write --reproduction from the records in this folder.",
)
@click.option(
    "--reproduction",
    type=FILE,
    help="Write the Markdown page that compares our figures with the printed ones.",
)
def command(
    tables: str,
    datasets: str,
    fast: bool,
    seeds: str,
    folder: Path | None,
    jobs: int | None,
    scheduler: str | None,
    only: Sequence[str],
    listing: bool,
    no_run: bool,
    pages: Pages,
    records: Path | None,
    saved: Path | None,
    reproduction: Path | None,
) -> None:
    """Run the experiments of "Multi-Label Quantification" and compare with its tables.

    The four groups, ML-kNN, CLEMS, LSC and the regressors are run as the text describes them and as
    the printed figures seem to have been made; the other methods as described; ACC and PACC also
    with the library's guard against rates that differ by chance.
    A run that was stopped goes on where it was; finished cells are never computed again.
    """
    kept = [] if saved is None else sorted(saved.glob("*.json"))
    pages.check(kept, (DOCUMENT, reproduction))
    if saved is not None:
        _write_reproduction(read_summaries(saved), reproduction)
        return
    names = TABLES if tables == "all" else _split(tables)
    plan = paper_plan(
        names,
        AT_HAND if datasets == "all" else _split(datasets),
        fast=fast,
        seeds=_seeds(seeds),
    )
    store = Store(folder or Path(f"{plan.name}-results"))
    cells = chosen_cells(plan.cells(), only)
    if listing:
        _list(cells, store)
        return
    if records is not None and any(records.glob("*.json")):
        # Records that cannot be merged are reported before hours of work.
        read_summaries(records)
    failed = False
    if not no_run:
        show = sys.stderr.isatty()
        summary = run_with_messages(
            plan, store, cells=cells, jobs=jobs, scheduler=scheduler, progress=show
        )
        _report_run(summary)
        failed = bool(summary.failed)
    results = plan_results(cells, store)
    by_table = {table: table_results(results, table) for table in names}
    for table, own in by_table.items():
        _print_agreement(table, own)
    if pages:
        sections = [part for table, own in by_table.items() for part in _sections(table, own)]
        pages.write("Multi-label quantification: the paper's tables, run again", sections)
    _write_summaries(by_table, records, reproduction)
    if failed:
        sys.exit(FAILED)


def _write_summaries(
    by_table: Mapping[str, Sequence[Result]], records: Path | None, reproduction: Path | None
) -> None:
    """Write the records and the page on the reproduction that were asked for."""
    if records is None and reproduction is None:
        return
    summaries = {table: summarise_table(table, own) for table, own in by_table.items() if own}
    if records is not None:
        for table, summary in summaries.items():
            summaries[table] = save_summary(summary, records)
            click.echo(f"Wrote the records of {table} to {records}.", err=True)
    if reproduction is not None:
        _write_reproduction(summaries, reproduction)


def _split(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _seeds(text: str) -> list[int]:
    seeds = _split(text)
    if not seeds or not all(seed.isdecimal() for seed in seeds):
        raise InputError(f"--seeds takes whole numbers with commas, such as 0,1; got {text!r}.")
    return list(map(int, seeds))


def _list(cells: Sequence[Cell], store: Store) -> None:
    done = set(map(str, finished_cells(cells, store)))
    for cell in cells:
        click.echo(f"{'done' if str(cell) in done else 'open'}  {cell}")
    click.echo(f"{len(done)} of {len(cells)} cells are done.")


def _report_run(summary: RunOutcome) -> None:
    click.echo(f"{summary.computed} cells computed, {summary.found} were there.", err=True)
    for failed in summary.failed:
        click.echo(f"failed: {failed.cell}: {failed.sentence} ({failed.log})", err=True)


def _print_agreement(table: str, results: Sequence[Result]) -> None:
    """Print how many cells agree with the printed table."""
    if not results:
        click.echo(f"{table}: nothing has been run yet.")
        return
    if table not in PRINTED_TABLES:
        click.echo(f"{table}: the paper prints no figures to compare with.")
        return
    comparison = compare(tables_of(results, order=method_place), printed(table))
    click.echo(f"\n{table}\n{to_markdown(agreement_grid(comparison))}")


def _sections(table: str, results: Sequence[Result]) -> list[Section]:
    if not results:
        return []
    tables = [table] if table in PRINTED_TABLES else []
    sections = paper_sections(results, metrics=("ae", "rae"), tables=tables)
    return [Section(f"{table}: {section.title}", section.parts) for section in sections]


def _write_reproduction(summaries: Mapping[str, TableSummary], path: Path | None) -> None:
    if path is None:
        raise click.UsageError("--from-records needs --reproduction, the file to write.")
    write_text(path, markdown_page(REPRODUCTION_TITLE, reproduction_sections(summaries)))
