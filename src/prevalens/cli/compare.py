"""`prevalens compare`: the method that is closest on the user's own data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prevalens.cli.steps import (
    labelled_options,
    listed,
    reading_of,
    shown_steps,
    write_results,
)
from prevalens.model.writing import check_writable
from prevalens.reporting.trust_leaderboard import Leaderboard
from prevalens.reporting.trust_leaderboard_page import leaderboard_page, leaderboard_sentence
from prevalens.reporting.trust_page import protocol_words
from prevalens.workflow.compare import DEFAULT_METHODS, compare_files
from prevalens.workflow.report import write_page

__all__ = ["command"]


@click.command()
@click.argument("train", nargs=-1, required=True)
@click.option(
    "--methods",
    default=";".join(DEFAULT_METHODS),
    help="Expressions with ; between them; prevalens methods lists the parts.",
)
@click.option("--text", metavar="COL", help="The column of texts.")
@click.option("--features", multiple=True, metavar="COL,...", help="The columns of features.")
@labelled_options
@click.option("--id", metavar="COL", help="A column that is neither feature nor label.")
@click.option("--folds", default=5, show_default=True)
@click.option(
    "--protocol",
    default="ml-app,uniform,tilt",
    show_default=True,
    help="Kinds of shift: ml-app, uniform, tilt, labelset, covariate.",
)
@click.option("--size", type=int, help="Items per sample; else 100, or a third of a small fold.")
@click.option("--samples", default=300, show_default=True, help="Samples per fold and kind.")
@click.option("--seed", default=0, show_default=True)
@click.option("--html", type=click.Path(path_type=Path), help="Write a page to look at.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write .csv or .json.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def command(
    train: tuple[str, ...],
    methods: str,
    features: tuple[str, ...],
    labels: tuple[str, ...],
    delimiter: str | None,
    encoding: str | None,
    sheet: str | None,
    html: Path | None,
    output: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Compare methods on the labelled items in TRAIN.

    Cross-validation: every method is trained on all folds but one, and estimates samples of that
    one whose label mix has moved. The first of the table is closest to the truth on this data.
    """
    for path in filter(None, (html, output)):
        check_writable(path)
    with shown_steps() as progress:
        found = compare_files(
            train,
            methods,
            features=listed(features),
            labels=listed(labels),
            reading=reading_of(delimiter, encoding, sheet),
            protocols=settings.pop("protocol"),
            n_samples=settings.pop("samples"),
            progress=progress,
            **settings,
        )
    if html is not None:
        write_page(html, leaderboard_page(found))
    if output is not None:
        write_results(output, found.to_rows(), found.to_dict())
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=1, ensure_ascii=False))
    else:
        _print(found, html)


def _print(found: Leaderboard, html: Path | None) -> None:
    console = Console(highlight=False)
    table = Table(
        title="Mean absolute error, in points",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1),
    )
    table.add_column("")
    table.add_column("method", overflow="fold")
    heads = ("error", "spread", *(protocol_words(name, short=True) for name in found.protocols))
    for name in (*heads, "s"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in found.places():
        cells = [one.error, one.spread, *one.by_protocol.values()]
        tied = "≈" if one.tied and one.rank > 1 else ""
        rank = Text(f"{one.rank}{tied}")
        style = "bold" if one.rank == 1 else ""
        figures = [f"{100 * value:.2f}" for value in cells]
        table.add_row(rank, Text(one.method, style=style), *figures, f"{one.seconds:.1f}")
    console.print(table)
    for name, why in found.failures.items():
        console.print(Text(f"{name} could not be trained: {why}"))
    console.print(Text(leaderboard_sentence(found)))
    if html is not None:
        console.print(Text(f"Page: {html}"))
