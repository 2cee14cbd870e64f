"""``prevalens datasets``: list, describe, and recompute the paper's dataset table."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prevalens.cli.console import json_option, plain_table
from prevalens.datasets import Dataset, DatasetComparison, compare, describe, load, names
from prevalens.datasets.home import DataNotFoundError, data_home
from prevalens.datasets.loading import COLUMNS, printed_names, shown

_SHOWN_LABELS = 10
#: Twelve columns do not fit a narrow screen; wrapped lines are better than missing figures.
_TABLE_WIDTH = 120


@click.command("datasets")
@click.argument("name", required=False)
@click.option(
    "--table", is_flag=True, help="Recompute the paper's dataset table and mark differences."
)
@click.option("--download", is_flag=True, help="Download missing files.")
@click.option(
    "--home", type=click.Path(file_okay=False), help="Data folder, instead of PREVALENS_DATA."
)
@json_option
def command(name: str | None, table: bool, download: bool, home: str | None, as_json: bool) -> None:
    """List the datasets, describe one (NAME), or recompute the paper's table (--table)."""
    if table:
        _show_table(printed_names() if name is None else (name,), home, download, as_json)
    elif name is not None:
        _show_dataset(name, home, download, as_json)
    else:
        _show_list(home, as_json)


def _narrow(left: list[str], right: list[str]) -> Table:
    table = plain_table(left, right)
    table.padding, table.pad_edge = (0, 0, 0, 1), False
    for column in table.columns:
        column.no_wrap = True
    return table


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, default=str, ensure_ascii=False))


def _show_list(home: str | None, as_json: bool) -> None:
    descriptions = [describe(name, home=home) for name in names()]
    if as_json:
        _print_json([asdict(description) for description in descriptions])
        return
    table = _narrow(["name", "here", "kind"], ["labels", "train", "test", "features"])
    for description in descriptions:
        present = Text("yes", "green") if description.available else Text("no", "dim")
        sizes = (f"{size:,}" for size in asdict(description.shape).values())
        table.add_row(description.name, present, description.kind, *sizes)
    console = Console()
    console.print(f"Data home: {data_home(home)}", highlight=False, soft_wrap=True)
    console.print(table)
    console.print("Describe one: prevalens datasets NAME. Load one: prevalens.datasets.load(NAME).")


def _show_dataset(name: str, home: str | None, download: bool, as_json: bool) -> None:
    available = describe(name, home=home).available
    dataset = load(name, home=home, download=download) if available or download else None
    # A download makes it available.
    details = asdict(describe(name, home=home))
    details["loaded"] = None if dataset is None else _details(dataset)
    if as_json:
        _print_json(details)
        return
    console = Console()
    console.print(_facts(details))
    if dataset is None:
        console.print(
            f"Not in {details['folder']}; download it with: prevalens datasets {name} --download"
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
    shape, loaded = details["shape"], details["loaded"]
    rows = {
        "Dataset": f"{details['title']} ({details['name']})",
        "What": details["about"],
        "Kind": details["kind"],
        "Sizes": f"{shape['train']:,} training and {shape['test']:,} test items, "
        f"{shape['labels']:,} labels, {shape['features']:,} features",
        "Labelsets": loaded
        and f"{loaded['statistics']['diversity']:,} different ones, "
        f"{loaded['statistics']['cardinality']:.2f} labels per item",
        "Note": details["note"],
        "Licence": details["licence"],
        "Reference": details["reference"],
        "Source": details["origin"],
        "Folder": details["folder"],
        "SHA-256": loaded and loaded["sha"],
    }
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        if value:
            table.add_row(name, str(value))
    return table


def _label_table(dataset: Dataset) -> Table:
    table = plain_table(["prevalence of"], ["train", "test"])
    train, test = dataset.train.prevalence, dataset.test.prevalence
    order = np.argsort(-train, kind="stable")
    for j in order[:_SHOWN_LABELS]:
        table.add_row(dataset.train.labels[j], f"{train[j]:.3f}", f"{test[j]:.3f}")
    if len(order) > _SHOWN_LABELS:
        table.add_row(f"... {len(order) - _SHOWN_LABELS} more")
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
        rows = [asdict(row) | {"differences": row.differences} for row in compared]
        _print_json({"rows": rows, "skipped": skipped})
        return
    console = Console()
    console.width = max(console.width, _TABLE_WIDTH)
    if compared:
        console.print("Dataset table of Moreo et al.; * = recomputed figure that differs")
        console.print(_comparison_table(compared))
    if skipped and not download:
        console.print(f"Skipped, not in the data home: {', '.join(skipped)}.", highlight=False)
        console.print("Download missing files with: prevalens datasets --table --download")
        return
    for name, why in skipped.items():
        console.print(f"Skipped {name}: {why}", highlight=False, soft_wrap=True)


def _comparison_table(compared: list[DatasetComparison]) -> Table:
    table = _narrow(["dataset"], [*COLUMNS.values(), "agree"])
    for row in compared:
        printed, computed = asdict(row.printed), asdict(row.computed)
        cells = [
            Text(f"{shown(printed[column])}\n*{shown(computed[column])}", style="bold red")
            if column in row.differences
            else Text(shown(printed[column]))
            for column in COLUMNS
        ]
        table.add_row(row.name, *cells, f"{row.agreeing}/{len(COLUMNS)}")
    return table
