"""The leaderboard: methods compared over datasets and kinds of shift, from records alone."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import gmean

from prevalens.files import write_whole
from prevalens.metrics import SHIFT_NAMES
from prevalens.records import Record, to_rows
from prevalens.reports.grid import MISSING, Grid, GridCell, dataset_title, digits_of, number
from prevalens.reports.page import Section, page
from prevalens.reports.render import render_text
from prevalens.reports.table import ResultTable
from prevalens.validation import FormatError

_COLUMNS = tuple(Record.__dataclass_fields__)
_INTS = ("seed", "n_samples")
#: The column of the reference table that ratios are taken to: the paper's best group.
REFERENCE = "MLC+MLA"
GROUPS = ("BC+BA", "MLC+BA", "BC+MLA", REFERENCE)
_STEERED = "ml-app"
_UNMOVED = "natural"
_COUNTING = "lr+pcc"
#: The method that the others are compared with.
_OWN = "auto"
#: Printed with one digit that is not zero, so that its ratios are coarse and far from all others.
_COARSE = "genbase"
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

    def __init__(self, records: Sequence[Record], reference: ResultTable | None) -> None:
        super().__init__(records)
        self._reference = reference
        self._seeds: dict[tuple[str, str], set[int]] = {}
        self.places: dict[str, set[tuple[str, str]]] = {method: set() for method in self.methods}
        for r in records:
            self.places[r.method].add((r.dataset, r.protocol))
            self._seeds.setdefault((r.dataset, r.method), set()).add(r.seed)
        needed = self.places.get(_OWN, set())
        #: The methods that were measured wherever `auto` was.
        self.everywhere = [method for method in self.methods if self.places[method] >= needed]

    def seeds(self, dataset: str, methods: Sequence[str] = ()) -> set[int]:
        """The seeds with which methods, or all of `everywhere`, were measured on a dataset."""
        chosen = methods or self.everywhere
        return set.intersection(*(self._seeds.get((dataset, m), set()) for m in chosen))

    def common(self, records: Sequence[Record]) -> _Figures:
        """The same of the seeds that all methods share, so that they face the same samples."""
        return self.only([r for r in records if r.seed in self.seeds(r.dataset)])

    def reference(self, dataset: str, shift: str) -> float:
        return math.nan if self._reference is None else _value(self._reference, dataset, shift)

    def ratio(self, dataset: str, method: str, shift: str) -> float:
        """The AE under ML-APP divided by that of the reference."""
        return self.get(dataset, method, _STEERED, shift) / self.reference(dataset, shift)

    def only(self, records: Sequence[Record]) -> _Figures:
        """The same of a part of the records."""
        return _Figures(records, self._reference)

    def complete(self, protocol: str) -> list[str]:
        """Datasets on which every method of `everywhere` was measured."""
        return [
            d
            for d in self.datasets
            if all((d, protocol) in self.places[m] for m in self.everywhere)
        ]

    def compared(self) -> list[str]:
        """Datasets with printed values and with every method of `everywhere` under ML-APP."""
        return [d for d in self.complete(_STEERED) if not math.isnan(self.reference(d, "low"))]

    def geometric(self, method: str, datasets: Iterable[str]) -> list[float]:
        """The geometric mean of the ratios over datasets, by regime."""
        known = list(datasets)
        return [_geometric(self.ratio(d, method, shift) for d in known) for shift in SHIFT_NAMES]

    def mean(self, method: str, protocol: str, datasets: Sequence[str], metric: str) -> float:
        """The mean over datasets of a method's error."""
        values = [self.get(d, method, protocol, metric=metric) for d in datasets]
        return float(np.mean(values)) if values else math.nan


