"""`prevalens quantify`: how frequent each label is in batches of unlabelled items."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prevalens.cli import calls
from prevalens.cli.console import (
    json_option,
    plain_table,
    print_note,
    printed_warnings,
)
from prevalens.cli.options import batch_options, reading_options, scheduler_option
from prevalens.cli.outputs import PAGE, TABLE, check_outputs, force_option
from prevalens.errors import InputError
from prevalens.model.progress import progress_bar
from prevalens.model.rows import check_ending

if TYPE_CHECKING:
    from prevalens.model.model import Model
    from prevalens.model.result import BatchResult

#: Exit code of --strict if a batch raises the alarm.
ALARMED = 3
#: Rows that the table on the screen shows.
_MOST_ROWS = 60
#: Notes that are printed.
_MOST_NOTES = 8


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("batch", nargs=-1, required=True)
@batch_options
@click.option(
    "--interval",
    type=float,
    default=0.9,
    show_default=True,
    help="Level of the intervals; 0 computes none.",
)
@click.option(
    "--labelled",
    multiple=True,
    metavar="FILE",
    help="File that `prevalens sample` wrote for these batches, filled in; may be repeated.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write the estimates to this .csv, .tsv, .xlsx, .jsonl, .json or .parquet file.",
)
@click.option(
    "--wide",
    is_flag=True,
    help="One row per label, and for every batch the columns prevalence, lower, upper, n_items and "
    "alarm, such as 'prevalence 2026-05'. Default: one row per batch and label.",
)
@click.option(
    "--percent",
    is_flag=True,
    help="Write 12.3 instead of 0.123, in columns such as prevalence_percent.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="End with exit code 3 if a batch differs from the training data in more than its label "
    "mix; files are written nevertheless.",
)
@click.option(
    "--html", type=click.Path(path_type=Path), help="Write a report with charts to this HTML file."
)
@scheduler_option
@force_option
@reading_options
@json_option
def command(
    model: Path,
    batch: tuple[str, ...],
    interval: float,
    labelled: tuple[str, ...],
    output: Path | None,
    html: Path | None,
    wide: bool,
    percent: bool,
    strict: bool,
    scheduler: str | None,
    force: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Estimate how frequent each label of MODEL is in every BATCH.

    BATCH is one or several files, patterns or folders, or - for standard input. Every file is a
    batch, unless --by or --by-time divides the items. Files that end in .summary, of `prevalens
    summarise`, are added up instead: batches of the same name are one batch. If standard output is
    not a terminal, the estimates are printed as CSV. With --labelled, every batch also uses its
    own labelled items, which narrows the intervals and corrects a model that is off.
    """
    if output is not None:
        check_ending(output)
    check_outputs([(TABLE, output), (PAGE, html)], (model, *batch, *labelled), force=force)
    loaded = calls.Model.load(model)
    if strict:
        _check_alarm(loaded, interval)
    level = interval or None
    with printed_warnings(), progress_bar() as progress:
        if _are_summaries(batch, labelled, settings):
            least = settings["min_items"]
            result = calls.quantify_summaries(loaded, batch, interval=level, min_items=least)
        elif scheduler is not None:
            _check_no_labelled(labelled, "--scheduler returns sums alone")
            least = settings.pop("min_items")
            summary = calls.summarise_files_dask(
                loaded, batch, scheduler, progress=progress, **settings
            )
            result = calls.quantify_summary(loaded, summary, interval=level, min_items=least)
        else:
            settings |= {"labelled": labelled or None, "progress": progress}
            result = calls.quantify_files(loaded, batch, interval=level, **settings)
    form = {"wide": wide, "percent": percent}
    if output is not None:
        result.write(output, **form)
    if html is not None:
        calls.write_page(html, calls.report_html(result, loaded))
    _warn(
        (
            *(() if as_json else (str(calls.headline(result)),)),
            *result.warnings,
            *result.label_notes,
        )
    )
    if as_json:
        click.echo(json.dumps(result.to_dict(**form), indent=1, ensure_ascii=False))
    else:
        _print(result, [path for path in (output, html) if path is not None], form)
    if strict and result.alarms.any():
        _stop(result)


