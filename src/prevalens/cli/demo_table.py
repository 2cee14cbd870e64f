"""`prevalens demo --table`: methods compared on generated data, as in the README."""

from __future__ import annotations

import sys
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from prevalens.catalogue import parse
from prevalens.cli.tables import plain_table
from prevalens.datasets import synthetic
from prevalens.evaluation import Evaluation, evaluate_samples
from prevalens.metrics import SHIFT_NAMES
from prevalens.protocols import MLAPP, Natural

__all__ = ["METHODS", "print_table"]

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
    data = synthetic(n_train=items, n_test=items, n_labels=labels, seed=seed)
    click.echo(f"Built-in data: {items} training items, {items} test items, {labels} labels.")
    for name, meaning in METHODS.items():
        click.echo(f"  {name:18}{meaning}")
    fitted = _fit(data)
    for title, protocol in _protocols(quick=quick).items():
        samples = protocol.draw(data.test.Y, seed)
        found = evaluate_samples(fitted, data.test, samples, protocol=protocol, seed=seed)
        click.echo()
        Console().print(_table(f"{title}: {len(samples):,} samples of 100 items", found))
    click.echo(EXPLANATION)


def _fit(data: Any) -> dict[str, Any]:
    bar = tqdm(METHODS, desc="Training", unit="method", disable=not sys.stderr.isatty())
    fitted = {}
    for name in bar:
        bar.set_postfix_str(name)
        fitted[name] = parse(name).fit(data.train.X, data.train.Y, labels=data.train.labels)
    return fitted


def _protocols(*, quick: bool) -> dict[str, Any]:
    more_than = 500 if quick else 5000
    moved = MLAPP(size=100, more_than=more_than)
    return {
        "The label mix has moved (ML-APP)": moved,
        "It has not (uniform sampling)": Natural(size=100, n_samples=more_than // 5),
    }


def _table(title: str, found: dict[str, Evaluation]) -> Table:
    """Rows are methods, columns the shift regimes; the best of a column is bold."""
    table = plain_table(title=title)
    table.add_column("\nmethod", no_wrap=True)
    regimes = (*SHIFT_NAMES, "all")
    columns = []
    for metric in ("ae", "rae"):
        for regime in regimes:
            head = metric.upper() if regime == SHIFT_NAMES[0] else ""
            table.add_column(f"{head}\n{regime}", justify="right", no_wrap=True)
            columns.append([one.by_shift(metric)[regime][0] for one in found.values()])
    for row, name in enumerate(found):
        table.add_row(name, *(_cell(column[row], min(column)) for column in columns))
    return table


def _cell(value: float, best: float) -> str:
    text = f"{value:.3f}".removeprefix("0")
    return f"[bold]{text}[/bold]" if value == best else text
