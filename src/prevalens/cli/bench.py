"""`prevalens bench`: run a plan cell by cell; finished cells are not computed again."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prevalens.cli.outputs import DOCUMENT, PAGE, TABLE
from prevalens.cli.plans import (
    FAILED,
    FILE,
    Pages,
    cell_fields,
    chosen_cells,
    page_options,
    run_options,
    run_with_messages,
    write_text,
)
from prevalens.errors import InputError
from prevalens.experiments.cells import Cell
from prevalens.experiments.plan import Plan, read_plan
from prevalens.experiments.runner import (
    Keys,
    RunOutcome,
    finished_cells,
    plan_records,
    plan_results,
)
from prevalens.experiments.store import Store
from prevalens.records import Record, to_rows
from prevalens.reports.drift import drift
from prevalens.reports.leaderboard import (
    leaderboard,
    leaderboard_page,
    read_records,
    write_records,
)
from prevalens.reports.page import write_page
from prevalens.reports.sections import protocol_sections
from prevalens.reports.summarise import REGIMES
from prevalens.studies.moreo2023.printed import printed
from prevalens.studies.moreo2023.table_summary import tuned_tables


@click.command()
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@run_options("NAME-results, with the plan's name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@page_options
@click.option(
    "--records",
    type=FILE,
    help="Write the mean errors of all finished cells to this CSV file.",
)
@click.option(
    "--leaderboard",
    "board",
    type=FILE,
    help="Write a page that compares the methods under each protocol: Markdown or, if the name "
    "ends in .html, tables to search and sort.",
)
@click.option(
    "--from-records",
    "earlier",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Add the records of this CSV file, as --records has written it, for cells that are not "
    "finished in the store.",
)
@click.option(
    "--tuned",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Show the tuned methods of the paper on that page, from this folder of its records.",
)
@click.option(
    "--drift",
    "drift_page",
    type=FILE,
    help="Write a page (Markdown) on later batches of timelines, by cut and horizon.",
)
@click.option("--no-cache", is_flag=True, help="Do not cache the scores of classifiers.")
def command(
    plan: Path,
    folder: Path | None,
    jobs: int | None,
    scheduler: str | None,
    only: Sequence[str],
    listing: bool,
    as_json: bool,
    pages: Pages,
    records: Path | None,
    board: Path | None,
    earlier: Path | None,
    tuned: Path | None,
    drift_page: Path | None,
    no_run: bool,
    no_cache: bool,
) -> None:
    """Run the experiments of PLAN, a TOML file.

    Finished cells are kept and skipped when the command is started again, after Ctrl-C, a crash
    or a change of the plan. Exit code 1 if some cells failed; the others are stored all the same.
    """
    read = read_plan(plan)
    store = Store(folder or Path(f"{read.name}-results"))
    cells = chosen_cells(read.cells(), only)
    if listing:
        _list(cells, store, as_json=as_json)
        return
    kind = PAGE if _is_page(board) else DOCUMENT
    pages.check([plan], (TABLE, records), (kind, board), (DOCUMENT, drift_page))
    if drift_page is not None and read.interval is None:
        raise InputError(f"--drift needs intervals: put intervals = 0.9 into the plan {plan}.")
    if no_run:
        cells, scheduler = finished_cells(cells, store), None
    summary = run_with_messages(
        read, store, cells=cells, jobs=jobs, scheduler=scheduler, remember=not no_cache
    )
    finished = plan_records(cells, store)
    if earlier is not None:
        finished = _completed(finished, read_records(earlier), read)
    if as_json:
        _print_json(_report(summary, finished))
    else:
        _print(summary, finished, read.metrics[0], store)
    _write(finished, read, plan, records=records, board=board, tuned=tuned, drift_page=drift_page)
    if pages:
        _write_pages(pages, read, cells, store)
    if summary.failed:
        sys.exit(FAILED)


def _write(
    finished: list[Record],
    plan: Plan,
    path: Path,
    *,
    records: Path | None,
    board: Path | None,
    tuned: Path | None,
    drift_page: Path | None,
) -> None:
    """Write the CSV file and the Markdown pages that were asked for."""
    source = path.name
    if records is not None:
        write_records(finished, records)
        # Pages are made of what can be read there: values with fewer digits.
        finished, source = read_records(records), f"{records.parent.name}/{records.name}"
    origin = {"command": f"prevalens bench {path.name}", "source": source}
    if board is not None and _is_page(board):
        write_page(board, leaderboard_page(finished, **origin))
    elif board is not None:
        write_text(board, _board(finished, plan, tuned, origin))
    if drift_page is not None and plan.interval is not None:
        write_text(drift_page, drift(finished, level=plan.interval, **origin))


def _is_page(path: Path | None) -> bool:
    return path is not None and path.suffix.lower() in (".html", ".htm")


def _completed(finished: list[Record], earlier: list[Record], plan: Plan) -> list[Record]:
    """Finished records and, for cells without them, earlier ones, in the order of the plan."""

    def cell(record: Record) -> tuple[str, str, str, int]:
        return record.dataset, record.method, record.protocol, record.seed

    done = {cell(record) for record in finished}
    both = finished + [record for record in earlier if cell(record) not in done]
    cells = plan.cells()
    datasets, methods = (
        {name: place for place, name in enumerate(dict.fromkeys(names))}
        for names in ((c.dataset for c in cells), (c.method.name for c in cells))
    )
    # What is not in the plan comes last, in the order of the file.
    last = len(cells)
    return sorted(both, key=lambda r: (datasets.get(r.dataset, last), methods.get(r.method, last)))


def _board(
    finished: list[Record], plan: Plan, tuned: Path | None, origin: Mapping[str, str]
) -> str:
    """The page that compares methods; with the print only if all items were used in training."""
    fewer = plan.limits.get("max_train")
    return leaderboard(
        finished,
        None if fewer else printed("pcc_general"),
        tuned=tuned_tables(tuned) if tuned else None,
        max_train=fewer,
        **origin,
    )


def _write_pages(pages: Pages, plan: Plan, cells: list[Cell], store: Store) -> None:
    """Write pages with tables and charts of the finished cells."""
    results = plan_results(cells, store)
    if not results:
        raise InputError(
            f"No cell of the plan {plan.name!r} is finished; there is nothing to show."
        )
    pages.write(plan.name, protocol_sections(results, metrics=plan.metrics))


def _list(cells: list[Cell], store: Store, *, as_json: bool) -> None:
    keys = Keys(cells)
    rows = [{**cell_fields(cell), **_state(store, keys[cell])} for cell in cells]
    if as_json:
        _print_json(rows)
        return
    table = Table(*(name for name in rows[0] if name != "key")) if rows else Table()
    for row in rows:
        shown = {**row, "seconds": "" if row["seconds"] is None else f"{row['seconds']:.2f}"}
        table.add_row(*(Text(value) for name, value in shown.items() if name != "key"))
    console = Console()
    console.print(table)
    done = sum(row["state"] == "done" for row in rows)
    console.print(f"{done} of {len(rows)} cells are done.", highlight=False)


def _state(store: Store, key: str) -> dict[str, Any]:
    usage = store.usage(key) if key in store else None
    failed = "failed" if store.failure_log(key).exists() else "to do"
    return {
        "state": "done" if key in store else failed,
        "seconds": None if usage is None else usage.seconds,
        "key": key,
    }


def _report(summary: RunOutcome, records: list[Record]) -> dict[str, Any]:
    return {
        "found": summary.found,
        "computed": summary.computed,
        "failed": [
            {**cell_fields(failure.cell), "reason": failure.sentence, "log": str(failure.log)}
            for failure in summary.failed
        ],
        "records": to_rows(records),
    }


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=1))


def _print(summary: RunOutcome, records: list[Record], metric: str, store: Store) -> None:
    console = Console()
    shown = [record for record in records if record.metric == metric]
    if shown:
        console.print(_table(shown, metric))
    console.print(
        f"{summary.found} cells were there, {summary.computed} were computed, "
        f"{len(summary.failed)} failed. Results are in {store.folder}.",
        highlight=False,
    )
    for failure in summary.failed:
        console.print(
            f"Failed: {failure.cell}: {failure.sentence} ({failure.log})",
            highlight=False,
            markup=False,
        )


def _table(records: list[Record], metric: str) -> Table:
    """Mean errors of the methods by dataset and protocol, over all seeds; the best is bold."""
    best_of = np.nanmax if metric == "concordance" else np.nanmin
    table = Table("dataset", "protocol", "method", title=f"{metric.upper()} by shift")
    for regime in REGIMES:
        table.add_column(regime, justify="right")
    for head, block in _grouped(records, "dataset", "protocol").items():
        rows = {method: _means(own) for (method,), own in _grouped(block, "method").items()}
        values = np.array(list(rows.values()))
        # A regime without samples has no best.
        best = [best_of(column) if np.isfinite(column).any() else np.nan for column in values.T]
        for number, (method, row) in enumerate(rows.items()):
            figures = map(_figure, row, best)
            # As texts: a variant in brackets would be taken for markup.
            names = (*(head if number == 0 else ("", "")), method)
            table.add_row(*map(Text, names), *figures)
        table.add_section()
    return table


def _grouped(records: Iterable[Record], *fields: str) -> dict[tuple[str, ...], list[Record]]:
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(getattr(record, name) for name in fields), []).append(record)
    return groups


def _means(records: list[Record]) -> list[float]:
    """The mean over all samples of all seeds, for each regime."""
    means = []
    for regime in REGIMES:
        own = [record for record in records if record.shift == regime and record.n_samples]
        count = sum(record.n_samples for record in own)
        total = sum(record.value * record.n_samples for record in own)
        means.append(total / count if count else float("nan"))
    return means


def _figure(value: float, best: float) -> Text:
    text = "-" if np.isnan(value) else f"{value:.4f}".removeprefix("0")
    return Text(text, style="bold" if value == best else "")
