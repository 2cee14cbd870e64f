"""`prevalens watch`: estimates of a stream, from sums that survive a restart."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prevalens.cli import calls
from prevalens.cli.console import print_note, printed_warnings
from prevalens.cli.options import batch_options, reading_options
from prevalens.cli.outputs import SUMMARY, TABLE, check_outputs, force_option
from prevalens.errors import InputError
from prevalens.model.rows import check_ending

if TYPE_CHECKING:
    from prevalens.model.model import Model
    from prevalens.model.watch import Stream


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("source", metavar="FOLDER|-")
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    required=True,
    help="Summary that holds all that was counted; its name ends in .summary. It is read at the "
    "start and replaced after every addition.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write the estimates to this file after every addition: .csv, .json, .xlsx, ...",
)
@batch_options
@click.option("--interval", type=float, default=0.9, show_default=True, help="0 computes none.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    help="Seconds between two looks at the folder.",
)
@click.option("--once", is_flag=True, help="Count what is there and end.")
@force_option
@reading_options
def command(
    model: Path,
    source: str,
    state: Path,
    output: Path | None,
    interval: float,
    every: float,
    once: bool,
    force: bool,
    min_items: int,
    reading: Any,
    **settings: Any,
) -> None:
    """Keep estimating how frequent each label of MODEL is while items keep coming.

    The items are those of files that appear in FOLDER (each is counted once, when it has not
    changed for a second), or with - the lines of standard input: JSON objects, or CSV with a
    header. --by-time or --by makes windows of them; without these every file is a batch. A run
    that was killed goes on where its last addition ended.
    """
    if state.suffix.lower() != calls.ENDING:
        raise InputError(f"--state must end in {calls.ENDING}; got {str(state)!r}.")
    if output is not None:
        check_ending(output)
    check_outputs([(SUMMARY, state), (TABLE, output)], (model,), force=force)
    loaded = calls.Model.load(model)
    stream = calls.Stream(loaded, state, settings, reading=reading)
    if stream.summary is not None:
        print_note(f"Going on from {state}: {stream.summary.n_items:,} items are counted.")
    looks = iter([False, True]) if once else iter(lambda: False, True)
    with printed_warnings():
        additions = (
            stream.add_lines(sys.stdin)
            if source == "-"
            else calls.follow(stream, source, every=every, stop=lambda: next(looks))
        )
        for added in additions:
            _report(loaded, stream, added, output, interval or None, min_items)
    if stream.summary is None:
        print_note("There was nothing to count.")


def _report(
    model: Model,
    stream: Stream,
    added: Any,
    output: Path | None,
    interval: float | None,
    min_items: int,
) -> None:
    """Write the estimates, or print those of the last batch."""
    assert stream.summary is not None  # something was added
    result = calls.quantify_summary(model, stream.summary, interval=interval, min_items=min_items)
    what = f"{added:,} items" if isinstance(added, int) else ", ".join(path.name for path in added)
    click.echo(f"{what}: {stream.summary.n_items:,} items in {len(result.batches):,} batches")
    if output is not None:
        result.write(output)
        return
    for row in result.to_rows()[-len(result.labels) :]:
        ends = (
            ""
            if row["lower"] is None
            else f" ({100 * row['lower']:.1f} to {100 * row['upper']:.1f})"
        )
        click.echo(f"  {row['group']}  {row['label']}: {100 * row['prevalence']:.1f} %{ends}")
