"""Counts in files, corrected by known sensitivities and specificities, without training items."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from prevalens.errors import InputError
from prevalens.files import damaged
from prevalens.tables.cells import is_missing, number_of, shown
from prevalens.tables.labels import label_columns, labels_of_columns, tag_sets
from prevalens.tables.opening import Reading, expand
from prevalens.tables.table import Chunk, Table
from prevalens.uncertainty.misclassification import AdjustedPrevalence, Rate, adjust_prevalence

#: Columns of the results.
COLUMNS = (
    *("group", "label", "positives", "n", "apparent", "prevalence", "lower", "upper", "level"),
    *("sensitivity", "specificity", "notes"),
)
#: Names that the columns of a table of counts may have, in any case.
_NAMES = {
    "label": ("label", "labels", "test", "disease"),
    "positives": ("positives", "positive", "pos", "k"),
    "n": ("n", "tested", "total", "items"),
    "group": ("group",),
    "sensitivity": ("sensitivity", "se"),
    "specificity": ("specificity", "sp"),
}
_WORD = re.compile(r"(?:(.+)=)?(\d+)/(\d+)")
_RATES = ("sensitivity", "specificity")


class Count(NamedTuple):
    """Positive tests of a label, in a group.

    Attributes
    ----------
    label, group : str
        The group is empty if there is one.
    positives, n : int
    sensitivity, specificity : Rate or None
        Those that the table of counts states.
    """

    label: str
    positives: int
    n: int
    group: str = ""
    sensitivity: Rate | None = None
    specificity: Rate | None = None

    @property
    def name(self) -> str:
        """Label and group, for people."""
        return f"{self.label} ({self.group})" if self.group else self.label


@dataclass(frozen=True)
class AdjustedCounts:
    """Counts with their corrected prevalences.

    Attributes
    ----------
    counts : sequence of Count
        With the sensitivity and specificity that were used.
    adjusted : AdjustedPrevalence
        One entry per count.
    """

    counts: Sequence[Count]
    adjusted: AdjustedPrevalence

    def remark(self, place: int) -> str:
        """What to know about an estimate that was set to 0 or 1; empty for others."""
        count = self.counts[place]
        rates = (rate.value for rate in (count.sensitivity, count.specificity) if rate is not None)
        return self.adjusted.remark(place, *rates)

    @property
    def notices(self) -> list[str]:
        """The remarks, each with the name of its count."""
        remarks = [(count.name, self.remark(i)) for i, count in enumerate(self.counts)]
        return [f"{name}: {text}" for name, text in remarks if text]

    def to_rows(self) -> list[dict[str, Any]]:
        """One row per count, with the columns `COLUMNS`."""
        found = self.adjusted
        ends = zip(found.apparent, found.point, found.lower, found.upper, strict=True)
        rows = []
        for i, (count, shares) in enumerate(zip(self.counts, ends, strict=True)):
            rates = [getattr(count, name).value for name in _RATES]
            cells = (count.group, count.label, count.positives, count.n, *map(float, shares))
            cells = (*cells, found.level, *rates, self.remark(i))
            rows.append(dict(zip(COLUMNS, cells, strict=True)))
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Rows, level and notices, for JSON."""
        return {"rows": self.to_rows(), "interval": self.adjusted.level, "notices": self.notices}


