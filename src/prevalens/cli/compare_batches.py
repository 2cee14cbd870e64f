"""`prevalens compare-batches`: how far the prevalences of two batches are apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prevalens.cli import calls
from prevalens.cli.console import plain_table, print_note, printed_warnings
from prevalens.cli.options import batch_options, reading_options
from prevalens.cli.results import Results, result_options
from prevalens.errors import InputError
from prevalens.model.progress import progress_bar

if TYPE_CHECKING:
    from prevalens.model.result import BatchResult
    from prevalens.uncertainty.difference import Difference

#: Labels that the table on the screen shows.
_MOST_ROWS = 40
_SIGNS = {1: "higher", -1: "lower", 0: ""}


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("batch", nargs=-1, required=True)
@batch_options
@click.option(
    "--between",
    nargs=2,
    metavar="FIRST SECOND",
    help="Names of the two batches. Default: the two files, the last two periods of --by-time, or "
    "the two largest groups of --by.",
)
@click.option("--interval", default=0.9, show_default=True, help="Level of the intervals.")
@reading_options
@result_options("Write a report on all batches to this HTML file.")
def command(
    model: Path,
    batch: tuple[str, ...],
    between: tuple[str, str] | None,
    results: Results,
    **settings: Any,
) -> None:
    """Compare how frequent each label of MODEL is in two batches.

    BATCH is one or several files, which are divided as in `prevalens quantify`: two files, or two
    months or groups of one file. Every difference has an interval; a difference is called supported
    if the band over all labels excludes 0 and neither batch raises the alarm.
    """
    results.check(model, *batch)
    loaded = calls.Model.load(model)
    with printed_warnings(), progress_bar() as progress:
        result = calls.quantify_files(loaded, batch, progress=progress, **settings)
    found = result.difference(*(between or _usual(result)))
    for text in result.warnings:
        print_note(text)
    results.write(lambda: calls.report_html(result, loaded), found.to_rows, to_dict(found))
    if not results.as_json:
        _print(found)


def _usual(result: BatchResult) -> tuple[str, str]:
    """The last two periods, the two largest groups, or the two batches there are, in order."""
    if len(result.batches) < 2:
        raise InputError(
            f"There is one batch, {result.batches[0]!r}; name two files, or divide the items with "
            "--by or --by-time."
        )
    if result.ordered or len(result.batches) == 2:
        return result.batches[-2], result.batches[-1]
    second, first = calls.by_size(result).batches[:2]
    return first, second


def to_dict(found: Difference) -> dict[str, Any]:
    """A difference for JSON."""
    first, second = found.names
    return {
        "first": first,
        "second": second,
        "interval": found.level,
        "reliable": found.reliable,
        "rows": found.to_rows(),
    }


def _print(found: Difference) -> None:
    console = Console(highlight=False)
    first, second = found.names
    n = int((found.supported != 0).sum())
    console.print(Text(f"{second} minus {first}: {_verdict(found, n)}", style="bold"))
    rows = found.to_rows()
    console.print(_table(found, rows[:_MOST_ROWS]))
    if len(rows) > _MOST_ROWS:
        more = len(rows) - _MOST_ROWS
        console.print(Text(f"{more} more labels; -o FILE writes all."))


def _verdict(found: Difference, n_supported: int) -> str:
    if not found.reliable:
        return "no verdict, because a batch raises the alarm, is unusual or has too few items."
    labels = f"{len(found.labels)} label{'' if len(found.labels) == 1 else 's'}"
    verb = "differs" if n_supported == 1 else "differ"
    return f"{n_supported} of {labels} {verb} clearly (band over all labels)."


def _table(found: Difference, rows: Sequence[dict[str, Any]]) -> Table:
    level = "" if found.level is None else f"{found.level:.0%} interval"
    table = plain_table(["label"], [*found.names, "difference", level, "supported"])
    table.title = "In percent; differences in percentage points"
    for row in rows:
        ends = (
            ""
            if row["lower"] is None
            else f"{100 * row['lower']:+.1f} to {100 * row['upper']:+.1f}"
        )
        table.add_row(
            Text(row["label"]),
            f"{100 * row['first']:.1f}",
            f"{100 * row['second']:.1f}",
            f"{100 * row['difference']:+.1f}",
            ends,
            _SIGNS[row["supported"]],
        )
    return table
