"""The leaderboard: methods compared over datasets and kinds of shift, from records alone."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from prevalens.metrics import SHIFT_NAMES
from prevalens.records import Record, to_rows
from prevalens.reports.grid import MISSING, dataset_title, number
from prevalens.reports.table import ResultTable
from prevalens.validation import FormatError

__all__ = ["leaderboard", "read_records", "write_records"]

_COLUMNS = tuple(Record.__dataclass_fields__)
_INTS = ("seed", "n_samples")
#: The column of the reference table that ratios are taken to: the paper's best group.
REFERENCE = "MLC+MLA"
_STEERED = "ml-app"
_UNMOVED = "natural"
_COUNTING = "lr+pcc"

_INTRODUCTION = """\
# Accuracy

Made by `{command}` from `{source}`; do not edit by hand. Settings are the defaults
everywhere, nothing is tuned per dataset, and every method is trained on the public training items
and measured in samples of the public test items. AE is the absolute error of the estimated
prevalences, RAE the relative one; lower is better.

`naive` answers the training prevalence. `pcc`, `pacc`, `sld` look at labels one by one; `rq` is the
paper's regression over all labels' estimates, with support vectors or with the exact moments of
ML-APP; `stack` is its stacked classifier; `mixture` and `auto` are ours
([how the mixture works](mixture.md)). The printed figures come from settings tuned per dataset; the
methods of the paper stand here with default settings, and tuned in
[the reproduction](reproduction.md).
"""


def write_records(records: Iterable[Record], path: Path) -> None:
    """Write records as CSV, values with seven digits."""
    rows = to_rows(records)
    for row in rows:
        row["value"] = float(f"{row['value']:.7g}")
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    part.replace(path)


def read_records(path: Path) -> list[Record]:
    """Read what `write_records` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != _COLUMNS:
            raise FormatError(f"{path} holds no records: its columns are {reader.fieldnames}.")
        return [_record(row, path, reader.line_num) for row in reader]


def _record(row: dict[str, str], path: Path, line: int) -> Record:
    try:
        numbers = {name: int(row[name]) for name in _INTS} | {"value": float(row["value"])}
    except ValueError as error:
        raise FormatError(f"{path}, line {line}: {error}.") from error
    return Record.from_row({**row, **numbers})


class _Figures:
    """Means by dataset, method, protocol, regime and measure, over seeds."""

    def __init__(self, records: Sequence[Record], reference: ResultTable) -> None:
        self._reference = reference
        self.datasets = list(dict.fromkeys(r.dataset for r in records))
        self.methods = list(dict.fromkeys(r.method for r in records))
        self.protocols = list(dict.fromkeys(r.protocol for r in records))
        groups: dict[tuple[str, ...], list[float]] = {}
        for r in records:
            key = (r.dataset, r.method, r.protocol, r.shift, r.metric)
            groups.setdefault(key, []).append(r.value)
        self._means = {key: float(np.mean(values)) for key, values in groups.items()}

    def get(
        self, dataset: str, method: str, protocol: str, shift: str = "all", metric: str = "ae"
    ) -> float:
        return self._means.get((dataset, method, protocol, shift, metric), math.nan)

    def reference(self, dataset: str, shift: str) -> float:
        cell = self._reference.cell(dataset, shift, REFERENCE)
        return math.nan if cell is None else cell.value

    def ratio(self, dataset: str, method: str, shift: str) -> float:
        """The AE under ML-APP divided by that of the reference."""
        return self.get(dataset, method, _STEERED, shift) / self.reference(dataset, shift)

    def complete(self, protocol: str) -> list[str]:
        """Datasets on which every method was measured."""
        return [
            d
            for d in self.datasets
            if all(not math.isnan(self.get(d, m, protocol)) for m in self.methods)
        ]


def leaderboard(
    records: Sequence[Record],
    reference: ResultTable,
    *,
    command: str = "prevalens bench",
    source: str = "records",
) -> str:
    """Tables that compare methods, as Markdown.

    Parameters
    ----------
    records : list of Record
    reference : ResultTable
        The paper's table of the four groups with PCC, whose MLC+MLA ratios are taken to.
    command, source : str
        How and from what the page is made, for its first line.
    """
    figures = _Figures(records, reference)
    parts = [_INTRODUCTION.format(command=command, source=source)]
    if _STEERED in figures.protocols:
        parts += [_against_print(figures), _by_dataset(figures)]
    parts += [_by_protocol(figures, metric) for metric in ("ae", "rae")]
    if _UNMOVED in figures.protocols:
        parts.append(_without_shift(figures))
    parts.append(_coverage_of_cells(figures, records))
    return "\n".join(parts)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _bold_least(values: Sequence[float], digits: int) -> list[str]:
    known = [value for value in values if not math.isnan(value)]
    least = min(known) if known else math.nan
    return [
        f"**{number(value, digits)}**" if value == least else number(value, digits)
        for value in values
    ]