def adjust_files(
    counts: str | Path | Iterable[str | Path],
    *,
    sensitivity: Any = None,
    specificity: Any = None,
    rates: str | Path | None = None,
    labels: Sequence[str] | None = None,
    tags: str | None = None,
    sep: str = ",",
    by: str | None = None,
    interval: float = 0.95,
    reading: Reading | None = None,
) -> AdjustedCounts:
    """Correct counts for the errors of the test or labeller that made them.

    Parameters
    ----------
    counts : paths, or texts such as ``"flu=23/150"``
        A table with the columns label, positives, n and perhaps group; or tables of tested items,
        if `labels` or `tags` is named; or counts themselves.
    sensitivity, specificity : float, str or Rate, or mapping of label to these, optional
        One value for all labels, or one per label, as in `prevalens.uncertainty.adjust_prevalence`;
        the key ``""`` is for all other labels. Columns of these names in the table of counts come
        first.
    rates : path, optional
        A table with the columns label, sensitivity and specificity.
    labels : sequence of str, optional
        Columns of 0/1 to be counted, or patterns such as ``test_*``.
    tags : str, optional
        The column that names the labels of each item, to be counted.
    sep : str
        Separator of the tags.
    by : str, optional
        Column of groups.
    interval : float
        Level of the intervals.
    reading : Reading, optional
        Delimiter, encoding, sheet.
    """
    reading = reading or Reading()
    words = [counts] if isinstance(counts, (str, Path)) else list(counts)
    given = _counted_words(words)
    if not given:
        tables = [reading.open(path) for path in expand(words)]
        items = bool(labels) or tags is not None
        given = _counted_items(tables, labels, tags, sep, by) if items else _stated(tables, by)
    stated = {"sensitivity": sensitivity, "specificity": specificity}
    known = {name: _by_label(own, name) for name, own in stated.items()}
    if rates is not None:
        for name, own in _read_rates(reading.open(rates)).items():
            known[name] = {**own, **known[name]}
    found = [_with_rates(count, known) for count in given]
    _check_known(known, {count.label for count in found})
    numbers = ([getattr(count, name) for count in found] for name in ("positives", "n", *_RATES))
    return AdjustedCounts(found, adjust_prevalence(*numbers, level=interval))


def _counted_words(words: Sequence[str | Path]) -> list[Count]:
    """Counts from texts such as ``flu=23/150``; none if the first is a file."""
    found = [_WORD.fullmatch(str(word)) for word in words]
    # A path such as 2024/05 could be read as a count.
    if not found or found[0] is None or Path(words[0]).exists():
        return []
    counts = []
    for word, match in zip(words, found, strict=True):
        if match is None:
            raise InputError(f"Counts are written LABEL=POSITIVES/N, as flu=23/150; got {word!r}.")
        counts.append(Count(match[1] or "positive", int(match[2]), int(match[3])))
    return counts


def _counted_items(
    tables: Sequence[Table],
    labels: Sequence[str] | None,
    tags: str | None,
    sep: str,
    by: str | None,
) -> list[Count]:
    """Counts of the items of tables, by group in the order of their first items."""
    if tags is not None and labels:
        raise InputError("Name either columns of 0/1 (`labels=`) or a column of tags (`tags=`).")
    names = [] if tags is not None else label_columns(tables[0], labels or ())
    positives: dict[str, Counter[str]] = {}
    sizes: Counter[str] = Counter()
    for table in tables:
        wanted = [*(names or [str(tags)]), *([] if by is None else [by])]
        for chunk in table.chunks(wanted):
            groups = [""] * len(chunk) if by is None else [str(cell).strip() for cell in chunk[by]]
            sets = _label_sets(chunk, names, tags, sep)
            for group, own in zip(groups, sets, strict=True):
                sizes[group] += 1
                positives.setdefault(group, Counter()).update(own)
    if not sizes:
        raise InputError(f"{tables[0].name} has a header but no rows.")
    every = names or sorted({label for tally in positives.values() for label in tally})
    return [
        Count(label, positives[group][label], n, group)
        for group, n in sizes.items()
        for label in every
    ]


def _label_sets(chunk: Chunk, names: Sequence[str], tags: str | None, sep: str) -> list[set[str]]:
    if tags is not None:
        return tag_sets(chunk, tags, sep)
    Y = labels_of_columns(chunk, names)
    return [{names[j] for j in np.flatnonzero(row).tolist()} for row in Y]


def _stated(tables: Sequence[Table], by: str | None) -> list[Count]:
    """Counts from tables with a row per label, or per label and group."""
    counts: dict[tuple[str, str], Count] = {}
    for table in tables:
        columns = _columns_of(table)
        if by is not None:
            table.check_columns([by])
            columns["group"] = by
        missing = [name for name in ("label", "positives", "n") if name not in columns]
        if missing:
            raise InputError(
                f"{table.name} has no column {missing[0]!r}; a table of counts has the columns "
                f"label, positives and n, and this one has {table.shown()}. Columns of 0/1 are "
                "counted with `labels=`, a column of tags with `tags=`."
            )
        sheet = table.read()
        for row in range(len(sheet)):
            count = _stated_row(sheet, row, columns)
            if (count.group, count.label) in counts:
                what = f"the label {count.name} has a row already; keep one."
                raise damaged(sheet.place(row), what)
            counts[count.group, count.label] = count
    if not counts:
        raise InputError(f"{tables[0].name} has a header but no rows.")
    return list(counts.values())


