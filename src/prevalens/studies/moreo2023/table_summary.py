"""Summaries of result tables, without the errors of single samples.

A summary holds the means by dataset and shift regime, the p-values of the tests and the provenance
of the figures: everything that a page of tables needs, in a file of a few kilobytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from prevalens.records import Result
from prevalens.reports.page import write_page
from prevalens.reports.sections import PLAIN, tables_of
from prevalens.reports.summarise import (
    REGIMES,
    completed,
    ordered_datasets,
    ordered_names,
    twins_among,
    with_best,
)
from prevalens.reports.table import ResultTable, TableCell, TableRow
from prevalens.studies.moreo2023.printed import method_place
from prevalens.validation import FormatError, InputError

#: Number of the format of the files.
FORMAT = 1
#: Digits of a value that are kept; tables show four.
_DIGITS = 7
_P_DIGITS = 3
#: Relative difference of means that are equal but for rounding in sums and in the files.
_SAME = 1e-5
#: How the names of the tables of the four groups end.
_GENERAL = "_general"


@dataclass(frozen=True)
class Run:
    """The results on one dataset: their number, seeds, time and origin.

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
class Validated:
    """Loss of the chosen settings in model selection, and the error on the test samples.

    Attributes
    ----------
    dataset, variant, method : str
    seed : int
    validation : float
        Mean absolute error over the validation samples, of the settings that were chosen.
    test : float
        Mean absolute error over all test samples.
    """

    dataset: str
    variant: str
    method: str
    seed: int
    validation: float
    test: float


@dataclass(frozen=True)
class TableSummary:
    """Our results for one of the paper's tables.

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
    validated : tuple of Validated
        For each result whose settings were chosen by a search, where the loss is known.
    """

    name: str
    tables: Mapping[str, Mapping[str, ResultTable]]
    methods: Mapping[str, Mapping[str, str]]
    runs: tuple[Run, ...]
    validated: tuple[Validated, ...] = ()


def summarise_table(
    name: str, results: Iterable[Result], *, metrics: Sequence[str] = ("ae", "rae")
) -> TableSummary:
    """Summarise the results of a table.

    Parameters
    ----------
    name : str
        Of the printed table they belong to.
    results : iterable of Result
    metrics : sequence of str
    """
    given = sorted(results, key=attrgetter("dataset", "method", "variant", "seed"))
    if not given:
        raise InputError(f"There are no results of the table {name!r}.")
    methods: dict[str, dict[str, str]] = {}
    for result in given:
        known = methods.setdefault(result.variant, {})
        known[result.method] = all_expressions(known.get(result.method, ""), result.expression)
    return TableSummary(
        name=name,
        tables={metric: tables_of(given, metric=metric, order=method_place) for metric in metrics},
        methods={variant: dict(sorted(methods[variant].items())) for variant in sorted(methods)},
        runs=tuple(
            _run([result for result in given if result.dataset == dataset])
            for dataset in ordered_datasets(given)
        ),
        validated=tuple(_validated(given)),
    )


def _validated(results: Iterable[Result]) -> Iterator[Validated]:
    for result in results:
        if result.validation_loss is not None and "ae" in result.errors:
            test = float(np.mean(result.errors["ae"], dtype=np.float64))
            losses = (_rounded(loss, _DIGITS) for loss in (result.validation_loss, test))
            yield Validated(result.dataset, result.variant, result.method, result.seed, *losses)


def all_expressions(*texts: str) -> str:
    """The expressions that a method has on different datasets, in one text.

    Examples
    --------
    >>> all_expressions("lr+pcc", "lr(tol=0.1)+pcc | lr+pcc")
    'lr(tol=0.1)+pcc | lr+pcc'
    """
    separator = " | "
    return separator.join(
        sorted({part for text in texts if text for part in text.split(separator)})
    )


def _run(results: Sequence[Result]) -> Run:
    return Run(
        dataset=results[0].dataset,
        seeds=tuple(sorted({result.seed for result in results})),
        n_results=len(results),
        seconds=round(sum(float(result.usage.get("seconds", 0)) for result in results), 1),
        version=", ".join(sorted({result.version for result in results})),
        data_sha=", ".join(sorted({result.data_sha for result in results})),
    )