def leaderboard(
    records: Sequence[Record],
    reference: ResultTable | None,
    *,
    tuned: Mapping[str, ResultTable] | None = None,
    max_train: int | None = None,
    command: str = "prevalens bench",
    source: str = "records",
) -> str:
    """Tables that compare methods, as Markdown.

    Parameters
    ----------
    records : list of Record
    reference : ResultTable or None
        The paper's table of the four groups with PCC, whose MLC+MLA ratios are taken to; None if
        the records cannot be compared with it.
    tuned : dict of ResultTable, optional
        Measured tables of the four groups with settings chosen per dataset, by title.
    max_train : int, optional
        The plan's bound on training items, for the text.
    command, source : str
        How and from what the page is made, for its first line.
    """
    everything = _Figures(records, reference)
    figures = everything.common(records)
    return render_text(
        "leaderboard.md",
        command=command,
        source=source,
        max_train=max_train,
        titles=[dataset_title(name) for name in figures.datasets],
        **_steered(figures),
        groups=GROUPS,
        tuned=_tuned(figures, tuned or {}),
        by_protocol=[(metric.upper(), _by_protocol(figures, metric)) for metric in ("ae", "rae")],
        protocols=figures.protocols,
        counts=[f"{p}: {len(figures.complete(p))}" for p in figures.protocols],
        elsewhere=_elsewhere(figures),
        seeds=[f"{dataset_title(d)} {len(figures.seeds(d))}" for d in figures.datasets],
        **_repeated(records, everything),
        **_unmoved(figures),
        **_gaps(everything),
        versions=sorted({r.version for r in records}),
    )


def leaderboard_page(records: Sequence[Record], *, command: str, source: str) -> str:
    """The same figures as one self-contained HTML page, whose tables can be searched and sorted.

    Parameters
    ----------
    records : list of Record
    command, source : str
        How and from what the page is made, for its first line.
    """
    figures = _Board(records)
    metrics = list(dict.fromkeys(r.metric for r in records))
    sections = [Section(f"{m.upper()} by kind of shift", (figures.overview(m),)) for m in metrics]
    sections += [
        Section(f"{protocol}, {metric.upper()}", (figures.by_dataset(protocol, metric),))
        for metric in metrics
        for protocol in figures.protocols
    ]
    lead = (
        f"Made by {command} from {source}. Lower is better; a dash stands where a method was not "
        "measured. Choose a head to sort by it, and once more to reverse the order."
    )
    return page("Leaderboard", sections, lead=lead, assets=["batch_report", "columns"])


class _Board(Means):
    """Means as tables, the methods with the least errors first."""

    def overview(self, metric: str) -> Grid:
        """How near each method is to the best one, over all protocols and by protocol."""
        kinds = {"all kinds": self.protocols} | {name: [name] for name in self.protocols}
        columns = {
            head: [number(self._ratio(m, chosen, metric), 2) for m in self.methods]
            for head, chosen in kinds.items()
        }
        columns["datasets"] = [str(self._n_datasets(m, metric)) for m in self.methods]
        caption = (
            f"{metric.upper()} divided by that of the best method on the same dataset, geometric "
            "mean over the datasets of each method but Genbase, where the best errors are near 0."
        )
        return self._grid(caption, columns, plain=("datasets",))

    def _n_datasets(self, method: str, metric: str) -> int:
        """Datasets with some figure of the method, without Genbase."""
        return sum(
            d != _COARSE
            and any(not math.isnan(self.get(d, method, p, metric=metric)) for p in self.protocols)
            for d in self.datasets
        )

    def by_dataset(self, protocol: str, metric: str) -> Grid:
        """The errors under one protocol, by dataset."""
        ratios = [number(self._ratio(m, [protocol], metric), 2) for m in self.methods]
        errors = {
            dataset_title(d): [
                number(self.get(d, m, protocol, metric=metric), digits_of(metric))
                for m in self.methods
            ]
            for d in self.datasets
            if not math.isnan(self._best(d, protocol, metric))
        }
        caption = f"{metric.upper()} under {protocol}, mean over all samples and seeds."
        return self._grid(caption, {"by the best": ratios, **errors})

    def _grid(
        self, caption: str, columns: Mapping[str, Sequence[str]], plain: Sequence[str] = ()
    ) -> Grid:
        """Columns of figures, sorted by the first, the least of each bold; no empty rows."""
        cells = []
        for head, texts in columns.items():
            known = [float(t) for t in texts if t != MISSING and head not in plain]
            least = min(known, default=math.nan)
            cells.append([GridCell(t, bold=t != MISSING and float(t) == least) for t in texts])
        rows = [
            (method, *row)
            for method, *row in zip(self.methods, *cells, strict=True)
            if any(cell.text != MISSING for cell in row)
        ]
        rows.sort(key=lambda row: math.inf if row[1].text == MISSING else float(row[1].text))
        return Grid.from_rows(caption, "method", list(columns), rows)

    def _best(self, dataset: str, protocol: str, metric: str) -> float:
        values = [self.get(dataset, m, protocol, metric=metric) for m in self.methods]
        return min((value for value in values if not math.isnan(value)), default=math.nan)

    def _ratio(self, method: str, protocols: Sequence[str], metric: str) -> float:
        """Geometric mean of the ratios to the best method, where this one was measured."""
        ratios = [
            self.get(d, method, p, metric=metric) / self._best(d, p, metric)
            for d in self.datasets
            for p in protocols
            if d != _COARSE and not math.isnan(self.get(d, method, p, metric=metric))
        ]
        return _geometric(ratios)


