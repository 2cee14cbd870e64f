"""The result tables that the paper prints, as objects of the same type as ours.

The figures are those of Moreo, Francisco and Sebastiani, "Multi-Label Quantification" (ACM
Transactions on Knowledge Discovery from Data 18(1), 2023). They are stored in ``printed.csv``.
"""

from __future__ import annotations

import csv
import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any

from prevalens.datasets.registry import TWINS
from prevalens.reports.table import Kind, Mark, ResultTable, TableCell, TableRow
from prevalens.validation import InputError, check_choice

#: How to cite the source of the printed figures.
PAPER = (
    "Moreo, Francisco and Sebastiani, Multi-Label Quantification, ACM Transactions on Knowledge "
    "Discovery from Data 18(1), 2023"
)


def resource(name: str) -> str:
    """Return the text of a data file of this study."""
    return resources.files("prevalens.studies.moreo2023").joinpath(name).read_text("utf-8")


#: The texts of the study; the head of the file says which figures are filled in.
CAPTIONS: dict[str, Any] = tomllib.loads(resource("captions.toml"))
#: The printed tables by name, and what each compares.
PRINTED_TABLES: dict[str, str] = CAPTIONS["tables"]
_METRICS = {"mlqreg_mrae": "rae"}
_DIGITS = {"mlc": 3, "mlqreg_mrae": 3}
_MARKS: dict[str, Mark] = {"": "", "+": "dagger", "++": "ddagger"}
_SUMMARIES: dict[str, Kind] = {"average": "pooled", "rank": "rank"}
_CELL = re.compile(r"(?P<value>\d*\.\d+)(?P<best>\*?)(?P<mark>\+{0,2})")
_BRACKETS = re.compile(r"(?P<name>[^()]+)\((?P<other>[^()]+)\)")


@cache
def printed(table: str) -> ResultTable:
    """A result table as the paper prints it.

    Parameters
    ----------
    table : str
        One of `PRINTED_TABLES`.

    Returns
    -------
    ResultTable
        Datasets by our names, methods by the paper's. Its averages are pooled over samples, and
        all of them are over the paper's fifteen datasets.

    References
    ----------
    Moreo, Francisco and Sebastiani, "Multi-Label Quantification", ACM Transactions on Knowledge
    Discovery from Data 18(1), 2023.

    Examples
    --------
    >>> printed("pcc_general").cell("scene", "low", "MLC+MLA").value
    0.0323
    """
    check_choice(table, "table", tuple(PRINTED_TABLES))
    head, *lines = (line[1:] for line in _lines() if line[0] == table)
    rows = [_row(dataset, shift, cells) for dataset, shift, *cells in lines]
    return ResultTable(
        metric=_METRICS.get(table, "ae"),
        protocol="ml-app",
        columns=tuple(head[2:]),
        rows=tuple(row for row in rows if row.kind == "data"),
        summaries=tuple(row for row in rows if row.kind != "data"),
        digits=_DIGITS.get(table, 4),
    )


@cache
def _lines() -> tuple[list[str], ...]:
    lines = resource("printed.csv").splitlines()
    return tuple(csv.reader(line for line in lines if not line.startswith("#")))


def _row(dataset: str, shift: str, cells: list[str]) -> TableRow:
    kind = _SUMMARIES.get(dataset, "data")
    return TableRow(
        dataset=dataset if kind == "data" else "",
        shift=shift,
        cells=tuple(map(_cell, cells)),
        kind=kind,
        n_datasets=1 if kind == "data" else 15,
    )


def _cell(text: str) -> TableCell:
    cell = _CELL.fullmatch(text)
    if cell is None:
        raise InputError(f"{text!r} is not a cell of a printed table.")
    return TableCell(float(cell["value"]), best=bool(cell["best"]), mark=_MARKS[cell["mark"]])


def printed_dataset(dataset: str) -> str:
    """Return our name of the dataset whose printed figures are compared with those of `dataset`.

    Examples
    --------
    >>> printed_dataset("tmc2007_500"), printed_dataset("scene")
    ('tmc2007_500_paper', 'scene')
    """
    return TWINS.get(dataset, dataset)


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9+]", "", name.casefold())


def _keys(name: str) -> set[str]:
    """Return the keys of a printed name: of the whole, and of its two parts if it has brackets."""
    parts = _BRACKETS.fullmatch(name)
    return {_key(name), *(map(_key, parts.groups()) if parts else ())}


def match_method(method: str, table: ResultTable) -> str | None:
    """Return the column of a printed table that has the name of a method of ours, or None.

    Capitals and punctuation are ignored; of a name such as ``Ridge (Ridge-RQ)`` either part
    matches.

    Examples
    --------
    >>> match_method("ridge-rq", printed("mlqreg"))
    'Ridge (Ridge-RQ)'
    """
    return next((name for name in table.columns if _key(method) in _keys(name)), None)


@cache
def method_order() -> dict[str, int]:
    """Places of the methods in the order of the paper's tables, by simplified name."""
    order: dict[str, int] = {}
    for line in _lines():
        if line[1] == "dataset":
            for name in line[3:]:
                for key in sorted(_keys(name)):
                    order.setdefault(key, len(order))
    return order


def method_place(method: str) -> tuple[int, str]:
    """Sort key of a method: the methods of the paper in its order, then the others by name."""
    order = method_order()
    return order.get(_key(method), len(order)), method
