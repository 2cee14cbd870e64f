"""`prevalens summarise`: the sums that estimates need of batches, without their items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from prevalens.cli import calls
from prevalens.cli.console import printed_warnings
from prevalens.cli.options import batch_options, reading_options, scheduler_option
from prevalens.cli.outputs import SUMMARY, check_outputs, force_option
from prevalens.cluster import LOCAL
from prevalens.errors import InputError
from prevalens.model.progress import progress_bar


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("batch", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="Summary to write; its name ends in .summary.",
)
@batch_options
@click.option(
    "--min-group",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Leave out batches with fewer items: sums of few items say much about each of them.",
)
@click.option(
    "--jobs",
    "n_jobs",
    type=click.IntRange(min=1),
    show_default="1; with --scheduler local one per core",
    help="Processes that share the files.",
)
@scheduler_option
@force_option
@reading_options
def command(
    model: Path,
    batch: tuple[str, ...],
    output: Path,
    n_jobs: int | None,
    scheduler: str | None,
    force: bool,
    **settings: Any,
) -> None:
    """Sum up every BATCH as MODEL needs it, for `prevalens quantify MODEL *.summary`.

    A summary holds sums of scores, no item; it is as small for a billion items as for ten. Sums
    add: summaries of many files, days, machines or sites, made with the same MODEL, are estimated
    together by `prevalens quantify MODEL a.summary b.summary`, and batches of the same name are
    one batch. Summaries that share a file are refused, so that no item is counted twice. A summary
    is not differentially private.
    """
    if output.suffix.lower() != calls.ENDING:
        raise InputError(
            f"A summary is a file whose name ends in {calls.ENDING}; got {str(output)!r}."
        )
    check_outputs([(SUMMARY, output)], (model, *batch), force=force)
    # Small groups stay apart: they may be large in the sum over several summaries.
    settings.pop("min_items")
    if n_jobs is not None and scheduler not in (None, LOCAL):
        raise InputError(
            f"--jobs {n_jobs} starts processes on this machine, but --scheduler {scheduler} "
            "computes elsewhere; leave one of them out."
        )
    with printed_warnings(), progress_bar() as progress:
        settings["progress"] = progress
        if scheduler is None:
            summary = calls.summarise_files(model, batch, n_jobs=n_jobs or 1, **settings)
        else:
            summary = calls.summarise_files_dask(
                model, batch, scheduler, n_workers=n_jobs, **settings
            )
    summary.save(output)
    batches = "1 batch" if len(summary) == 1 else f"{len(summary):,} batches"
    click.echo(f"{batches}, {summary.n_items:,} items: {output}")