def _with_methods(
    methods: Sequence[str], rows: Sequence[Sequence[float]], digits: int
) -> list[Row]:
    """Numbers as text, the least of each column bold, with the method of each row first."""
    columns = []
    for column in zip(*rows, strict=True):
        least = min((value for value in column if not math.isnan(value)), default=math.nan)
        texts = [number(value, digits) for value in column]
        columns.append(
            [f"**{t}**" if v == least else t for v, t in zip(column, texts, strict=True)]
        )
    cells = zip(*columns, strict=True) if columns else [()] * len(rows)
    return [[f"`{name}`", *row] for name, row in zip(methods, cells, strict=True)]


def _steered(figures: _Figures) -> dict[str, Any]:
    """Values of the template under ML-APP: ratios to the print, over all and by dataset."""
    known = figures.compared()
    others = [name for name in known if name != _COARSE]
    ratios = [
        figures.geometric(method, known) + figures.geometric(method, others)
        for method in figures.everywhere
    ]
    ours = [method for method in (_OWN, "lr+mixture") if method in figures.methods]
    rows = [_dataset_row(figures, dataset, ours) for dataset in figures.datasets]
    for title, left_out in (("", ""), (" without Genbase", _COARSE)):
        means = [_all_ratios(figures, method, left_out) for method in ours]
        rows.append([f"geometric mean of the ratios{title}", "", *means])
    return {
        "compared": [dataset_title(name) for name in known],
        "ratios": _with_methods(figures.everywhere, ratios, 2),
        "dataset_head": [
            "dataset",
            "printed low / mid / high",
            *(f"`{method}` low / mid / high (ratio)" for method in ours),
        ],
        "by_dataset": rows,
    }


def _dataset_row(figures: _Figures, dataset: str, methods: Sequence[str]) -> Row:
    reference = [figures.reference(dataset, shift) for shift in SHIFT_NAMES]
    row = [dataset_title(dataset), _slashed(reference)]
    for method in methods:
        values = [figures.get(dataset, method, _STEERED, shift) for shift in SHIFT_NAMES]
        own = [v / r for v, r in zip(values, reference, strict=True)]
        row.append(f"{_slashed(values)} ({_slashed(own, 2)})")
    return row


def _slashed(values: Iterable[float], digits: int = 4) -> str:
    return " / ".join(number(value, digits) for value in values)


def _geometric(values: Iterable[float]) -> float:
    known = list(values)
    return float(gmean(known)) if known else math.nan


def _all_ratios(figures: _Figures, method: str, left_out: str) -> str:
    """Mean ratios over every dataset on which the method was measured, but for one."""
    known = [
        d
        for d in figures.datasets
        if d != left_out and not math.isnan(figures.ratio(d, method, "low"))
    ]
    means = (f"**{number(mean, 2)}**" for mean in figures.geometric(method, known))
    return f"{' / '.join(means)} ({len(known)} datasets)"


def _value(table: ResultTable, dataset: str, shift: str, column: str = REFERENCE) -> float:
    cell = table.cell(dataset, shift, column)
    return math.nan if cell is None else cell.value


