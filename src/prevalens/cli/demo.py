"""`prevalens demo`: train and evaluate on built-in data, and say what to do next."""

from __future__ import annotations

import sys
import time
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from prevalens.catalogue import parse
from prevalens.datasets import synthetic
from prevalens.evaluation import Evaluation, evaluate_samples
from prevalens.metrics import SHIFT_NAMES
from prevalens.protocols import MLAPP, Natural

__all__ = ["command"]

#: From the naive baseline to the paper's regression-based correction.
METHODS = {
    "naive": "training prevalence, whatever the batch",
    "lr+cc": "classify and count",
    "lr+pcc": "mean posterior",
    "lr+pacc": "mean posterior, corrected for the classifier's error rates",
    "lr+rq(pcc,ridge)": "mean posteriors of all labels, corrected together by regression",
}

NEXT = """\
What next?
  prevalens datasets            the public datasets, and which of them are on this machine
  prevalens methods             the parts that methods are made of
In Python:
  from prevalens import Quantifier
  Quantifier().fit(X, Y).quantify(X_batch)"""


@click.command()
@click.option("--seed", default=0, show_default=True, help="Seed of the data and the samples.")
@click.option("--items", default=2000, show_default=True, help="Training items, and test items.")
@click.option("--labels", default=12, show_default=True, help="Number of labels.")
@click.option("--quick", is_flag=True, help="Fewer samples: rougher figures, sooner.")
def command(seed: int, items: int, labels: int, quick: bool) -> None:
    """Train and evaluate on built-in data: a first look.

    Trains five methods on generated multi-label data and measures how far their estimates are from
    the truth, in samples whose label mix has moved (ML-APP) and in samples where it has not.
    """
    start = time.perf_counter()
    console = Console()
    data = synthetic(n_train=items, n_test=items, n_labels=labels, seed=seed)
    console.print(
        f"Built-in data: {items} training items, {items} test items, {labels} labels.",
        highlight=False,
    )
    fitted = _fit(data)
    protocols = _protocols(quick=quick)
    for title, protocol in protocols.items():
        samples = protocol.draw(data.test.Y, seed)
        found = evaluate_samples(fitted, data.test, samples, protocol=protocol, seed=seed)
        console.print(_table(f"{title}: {len(samples):,} samples of 100 items", found))
    console.print(
        "Error = absolute error (AE) and relative absolute error (RAE), mean over labels and "
        "samples; lower is better. Shift = how far a sample has moved from the training data.",
        highlight=False,
    )
    console.print(f"Done in {time.perf_counter() - start:.1f} s.\n\n{NEXT}", highlight=False)


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
    table = Table(title=title, title_justify="left")
    table.add_column("method", no_wrap=True)
    table.add_column("what it does")
    regimes = (*SHIFT_NAMES, "all")
    for metric in ("AE", "RAE"):
        for regime in regimes:
            table.add_column(f"{metric}\n{regime}", justify="right")
    columns = [
        [one.by_shift(metric)[regime][0] for one in found.values()]
        for metric in ("ae", "rae")
        for regime in regimes
    ]
    for row, name in enumerate(found):
        cells = [_cell(column[row], min(column)) for column in columns]
        table.add_row(name, METHODS[name], *cells)
    return table


def _cell(value: float, best: float) -> str:
    text = f"{value:.3f}".removeprefix("0")
    return f"[bold]{text}[/bold]" if value == best else text
