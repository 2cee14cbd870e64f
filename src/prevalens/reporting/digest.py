"""TableDigest: what remains of the results of a table when their samples are dropped.

Means by dataset and shift regime, the p-values behind the daggers, and where the figures come
from: everything that a page of tables needs, in a file of kilobytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

from prevalens.model.writing import writing
from prevalens.records import Result
from prevalens.reporting.checking import ordered_datasets
from prevalens.reporting.sections import tables_of
from prevalens.reporting.table import ResultTable, TableCell, TableRow
from prevalens.validation import FormatError, InputError

__all__ = [
    "Run",
    "TableDigest",
    "all_expressions",
    "digest",
    "digest_path",
    "read_digest",
    "read_digests",
    "write_digest",
]

#: Number of the format of the files.
FORMAT = 1
#: Digits of a value that are kept; tables show four.
_DIGITS = 7
_P_DIGITS = 3


@dataclass(frozen=True)
class Run:
    """The results on one dataset, and what they cost.

    Attributes
    ----------
    dataset : str
    seeds : tuple of int
    n_results : int
    seconds : float or None
        Over all results; None where only a part is known.
    version, data_sha : str
        Of the package and the data they were made with.
    """

    dataset: str
    seeds: tuple[int, ...]
    n_results: int
    seconds: float | None
    version: str
    data_sha: str


@dataclass(frozen=True)
class TableDigest:
    """One of the paper's tables as we have it.

    Attributes
    ----------
    name : str
        Of the printed table.
    tables : dict of dict of ResultTable
        By measure, then by the way the results were run.
    methods : dict of dict of str
        Expressions by the way they were run, then by method; several, if they differ by dataset.
    runs : tuple of Run
        One for each dataset.
    """

    name: str
    tables: Mapping[str, Mapping[str, ResultTable]]
    methods: Mapping[str, Mapping[str, str]]
    runs: tuple[Run, ...]


def digest(
    name: str, results: Iterable[Result], *, metrics: Sequence[str] = ("ae", "rae")
) -> TableDigest:
    """Keep of the results of a table what its page needs.

    Parameters
    ----------
    name : str
        Of the printed table they belong to.
    results : iterable of Result
    metrics : sequence of str
    """
    found = sorted(results, key=lambda one: (one.dataset, one.method, one.variant, one.seed))
    if not found:
        raise InputError(f"There are no results of the table {name!r}.")
    methods: dict[str, dict[str, str]] = {}
    for result in found:
        known = methods.setdefault(result.variant, {})
        known[result.method] = all_expressions(known.get(result.method, ""), result.expression)
    return TableDigest(
        name=name,
        tables={metric: tables_of(found, metric=metric) for metric in metrics},
        methods={variant: dict(sorted(methods[variant].items())) for variant in sorted(methods)},
        runs=tuple(
            _run([result for result in found if result.dataset == dataset])
            for dataset in ordered_datasets(found)
        ),
    )


def all_expressions(*texts: str) -> str:
    """What a method is on some datasets and what it is on others, in one text.

    Examples
    --------
    >>> all_expressions("lr+pcc", "lr(tol=0.1)+pcc | lr+pcc")
    'lr(tol=0.1)+pcc | lr+pcc'
    """
    separator = " | "
    return separator.join(sorted({one for text in texts if text for one in text.split(separator)}))


def _run(results: Sequence[Result]) -> Run:
    return Run(
        dataset=results[0].dataset,
        seeds=tuple(sorted({result.seed for result in results})),
        n_results=len(results),
        seconds=round(sum(float(result.usage.get("seconds", 0)) for result in results), 1),
        version=", ".join(sorted({result.version for result in results})),
        data_sha=", ".join(sorted({result.data_sha for result in results})),
    )


def write_digest(found: TableDigest, folder: Path) -> Path:
    """Write ``NAME.json`` into a folder, whole; the same digest gives the same bytes.

    Parameters
    ----------
    found : TableDigest
    folder : Path
        Made if it is not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = digest_path(found.name, folder)
    head = {"format": FORMAT, "table": found.name, "methods": found.methods}
    lines = [f"{json.dumps(head, sort_keys=True)[:-1]},", '"runs": [']
    lines += [_listed([json.dumps(asdict(run), sort_keys=True) for run in found.runs]), "],"]
    blocks = [
        _table_text(metric, variant, table)
        for metric, tables in found.tables.items()
        for variant, table in tables.items()
    ]
    lines += ['"tables": [', _listed(blocks), "]}"]
    with writing(path) as file:
        file.write(("\n".join(lines) + "\n").encode("utf-8"))
    return path