def _tuned(figures: _Figures, tables: Mapping[str, ResultTable]) -> list[Row]:
    """Ratios to the print of measured tables, a row per table and a column per group."""
    rows = []
    for title, table in tables.items():
        known = [d for d in figures.compared() if d != _COARSE and table.row(d, "low") is not None]
        means = [
            [
                _geometric(_value(table, d, shift, g) / figures.reference(d, shift) for d in known)
                for shift in SHIFT_NAMES
            ]
            for g in GROUPS
        ]
        rows.append([title, *(_slashed(mean, 2) for mean in means), str(len(known))])
    return rows


def _by_protocol(figures: _Figures, metric: str) -> list[Row]:
    means = [
        [figures.mean(method, p, figures.complete(p), metric) for p in figures.protocols]
        for method in figures.everywhere
    ]
    return _with_methods(figures.everywhere, means, 4 if metric == "ae" else 3)


def _elsewhere(figures: _Figures) -> list[Row]:
    """Methods that were not measured everywhere: their AE divided by that of `auto`."""
    rows = []
    for method in (m for m in figures.methods if m not in figures.everywhere):
        places = figures.places[method] & figures.places.get(_OWN, set())
        known = [d for d in figures.datasets if d != _COARSE and any(d == at for at, _ in places)]
        ratios = [
            _geometric(
                figures.get(d, method, p) / figures.get(d, _OWN, p)
                for d in known
                if (d, p) in places
            )
            for p in figures.protocols
        ]
        names = ", ".join(map(dataset_title, known))
        rows.append([f"`{method}`", *(number(ratio, 2) for ratio in ratios), names])
    return rows


def _repeated(records: Sequence[Record], figures: _Figures) -> dict[str, Any]:
    """How far the means of the methods that have the seeds of `auto` vary between these."""
    seeds = {(d, m): figures.seeds(d, [m]) for d in figures.datasets for m in figures.methods}
    own = {d: len(seeds.get((d, _OWN), ())) for d in figures.datasets}
    most = max(own.values())
    datasets = [d for d in figures.datasets if own[d] == most]
    methods = [m for m in figures.methods if all(len(seeds[d, m]) == most for d in datasets)]
    known = [r for r in records if r.dataset in datasets and r.method in methods]
    by_seed = [
        figures.only([r for r in known if r.seed == seed])
        for seed in sorted({r.seed for r in known})
    ]
    return {
        "repeated": [dataset_title(d) for d in datasets],
        "repeated_protocols": by_seed[0].protocols if by_seed else [],
        "n_seeds": most,
        "spreads": [[f"`{m}`", *_spreads(by_seed, m, datasets)] for m in methods],
    }


def _spreads(by_seed: Sequence[_Figures], method: str, datasets: Sequence[str]) -> Row:
    """The mean ratios and errors of a method: mean, least and greatest over seeds."""
    known = [d for d in datasets if not math.isnan(by_seed[0].ratio(d, method, "low"))]
    ratios = [figures.geometric(method, known) for figures in by_seed]
    errors = [[f.mean(method, p, datasets, "ae") for p in f.protocols] for f in by_seed]
    return [
        f"{number(float(np.mean(values)), digits)} "
        f"({number(min(values), digits)} to {number(max(values), digits)})"
        for rows, digits in ((ratios, 2), (errors, 4))
        for values in zip(*rows, strict=True)
    ]


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


def _gaps(figures: _Figures) -> dict[str, Any]:
    """Values of the template on what was not run: methods by dataset, protocols by dataset."""
    places = set().union(*figures.places.values())
    gaps: dict[str, list[str]] = {}
    for method in figures.methods:
        measured = {d for d, _ in figures.places[method]}
        left = ", ".join(dataset_title(d) for d in figures.datasets if d not in measured)
        gaps.setdefault(left, []).append(f"`{method}`")
    gaps.pop("", None)
    partly = []
    for p in figures.protocols:
        names = [dataset_title(d) for d in figures.datasets if (d, p) in places]
        if len(names) < len(figures.datasets):
            partly.append(f"`{p}` was run on {', '.join(names)} only")
    return {"gaps": [f"{', '.join(m)} on {left}" for left, m in gaps.items()], "partly": partly}
