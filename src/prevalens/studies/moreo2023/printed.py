"""What the paper prints: its result tables, as tables like ours.

The figures are those of Moreo, Francisco and Sebastiani, "Multi-Label Quantification" (ACM
Transactions on Knowledge Discovery from Data 18(1), 2023). They lie in ``printed.csv``.
"""

from __future__ import annotations

import csv
import re
from functools import cache
from importlib import resources

from prevalens.datasets.registry import TWINS
from prevalens.reports.table import Kind, Mark, ResultTable, TableCell, TableRow
from prevalens.validation import InputError, check_choice

#: How to cite the source of the printed figures.
PAPER = (
    "Moreo, Francisco and Sebastiani, Multi-Label Quantification, ACM Transactions on Knowledge "
    "Discovery from Data 18(1), 2023"
)

#: The printed tables by name, and what each compares.
PRINTED_TABLES = {
    "cc_general": "the four groups of methods with CC as the base quantifier",
    "pcc_general": "the four groups of methods with PCC as the base quantifier",
    "acc_general": "the four groups of methods with ACC as the base quantifier",
    "pacc_general": "the four groups of methods with PACC as the base quantifier",
    "sld_general": "the four groups of methods with SLD as the base quantifier",
    "mlc": "multi-label classifiers, with PCC as the base quantifier",
    "mlq": "multi-label aggregators",
    "mlqreg": "regressors of multi-label aggregation by regression",
    "mlqreg_mrae": "regressors of multi-label aggregation by regression",
}

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
    content = (
        resources.files("prevalens.studies.moreo2023").joinpath("printed.csv").read_text("utf-8")
    )
    return tuple(csv.reader(line for line in content.splitlines() if not line.startswith("#")))


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
    found = _CELL.fullmatch(text)
    if found is None:
        raise InputError(f"{text!r} is not a cell of a printed table.")
    return TableCell(
        value=float(found["value"]), best=bool(found["best"]), mark=_MARKS[found["mark"]]
    )


def printed_dataset(dataset: str) -> str:
    """The dataset, by our name, whose printed figures stand beside those of `dataset`.

    Examples
    --------
    >>> printed_dataset("tmc2007_500"), printed_dataset("scene")
    ('tmc2007_500_paper', 'scene')
    """
    return TWINS.get(dataset, dataset)


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9+]", "", name.casefold())


def _keys(name: str) -> set[str]:
    """Ways to write a printed name: whole, or one of the two that stand in it."""
    found = _BRACKETS.fullmatch(name)
    return {_key(name), *(map(_key, found.groups()) if found else ())}


def match_method(method: str, table: ResultTable) -> str | None:
    """The column of a printed table that a method of ours is, if there is one.

    Capitals and punctuation do not count, and of a name such as ``Ridge (Ridge-RQ)`` either part
    will do.

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
    """Where to put a method among others: the paper's in its order, then all by name."""
    order = method_order()
    return order.get(_key(method), len(order)), method