def _columns(rows: Sequence[Sequence[float]], digits: int) -> list[list[str]]:
    """Numbers as text, the least of each column bold."""
    columns = [_bold_least(column, digits) for column in zip(*rows, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]


def _against_print(figures: _Figures) -> str:
    datasets = [
        d for d in figures.complete(_STEERED) if not math.isnan(figures.reference(d, "low"))
    ]
    head = ["method", *(f"AE ratio, {shift} shift" for shift in SHIFT_NAMES)]
    rows = [
        [
            _geometric([figures.ratio(dataset, method, shift) for dataset in datasets])
            for shift in SHIFT_NAMES
        ]
        for method in figures.methods
    ]
    body = zip(figures.methods, _columns(rows, 2), strict=True)
    names = ", ".join(map(dataset_title, datasets)) or "none"
    return (
        "## ML-APP, against the printed MLC+MLA with PCC\n\nThe ratio of the AE to the value that "
        "the paper prints for its best group, per dataset and regime; geometric mean over "
        f"{len(datasets)} datasets ({names}). Below 1 is better than the paper.\n\n"
        + _table(head, ([f"`{method}`", *cells] for method, cells in body))
    )


def _geometric(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values)))) if values else math.nan


def _by_dataset(figures: _Figures) -> str:
    shown = [m for m in ("auto", "lr+mixture") if m in figures.methods]
    head = ["dataset", "printed low / mid / high"]
    head += [f"`{method}` low / mid / high (ratio)" for method in shown]
    rows = []
    for dataset in figures.datasets:
        reference = [figures.reference(dataset, shift) for shift in SHIFT_NAMES]
        row = [dataset_title(dataset), " / ".join(number(value) for value in reference)]
        for method in shown:
            values = [figures.get(dataset, method, _STEERED, shift) for shift in SHIFT_NAMES]
            ratios = [v / r for v, r in zip(values, reference, strict=True)]
            text = " / ".join(number(value) for value in values)
            row.append(f"{text} ({' / '.join(number(ratio, 2) for ratio in ratios)})")
        rows.append(row)
    rows.append(["geometric mean of the ratios", "", *(_all_ratios(figures, m) for m in shown)])
    return "Dataset by dataset:\n\n" + _table(head, rows)


def _all_ratios(figures: _Figures, method: str) -> str:
    """Over every dataset the method was measured on, whatever the others were."""
    means = []
    for shift in SHIFT_NAMES:
        ratios = [figures.ratio(dataset, method, shift) for dataset in figures.datasets]
        means.append(_geometric([ratio for ratio in ratios if not math.isnan(ratio)]))
    measured = sum(not math.isnan(figures.ratio(d, method, "low")) for d in figures.datasets)
    return f"{' / '.join(f'**{number(mean, 2)}**' for mean in means)} ({measured} datasets)"


def _by_protocol(figures: _Figures, metric: str) -> str:
    digits = 4 if metric == "ae" else 3
    rows = [
        [
            _mean([figures.get(d, method, p, metric=metric) for d in figures.complete(p)])
            for p in figures.protocols
        ]
        for method in figures.methods
    ]
    body = zip(figures.methods, _columns(rows, digits), strict=True)
    counts = ", ".join(f"{p}: {len(figures.complete(p))}" for p in figures.protocols)
    return (
        f"## By kind of shift, {metric.upper()}\n\nMean over the datasets on which all methods "
        f"were measured ({counts}), all samples.\n\n"
        + _table(
            ["method", *figures.protocols], ([f"`{method}`", *cells] for method, cells in body)
        )
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _without_shift(figures: _Figures) -> str:
    ours = [m for m in ("lr+mixture", "auto") if m in figures.methods]
    rows = [
        [dataset_title(d), number(figures.get(d, _COUNTING, _UNMOVED))]
        + [
            f"{number(figures.get(d, m, _UNMOVED))} "
            f"({_signed(figures.get(d, m, _UNMOVED) / figures.get(d, _COUNTING, _UNMOVED) - 1)})"
            for m in ours
        ]
        for d in figures.datasets
        if not math.isnan(figures.get(d, _COUNTING, _UNMOVED))
    ]
    return (
        "## Without shift\n\nAE in uniform samples, beside the plain mean posterior of one "
        "logistic regression per label; in brackets the difference to it.\n\n"
        + _table(["dataset", f"`{_COUNTING}`", *(f"`{m}`" for m in ours)], rows)
    )


def _signed(share: float) -> str:
    return MISSING if math.isnan(share) else f"{100 * share:+.0f} %"


def _coverage_of_cells(figures: _Figures, records: Sequence[Record]) -> str:
    wanted = len(figures.datasets) * len(figures.methods) * len(figures.protocols)
    found = {(r.dataset, r.method, r.protocol) for r in records}
    versions = ", ".join(sorted({r.version for r in records}))
    absent = sorted(
        {f"{d} under {p}" for d in figures.datasets for p in figures.protocols}
        - {f"{d} under {p}" for d, _, p in found}
    )
    missing = f" Not run: {', '.join(absent)}." if absent else ""
    return (
        f"{len(found)} of {wanted} combinations of dataset, method and protocol are in the records "
        f"(version {versions}).{missing}\n"
    )
