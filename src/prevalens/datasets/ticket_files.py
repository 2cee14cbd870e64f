"""write_tickets: generated tickets as CSV files, for a first walk through the commands."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from prevalens.datasets.dataset import Dataset, Times
from prevalens.datasets.tickets import month_names
from prevalens.errors import InputError

__all__ = ["SEPARATOR", "write_tickets"]

#: What stands between the tags of a ticket.
SEPARATOR = ";"


def write_tickets(data: Dataset, folder: str | Path, *, held_out: float = 0.25) -> list[Path]:
    """Write tickets as CSV files.

    Parameters
    ----------
    data : Dataset
        As `tickets` gives it.
    folder : str or Path
        Made if it is not there; files of the same names are overwritten.
    held_out : float
        Share of the labelled tickets, the latest, that go to ``labelled.csv`` instead of
        ``train.csv``.

    Returns
    -------
    list of Path
        ``train.csv`` and ``labelled.csv`` (id, date, text, tags); ``months/YYYY-MM.csv`` (id,
        date, text); ``truth.csv`` (a row per month, a column per label).
    """
    if data.train_times is None or data.test_times is None:
        raise InputError("Only tickets that say when they came can be written month by month.")
    folder = Path(folder)
    _make(folder / "months")
    cut = data.train.n_items - round(held_out * data.train.n_items)
    rows = list(_rows(data.train.X, data.train_times, "t", tags=_tags(data)))
    named = ("id", "date", "text", "tags")
    written = [
        _write(folder / "train.csv", named, rows[:cut]),
        _write(folder / "labelled.csv", named, rows[cut:]),
    ]
    months = np.array(month_names(data.test_times))
    rows = list(_rows(data.test.X, data.test_times, "m"))
    for month in np.unique(months).tolist():
        own = [row for row, its in zip(rows, months, strict=True) if its == month]
        written.append(_write(folder / "months" / f"{month}.csv", named[:3], own))
    truth = [
        (month, *(f"{share:.4f}" for share in data.test.Y[months == month].mean(axis=0)))
        for month in np.unique(months).tolist()
    ]
    return [*written, _write(folder / "truth.csv", ("month", *data.test.labels), truth)]


def _tags(data: Dataset) -> list[str]:
    return [
        SEPARATOR.join(name for name, has in zip(data.train.labels, row, strict=True) if has)
        for row in data.train.Y
    ]


def _rows(
    texts: Sequence[str], times: Times, prefix: str, *, tags: Sequence[str] | None = None
) -> Iterable[tuple[str, ...]]:
    days = np.datetime_as_string(times, unit="D").tolist()
    for number, (day, text) in enumerate(zip(days, texts, strict=True), start=1):
        own = () if tags is None else (tags[number - 1],)
        yield (f"{prefix}{number}", day, text, *own)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {folder} cannot be made: {error.strerror}.") from error


def _write(path: Path, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Path:
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(head)
            writer.writerows(rows)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from error
    return path
