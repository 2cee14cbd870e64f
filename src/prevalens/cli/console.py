"""Console output: tables, notes and durations."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table
from tqdm import tqdm

from prevalens.cli.wording import as_options
from prevalens.errors import InputError

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def plain_table(
    left: Iterable[str] = (), right: Iterable[str] = (), *, title: str | None = None
) -> Table:
    """An empty table with left-aligned columns, then right-aligned columns."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1))
    # Long words are continued on the next line; by default they would be cut.
    for name in left:
        table.add_column(name, overflow="fold")
    for name in right:
        table.add_column(name, justify="right", overflow="fold")
    return table


_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def print_note(text: str) -> None:
    """Print one line on standard error."""
    with tqdm.external_write_mode(file=sys.stderr):
        click.echo(f"prevalens: note: {as_options(text)}", err=True)


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print every warning of the body once, as a line on standard error."""
    printed: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in printed:
            printed.add(text)
            print_note(text)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield


class Duration(click.ParamType):  # type: ignore[type-arg]
    """Seconds, or a number with s, m or h: ``90``, ``10m``, ``1.5h``."""

    name = "duration"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:  # noqa: ARG002
        """The number of seconds."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", str(value).lower())
        if match is None or float(match.group(1)) == 0:
            raise InputError(f"A time is written as 90s, 10m or 1.5h; got {value!r}.")
        return float(match.group(1)) * _UNITS[match.group(2)]
