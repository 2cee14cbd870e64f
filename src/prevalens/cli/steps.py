"""What commands on labelled files share: progress, options, and where results go."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from tqdm import tqdm

from prevalens.errors import InputError
from prevalens.inputs import Reading
from prevalens.model import writing
from prevalens.workflow.progress import Step
from prevalens.workflow.result import safe_cell

__all__ = ["labelled_options", "listed", "shown_steps", "write_results"]


@contextmanager
def shown_steps() -> Iterator[Callable[[Step], None]]:
    """A bar on standard error for as long as the work takes; nothing where nobody looks."""
    with tqdm(
        total=1,
        disable=not sys.stderr.isatty(),
        leave=False,
        bar_format="{desc} |{bar}| {elapsed}",
        delay=1,
    ) as bar:

        def show(step: Step) -> None:
            words = f"{step.stage}: {step.detail}" if step.detail else step.stage
            bar.set_description_str(words, refresh=False)
            # Of unknown length: an empty bar, not that of the stage before.
            bar.total, bar.n = (step.total, step.done) if step.total else (1, 0)
            bar.refresh()

        yield show


def listed(values: Sequence[str]) -> list[str] | None:
    """Names from options that may be repeated and may hold commas; None if there are none."""
    names = [name.strip() for value in values for name in value.split(",") if name.strip()]
    return names or None


def labelled_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say where labels are, and how files are to be read."""
    options = [
        click.option("--labels", multiple=True, metavar="COL,...", help="Columns of 0 and 1."),
        click.option("--tags", metavar="COL", help="The column that names the labels of an item."),
        click.option("--sep", default=",", show_default=True, help="What divides the tags."),
        click.option("--delimiter", help="What divides the columns, where it is not seen."),
        click.option("--encoding", help="Of the files, where it is not UTF-8."),
        click.option("--sheet", help="Of an Excel workbook; the first if left out."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def reading_of(delimiter: str | None, encoding: str | None, sheet: str | None) -> Reading:
    """How files are to be read."""
    return Reading(delimiter=delimiter, encoding=encoding, sheet=sheet)


def write_results(
    path: Path, rows: Sequence[Mapping[str, Any]], everything: Mapping[str, Any]
) -> None:
    """Write rows as CSV, or everything as JSON, by the ending of the name."""
    ending = path.suffix.lower()
    if ending == ".json":
        content = json.dumps(everything, indent=1, ensure_ascii=False) + "\n"
    elif ending == ".csv":
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: safe_cell(value) for name, value in row.items()})
        content = text.getvalue()
    else:
        raise InputError(f"Results are written as .csv or .json; got {path.name!r}.")
    with writing(path) as file:
        file.write(content.encode())
