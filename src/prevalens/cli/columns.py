"""The option that says what columns become, and the table of what they became."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tqdm import tqdm

from prevalens.cli.console import plain_table
from prevalens.errors import InputError, counted
from prevalens.tables.kinds import CHOICES, ColumnUse

#: Rows of the table; of more columns, plain ones are counted instead.
_MOST_ROWS = 30


def _parsed(_context: Any, _option: Any, values: Sequence[str]) -> dict[str, str] | None:
    kinds = {}
    for value in values:
        column, sign, kind = value.rpartition("=")
        if not sign or not column.strip() or kind.strip() not in CHOICES:
            raise InputError(
                f"--as is written COLUMN=KIND, and a KIND is {', '.join(CHOICES)}; got {value!r}."
            )
        kinds[column.strip()] = kind.strip()
    return kinds or None


as_option = click.option(
    "--as",
    "kinds",
    multiple=True,
    metavar="COL=KIND",
    callback=_parsed,
    help=f"What a feature column becomes: {', '.join(CHOICES)}. Default: by its cells; a table "
    "says what. May be repeated.",
)


def column_table(uses: Sequence[ColumnUse]) -> Table:
    """What each column became, how it was read or why it is not used, and what changes it.

    Of many columns only those with something to say have a row.
    """
    rows = [use for use in uses if len(uses) <= _MOST_ROWS or use.detail][:_MOST_ROWS]
    table = plain_table(["column", "becomes", "details", "otherwise"])
    for use in rows:
        change = f"--as {use.column}={use.alternative}" if use.alternative else ""
        table.add_row(Text(use.column), Text(use.use), Text(use.detail), Text(change))
    others = Counter(use.use for use in uses if use not in rows)
    if others:
        counts = ", ".join(f"{count} {use}" for use, count in others.most_common())
        table.add_row(Text(f"{counted(others.total(), 'other column')}"), Text(counts), "", "")
    return table


def print_columns(uses: Sequence[ColumnUse]) -> None:
    """Print the table of the columns on standard error, above a progress bar."""
    with tqdm.external_write_mode(file=sys.stderr):
        Console(stderr=True, highlight=False, width=_width()).print(column_table(uses))


def _width() -> int | None:
    """Columns of characters: those of a terminal, else enough for whole lines."""
    return None if sys.stderr.isatty() else 140
