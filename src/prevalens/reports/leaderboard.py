"""The leaderboard: methods compared over datasets and kinds of shift, from records alone."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from prevalens.files import write_whole
from prevalens.metrics import SHIFT_NAMES
from prevalens.records import Record, to_rows
from prevalens.reports.grid import MISSING, dataset_title, number
from prevalens.reports.render import render_text
from prevalens.reports.table import ResultTable
from prevalens.validation import FormatError

_COLUMNS = tuple(Record.__dataclass_fields__)
_INTS = ("seed", "n_samples")
#: The column of the reference table that ratios are taken to: the paper's best group.
REFERENCE = "MLC+MLA"
_STEERED = "ml-app"
_UNMOVED = "natural"
_COUNTING = "lr+pcc"
#: The texts of a row of a table.
Row: TypeAlias = list[str]


def write_records(records: Iterable[Record], path: Path) -> None:
    """Write records as CSV, values with seven digits."""
    rows = to_rows(records)
    for row in rows:
        row["value"] = float(f"{row['value']:.7g}")
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue().encode())


def read_records(path: Path) -> list[Record]:
    """Read the records that `write_records` has written."""
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


class Means:
    """Means by dataset, method, protocol, regime and measure, over seeds.

    Parameters
    ----------
    records : list of Record
    """

    def __init__(self, records: Sequence[Record]) -> None:
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
        """The mean of a measure; NaN if it was not measured."""
        return self._means.get((dataset, method, protocol, shift, metric), math.nan)


class _Figures(Means):
    """Means, and the printed values that they are compared with."""

    def __init__(self, records: Sequence[Record], reference: ResultTable) -> None:
        super().__init__(records)
        self._reference = reference

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
    measured = {(r.dataset, r.method, r.protocol) for r in records}
    datasets, methods, protocols = figures.datasets, figures.methods, figures.protocols
    pairs = {(d, p) for d, _, p in measured}
    return render_text(
        "leaderboard.md",
        command=command,
        source=source,
        **_steered(figures),
        by_protocol=[(metric.upper(), _by_protocol(figures, metric)) for metric in ("ae", "rae")],
        protocols=protocols,
        counts=[f"{p}: {len(figures.complete(p))}" for p in protocols],
        **_unmoved(figures),
        n_measured=len(measured),
        n_wanted=len(datasets) * len(methods) * len(protocols),
        versions=sorted({r.version for r in records}),
        absent=sorted(f"{d} under {p}" for d in datasets for p in protocols if (d, p) not in pairs),
    )


def _with_methods(figures: _Figures, rows: Sequence[Sequence[float]], digits: int) -> list[Row]:
    """Numbers as text, the least of each column bold, with the method of each row first."""
    columns = []
    for column in zip(*rows, strict=True):
        least = min((value for value in column if not math.isnan(value)), default=math.nan)
        texts = [number(value, digits) for value in column]
        columns.append(
            [f"**{t}**" if v == least else t for v, t in zip(column, texts, strict=True)]
        )
    cells = zip(*columns, strict=True) if columns else [()] * len(rows)
    return [[f"`{name}`", *row] for name, row in zip(figures.methods, cells, strict=True)]


def _steered(figures: _Figures) -> dict[str, Any]:
    """Values of the template under ML-APP: ratios to the print, over all and by dataset."""
    known = [d for d in figures.complete(_STEERED) if not math.isnan(figures.reference(d, "low"))]
    ratios = [
        [_geometric(figures.ratio(d, method, shift) for d in known) for shift in SHIFT_NAMES]
        for method in figures.methods
    ]
    ours = [method for method in ("auto", "lr+mixture") if method in figures.methods]
    rows = []
    for dataset in figures.datasets:
        reference = [figures.reference(dataset, shift) for shift in SHIFT_NAMES]
        row = [dataset_title(dataset), _slashed(reference)]
        for method in ours:
            values = [figures.get(dataset, method, _STEERED, shift) for shift in SHIFT_NAMES]
            own = [v / r for v, r in zip(values, reference, strict=True)]
            row.append(f"{_slashed(values)} ({_slashed(own, 2)})")
        rows.append(row)
    rows.append(["geometric mean of the ratios", "", *(_all_ratios(figures, m) for m in ours)])
    return {
        "steered": _STEERED in figures.protocols,
        "compared": [dataset_title(name) for name in known],
        "ratios": _with_methods(figures, ratios, 2),
        "dataset_head": [
            "dataset",
            "printed low / mid / high",
            *(f"`{method}` low / mid / high (ratio)" for method in ours),
        ],
        "by_dataset": rows,
    }


def _slashed(values: Iterable[float], digits: int = 4) -> str:
    return " / ".join(number(value, digits) for value in values)


def _geometric(values: Iterable[float]) -> float:
    logs = np.log(list(values))
    return float(np.exp(np.mean(logs))) if logs.size else math.nan


def _all_ratios(figures: _Figures, method: str) -> str:
    """Mean ratios over every dataset on which the method was measured."""
    means = []
    for shift in SHIFT_NAMES:
        ratios = [figures.ratio(dataset, method, shift) for dataset in figures.datasets]
        means.append(_geometric(ratio for ratio in ratios if not math.isnan(ratio)))
    measured = sum(not math.isnan(figures.ratio(d, method, "low")) for d in figures.datasets)
    return f"{' / '.join(f'**{number(mean, 2)}**' for mean in means)} ({measured} datasets)"


def _by_protocol(figures: _Figures, metric: str) -> list[Row]:
    means = [
        [
            float(np.mean([figures.get(d, method, p, metric=metric) for d in complete]))
            if (complete := figures.complete(p))
            else math.nan
            for p in figures.protocols
        ]
        for method in figures.methods
    ]
    return _with_methods(figures, means, 4 if metric == "ae" else 3)


def _unmoved(figures: _Figures) -> dict[str, Any]:
    """Values of the template for samples without shift: errors, and those of counting."""
    ours = [method for method in ("lr+mixture", "auto") if method in figures.methods]
    rows = []
    for dataset in figures.datasets:
        counting = figures.get(dataset, _COUNTING, _UNMOVED)
        if not math.isnan(counting):
            row = [dataset_title(dataset), number(counting)]
            for method in ours:
                error = figures.get(dataset, method, _UNMOVED)
                change = MISSING if math.isnan(error) else f"{100 * (error / counting - 1):+.0f} %"
                row.append(f"{number(error)} ({change})")
            rows.append(row)
    head = ["dataset", f"`{_COUNTING}`", *(f"`{method}`" for method in ours)]
    return {"unmoved": rows, "unmoved_head": head}
