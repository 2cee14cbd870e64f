"""Options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import click

from prevalens.inputs import Reading

__all__ = [
    "Decorator",
    "item_options",
    "json_option",
    "labelled_options",
    "listed",
    "protocol_option",
    "reading_options",
    "sample_options",
    "together",
]

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator; the help shows them in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def listed(values: Sequence[str]) -> list[str] | None:
    """Names from options that may be repeated and may hold commas; None if there are none."""
    names = [name.strip() for value in values for name in value.split(",") if name.strip()]
    return names or None


def _columns(name: str, words: str) -> Decorator:
    """An option that names columns; the command gets them as a list, or None."""
    return click.option(
        name,
        multiple=True,
        metavar="COL,...",
        callback=lambda _context, _option, values: listed(values),
        help=words,
    )


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How files are to be read; the command gets one `reading`."""

    @functools.wraps(command)
    def reads(*, delimiter: Any, encoding: Any, sheet: Any, **others: Any) -> Any:
        reading = Reading(delimiter=delimiter, encoding=encoding, sheet=sheet)
        return command(reading=reading, **others)

    options = together(
        click.option("--delimiter", help="What divides the columns, where it is not seen."),
        click.option("--encoding", help="Of the files, where it is not UTF-8."),
        click.option("--sheet", help="Of an Excel workbook; the first if left out."),
    )
    return options(reads)


#: Which columns are items.
item_options = together(
    click.option("--text", metavar="COL", help="The column of texts."),
    _columns("--features", "The columns of features."),
)

#: Where labels are, and how files are to be read.
labelled_options = together(
    _columns("--labels", "Columns of 0 and 1."),
    click.option("--tags", metavar="COL", help="The column that names the labels of an item."),
    click.option("--sep", default=",", show_default=True, help="What divides the tags."),
    reading_options,
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")

protocol_option = click.option(
    "--protocol",
    "protocols",
    default="ml-app,uniform,tilt",
    show_default=True,
    help="Kinds of shift: ml-app, uniform, tilt, labelset, covariate.",
)


def sample_options(count: int, *, size: str, samples: str) -> Decorator:
    """How samples are drawn; `count` is how many by default, the rest are words of the help."""
    return together(
        click.option("--size", type=int, help=size),
        click.option("--samples", "n_samples", default=count, show_default=True, help=samples),
        click.option("--seed", default=0, show_default=True),
    )
