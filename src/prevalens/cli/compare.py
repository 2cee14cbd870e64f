"""`prevalens compare`: rank methods by their error on the user's own data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from prevalens.cli.console import Duration, plain_table, printed_warnings
from prevalens.cli.options import (
    item_options,
    labelled_options,
    protocol_option,
    sample_options,
    score_options,
    training_scheduler_option,
)
from prevalens.cli.results import Results, result_options
from prevalens.model.compare import AUTO_BUDGET, Leaderboard, compare_files
from prevalens.model.progress import progress_bar
from prevalens.reports.trust_page import leaderboard_page, leaderboard_sentence


@click.command()
@click.argument("train", nargs=-1, required=True)
@click.option(
    "--methods",
    default=None,
    help="Expressions separated by semicolons; `prevalens methods` lists their parts. Default: "
    "auto, as `prevalens fit` uses it, and eight methods from the training prevalence to joint "
    "corrections; with scores, methods for these.",
)
@click.option(
    "--time-budget",
    type=Duration(),
    default=f"{AUTO_BUDGET:g}s",
    show_default=True,
    help="Time that auto may take in each fold, such as 20s or 10m.",
)
@item_options
@score_options
@labelled_options
@click.option("--folds", default=5, show_default=True, help="Folds of the cross-validation.")
@protocol_option
@sample_options(
    300,
    size="Items per sample. Default: 100, or a third of a fold if that is less.",
    samples="Samples per fold and family of shifts.",
)
@training_scheduler_option
@result_options("Write a page to this HTML file.")
def command(train: tuple[str, ...], methods: str | None, results: Results, **settings: Any) -> None:
    """Compare methods on the labelled items in TRAIN.

    In cross-validation, every method is trained on all folds but one and estimates samples of the
    left-out fold whose label mix has moved. The table lists the methods by their error.
    """
    results.check(*train)
    with printed_warnings(), progress_bar() as progress:
        board = compare_files(train, methods, progress=progress, **settings)
    results.write(lambda: leaderboard_page(board), board.to_rows, board.to_dict())
    if not results.as_json:
        _print(board, results.html)


def _print(board: Leaderboard, html: Path | None) -> None:
    console = Console(highlight=False)
    table = plain_table([""], title="Mean absolute error, in points")
    table.add_column("method", overflow="fold")
    heads = ("error", "spread", *board.protocols)
    for name in (*heads, "s"):
        table.add_column(name, justify="right", no_wrap=True)
    for place in board.places():
        cells = [place.error, place.spread, *place.by_protocol.values()]
        tied = "≈" if place.tied and place.rank > 1 else ""
        rank = Text(f"{place.rank}{tied}")
        style = "bold" if place.rank == 1 else ""
        figures = [f"{100 * value:.2f}" for value in cells]
        table.add_row(rank, Text(place.method, style=style), *figures, f"{place.seconds:.1f}")
    console.print(table)
    for name, why in board.failures.items():
        console.print(Text(f"{name} could not be trained: {why}"))
    console.print(Text(leaderboard_sentence(board)))
    if html is not None:
        console.print(Text(f"Page: {html}"))
