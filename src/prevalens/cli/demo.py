"""`prevalens demo`: months of built-in tickets whose mix drifts; or a table of five methods."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tqdm import tqdm

from prevalens.aggregators.external import without_intervals
from prevalens.catalogue import parse
from prevalens.cli.console import plain_table
from prevalens.cli.outputs import PAGE, check_outputs, force_option
from prevalens.datasets import synthetic
from prevalens.datasets.dataset import Dataset
from prevalens.datasets.tickets import SEPARATOR, month_names, tickets, write_tickets
from prevalens.errors import InputError
from prevalens.evaluation import Evaluation, evaluate_samples
from prevalens.metrics import SHIFT_NAMES
from prevalens.model.groups import ByTime
from prevalens.model.model import Model
from prevalens.model.progress import Progress, Watch, progress_bar
from prevalens.model.quantify import quantify_tables
from prevalens.model.result import BatchResult
from prevalens.protocols import MLAPP, Natural
from prevalens.reports.batch_page import report_html
from prevalens.reports.headline import headline
from prevalens.reports.page import write_page
from prevalens.samples import Samples
from prevalens.tables.formats import as_table
from prevalens.types import Floats

#: From the naive baseline to the paper's regression-based correction.
METHODS = {
    "naive": "training prevalence, whatever the batch",
    "lr+cc": "classify and count",
    "lr+pcc": "mean posterior",
    "lr+pacc": "mean posterior, corrected for the classifier's error rates",
    "lr+rq(pcc,ridge)": "mean posteriors of all labels, corrected together by regression",
}

EXPLANATION = """\
AE is the absolute error of the estimated prevalence, RAE the relative one: means over labels
and samples, lower is better. low, mid, high: how far a sample has moved from the training data."""


def print_table(*, seed: int, items: int, labels: int, quick: bool) -> None:
    """Train five methods on generated data, and print how far off they are, by shift."""
    data = synthetic(n_train=items, n_test=items, n_labels=labels, random_state=seed)
    click.echo(f"Built-in data: {items} training items, {items} test items, {labels} labels.")
    for name, meaning in METHODS.items():
        click.echo(f"  {name:18}{meaning}")
    fitted = _fit(data)
    for title, protocol in _protocols(quick=quick).items():
        samples = protocol.draw(data.test.Y, seed)
        results = evaluate_samples(fitted, data.test, samples, protocol=protocol, random_state=seed)
        click.echo()
        Console().print(_table(f"{title}: {len(samples):,} samples of 100 items", results))
    click.echo(EXPLANATION)


def _fit(data: Any) -> dict[str, Any]:
    bar = tqdm(METHODS, desc="Training", unit="method", disable=not sys.stderr.isatty())
    fitted = {}
    for name in bar:
        bar.set_postfix_str(name)
        method = without_intervals(parse(name))
        fitted[name] = method.fit(data.train.X, data.train.Y, labels=data.train.labels)
    return fitted


def _protocols(*, quick: bool) -> dict[str, Any]:
    more_than = 500 if quick else 5000
    moved = MLAPP(size=100, more_than=more_than)
    return {
        "The label mix has moved (ML-APP)": moved,
        "It has not (uniform sampling)": Natural(size=100, n_samples=more_than // 5),
    }


def _table(title: str, results: dict[str, Evaluation]) -> Table:
    """Rows are methods, columns the shift regimes; the best of a column is bold."""
    table = plain_table(title=title)
    table.add_column("\nmethod", no_wrap=True)
    regimes = (*SHIFT_NAMES, "all")
    columns = []
    for metric in ("ae", "rae"):
        for regime in regimes:
            head = metric.upper() if regime == SHIFT_NAMES[0] else ""
            table.add_column(f"{head}\n{regime}", justify="right", no_wrap=True)
            columns.append([result.by_shift(metric)[regime][0] for result in results.values()])
    for row, name in enumerate(results):
        table.add_row(name, *(_cell(column[row], min(column)) for column in columns))
    return table


def _cell(value: float, best: float) -> str:
    text = f"{value:.3f}".removeprefix("0")
    return f"[bold]{text}[/bold]" if value == best else text


#: Good and quick on a thousand short texts.
METHOD = "lr(C=10)+rq(pcc,ridge)"


@dataclass(frozen=True)
class DemoRun:
    """Months of tickets: the estimates, the truth, and the counts of the classifier's votes.

    Attributes
    ----------
    data : Dataset
    model : Model
    result : BatchResult
    true, counted : array of float, shape (n_months, n_labels)
    """

    data: Dataset
    model: Model
    result: BatchResult
    true: Floats
    counted: Floats

    def errors(self) -> dict[str, Floats]:
        """Mean absolute error over labels in each month, of the three ways to answer."""
        answers = {
            "estimate": self.result.point,
            "classify and count": self.counted,
            "training prevalence": self.model.prevalence,
        }
        return {name: np.abs(answer - self.true).mean(axis=1) for name, answer in answers.items()}

    def html(self) -> str:
        """The report, with the truth in its charts."""
        return report_html(
            self.result, self.model, true=self.true, title="Support tickets, month by month"
        )


def run_demo(
    *,
    n_train: int = 1200,
    n_per_month: int = 300,
    seed: int = 0,
    method: str = METHOD,
    progress: Progress | None = None,
) -> DemoRun:
    """Train on the tickets of one year, and estimate the months of the next.

    Parameters
    ----------
    n_train, n_per_month : int
        Tickets.
    seed : int
    method : str
    progress : callable, optional

    Examples
    --------
    >>> run = run_demo(n_train=300, n_per_month=60)
    >>> {name: len(errors) for name, errors in run.errors().items()}
    {'estimate': 8, 'classify and count': 8, 'training prevalence': 8}
    """
    watch = Watch(progress, None)
    watch.step("writing tickets", 0, 3)
    data = tickets(n_train, n_per_month, random_state=seed)
    watch.step("training", 1, 3, n_train)
    columns = {"text": list(data.train.X)}
    model = Model.fit(columns, data.train.Y, labels=data.train.labels, method=method, text="text")
    watch.step("estimating", 2, 3, n_train)
    months = month_names(data.test_times)  # type: ignore[arg-type]
    table = as_table({"text": list(data.test.X), "month": months})
    result = quantify_tables(model, [table], ByTime("month", "M"))
    samples, _ = Samples.by_group(months)
    votes = model.votes(model.preparation.transform(list(data.test.X)))
    assert votes is not None  # logistic regressions vote
    return DemoRun(data, model, result, samples.mean(data.test.Y), samples.mean(votes))


#: Labels whose months are printed: one that rises, one that falls, one with an event.
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
@click.option("--seed", default=0, show_default=True, help="Random seed of the generated tickets.")
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    default=Path("prevalens-demo.html"),
    show_default=True,
    help="HTML file for the report.",
)
@click.option(
    "--files",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Only write the tickets as CSV files into this folder, to try the other commands on.",
)
@click.option("--table", is_flag=True, help="Compare five methods on generated numbers instead.")
@click.option(
    "--items", default=2000, show_default=True, help="With --table: number of training items."
)
@click.option("--labels", default=12, show_default=True, help="With --table: number of labels.")
@click.option("--quick", is_flag=True, help="With --table: fewer samples and less precise figures.")
@force_option
def command(
    seed: int,
    report: Path,
    files: Path | None,
    table: bool,
    items: int,
    labels: int,
    quick: bool,
    force: bool,
) -> None:
    """Estimate the prevalence of each label in months of generated support tickets.

    The demo trains on 1,200 labelled tickets of 2025 and estimates the share of each label in eight
    months of 2026, in which the label mix drifts. It prints the estimates, the truth and counts of
    the classifier's votes, and writes a report.
    """
    start = time.perf_counter()
    if files is not None:
        _check_folder(files, force=force)
        _write_files(files, seed)
        return
    if table:
        print_table(seed=seed, items=items, labels=labels, quick=quick)
    else:
        check_outputs([(PAGE, report)], force=force)
        _report(seed, report)
    click.echo(f"Done in {time.perf_counter() - start:.1f} s.\n\n{NEXT}")


def _report(seed: int, report: Path) -> None:
    with progress_bar() as progress:
        run = run_demo(seed=seed, progress=progress)
    write_page(report, run.html())
    console = Console(highlight=False)
    train, months = run.data.train, run.result.batches
    example = next(text for text, row in zip(train.X, train.Y, strict=True) if row.sum() == 2)
    console.print(
        Text(
            f"A help desk has labelled {train.n_items:,} tickets of 2025 with {train.n_labels} "
            f"labels:\n  {example!r}\nThen come {len(months)} months without labels, "
            f"{run.result.sizes[0]} tickets each, and the mix drifts.\n\nHow many percent of the "
            "tickets have each label? Truth, estimate, and the classifier's answers counted:"
        )
    )
    console.print(_months(run))
    console.print(_summary(run))
    console.print(Text(f"Without the truth, this is what can be said: {headline(run.result)}"))
    console.print(Text(f"Report with charts and intervals, to open in a browser: {report}"))


def _months(run: DemoRun) -> Text:
    """A row per month; truth, estimate and count of the followed labels, the closer one bold."""
    columns = [run.model.labels.index(label) for label in FOLLOWED]
    lines = Text("\n" + " " * 9 + "".join(f"{label:>10}{'':11}" for label in FOLLOWED) + "\n")
    lines.append("month    " + "".join(f"{'true':>7}{'est.':>6}{'count':>8}" for _ in columns))
    for row, month in enumerate(run.result.batches):
        lines.append(f"\n{month:9}")
        for j in columns:
            true, counted = run.true[row, j], run.counted[row, j]
            estimate = run.result.point[row, j]
            closer = abs(estimate - true) <= abs(counted - true)
            lines.append(f"{100 * true:7.0f}")
            lines.append(f"{100 * estimate:6.0f}", style="bold" if closer else "")
            lines.append(f"{100 * counted:8.0f}", style="" if closer else "bold")
    return lines.append("\n")


def _summary(run: DemoRun) -> Text:
    means = {name: 100 * float(np.mean(errors)) for name, errors in run.errors().items()}
    low, high, coverage = run.result.lower, run.result.upper, ""
    if low is not None and high is not None:
        inside = float(((run.true >= low) & (run.true <= high)).mean())
        coverage = (
            f"\nThe 90 % intervals hold the truth in {100 * inside:.0f} % of {run.true.size} cases."
        )
    return Text(
        f"Over all {len(run.model.labels)} labels and {len(run.true)} months, {METHOD} is off "
        f"by {means['estimate']:.1f} points on average, counting by "
        f"{means['classify and count']:.1f}, and keeping the training prevalence by "
        f"{means['training prevalence']:.1f}.{coverage}"
    )


def _check_folder(folder: Path, *, force: bool) -> None:
    """Refuse a folder with files that an earlier run of this command did not write."""
    if folder.is_dir() and any(folder.iterdir()) and not (force or (folder / "truth.csv").exists()):
        raise InputError(
            f"The folder {folder} holds other files, which the tickets may overwrite; name a new "
            "folder, or write into it with --force."
        )


def _write_files(folder: Path, seed: int) -> None:
    written = write_tickets(tickets(1600, random_state=seed), folder)
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
