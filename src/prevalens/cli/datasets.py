"""``prevalens datasets``: list, describe, and recompute the paper's dataset table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prevalens.datasets import Dataset, DatasetComparison, compare, describe, load, names
from prevalens.datasets.comparison import COLUMNS, printed_names, shown
from prevalens.datasets.home import DataNotFoundError, data_home

__all__ = ["command"]

_SHOWN_LABELS = 10
_TABLE_WIDTH = 120


@click.command("datasets")
@click.argument("name", required=False)
@click.option(
    "--table", is_flag=True, help="Recompute the paper's dataset table, marking differences."
)
@click.option("--download", is_flag=True, help="Download what is missing.")
@click.option(
    "--home", type=click.Path(file_okay=False), help="Data home, instead of PREVALENS_DATA."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(name: str | None, table: bool, download: bool, home: str | None, as_json: bool) -> None:
    """List the datasets, describe one (NAME), or recompute the paper's table (--table)."""
    if table:
        _show_table(_chosen(name), home, download, as_json)
    elif name is not None:
        _show_one(name, home, download, as_json)
    else:
        _show_list(home, as_json)


def _chosen(name: str | None) -> tuple[str, ...]:
    return printed_names() if name is None else (name,)


def _plain(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float)) or value is None else str(value)


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, default=_plain, ensure_ascii=False))


def _show_list(home: str | None, as_json: bool) -> None:
    found = [describe(name, home=home) for name in names()]
    if as_json:
        _print_json([asdict(one) for one in found])
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("name", "here", "kind"):
        table.add_column(column, no_wrap=True)
    for column in ("labels", "train", "test", "features"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in found:
        shape = one.shape
        sizes = (shape.labels, shape.train, shape.test, shape.features)
        here = Text("yes", "green") if one.available else Text("no", "dim")
        table.add_row(one.name, here, one.kind, *(f"{size:,}" for size in sizes))
    console = Console()
    console.print(f"Data home: {data_home(home)}", highlight=False, soft_wrap=True)
    console.print(table)
    console.print("Describe one: prevalens datasets NAME. Load one: prevalens.datasets.load(NAME).")


def _show_one(name: str, home: str | None, download: bool, as_json: bool) -> None:
    known = describe(name, home=home)
    dataset = load(name, home=home, download=download) if known.available or download else None
    # A download makes it available.
    known = describe(name, home=home)
    details = asdict(known) | {"loaded": None if dataset is None else _details(dataset)}
    if as_json:
        _print_json(details)
        return
    console = Console()
    console.print(_facts(details))
    if dataset is None:
        console.print(
            f"Not in {known.folder}; download it with: prevalens datasets {name} --download"
        )
    else:
        console.print(_label_table(dataset))


def _details(dataset: Dataset) -> dict[str, Any]:
    prevalences = dict(zip(dataset.train.labels, dataset.train.prevalence.tolist(), strict=True))
    return {
        "labels": dataset.train.n_labels,
        "train": dataset.train.n_items,
        "test": dataset.test.n_items,
        "features": dataset.train.n_features,
        "sha": dataset.sha,
        "statistics": asdict(dataset.statistics()),
        "train_prevalence": prevalences,
    }


def _facts(details: dict[str, Any]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    shape = details["shape"]
    rows = {
        "Dataset": f"{details['title']} ({details['name']})",
        "What": details["about"],
        "Kind": details["kind"],
        "Sizes": f"{shape['train']:,} training and {shape['test']:,} test items, "
        f"{shape['labels']:,} labels, {shape['features']:,} features",
        "Labelsets": _labelsets(details["loaded"]),
        "Note": details["note"],
        "Reference": details["reference"],
        "Source": details["origin"],
        "Folder": details["folder"],
        "SHA-256": (details["loaded"] or {}).get("sha"),
    }
    for name, value in rows.items():
        if value:
            table.add_row(name, str(value))
    return table


def _labelsets(loaded: dict[str, Any] | None) -> str:
    if loaded is None:
        return ""
    found = loaded["statistics"]
    return f"{found['diversity']:,} different ones, {found['cardinality']:.2f} labels per item"


def _label_table(dataset: Dataset) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("prevalence of", overflow="fold")
    table.add_column("train", justify="right")
    table.add_column("test", justify="right")
    train, test = dataset.train.prevalence, dataset.test.prevalence
    order = np.argsort(-train, kind="stable")
    for j in order[:_SHOWN_LABELS]:
        table.add_row(dataset.train.labels[j], f"{train[j]:.3f}", f"{test[j]:.3f}")
    if len(order) > _SHOWN_LABELS:
        table.add_row(f"... {len(order) - _SHOWN_LABELS} more", "", "")
    return table


def _show_table(chosen: tuple[str, ...], home: str | None, download: bool, as_json: bool) -> None:
    skipped: dict[str, str] = {}
    compared: list[DatasetComparison] = []
    with Console(stderr=True).status("") as status:
        for name in chosen:
            status.update(f"Reading {name} ...")
            try:
                compared.append(compare(name, home=home, download=download))
            except DataNotFoundError as error:
                skipped[name] = str(error)
    if as_json:
        rows = [asdict(one) | {"differences": one.differences} for one in compared]
        _print_json({"rows": rows, "skipped": skipped})
        return
    _print_comparisons(compared, skipped, download)


def _print_comparisons(
    compared: list[DatasetComparison], skipped: dict[str, str], download: bool
) -> None:
    console = Console()
    # Twelve columns do not fit a narrow screen; wrapped lines are better than missing figures.
    console.width = max(console.width, _TABLE_WIDTH)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False)
    table.add_column("dataset", no_wrap=True)
    for column in (*COLUMNS.values(), "agree"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in compared:
        table.add_row(one.name, *_cells(one), f"{one.agreeing}/{len(COLUMNS)}")
    if compared:
        console.print(
            "Dataset table of Moreo et al.; * = recomputed, where it differs from the print"
        )
        console.print(table)
    if skipped and not download:
        console.print(f"Skipped, not in the data home: {', '.join(skipped)}.", highlight=False)
        console.print("Download what is missing with: prevalens datasets --table --download")
        return
    for name, why in skipped.items():
        console.print(f"Skipped {name}: {why}", highlight=False, soft_wrap=True)


def _cells(one: DatasetComparison) -> Iterator[Text]:
    printed, computed = asdict(one.printed), asdict(one.computed)
    for column in COLUMNS:
        if column in one.differences:
            text = f"{shown(printed[column])}\n*{shown(computed[column])}"
            yield Text(text, style="bold red")
        else:
            yield Text(shown(printed[column]))