def write_summary(summary: TableSummary, folder: Path) -> Path:
    """Write ``NAME.json`` into a folder, whole; the same summary gives the same bytes.

    Parameters
    ----------
    summary : TableSummary
    folder : Path
        Created if it does not exist.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{summary.name}.json"
    head = {"format": FORMAT, "table": summary.name, "methods": summary.methods}
    runs = ",\n".join(_json(asdict(run)) for run in summary.runs)
    tables = ",\n".join(
        _table_text(metric, variant, table)
        for metric, by_variant in summary.tables.items()
        for variant, table in by_variant.items()
    )
    validated = ",\n".join(_json(asdict(pair)) for pair in summary.validated)
    more = f'"validated": [\n{validated}\n],\n' if validated else ""
    text = f'{_json(head)[:-1]},\n"runs": [\n{runs}\n],\n{more}"tables": [\n{tables}\n]}}\n'
    write_page(path, text)
    return path


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True)


def _table_text(metric: str, variant: str, table: ResultTable) -> str:
    """A line per row, so that a change of one dataset is a change of its lines."""
    head = {
        "metric": metric,
        "variant": variant,
        "protocol": table.protocol,
        "columns": table.columns,
        "notes": table.notes,
    }
    rows = ",\n".join(
        _json(_attributes(row) | {"cells": [cell and _cell(cell) for cell in row.cells]})
        for row in (*table.rows, *table.summaries)
    )
    return f'{_json(head)[:-1]}, "rows": [\n{rows}\n]}}'


def _cell(cell: TableCell) -> dict[str, Any]:
    content = _attributes(cell) | {"value": _rounded(cell.value, _DIGITS)}
    if cell.p_value is not None:
        content["p_value"] = _rounded(cell.p_value, _P_DIGITS)
    if cell.by_seed:
        values = cell.by_seed if len(cell.by_seed) > 1 else (cell.value,)
        content["by_seed"] = [_rounded(value, _DIGITS) for value in values]
    return content


def _attributes(item: TableRow | TableCell) -> dict[str, Any]:
    """The attributes that differ from their defaults."""
    values = vars(item)
    defaults = {field.name: field.default for field in fields(item)}
    return {name: value for name, value in values.items() if value != defaults[name]}


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def read_summaries(folder: Path) -> dict[str, TableSummary]:
    """All summaries of a folder, by the name of their table.

    Parameters
    ----------
    folder : Path
        As `write_summary` has filled it.
    """
    summaries = [read_summary(path) for path in sorted(folder.glob("*.json"))]
    if not summaries:
        raise InputError(f"There are no records in {folder}; write some with --save-records.")
    return {summary.name: summary for summary in summaries}


def tuned_tables(folder: Path, metric: str = "ae") -> dict[str, ResultTable]:
    """The tables of the four groups in a folder of summaries, by aggregator and way of running.

    Parameters
    ----------
    folder : Path
        As `write_summary` has filled it.
    metric : str
    """
    return {
        f"{name.removesuffix(_GENERAL).upper()}, {variant}": table
        for name, summary in read_summaries(folder).items()
        if name.endswith(_GENERAL)
        for variant, table in summary.tables[metric].items()
    }


def read_summary(path: Path) -> TableSummary:
    """The summary in a file."""
    try:
        content = json.loads(path.read_text("utf-8"))
        if content["format"] != FORMAT:
            raise FormatError(f"{path} has the format {content['format']}; {FORMAT} is known.")
        tables: dict[str, dict[str, ResultTable]] = {}
        for table in content["tables"]:
            tables.setdefault(table["metric"], {})[table["variant"]] = _read_table(table)
        runs = tuple(Run(**run | {"seeds": tuple(run["seeds"])}) for run in content["runs"])
        validated = tuple(Validated(**pair) for pair in content.get("validated", ()))
        return TableSummary(content["table"], tables, content["methods"], runs, validated)
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
    cells = [
        cell and TableCell(**{**cell, "by_seed": tuple(cell.get("by_seed", ()))})
        for cell in content["cells"]
    ]
    return TableRow(**{**content, "cells": tuple(cells)})


#: Expressions by the way they were run, then by method.
_Methods: TypeAlias = Mapping[str, Mapping[str, str]]
_Cells: TypeAlias = tuple[TableCell | None, ...]


def merge_summaries(old: TableSummary, new: TableSummary) -> TableSummary:
    """Merge two summaries; where both have a result, the new one is kept if it differs.

    Parameters
    ----------
    old, new : TableSummary
        Of the same printed table, and on the same data where they have a dataset in common.

    Returns
    -------
    TableSummary
        Averages and ranks are over all datasets. Where the best of a row and another cell come
        from different summaries, the other is marked as untested. A result that is replaced is
        replaced with all its seeds; one that the new summary only repeats is kept with all its
        seeds.
    """
    if old.name != new.name:
        raise InputError(f"Records of {old.name!r} and of {new.name!r} make no common table.")
    _check_data(old, new)
    methods = _joined_methods(old.methods, new.methods)
    tables: dict[str, dict[str, ResultTable]] = {}
    for metric in dict.fromkeys((*old.tables, *new.tables)):
        # The newer summary comes first, so that its cells are preferred.
        sides = [_Side(side.tables.get(metric, {}), side.methods) for side in (new, old)]
        present = {way for side in sides for way in side.tables}
        ways = sorted(present, key=lambda way: (way != PLAIN, way))
        tables[metric] = {way: _join(way, sides, methods) for way in ways}
    runs = _runs(old, new, tables, methods)
    return TableSummary(old.name, tables, methods, runs, _all_validated(old, new))


def save_summary(summary: TableSummary, folder: Path) -> TableSummary:
    """Write a summary into a folder, merged with the summary of its table that is there.

    Parameters
    ----------
    summary : TableSummary
    folder : Path
        Created if it does not exist.

    Returns
    -------
    TableSummary
        The summary that was written.
    """
    path = folder / f"{summary.name}.json"
    if path.is_file():
        summary = merge_summaries(read_summary(path), summary)
    write_summary(summary, folder)
    return summary


@dataclass(frozen=True)
class _Side:
    """The tables of one measure in a summary, and the methods that were run for them."""

    tables: Mapping[str, ResultTable]
    methods: _Methods


@dataclass(frozen=True)
class _SideCell:
    """A cell, and the side on which it was tested; None if it was not tested in this row."""

    cell: TableCell
    side: _Side | None


def _join(way: str, sides: Sequence[_Side], methods: _Methods) -> ResultTable:
    """The table of one way to run the methods."""
    known = [side.tables[way] for side in sides if way in side.tables]
    if len({table.protocol for table in known}) > 1:
        raise InputError(
            f"The records are under the protocols {known[0].protocol!r} and {known[1].protocol!r}, "
            "which make no common table."
        )
    columns = sorted({name for table in known for name in table.columns}, key=method_place)
    own = _run_in(methods, way)
    rows: list[TableRow] = []
    origins: dict[tuple[str, str], _Side | None] = {}
    for blank in _blank_rows(known):
        cells = [_newest(sides, way, name in own, blank, name) for name in columns]
        rows.append(replace(blank, cells=_judged(cells, known[0].metric)))
        origins[blank.dataset, blank.shift] = _lone_side(cells)

    def judge(pooled: Sequence[TableRow], cells: Sequence[TableCell | None]) -> _Cells:
        side = origins[pooled[0].dataset, pooled[0].shift]
        if side is not None and all(origins[row.dataset, row.shift] is side for row in pooled):
            tested = side.tables[way].summary("pooled", pooled[0].shift)
            if tested is not None and tested.n_datasets == len(pooled):
                return tested.cells
        untested = [_SideCell(cell, None) if cell else None for cell in cells]
        return _judged(untested, known[0].metric)

    table = ResultTable(known[0].metric, known[0].protocol, tuple(columns), tuple(rows))
    return completed(table, judge, left_out=twins_among(table.datasets))


def _newest(
    sides: Sequence[_Side], way: str, own: bool, row: TableRow, column: str
) -> _SideCell | None:
    """Return a cell of a row from the first side that has it.

    If the method is not run in this way (`own` is false), its ordinary results are taken. A cell
    that only repeats seeds of a later side is dropped, so that these keep their tests and seeds.
    """
    known = []
    for side in sides:
        if own and column not in _run_in(side.methods, way):
            continue
        table = side.tables.get(way, side.tables.get(PLAIN))
        cell = table.cell(row.dataset, row.shift, column) if table else None
        if cell is not None:
            known.append(_SideCell(cell, side if way in side.tables else None))
    repeated = len(known) > 1 and _repeats(known[0].cell, known[1].cell)
    return next(iter(known[repeated:]), None)


def _repeats(cell: TableCell, other: TableCell) -> bool:
    """Whether every seed of a cell has its value, up to rounding, in the other cell too."""
    values = cell.by_seed or (cell.value,)
    return all(
        any(math.isclose(value, before, rel_tol=_SAME) for before in other.by_seed)
        for value in values
    )


def _blank_rows(tables: Sequence[ResultTable]) -> list[TableRow]:
    """Rows without cells, in the order of a table."""
    present = {(row.dataset, row.shift) for table in tables for row in table.rows}
    return [
        TableRow(dataset, shift, ())
        for dataset in ordered_names(dataset for dataset, _ in present)
        for shift in REGIMES
        if (dataset, shift) in present
    ]


def _lone_side(cells: Sequence[_SideCell | None]) -> _Side | None:
    """Return the side on which all cells of a row were tested; None if there is no such side."""
    sides = [cell.side for cell in cells if cell]
    return sides[0] if sides and all(side is sides[0] for side in sides) else None


def _judged(row: Sequence[_SideCell | None], metric: str) -> _Cells:
    """Return the cells of a row with the best marked; tests against another best are dropped."""
    cells = tuple(origin.cell if origin else None for origin in row)
    if _lone_side(row) is not None:
        # Values that differed may be equal after rounding for a file; the stored best is kept.
        return cells
    judged = with_best(cells, metric)
    best = next((o for o, cell in zip(row, judged, strict=True) if o and cell and cell.best), None)
    for i, (origin, cell) in enumerate(zip(row, judged, strict=True)):
        if origin is None or cell is None or best is None:
            continue
        tested = best.cell.best and best.side is not None and origin.side is best.side
        if cell.best or not tested:
            judged[i] = replace(cell, p_value=None, mark="" if cell.best else "untested")
    return tuple(judged)


def _runs(
    old: TableSummary,
    new: TableSummary,
    tables: Mapping[str, Mapping[str, ResultTable]],
    methods: _Methods,
) -> tuple[Run, ...]:
    """Merge the runs of two summaries, one for each dataset."""
    before = {run.dataset: run for run in old.runs}
    after = {run.dataset: run for run in new.runs}
    ways = next(iter(tables.values()), {})
    runs = before | after
    for dataset in before.keys() & after.keys():
        counts = (_n_results(table, dataset, _run_in(methods, way)) for way, table in ways.items())
        runs[dataset] = _joined_run(before[dataset], after[dataset], sum(counts))
    return tuple(runs[dataset] for dataset in ordered_names(runs))


def _joined_run(old: Run, new: Run, n_results: int) -> Run:
    """Merge two runs on one dataset, of whose results `n_results` are kept."""
    if n_results == new.n_results:
        return new
    # It is not known how many of the seconds a replaced result took.
    whole = n_results == old.n_results + new.n_results
    known = whole and old.seconds is not None and new.seconds is not None
    return Run(
        dataset=new.dataset,
        seeds=tuple(sorted({*old.seeds, *new.seeds})),
        n_results=n_results,
        seconds=round((old.seconds or 0.0) + (new.seconds or 0.0), 1) if known else None,
        version=", ".join(sorted({*old.version.split(", "), *new.version.split(", ")})),
        data_sha=new.data_sha,
    )


def _n_results(table: ResultTable, dataset: str, own: Mapping[str, str]) -> int:
    """Results on a dataset, one for each method and seed."""
    rows = [row for row in table.rows if row.dataset == dataset]
    return sum(
        max((len(cell.by_seed) for row in rows if (cell := row.cells[i])), default=0)
        for i, column in enumerate(table.columns)
        if column in own
    )


def _all_validated(old: TableSummary, new: TableSummary) -> tuple[Validated, ...]:
    """The losses of two summaries; where both have a method on a dataset, those of the new one."""
    place = attrgetter("dataset", "variant", "method")
    replaced = set(map(place, new.validated))
    kept = [pair for pair in old.validated if place(pair) not in replaced]
    by_place = attrgetter("dataset", "method", "variant", "seed")
    return tuple(sorted((*kept, *new.validated), key=by_place))


def _check_data(old: TableSummary, new: TableSummary) -> None:
    known = {run.dataset: run.data_sha for run in old.runs}
    for run in new.runs:
        before = known.get(run.dataset, run.data_sha)
        if before != run.data_sha:
            raise InputError(
                f"The records of {old.name} were made on a {run.dataset} with the SHA-256 "
                f"{before[:12]}, and the results are on one with {run.data_sha[:12]}; save them in "
                "another folder."
            )


def _run_in(methods: _Methods, way: str) -> Mapping[str, str]:
    """The methods that were run in a way; results without a variant are as described."""
    named: Mapping[str, str] = methods.get(way, {})
    return {**methods.get("", {}), **named} if way == PLAIN else named


def _joined_methods(old: _Methods, new: _Methods) -> dict[str, dict[str, str]]:
    joined: dict[str, dict[str, str]] = {}
    for way in sorted({*old, *new}):
        before, after = old.get(way, {}), new.get(way, {})
        joined[way] = {
            method: all_expressions(before.get(method, ""), after.get(method, ""))
            for method in sorted({*before, *after})
        }
    return joined
