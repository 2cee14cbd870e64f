"""`prevalens demo`: a story on built-in tickets, from labels to months that drift."""

from __future__ import annotations

import time
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.text import Text

from prevalens.cli.demo_table import print_table
from prevalens.cli.steps import shown_steps
from prevalens.datasets.ticket_files import SEPARATOR, write_tickets
from prevalens.datasets.tickets import tickets
from prevalens.model.writing import check_writable
from prevalens.workflow.report import write_page
from prevalens.workflow.story import METHOD, Story, tell

__all__ = ["command"]

#: Labels that the story follows: one that rises, one that falls, one with an event.
FOLLOWED = ("delivery", "billing", "login")

NEXT = """\
What next?
  prevalens demo --files tickets      the same tickets as CSV files, and the commands for them
  prevalens methods                   the parts that methods are made of
  prevalens demo --table              five methods on generated numbers, by amount of shift
In Python:
  from prevalens import Quantifier
  Quantifier().fit(X, Y).quantify(X_batch, interval=0.9)"""


@click.command()
@click.option("--seed", default=0, show_default=True, help="Seed of the tickets.")
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    default=Path("prevalens-demo.html"),
    show_default=True,
    help="Where the report is written.",
)
@click.option(
    "--files",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Only write the tickets as CSV files, to try the commands on.",
)
@click.option("--table", is_flag=True, help="Compare five methods on generated numbers instead.")
@click.option("--items", default=2000, show_default=True, help="With --table: training items.")
@click.option("--labels", default=12, show_default=True, help="With --table: labels.")
@click.option("--quick", is_flag=True, help="With --table: fewer samples, rougher figures.")
def command(
    seed: int, report: Path, files: Path | None, table: bool, items: int, labels: int, quick: bool
) -> None:
    """Tell a story on built-in support tickets.

    Trains on 1,200 labelled tickets of 2025, estimates the share of each label in eight months of
    2026, in which the mix drifts, and shows estimate, truth and what counting the classifier's
    answers would have said. The report is written beside it.
    """
    start = time.perf_counter()
    if files is not None:
        _write_files(files, seed)
        return
    if table:
        print_table(seed=seed, items=items, labels=labels, quick=quick)
    else:
        _tell(seed, report)
    click.echo(f"Done in {time.perf_counter() - start:.1f} s.\n\n{NEXT}")


def _tell(seed: int, report: Path) -> None:
    check_writable(report)
    with shown_steps() as progress:
        story = tell(seed=seed, progress=progress)
    write_page(report, story.html())
    console = Console(highlight=False)
    train, months = story.data.train, story.result.groups
    example = next(text for text, row in zip(train.X, train.Y, strict=True) if row.sum() == 2)
    console.print(
        Text(
            f"A help desk has labelled {train.n_items:,} tickets of 2025 with {train.n_labels} "
            f"labels:\n  {example!r}\nThen come {len(months)} months without labels, "
            f"{story.result.sizes[0]} tickets each, and the mix drifts.\n\nHow many percent of the "
            "tickets have each label? Truth, estimate, and the classifier's answers counted:"
        )
    )
    console.print(_months(story))
    console.print(_summary(story))
    console.print(Text(f"Report with charts and intervals, to open in a browser: {report}"))


def _months(story: Story) -> Text:
    """A row per month; truth, estimate and count of the followed labels, the closer one bold."""
    columns = [story.model.labels.index(label) for label in FOLLOWED]
    lines = Text("\n" + " " * 9 + "".join(f"{label:>10}{'':11}" for label in FOLLOWED) + "\n")
    lines.append("month    " + "".join(f"{'true':>7}{'est.':>6}{'count':>8}" for _ in columns))
    for row, month in enumerate(story.result.groups):
        lines.append(f"\n{month:9}")
        for j in columns:
            true, counted = story.true[row, j], story.counted[row, j]
            estimate = story.result.estimate.point[row, j]
            closer = abs(estimate - true) <= abs(counted - true)
            lines.append(f"{100 * true:7.0f}")
            lines.append(f"{100 * estimate:6.0f}", style="bold" if closer else "")
            lines.append(f"{100 * counted:8.0f}", style="" if closer else "bold")
    return lines.append("\n")


def _summary(story: Story) -> Text:
    means = {name: 100 * float(np.mean(errors)) for name, errors in story.errors().items()}
    inside = _inside(story)
    coverage = (
        ""
        if inside is None
        else f"\nThe 90 % intervals hold the truth in {100 * inside:.0f} % of "
        f"{story.true.size} cases."
    )
    return Text(
        f"Over all {len(story.model.labels)} labels and {len(story.true)} months, {METHOD} is off "
        f"by {means['estimate']:.1f} points on average, counting by "
        f"{means['classify and count']:.1f}, and keeping the training prevalence by "
        f"{means['training prevalence']:.1f}.{coverage}"
    )


def _inside(story: Story) -> float | None:
    low, high = story.result.estimate.lower, story.result.estimate.upper
    if low is None or high is None:
        return None
    return float(((story.true >= low) & (story.true <= high)).mean())


def _write_files(folder: Path, seed: int) -> None:
    written = write_tickets(tickets(1600, seed=seed), folder)
    click.echo(f"{len(written)} files in {folder}. To try them:\n")
    named = f"--tags tags --sep '{SEPARATOR}'"
    for line in (
        f"prevalens fit {folder / 'train.csv'} -o model.prevalens --text text {named}",
        f"prevalens evaluate model.prevalens {folder / 'labelled.csv'} {named}",
        f"prevalens quantify model.prevalens {folder / 'months'} --by-time date --html report.html",
        f"prevalens compare {folder / 'train.csv'} --text text {named}",
    ):
        click.echo(f"  {line}")
    click.echo(f"\n{folder / 'truth.csv'} has the true shares, to compare with.")
