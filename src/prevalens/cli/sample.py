"""`prevalens sample`: items of batches to label by hand."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from prevalens.cli.console import printed_warnings, progress_bar
from prevalens.cli.options import batch_options, reading_options
from prevalens.cli.outputs import TABLE, check_outputs
from prevalens.errors import InputError
from prevalens.model.groups import MIN_ITEMS
from prevalens.model.model import Model
from prevalens.model.rows import check_ending
from prevalens.model.sample import sample_files


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("batch", nargs=-1, required=True)
@click.option("-n", "n", default=50, show_default=True, help="Items per batch.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default="to_label.csv",
    show_default=True,
    help="File to write: .csv, .tsv, .xlsx, .jsonl, .json or .parquet.",
)
@batch_options
@click.option(
    "--stratified",
    is_flag=True,
    help="Draw items that the model is unsure about more often, and keep the weights in a column.",
)
@click.option("--seed", "random_state", default=0, show_default=True, help="Random seed.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@reading_options
def command(
    model: Path, batch: tuple[str, ...], n: int, output: Path, force: bool, **settings: Any
) -> None:
    """Draw items of every BATCH to label by hand, for `prevalens quantify --labelled`.

    The file has the columns of the items and an empty column per label of MODEL: write 0 or 1
    under every label of an item. Items are in random order and you may stop at any time: a row
    whose labels are all empty counts as not labelled. Items are drawn uniformly at random, which
    is safe: every item had the same chance, so the labels are right on average however wrong the
    model may be. A choice by hand, or by what looks interesting, is not.
    """
    check_ending(output)
    check_outputs([(TABLE, output)], (model, *batch), force=force)
    if output.exists() and output.stat().st_size and not force:
        raise InputError(
            f"{output} exists and may have labels; name another file, or overwrite it with --force."
        )
    with printed_warnings(), progress_bar() as progress:
        sheet = sample_files(Model.load(model), batch, n, progress=progress, **settings)
    sheet.write(output)
    again = shlex.join(["prevalens", "quantify", str(model), *batch, *_grouping(settings)])
    click.echo(f"{len(sheet.rows):,} of {sheet.n_items:,} items: {output}")
    click.echo("Write 0 or 1 under every label of an item; rows without labels are left out.")
    click.echo(f"Next: {again} --labelled {shlex.quote(str(output))}")


def _grouping(settings: dict[str, Any]) -> list[str]:
    """The options that divide the items into batches, as they were given."""
    names = ("by", "by_time", "freq", "date_form")
    given = [(name, settings[name]) for name in names if settings[name] is not None]
    if settings["by"] is not None and settings["min_items"] != MIN_ITEMS:
        given.append(("min_items", str(settings["min_items"])))
    return [word for name, value in given for word in (f"--{name.replace('_', '-')}", value)]
