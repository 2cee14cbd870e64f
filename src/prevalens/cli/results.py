"""Where the results of a command go: a page, a file, JSON for programs."""

from __future__ import annotations

import csv
import functools
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from prevalens.cli.options import Decorator, json_option, together
from prevalens.errors import InputError
from prevalens.model import writing
from prevalens.model.writing import check_writable
from prevalens.workflow.report import write_page
from prevalens.workflow.result import safe_cell

__all__ = ["Results", "result_options", "write_results"]


@dataclass(frozen=True)
class Results:
    """What was asked for besides the screen.

    Attributes
    ----------
    html, output : Path or None
        Where a page goes, and a file of .csv or .json.
    as_json : bool
        Whether JSON is printed in the place of what people read.
    """

    html: Path | None
    output: Path | None
    as_json: bool

    def check(self) -> None:
        """Refuse places that cannot be written to, before the work is done."""
        for path in filter(None, (self.html, self.output)):
            check_writable(path)

    def hand_over(
        self,
        page: Callable[[], str],
        rows: Callable[[], Sequence[Mapping[str, Any]]],
        everything: Mapping[str, Any],
    ) -> None:
        """Write the files and print the JSON that were asked for."""
        if self.html is not None:
            write_page(self.html, page())
        if self.output is not None:
            write_results(self.output, rows(), everything)
        if self.as_json:
            click.echo(json.dumps(everything, indent=1, ensure_ascii=False))


def result_options(page: str) -> Decorator:
    """Where results go, with the words of the help on the page; the command gets `results`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def checks(*, html: Path | None, output: Path | None, as_json: bool, **others: Any) -> Any:
            results = Results(html, output, as_json)
            results.check()
            return command(results=results, **others)

        return options(checks)

    options = together(
        click.option("--html", type=click.Path(path_type=Path), help=page),
        click.option(
            "-o", "--output", type=click.Path(path_type=Path), help="Write .csv or .json."
        ),
        json_option,
    )
    return decorate


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