def digest_path(name: str, folder: Path) -> Path:
    """Where a folder keeps the digest of a table."""
    return folder / f"{name}.json"


def _listed(items: Sequence[str]) -> str:
    return ",\n".join(items)


def _table_text(metric: str, variant: str, table: ResultTable) -> str:
    """A line per row, so that a change of one dataset is a change of its lines."""
    head = {
        "metric": metric,
        "variant": variant,
        "protocol": table.protocol,
        "columns": table.columns,
        "notes": table.notes,
    }
    rows = [json.dumps(_row(row), sort_keys=True) for row in (*table.rows, *table.summaries)]
    return f'{json.dumps(head, sort_keys=True)[:-1]}, "rows": [\n{_listed(rows)}\n]}}'


def _row(row: TableRow) -> dict[str, Any]:
    cells = [None if cell is None else _cell(cell) for cell in row.cells]
    return _told(row) | {"cells": cells}


def _cell(cell: TableCell) -> dict[str, Any]:
    told = _told(cell) | {"value": _rounded(cell.value, _DIGITS)}
    if cell.p_value is not None:
        told["p_value"] = _rounded(cell.p_value, _P_DIGITS)
    if len(cell.by_seed) > 1:
        told["by_seed"] = [_rounded(value, _DIGITS) for value in cell.by_seed]
    elif cell.by_seed:
        told["by_seed"] = [told["value"]]
    return told


def _told(item: TableRow | TableCell) -> dict[str, Any]:
    """The attributes that are not what they are by default."""
    return {
        one.name: getattr(item, one.name)
        for one in fields(item)
        if one.default is MISSING or getattr(item, one.name) != one.default
    }


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def read_digests(folder: Path) -> dict[str, TableDigest]:
    """All digests of a folder, by the name of their table.

    Parameters
    ----------
    folder : Path
        As `write_digest` has filled it.
    """
    found = [read_digest(path) for path in sorted(folder.glob("*.json"))]
    if not found:
        raise InputError(f"There are no records in {folder}; write some with --save-records.")
    return {one.name: one for one in found}


def read_digest(path: Path) -> TableDigest:
    """The digest in a file."""
    try:
        content = json.loads(path.read_text("utf-8"))
        if content["format"] != FORMAT:
            raise FormatError(f"{path} has the format {content['format']}; {FORMAT} is known.")
        tables: dict[str, dict[str, ResultTable]] = {}
        for one in content["tables"]:
            tables.setdefault(one["metric"], {})[one["variant"]] = _read_table(one)
        runs = tuple(Run(**run | {"seeds": tuple(run["seeds"])}) for run in content["runs"])
        return TableDigest(content["table"], tables, content["methods"], runs)
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise FormatError(
            f"{path} is no record of a table ({error!r}); remove it or name another folder."
        ) from error


def _read_table(content: Mapping[str, Any]) -> ResultTable:
    rows = [_read_row(row) for row in content["rows"]]
    return ResultTable(
        metric=content["metric"],
        protocol=content["protocol"],
        columns=tuple(content["columns"]),
        rows=tuple(row for row in rows if row.kind == "data"),
        summaries=tuple(row for row in rows if row.kind != "data"),
        notes=tuple(content["notes"]),
    )


def _read_row(content: Mapping[str, Any]) -> TableRow:
    cells = tuple(None if cell is None else _read_cell(cell) for cell in content["cells"])
    return TableRow(**{**content, "cells": cells})


def _read_cell(content: Mapping[str, Any]) -> TableCell:
    return TableCell(**{**content, "by_seed": tuple(content.get("by_seed", ()))})
