"""`prevalens methods`: the parts that methods are made of."""

from __future__ import annotations

import inspect
import json
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from prevalens.catalogue import ENTRIES, CatalogueEntry
from prevalens.cli.console import json_option
from prevalens.errors import InputError

ROLES = {
    "classifier": "Classifiers score items.",
    "aggregator": "Aggregators turn the scores of a batch into prevalences.",
    "regressor": "Regressors correct the estimates inside rq(...).",
    "clusterer": "Clusterers group labels inside lpq(...).",
    "scheme": "Schemes decide which items the aggregator learns from.",
    "quantifier": "Whole methods, which need no other part.",
}
USAGE = "A method is classifier+aggregator, such as lr+pcc or stack(lr)+rq(pcc,svr)@holdout(0.4)."


@click.command()
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the parts that methods are made of; with NAME, explain one part."""
    if name is not None and name not in ENTRIES:
        raise InputError(f"There is no part called {name!r}; there are {', '.join(ENTRIES)}.")
    entries = list(ENTRIES.values()) if name is None else [ENTRIES[name]]
    if as_json:
        click.echo(json.dumps([_row(entry) for entry in entries], indent=2))
    elif name is None:
        _list(entries)
    else:
        _explain(entries[0])


def _row(entry: CatalogueEntry) -> dict[str, Any]:
    parameters = {name: _default(parameter) for name, parameter in entry.parameters.items()}
    return {
        "name": entry.code,
        "role": entry.role,
        "summary": entry.summary,
        "parameters": parameters,
    }


def _default(parameter: inspect.Parameter) -> str:
    return "" if parameter.default is inspect.Parameter.empty else repr(parameter.default)


def _list(entries: list[CatalogueEntry]) -> None:
    console = Console()
    for role, sentence in ROLES.items():
        table = Table(title=sentence, title_justify="left", box=None, show_header=False)
        table.add_column(no_wrap=True, style="bold")
        table.add_column()
        for entry in entries:
            if entry.role == role:
                table.add_row(entry.code, entry.summary)
        console.print(table)
        console.print()
    console.print(USAGE, highlight=False)
    console.print("prevalens methods NAME explains one.", highlight=False)


def _explain(entry: CatalogueEntry) -> None:
    signature = ", ".join(
        f"{name}={_default(parameter)}" if _default(parameter) else name
        for name, parameter in entry.parameters.items()
    )
    click.echo(f"{entry.code}({signature})    {entry.role}\n")
    click.echo(inspect.getdoc(entry.make) or "")