def _are_summaries(batch: Sequence[str], labelled: Sequence[str], settings: Any) -> bool:
    """Whether summaries are to be added up; refuses what needs the items."""
    which = [name.endswith(calls.ENDING) for name in batch]
    if not any(which):
        return False
    if not all(which):
        other = batch[which.index(False)]
        raise InputError(
            f"{other!r} is no summary; name summaries or files of items, or summarise the items "
            "first: prevalens summarise MODEL FILE -o NAME.summary."
        )
    names = {"--by": settings["by"], "--by-time": settings["by_time"]}
    given = [name for name, value in names.items() if value]
    if given:
        raise InputError(
            f"{given[0]} needs the items, and a summary has sums alone; use it with prevalens "
            "summarise."
        )
    _check_no_labelled(labelled, "a summary has sums alone")
    return True


def _check_no_labelled(labelled: Sequence[str], why: str) -> None:
    if labelled:
        raise InputError(
            f"--labelled needs the items of the batches, and {why}; quantify the files here."
        )


def _check_alarm(model: Model, interval: float) -> None:
    """Refuse --strict where no batch would be checked."""
    if not interval:
        raise InputError("--strict needs the alarm, which needs intervals; leave out --interval 0.")
    if model.quantifier.misfit_ is None:
        raise InputError(
            f"--strict needs the alarm, which {model.summary.method} does not have; use a method "
            "whose classifier has posteriors, such as lr+pacc, or leave out --strict."
        )


def _stop(result: BatchResult) -> NoReturn:
    alarming = [name for name, alarm in zip(result.batches, result.alarms, strict=True) if alarm]
    batches = f"{len(alarming)} of {len(result.batches)} batches"
    print_note(f"{batches} raised the alarm, so the exit code is {ALARMED} (--strict).")
    click.get_current_context().exit(ALARMED)


def _warn(sentences: Sequence[str]) -> None:
    for text in sentences[:_MOST_NOTES]:
        print_note(text)
    if len(sentences) > _MOST_NOTES:
        more = len(sentences) - _MOST_NOTES
        print_note(f"{more} more notes; --json and --html have all.")


def _print(result: BatchResult, written: Sequence[Path], form: dict[str, bool]) -> None:
    """Print which files were written; without files a table on a terminal, CSV elsewhere."""
    if written:
        batches = "1 batch" if len(result.batches) == 1 else f"{len(result.batches):,} batches"
        labels = "1 label" if len(result.labels) == 1 else f"{len(result.labels):,} labels"
        click.echo(f"{batches}, {labels}: {', '.join(map(str, written))}")
    elif sys.stdout.isatty():
        console = Console(highlight=False)
        rows, title = _moved_most(result.to_rows())
        console.print(Text(title))
        console.print(_table(rows, result.level))
    else:
        click.echo(result.to_bytes(".csv", **form).decode(), nl=False)


def _moved_most(rows: Sequence[dict[str, Any]]) -> tuple[Sequence[dict[str, Any]], str]:
    """The rows that fit on a screen, and the title of their table."""
    title = "Prevalence in percent"
    if len(rows) <= _MOST_ROWS:
        return rows, title
    moved = sorted(rows, key=_farthest)
    more = (
        f": the {_MOST_ROWS} of {len(rows)} that moved most by their intervals (-o FILE writes all)"
    )
    return moved[:_MOST_ROWS], title + more


def _farthest(row: dict[str, Any]) -> tuple[float, float]:
    """Sort key: how far the interval is from training, then how far the estimate is."""
    before, low, high = row["training"], row["lower"], row["upper"]
    outside = 0.0 if low is None else max(low - before, before - high, 0.0)
    return -outside, -abs(row["prevalence"] - before)


def _table(rows: Sequence[dict[str, Any]], level: float | None) -> Table:
    interval = "" if level is None else f"{level:.0%} interval"
    table = plain_table(["batch", "label"], ["items", "prevalence", interval, "training"])
    before = None
    for row in rows:
        low, high = row["lower"], row["upper"]
        ends = "" if low is None else f"{100 * low:.1f} to {100 * high:.1f}"
        first = row["group"] if row["group"] != before else ""
        alarm = " (alarm)" if first and row["alarm"] else ""
        table.add_row(
            Text(first).append(alarm, style="bold red"),
            Text(row["label"]),
            f"{row['n_items']:,}",
            f"{100 * row['prevalence']:.1f}",
            ends,
            f"{100 * row['training']:.1f}",
        )
        before = row["group"]
    return table
