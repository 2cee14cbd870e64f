"""`prevalens inspect`: describe a model file without loading its fitted objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prevalens.cli.columns import column_table
from prevalens.cli.console import json_option, plain_table
from prevalens.cli.wording import as_options
from prevalens.errors import counted
from prevalens.model.manifest import Description, DriftSummary, read_manifest

_MOST_LABELS = 40


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--all", "everything", is_flag=True, help="Show all labels.")
@json_option
def command(model: Path, everything: bool, as_json: bool) -> None:
    """Show what MODEL was trained on and how, without loading its fitted objects."""
    description = Description.from_manifest(model, read_manifest(model))
    if as_json:
        click.echo(json.dumps(description.to_dict(), indent=1, ensure_ascii=False))
        return
    console = Console(highlight=False)
    facts = Table(box=None, show_header=False, padding=(0, 1))
    for name, value in _facts(description).items():
        facts.add_row(Text(name, style="bold"), Text(value))
    console.print(facts)
    if description.column_uses:
        console.print(Text("Columns, and what they became in training"))
        console.print(column_table(description.column_uses))
    most = len(description.labels) if everything else _MOST_LABELS
    console.print(Text(_title(len(description.labels), most)))
    console.print(_labels(description, most))


def _facts(model: Description) -> dict[str, str]:
    summary, made = model.summary, model.provenance
    versions = ", ".join(
        f"{name} {made[name]}" for name in ("prevalens", "scikit-learn") if name in made
    )
    facts = {
        "method": f"{summary.method} ({summary.group})",
        "preparation": summary.preparation,
        "reads": "arrays or texts" if model.columns is None else ", ".join(model.columns),
        "training": f"{counted(summary.n_items, 'item')}, {counted(len(model.labels), 'label')}, "
        f"{summary.cardinality:.2f} labels per item, {summary.seconds:.1f} s",
        "times": _times(model.drift),
        "drift": model.drift.sentences,
        "files": _files(made),
        "created": f"{made.get('created', '')} by {versions}",
        "warned of": as_options(" ".join(summary.warnings)),
    }
    return {name: value for name, value in facts.items() if value}


def _times(drift: DriftSummary) -> str:
    if not drift.first:
        return ""
    column = "" if drift.column is None else f" (column {drift.column['name']})"
    return f"{drift.first} to {drift.last}{column}"


def _files(made: Mapping[str, Any]) -> str:
    files = made.get("files")
    if not isinstance(files, list):
        return ""
    return ", ".join(str(file.get("name", "")) for file in files if isinstance(file, dict))


def _title(count: int, most: int) -> str:
    shown = f" ({most} of {count}; --all shows all)" if count > most else ""
    return f"Labels, most frequent first{shown}"


def _labels(model: Description, most: int) -> Table:
    order = sorted(range(len(model.labels)), key=lambda j: -model.summary.positives[j])
    counts = model.summary.counted
    table = plain_table(
        ["label"], ["positive items", "prevalence", *["labellers count"][: len(counts)]]
    )
    for j in order[:most]:
        shares = [model.summary.prevalence[j], *counts[j : j + 1]]
        cells = [f"{100 * share:.2f} %" for share in shares]
        table.add_row(Text(model.labels[j]), f"{model.summary.positives[j]:,}", *cells)
    return table
