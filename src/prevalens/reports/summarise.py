"""Summarise results: check, order, average and test them, and return one table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from prevalens.datasets.registry import TWINS, names
from prevalens.metrics import SHIFT_NAMES, shift_bins
from prevalens.records import Result
from prevalens.reports.grid import dataset_title
from prevalens.reports.table import (
    Kind,
    ResultTable,
    SeedSamples,
    TableCell,
    TableRow,
    larger_is_better,
    mark,
    p_value,
    pair,
    ranks,
)
from prevalens.validation import InputError, check_choice


def column_of(result: Result) -> str:
    """Name of a method in a table: its label, with its variant in brackets if it has one."""
    return f"{result.method} [{result.variant}]" if result.variant else result.method


def of_one_protocol(
    results: Iterable[Result], metric: str, protocol: str | None = None
) -> list[Result]:
    """Select the results of one protocol, check that they fit in one table, and sort them."""
    given = list(results)
    protocols = sorted({result.protocol for result in given})
    chosen = [result for result in given if protocol in (None, result.protocol)]
    if protocol is None and len(protocols) > 1:
        raise InputError(
            f"The results are under {len(protocols)} protocols, {', '.join(protocols)}; choose one "
            "with protocol=."
        )
    if not chosen:
        raise InputError(
            "There are no results to put into a table."
            if protocol is None
            else f"There are no results under the protocol {protocol!r}; "
            f"there are {', '.join(protocols) or 'none'}."
        )
    for result in chosen:
        _check_errors(result, metric)
    _check_distinct(chosen)
    return sorted(chosen, key=_identity)


def _identity(result: Result) -> tuple[str, str, int]:
    return result.dataset, column_of(result), result.seed


def _name(result: Result) -> str:
    return f"{column_of(result)} on {result.dataset}, seed {result.seed}"


def _check_errors(result: Result, metric: str) -> None:
    if metric not in result.errors:
        known = ", ".join(sorted(result.errors)) or "nothing"
        raise InputError(f"{_name(result)}, has no errors by {metric!r}; it has {known}.")
    errors, shift = result.errors[metric], result.shift
    if errors.shape != shift.shape or errors.ndim != 1:
        raise InputError(
            f"{_name(result)}, has errors of shape {errors.shape} but shifts of shape "
            f"{shift.shape}; there must be one of each per sample."
        )
    bad = ~(np.isfinite(errors) & np.isfinite(shift))
    if bad.any():
        raise InputError(
            f"{_name(result)}, has no finite {metric} or shift in sample {int(bad.argmax())}; "
            "run it again."
        )


def _check_distinct(results: Sequence[Result]) -> None:
    seen: dict[tuple[str, str, int], Result] = {}
    for result in results:
        other = seen.setdefault(_identity(result), result)
        if other is not result:
            raise InputError(
                f"There are two results for {_name(result)}: {other.expression!r} and "
                f"{result.expression!r}; give the results of one table at a time, or label them "
                "differently."
            )


def in_order(known: tuple[str, ...], wanted: Sequence[str] | None, what: str) -> tuple[str, ...]:
    """The names that are wanted, in that order, checked to be known; all known names if None."""
    if wanted is None:
        return known
    for name in wanted:
        if name not in known:
            raise InputError(
                f"There is no {what} {name!r} in the results; there are {', '.join(known)}."
            )
    return tuple(dict.fromkeys(wanted))


#: Sort key of a method by its name.
MethodOrder: TypeAlias = Callable[[str], Any]
#: The groups of methods: labels seen alone or together by the classifier, then by the aggregator.
_GROUPS = ("BC+BA", "MLC+BA", "BC+MLA", "MLC+MLA")


def groups_first(method: str) -> tuple[int, str]:
    """Sort key that puts the four groups first, in their order, then the others by name."""
    return _GROUPS.index(method) if method in _GROUPS else len(_GROUPS), method


def ordered_columns(
    results: Iterable[Result], order: MethodOrder = groups_first
) -> tuple[str, ...]:
    """Columns of a table, in the order of their methods; variants of a method by name."""
    columns = {column_of(result): (order(result.method), result.variant) for result in results}
    return tuple(sorted(columns, key=columns.__getitem__))


def ordered_datasets(results: Iterable[Result]) -> tuple[str, ...]:
    """Datasets in the order of the registry, twins side by side, then the others by name."""
    return ordered_names(result.dataset for result in results)


def ordered_names(datasets: Iterable[str]) -> tuple[str, ...]:
    """Distinct names of datasets, in the order of `ordered_datasets`."""
    places: dict[str, float] = {name: place for place, name in enumerate(names())}
    places |= {twin: places[name] + 0.5 for name, twin in TWINS.items()}
    return tuple(sorted(set(datasets), key=lambda name: (places.get(name, len(places)), name)))


def twins_among(datasets: Iterable[str]) -> list[str]:
    """Corrected releases of datasets whose older release is present too; averages omit them."""
    present = set(datasets)
    return [name for name, twin in TWINS.items() if present >= {name, twin}]


#: The samples of a row: one of the paper's shift regimes, or all samples.
REGIMES = (*SHIFT_NAMES, "all")

#: The samples of one cell by seed, in a pooled row by dataset and seed.
Parts: TypeAlias = dict[Hashable, SeedSamples]

#: Finds the best of the cells of a pooled row, and tests the others against it: from the rows that
#: are pooled, all of one regime, and the cells.
Judge: TypeAlias = Callable[
    [Sequence[TableRow], Sequence[TableCell | None]], tuple[TableCell | None, ...]
]


def summarise(
    results: Iterable[Result],
    *,
    metric: str = "ae",
    protocol: str | None = None,
    methods: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
    regimes: Sequence[str] = SHIFT_NAMES,
    left_out: Collection[str] = (),
    order: MethodOrder = groups_first,
) -> ResultTable:
    """Mean errors by dataset and shift regime, with marks, averages and ranks.

    Parameters
    ----------
    results : iterable of Result
        At most one for each dataset, method (with its variant) and seed; of one protocol.
    metric : str
        Which of the results' errors.
    protocol : str, optional
        Which protocol's results; needed if there are several.
    methods, datasets : sequence of str, optional
        Which columns and rows, in this order; all of them if left out.
    regimes : sequence of {"low", "mid", "high", "all"}
        By default the three equal-width intervals of each dataset's shifts.
    left_out : collection of str
        Datasets that are shown but do not count in averages and ranks.
    order : callable
        Sort key of a method's name, for the columns if `methods` is left out.

    Returns
    -------
    ResultTable

    Notes
    -----
    The best method of a row is tested against every other on the samples they share, with a
    Wilcoxon signed-rank test; methods with other samples are not tested, and a note says so.
    Averages and ranks are over the datasets on which every method has a result. The average
    pooled over samples is the one the paper prints. O(n log n) in the number of samples.

    Examples
    --------
    >>> shift = np.array([0.0, 0.1, 0.2, 0.3])
    >>> def result(method, error):
    ...     return Result("scene", "ml-app", method, "", 0, shift, {"ae": shift + error})
    >>> table = summarise([result("PCC", 0.01), result("CC", 0.02)])
    >>> table.cell("scene", "low", "PCC").best
    True
    """
    chosen = of_one_protocol(results, metric, protocol)
    for regime in regimes:
        check_choice(regime, "regimes", REGIMES)
    columns = in_order(ordered_columns(chosen, order), methods, "method")
    names = in_order(ordered_datasets(chosen), datasets, "dataset")
    parts = _cut(chosen, metric, regimes)
    rows = []
    for dataset in names:
        for shift in regimes:
            own = [parts.get((dataset, shift, column), {}) for column in columns]
            cells = [_cell(part) if part else None for part in own]
            rows.append(TableRow(dataset, shift, _judged(cells, own, metric)))

    def judge(
        pooled: Sequence[TableRow], cells: Sequence[TableCell | None]
    ) -> tuple[TableCell | None, ...]:
        shared = [_pool(pooled, column, parts) for column in columns]
        return _judged(cells, shared, metric)

    return completed(
        ResultTable(metric, chosen[0].protocol, columns, tuple(rows)), judge, left_out=left_out
    )


def completed(table: ResultTable, judge: Judge, *, left_out: Collection[str] = ()) -> ResultTable:
    """Add the summaries and notes to a table.

    Parameters
    ----------
    table : ResultTable
        Its rows.
    judge : callable
        Given the rows of a regime that are pooled and the cells of their averages, returns these
        with the best marked and the others tested against it.
    left_out : collection of str
        Datasets that are shown but do not count in averages and ranks.
    """
    counted = [row for row in table.rows if row.complete and row.dataset not in left_out]
    return replace(
        table,
        summaries=tuple(_summaries(table, counted, judge)),
        notes=tuple(_notes(table, counted, left_out)),
    )


def _cut(
    results: Sequence[Result], metric: str, regimes: Sequence[str]
) -> dict[tuple[str, str, str], Parts]:
    """Errors and shifts by dataset, regime and column, and there by seed."""
    parts: dict[tuple[str, str, str], Parts] = {}
    for result in results:
        bins = shift_bins(result.shift)
        for regime in regimes:
            inside = np.full(bins.shape, True) if regime == "all" else bins == REGIMES.index(regime)
            if inside.any():
                cut = SeedSamples(result.shift[inside], np.asarray(result.errors[metric])[inside])
                key = (result.dataset, regime, column_of(result))
                parts.setdefault(key, {})[result.seed] = cut
    return parts


def _cell(parts: Parts) -> TableCell:
    means = tuple(float(np.mean(part.errors, dtype=np.float64)) for part in parts.values())
    return TableCell(
        value=float(np.mean(means)),
        by_seed=means,
        n_samples=sum(part.errors.size for part in parts.values()),
    )


def with_best(cells: Sequence[TableCell | None], metric: str) -> list[TableCell | None]:
    """The cells of a row with the best marked."""
    pick: Callable[..., float] = max if larger_is_better(metric) else min
    best = pick((cell.value for cell in cells if cell is not None), default=np.nan)
    return [cell and replace(cell, best=cell.value == best) for cell in cells]


def _judged(
    cells: Sequence[TableCell | None], parts: Sequence[Parts], metric: str
) -> tuple[TableCell | None, ...]:
    """The cells of a row with the best marked and every other tested against it."""
    judged = with_best(cells, metric)
    best = next((i for i, cell in enumerate(judged) if cell is not None and cell.best), 0)
    for i, cell in enumerate(judged):
        if cell is not None and not cell.best:
            shared = pair(parts[best], parts[i])
            p = None if shared is None else p_value(*shared)
            judged[i] = replace(cell, p_value=p, mark=mark(p))
    return tuple(judged)


def _summaries(table: ResultTable, counted: Sequence[TableRow], judge: Judge) -> Iterable[TableRow]:
    for regime in table.regimes:
        rows = [row for row in counted if row.shift == regime]
        if rows:
            full = [[cell for cell in row.cells if cell is not None] for row in rows]
            values = [[cell.value for cell in cells] for cells in full]
            averages = [_weighted(column) for column in zip(*full, strict=True)]
            yield TableRow("", regime, judge(rows, averages), "pooled", len(rows))
            yield _mean_row("mean", regime, values, table.metric)
            places = [ranks(cells, table.metric).tolist() for cells in full]
            # The smallest mean rank is the best one, whatever is measured.
            yield _mean_row("rank", regime, places, "rank")


def _pool(rows: Sequence[TableRow], column: str, parts: dict[tuple[str, str, str], Parts]) -> Parts:
    """The samples of a column in all of some rows."""
    return {
        (row.dataset, seed): part
        for row in rows
        for seed, part in parts[row.dataset, row.shift, column].items()
    }


def _weighted(cells: Sequence[TableCell]) -> TableCell:
    """Mean over the samples of all datasets; a dataset run with more seeds counts no more."""
    weights = [cell.n_samples / len(cell.by_seed) for cell in cells]
    value = np.average([cell.value for cell in cells], weights=weights)
    return TableCell(float(value), n_samples=sum(cell.n_samples for cell in cells))


def _mean_row(kind: Kind, regime: str, values: list[list[float]], metric: str) -> TableRow:
    means = [TableCell(float(value)) for value in np.mean(values, axis=0)]
    return TableRow("", regime, tuple(with_best(means, metric)), kind, len(values))


def _notes(
    table: ResultTable, counted: Sequence[TableRow], left_out: Collection[str]
) -> Iterable[str]:
    untested = sum(
        cell is not None and cell.mark == "untested" for row in table.rows for cell in row.cells
    )
    if untested:
        yield (
            f"{untested} of the results could not be tested against the best of their row: they "
            "were measured on other samples, or those of both are no longer at hand."
        )
    averaged = {row.dataset for row in counted}
    partial = [name for name in table.datasets if name not in averaged and name not in left_out]
    if partial:
        yield f"Not in averages and ranks, as not every method has a result: {_titles(partial)}."
    aside = [name for name in table.datasets if name in left_out]
    if aside:
        yield f"Shown, but left out of averages and ranks: {_titles(aside)}."


def _titles(names: Iterable[str]) -> str:
    return ", ".join(map(dataset_title, names))