def _columns_of(table: Table) -> dict[str, str]:
    """The columns of a table of counts or rates, by what they hold."""
    lower = {column.strip().lower(): column for column in table.columns}
    return {
        name: lower[fitting[0]]
        for name, names in _NAMES.items()
        if (fitting := [each for each in names if each in lower])
    }


def _stated_row(sheet: Chunk, row: int, columns: Mapping[str, str]) -> Count:
    numbers = []
    for name in ("positives", "n"):
        cell = sheet[columns[name]][row]
        value = number_of(cell)
        if value is None or not value >= 0 or value != int(value):
            raise damaged(
                sheet.place(row), f"{columns[name]!r} is {shown(cell)}; a count is a whole number."
            )
        numbers.append(int(value))
    positives, n = numbers
    if positives > n or not n:
        raise damaged(sheet.place(row), f"{positives} of {n} are positive, which cannot be.")
    group = str(sheet[columns["group"]][row]).strip() if "group" in columns else ""
    label = str(sheet[columns["label"]][row]).strip()
    return Count(label, positives, n, group, **_row_rates(sheet, row, columns))


def _row_rates(sheet: Chunk, row: int, columns: Mapping[str, str]) -> dict[str, Rate | None]:
    rates: dict[str, Rate | None] = {}
    for name in _RATES:
        cell = sheet[columns[name]][row] if name in columns else None
        what = f"{sheet.place(row)}: the {name}"
        rates[name] = None if is_missing(cell) else Rate.parse(cell, what)
    return rates


def _read_rates(table: Table) -> dict[str, dict[str, Rate]]:
    """Sensitivities and specificities by label, from a table."""
    columns = _columns_of(table)
    missing = [name for name in ("label", *_RATES) if name not in columns]
    if missing:
        raise InputError(
            f"{table.name} has no column {missing[0]!r}; a table of rates has the columns label, "
            f"sensitivity and specificity, and this one has {table.shown()}."
        )
    sheet = table.read()
    found: dict[str, dict[str, Rate]] = {name: {} for name in _RATES}
    for row in range(len(sheet)):
        label = str(sheet[columns["label"]][row]).strip()
        if any(label in rates for rates in found.values()):
            raise damaged(sheet.place(row), f"the label {label!r} has a row already; keep one.")
        for name, rate in _row_rates(sheet, row, columns).items():
            if rate is not None:
                found[name][label] = rate
    return found


def _by_label(given: Any, name: str) -> dict[str, Rate]:
    """Rates by label; that of all other labels is named by an empty text."""
    if given is None:
        return {}
    stated = given if isinstance(given, Mapping) else {"": given}
    return {
        str(label): rate if isinstance(rate, Rate) else Rate.parse(rate, f"The {name}")
        for label, rate in stated.items()
    }


def _with_rates(count: Count, known: Mapping[str, Mapping[str, Rate]]) -> Count:
    """The count with its sensitivity and specificity; refused if one is not known."""
    rates = {}
    for name in _RATES:
        own, rest = known[name].get(count.label), known[name].get("")
        rate = next((each for each in (getattr(count, name), own, rest) if each is not None), None)
        if rate is None:
            raise InputError(
                f"No {name} is given for the label {count.label!r}; give `{name}=0.9`, or a table "
                "of rates with the columns label, sensitivity and specificity (`rates=`)."
            )
        rates[name] = rate
    return count._replace(sensitivity=rates["sensitivity"], specificity=rates["specificity"])


def _check_known(known: Mapping[str, Mapping[str, Rate]], labels: set[str]) -> None:
    """Refuse rates of labels that were not counted."""
    for name, rates in known.items():
        unknown = sorted(set(rates) - labels - {""})
        if unknown:
            raise InputError(
                f"A {name} is given for {unknown[0]!r}, but the counts have the labels "
                f"{', '.join(map(repr, sorted(labels)[:10]))}."
            )
