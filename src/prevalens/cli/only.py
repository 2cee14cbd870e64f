"""The option ``--only``: some of the cells of a plan."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

from prevalens.errors import InputError
from prevalens.experiments.cells import Cell
from prevalens.experiments.tables import suggestion

__all__ = ["cell_fields", "chosen_cells", "only_option"]

_FIELDS = ("dataset", "method", "variant", "protocol", "seed")

only_option = click.option(
    "--only",
    multiple=True,
    metavar="FIELD=VALUE,...",
    help=f"Only these cells. Fields: {', '.join(_FIELDS)}. May be given several times.",
)


def chosen_cells(cells: Sequence[Cell], only: Sequence[str]) -> list[Cell]:
    """The cells whose fields have one of the values asked for.

    Parameters
    ----------
    cells : list of Cell
    only : list of str
        What was given with ``--only``: ``field=value``, several of them with commas.
    """
    wanted: dict[str, list[str]] = {}
    for text in only:
        # Methods have commas too; only those before another field divide.
        for part in re.split(rf",(?=(?:{'|'.join(_FIELDS)})=)", text):
            field, equals, value = part.partition("=")
            if not equals or field not in _FIELDS:
                raise InputError(
                    f"--only takes FIELD=VALUE with a field of {', '.join(_FIELDS)}; got {part!r}."
                )
            wanted.setdefault(field, []).append(value)
    for field, values in wanted.items():
        _check_values(field, values, {cell_fields(cell)[field] for cell in cells})
    return [
        cell
        for cell in cells
        if all(cell_fields(cell)[field] in values for field, values in wanted.items())
    ]


def _check_values(field: str, values: Sequence[str], known: set[str]) -> None:
    for value in values:
        if value not in known:
            raise InputError(
                f"--only {field}={value}: the plan has no such {field}; {suggestion(value, known)}"
            )


def cell_fields(cell: Cell) -> dict[str, str]:
    """What tells a cell from the others of its plan, by field."""
    return {
        "dataset": cell.dataset,
        "method": cell.method.label,
        "variant": cell.method.variant,
        "protocol": cell.protocol.name,
        "seed": str(cell.seed),
    }
