"""`prevalens sample`: items of batches to label by hand."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from prevalens.cli.console import printed_warnings
from prevalens.cli.options import batch_options, reading_options
from prevalens.cli.outputs import TABLE, check_outputs
from prevalens.errors import InputError
from prevalens.model.groups import MIN_ITEMS
from prevalens.model.model import Model
from prevalens.model.progress import progress_bar
from prevalens.model.rows import check_ending
from prevalens.model.sample import sample_files, task_paths
from prevalens.model.tasks import TASK_ENDINGS

#: How the tasks get into each tool and out of it.
_IMPORT = {
    "label-studio": "Set up a project with the labelling configuration {1}, import {0}, and export "
    "as JSON; submit an item without a choice if no label applies.",
    "argilla": "Load {0} with dataset.records.from_json, for a dataset with a MultiLabelQuestion "
    "and allow_extra_metadata=True; save the answers with dataset.records.to_json.",
    "doccano": "Import {0} as JSONL and the labels {1}; export approved documents only, as JSONL.",
    "prodigy": "Show {0} with the choice interface, choice_style multiple; export with db-out.",
}


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("batch", nargs=-1, required=True)
@click.option("-n", "n", default=50, show_default=True, help="Items per batch.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write: .csv, .tsv, .xlsx, .jsonl, .json or .parquet. Default: to_label.csv; with "
    "--format to_label.json or to_label.jsonl, as the tool imports it.",
)
@click.option(
    "--format",
    "tool",
    type=click.Choice(list(TASK_ENDINGS)),
    help="Write tasks that this annotation tool imports, instead of a table. Its export, with the "
    "labels that people chose, is what --labelled takes.",
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
    model: Path,
    batch: tuple[str, ...],
    n: int,
    output: Path | None,
    tool: str | None,
    force: bool,
    **settings: Any,
) -> None:
    """Draw items of every BATCH to label by hand, for `prevalens quantify --labelled`.

    The table has the columns of the items and an empty column per label of MODEL: write 0 or 1
    under every label of an item. Items are in random order and you may stop at any time: a row
    whose labels are all empty counts as not labelled. Items are drawn uniformly at random, which
    is safe: every item had the same chance, so the labels are right on average however wrong the
    model may be. A choice by hand, or by what looks interesting, is not.
    """
    written = _outputs(output, tool)
    check_outputs([(TABLE, path) for path in written], (model, *batch), force=force)
    for path in written:
        if path.exists() and path.stat().st_size and not force:
            raise InputError(
                f"{path} exists and may have labels; name another file, or overwrite it with "
                "--force."
            )
    with printed_warnings(), progress_bar() as progress:
        sheet = sample_files(Model.load(model), batch, n, progress=progress, **settings)
    again = shlex.join(["prevalens", "quantify", str(model), *batch, *_grouping(settings)])
    if tool is None:
        sheet.write(written[0])
    else:
        sheet.write_tasks(written[0], tool)
    click.echo(f"{len(sheet.rows):,} of {sheet.n_items:,} items: {', '.join(map(str, written))}")
    if tool is None:
        click.echo("Write 0 or 1 under every label of an item; rows without labels are left out.")
        click.echo(f"Next: {again} --labelled {shlex.quote(str(written[0]))}")
    else:
        click.echo(_IMPORT[tool].format(*written))
        click.echo(f"Next: {again} --labelled EXPORT")


def _outputs(output: Path | None, tool: str | None) -> list[Path]:
    """The files to write."""
    if tool is not None:
        return task_paths(output or Path(f"to_label{TASK_ENDINGS[tool][0]}"), tool)
    table = output or Path("to_label.csv")
    check_ending(table)
    return [table]


def _grouping(settings: dict[str, Any]) -> list[str]:
    """The options that divide the items into batches, as they were given."""
    names = ("by", "by_time", "freq", "date_form")
    given = [(name, settings[name]) for name in names if settings[name] is not None]
    if settings["by"] is not None and settings["min_items"] != MIN_ITEMS:
        given.append(("min_items", str(settings["min_items"])))
    return [word for name, value in given for word in (f"--{name.replace('_', '-')}", value)]
