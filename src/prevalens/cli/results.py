"""Where the results of a command go: pages, files and JSON."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from prevalens.cli import calls
from prevalens.cli.console import json_option
from prevalens.cli.options import Decorator, together
from prevalens.cli.outputs import PAGE, TABLE, check_outputs, force_option
from prevalens.errors import InputError
from prevalens.files import writing
from prevalens.model.rows import csv_bytes


@dataclass(frozen=True)
class Results:
    """Where results go besides the screen.

    Attributes
    ----------
    html, output : Path or None
        Files for a page, and for rows as .csv or everything as .json.
    as_json : bool
        Whether JSON is printed instead of tables.
    force : bool
        Whether existing files of another kind may be replaced.
    """

    html: Path | None
    output: Path | None
    as_json: bool
    force: bool = False

    def check(self, *inputs: str | Path) -> None:
        """Refuse places that must not be written to, before the work is done."""
        check_outputs([(PAGE, self.html), (TABLE, self.output)], inputs, force=self.force)

    def write(
        self,
        page: Callable[[], str],
        rows: Callable[[], Sequence[Mapping[str, Any]]],
        everything: Mapping[str, Any],
    ) -> None:
        """Write the requested files, and print JSON if requested."""
        if self.html is not None:
            calls.write_page(self.html, page())
        if self.output is not None:
            write_results(self.output, rows(), everything)
        if self.as_json:
            click.echo(json.dumps(everything, indent=1, ensure_ascii=False))


def result_options(page: str) -> Decorator:
    """Where results go, with the help line of `--html`; the command gets `results`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def gathers(
            *, html: Path | None, output: Path | None, as_json: bool, force: bool, **others: Any
        ) -> Any:
            return command(results=Results(html, output, as_json, force), **others)

        return options(gathers)

    options = together(
        click.option("--html", type=click.Path(path_type=Path), help=page),
        click.option(
            "-o",
            "--output",
            type=click.Path(path_type=Path),
            help="Write the results to this .csv or .json file.",
        ),
        force_option,
        json_option,
    )
    return decorate


def write_results(
    path: Path, rows: Sequence[Mapping[str, Any]], everything: Mapping[str, Any]
) -> None:
    """Write rows as CSV, or everything as JSON, by the ending of the name."""
    ending = path.suffix.lower()
    if ending == ".json":
        content = (json.dumps(everything, indent=1, ensure_ascii=False) + "\n").encode()
    elif ending == ".csv":
        content = csv_bytes(rows)
    else:
        raise InputError(f"Results are written as .csv or .json; got {path.name!r}.")
    with writing(path) as file:
        file.write(content)
