"""`prevalens methods`: the parts that methods are made of."""

from __future__ import annotations

import inspect
import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from prevalens.catalogue import ENTRIES, CatalogueEntry
from prevalens.cli.console import json_option
from prevalens.errors import InputError
from prevalens.expression import parse_method

ROLES = {
    "classifier": "Classifiers score items.",
    "aggregator": "Aggregators turn the scores of a batch into prevalences.",
    "regressor": "Regressors correct the estimates inside rq(...).",
    "clusterer": "Clusterers group labels inside lpq(...) and homer(...).",
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
        **_guide(entry.code),
    }


@cache
def _table(name: str) -> dict[str, Any]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return tomllib.loads(text)


def _guide(code: str) -> dict[str, Any]:
    """What an aggregator assumes and costs, and how near to the best method it was where."""
    known = _table("guide.toml").get(code)
    if known is None:
        return {}
    ratios = _table("measured.toml")["ratios"]
    own = {name: row for name, row in ratios.items() if parse_method(name).aggregator.name == code}
    return {**known, "measured": own}


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
    guide = _guide(entry.code)
    if guide:
        click.echo(f"\nWhen to use it\n--------------\nAssumes: {guide['assumes']}.")
        click.echo(f"Costs, per batch and label: {guide['cost']}.")
        _measured(guide["measured"])


def _measured(rows: dict[str, dict[str, float]]) -> None:
    """The figures of methods with the aggregator, the best families of shift first."""
    for method, row in rows.items():
        cells = ", ".join(f"{name} {value:.2f}" for name, value in sorted(row.items(), key=_second))
        number = _table("measured.toml")["n_datasets"]
        click.echo(f"{method}, error by that of the best method on {number} datasets: {cells}.")
    if not rows:
        click.echo("Not measured in docs/accuracy.md.")


def _second(pair: tuple[str, float]) -> float:
    return pair[1]
