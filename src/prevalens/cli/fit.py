"""`prevalens fit`: learn from labelled files and write the model."""

from __future__ import annotations

import json
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prevalens import model as models
from prevalens.cli.columns import as_option, print_columns
from prevalens.cli.console import Duration, json_option, print_note, printed_warnings
from prevalens.cli.options import (
    date_form_option,
    item_options,
    labelled_options,
    noise_options,
    score_options,
    training_scheduler_option,
)
from prevalens.cli.outputs import MODEL, check_outputs, force_option
from prevalens.errors import InputError, counted
from prevalens.model.labelled import check_labelled
from prevalens.model.progress import progress_bar

if TYPE_CHECKING:
    from prevalens.model import Model
    from prevalens.model.trust import TrustReport

#: Settings that name columns, or say how files are read.
_COLUMNS = (
    *("text", "features", "labels", "tags", "id", "group", "time", "reading"),
    *("scores", "scores_tags", "second_labels", "second_tags"),
)
#: Seconds of `--fast`.
_FAST = 5.0


@click.command()
@click.argument("train", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default="model.prevalens",
    show_default=True,
    help="Model file to write.",
)
@item_options
@as_option
@score_options
@labelled_options
@noise_options
@click.option(
    "--method",
    default="auto",
    show_default=True,
    help="Method: auto, or an expression such as lr+pacc; see `prevalens methods`.",
)
@click.option(
    "--time",
    metavar="COL",
    help="Column that says when each item arose: dates, years or other numbers. A backtest, in "
    "which earlier items estimate later ones, then sets the intervals; 2 to 5 times as slow.",
)
@date_form_option
@click.option(
    "--drift",
    type=float,
    metavar="VALUE",
    help="How far the items may have changed between training and batch, as a standard deviation "
    "of arcsin(sqrt(prevalence)): 0.03 is 1.8 points for a label of 10 %, 3 points for one of "
    "50 %; 0 is none. Default: 0.03, or measured with --time or --group.",
)
@click.option(
    "--time-budget",
    type=Duration(),
    help="Time for the choice of a method and the backtest, such as 20s or 1h. Default: 10m.",
)
@click.option(
    "--fast",
    is_flag=True,
    help=f"Choose a method within seconds; the same as --time-budget {_FAST:g}s.",
)
@click.option(
    "--seed",
    "random_state",
    type=click.IntRange(0, 2**31 - 1),
    default=0,
    show_default=True,
    help="Random seed; the same files and seed give the same model.",
)
@click.option(
    "--min-positives",
    type=int,
    help="Leave out labels with fewer positive items. Default with --tags: 5 (2 if there are fewer "
    "than 100 items).",
)
@click.option(
    "--holdout",
    type=float,
    metavar="SHARE",
    help="Share of the items, such as 0.3, to test with: a model fitted on the others is evaluated "
    "on them. They are drawn at random; with --time they are the latest. The saved model is fitted "
    "on all items. Takes about twice as long.",
)
@training_scheduler_option
@force_option
@json_option
def command(
    train: tuple[str, ...],
    output: Path,
    force: bool,
    as_json: bool,
    fast: bool,
    time_budget: float | None,
    **settings: Any,
) -> None:
    """Learn from the labelled items in TRAIN and write a model.

    TRAIN is one or several files (CSV, TSV, JSON lines, JSON, Parquet or Excel, also .gz), a
    pattern, a folder, or - for standard input. Labels are columns of 0 and 1 (--labels) or one
    column of tags (--tags). Without --text and --features, every other column is a feature. A
    table says what each column became; --as changes it.
    """
    if fast and time_budget is not None:
        raise InputError("--fast is a time budget itself; leave out --fast or --time-budget.")
    budget = _FAST if fast else time_budget
    check_outputs([(MODEL, output)], train, force=force)
    start = time.perf_counter()
    # A column that does not exist is refused before the estimators are loaded.
    columns = {name: settings[name] for name in _COLUMNS}
    check_labelled(train, others=settings["kinds"] or (), **columns)
    on_columns = None if as_json else print_columns
    with printed_warnings(), progress_bar() as progress:
        model = models.fit_files(
            train, time_budget=budget, progress=progress, on_columns=on_columns, **settings
        )
    model.save(output)
    for text in model.summary.warnings:
        print_note(text)
    if as_json:
        tested = {} if model.holdout is None else {"holdout": _tested(model.holdout)}
        described = {"model": str(output), **model.description.to_dict(), **tested}
        click.echo(json.dumps(described, indent=1))
    else:
        _print(model, output, time.perf_counter() - start)


def _print(model: Model, output: Path, seconds: float) -> None:
    summary = model.summary
    click.echo(
        f"Learnt {counted(len(model.labels), 'label')} from {counted(summary.n_items, 'item')} in "
        f"{seconds:.1f} s: "
        f"{summary.method}, {summary.preparation}."
    )
    if model.description.label_errors:
        click.echo(model.description.label_errors)
    if model.drift.sentences:
        click.echo(model.drift.sentences)
    if model.holdout is not None:
        tested = _tested(model.holdout)
        click.echo(f"{tested['headline']} {tested['reasons'][0]}")
        click.echo(tested["notices"][0])
    click.echo(f"Model: {output}\nNext: prevalens quantify {output} BATCH...")


def _tested(report: TrustReport) -> dict[str, Any]:
    """The verdict on held-out items, its reasons and its figures."""
    # Pages take long to load, and few fits need them.
    answer = import_module("prevalens.reports.trust_page").verdict(report)
    reasons = [reason.text for reason in answer.reasons]
    return {
        "verdict": answer.grade,
        "headline": answer.headline,
        "reasons": reasons,
        **report.to_dict(),
    }
