"""`prevalens plan`: how many human labels are needed for intervals of a given width."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prevalens.cli.console import plain_table, printed_warnings
from prevalens.cli.options import item_options, labelled_options, score_options
from prevalens.cli.outputs import TABLE, check_outputs
from prevalens.cli.results import Results, result_options
from prevalens.errors import InputError
from prevalens.model.plan import (
    SENSITIVITY,
    SPECIFICITY,
    LabelPlan,
    plan_files,
    plan_scores,
    sheet_of_scores,
)
from prevalens.model.progress import progress_bar
from prevalens.model.rows import check_ending
from prevalens.model.sample import LabelSheet, sample_files
from prevalens.reports.label_pages import plan_page

#: Numbers of labels whose widths the screen shows, and the most rows.
_SHOWN, _MOST_ROWS = (100, 300, 1000, 5000), 40


@click.command()
@click.argument("file", nargs=-1, required=True)
@item_options
@score_options
@labelled_options
@click.option(
    "--target-width",
    type=float,
    default=5.0,
    show_default=True,
    metavar="POINTS",
    help="Wanted width of the intervals, in percentage points.",
)
@click.option("--batch", metavar="FILE", multiple=True, help="Items to be estimated.")
@click.option("--batch-size", type=int, help="Items per batch. Default: those of --batch, or 500.")
@click.option("--interval", default=0.9, show_default=True, help="Level of the intervals.")
@click.option("--method", help="Method. Default: lr+mixture, or given+mixture with --scores.")
@click.option("--drift", type=float, metavar="VALUE", help="Allowance for drift, as in fit.")
@click.option(
    "--sensitivity",
    help=f"Assumed of the labeller if there are no labels. Default: {SENSITIVITY}.",
)
@click.option("--specificity", help=f"The same, on items without a label. Default: {SPECIFICITY}.")
@click.option(
    "--to-label",
    type=click.Path(path_type=Path),
    help="Write items to label next to this file, as `prevalens sample` does: of --batch, or of "
    "FILE if it has no labels.",
)
@click.option("-n", "n", default=100, show_default=True, help="Items of --to-label.")
@click.option("--stratified", is_flag=True, help="Draw unsure items more often, with weights.")
@click.option("--seed", "random_state", default=0, show_default=True, help="Random seed.")
@result_options("Write a report with a chart to this HTML file.")
def command(
    file: tuple[str, ...],
    results: Results,
    to_label: Path | None,
    n: int,
    stratified: bool,
    target_width: float,
    **settings: Any,
) -> None:
    """Forecast how many labelled items give intervals of the wanted width.

    FILE has the labelled items of a pilot, as for `prevalens fit`: texts, features or scores, with
    labels. A method is fitted on parts of it to see how the intervals narrow. Without --labels and
    --tags, FILE has the --scores of a labeller alone, and the forecast rests on its assumed
    sensitivity and specificity.
    """
    batch = settings["batch"] = list(settings["batch"]) or None
    results.check(*file, *(batch or ()))
    if to_label is not None:
        check_ending(to_label)
        check_outputs([(TABLE, to_label)], (*file, *(batch or ())), force=results.force)
        if to_label.exists() and not results.force:
            raise InputError(f"{to_label} exists and may have labels; overwrite it with --force.")
    settings["target_width"] = target_width / 100
    draw = {"stratified": stratified, "random_state": settings["random_state"]}
    with printed_warnings(), progress_bar() as progress:
        if settings["labels"] or settings["tags"]:
            plan, drawn = _from_pilot(file, settings, progress, to_label, n, draw)
        else:
            plan, drawn = _from_scores(file, settings, to_label, n, draw)
    if drawn is not None and to_label is not None:
        drawn.write(to_label)
    results.write(lambda: plan_page(plan), plan.to_rows, plan.to_dict())
    if not results.as_json:
        _print(plan)
        if drawn is not None:
            click.echo(f"{len(drawn.rows):,} items to label: {to_label}")


def _from_pilot(
    file: Sequence[str],
    settings: dict[str, Any],
    progress: Any,
    to_label: Path | None,
    n: int,
    draw: dict[str, Any],
) -> tuple[LabelPlan, LabelSheet | None]:
    for name in ("sensitivity", "specificity"):
        if settings.pop(name) is not None:
            raise InputError(f"--{name} is assumed where there are no labels; leave it out.")
    if to_label is not None and settings["batch"] is None:
        raise InputError("--to-label draws items of a batch; name it with --batch.")
    plan, model = plan_files(file, progress=progress, **settings)
    if to_label is None:
        return plan, None
    return plan, sample_files(model, settings["batch"], n, reading=settings["reading"], **draw)


def _from_scores(
    file: Sequence[str],
    settings: dict[str, Any],
    to_label: Path | None,
    n: int,
    draw: dict[str, Any],
) -> tuple[LabelPlan, LabelSheet | None]:
    if not settings["scores"]:
        raise InputError(
            "A plan needs labelled items (--labels or --tags), or the scores of a labeller "
            "(--scores)."
        )
    scored = {name: settings[name] for name in ("scores", "reading")}
    names = ("sensitivity", "specificity", "batch_size", "drift", "interval", "target_width")
    given = {name: settings[name] for name in names if settings[name] is not None}
    plan = plan_scores(file, **scored, **given)
    return plan, None if to_label is None else sheet_of_scores(file, n, **scored, **draw)


def _print(plan: LabelPlan) -> None:
    console = Console(highlight=False)
    console.print(Text(plan.headline, style="bold"))
    console.print(Text(plan.basis))
    rows = plan.to_rows()
    console.print(_table(plan, rows[:_MOST_ROWS]))
    if len(rows) > _MOST_ROWS:
        console.print(Text(f"{len(rows) - _MOST_ROWS} more labels; -o FILE writes all."))


def _table(plan: LabelPlan, rows: Sequence[dict[str, Any]]) -> Table:
    heads = (f"needed for {100 * plan.target:g}", *(f"{n:,} labels" for n in _SHOWN), "least")
    table = plain_table(["label"], heads)
    table.title = f"Width of {100 * plan.level:g} % intervals, in points"
    for row in rows:
        widths = [row[f"width_{n}"] for n in _SHOWN] + [row["least_width"]]
        cells = ["" if width is None else f"{100 * width:.1f}" for width in widths]
        needed = "" if row["needed"] is None else f"{row['needed']:,}"
        table.add_row(Text(row["label"]), needed, *cells)
    return table
