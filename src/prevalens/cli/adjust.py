"""`prevalens adjust`: counts of an imperfect test, corrected by sensitivity and specificity."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prevalens.cli import calls
from prevalens.cli.console import plain_table, print_note
from prevalens.cli.options import Decorator, labelled_options
from prevalens.cli.results import Results, result_options
from prevalens.errors import InputError

if TYPE_CHECKING:
    from prevalens.model.adjust import AdjustedCounts

#: Rows that the table on the screen shows.
_MOST_ROWS = 60


def _by_label(_context: Any, option: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """Rates by label; that of all other labels is named by an empty text."""
    rates: dict[str, str] = {}
    for value in values:
        label, _, rate = value.rpartition("=")
        if label.strip() in rates:
            which = f"for {label.strip()!r}" if label.strip() else "for all labels"
            raise InputError(f"--{option.name} is given twice {which}; give it once.")
        rates[label.strip()] = rate
    return rates


def _rate_option(name: str, text: str) -> Decorator:
    return click.option(
        f"--{name}",
        multiple=True,
        metavar="[LABEL=]RATE",
        callback=_by_label,
        help=f"{text}: 0.85, '0.85 (0.80-0.90)' with its 95 % interval, or 170/200. May be "
        "repeated for single labels.",
    )


@click.command()
@click.argument("counts", nargs=-1, required=True)
@_rate_option("sensitivity", "Share of the positive items that the test finds")
@_rate_option("specificity", "Share of the negative items whose test is negative")
@click.option(
    "--rates",
    type=click.Path(path_type=Path),
    help="Table with the columns label, sensitivity and specificity.",
)
@click.option("--by", metavar="COL", help="Column of groups, which are counted apart.")
@click.option("--interval", default=0.95, show_default=True, help="Level of the intervals.")
@labelled_options
@result_options("Write a report with a chart to this HTML file.")
def command(counts: tuple[str, ...], results: Results, rates: Path | None, **settings: Any) -> None:
    """Correct COUNTS for the errors of the test or labeller that made them.

    COUNTS is a table with the columns label, positives and n (and perhaps group), or files of
    tested items whose columns of 0 and 1 are counted (--labels, --tags), or counts such as
    flu=23/150. Needs no training items: sensitivity and specificity say how often the test is
    right (Rogan and Gladen 1978). If they are given with an interval or as counts, the intervals
    of the results allow for it (Lang and Reiczigel 2014).
    """
    results.check(*_files(counts), *([] if rates is None else [rates]))
    found = calls.adjust_files(counts, rates=rates, **settings)
    for text in found.notices:
        print_note(text)
    results.write(lambda: calls.adjust_page(found), found.to_rows, found.to_dict())
    if not results.as_json:
        _print(found)


def _files(counts: Sequence[str]) -> list[str]:
    return [word for word in counts if Path(word).exists()]


def _print(found: AdjustedCounts) -> None:
    console = Console(highlight=False)
    rows = found.to_rows()
    console.print(_table(rows[:_MOST_ROWS], found.adjusted.level))
    if len(rows) > _MOST_ROWS:
        console.print(Text(f"{len(rows) - _MOST_ROWS} more rows; -o FILE writes all."))


def _table(rows: Sequence[dict[str, Any]], level: float) -> Table:
    grouped = any(row["group"] for row in rows)
    heads = ("positives", "counted", "corrected", f"{level:.0%} interval")
    table = plain_table(["group", "label"] if grouped else ["label"], heads)
    table.title = "Prevalence in percent"
    for row in rows:
        names = [row["group"], row["label"]] if grouped else [row["label"]]
        table.add_row(
            *map(Text, names),
            f"{row['positives']:,} of {row['n']:,}",
            f"{100 * row['apparent']:.1f}",
            f"{100 * row['prevalence']:.1f}",
            f"{100 * row['lower']:.1f} to {100 * row['upper']:.1f}",
        )
    return table
