"""Generated support tickets whose label mix drifts month by month."""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from prevalens.collection import Collection
from prevalens.datasets.dataset import Dataset, content_sha
from prevalens.errors import InputError
from prevalens.files import make_folder, write_whole
from prevalens.types import Floats, LabelMatrix, Times
from prevalens.validation import check_int

#: Sentences of tickets and how often labels occur; see the comments there.
_SENTENCES: Mapping[str, Any] = tomllib.loads(
    resources.files("prevalens.datasets").joinpath("tickets.toml").read_text("utf-8")
)
#: Separator of the tags of a ticket.
SEPARATOR = ";"
TICKET_LABELS: tuple[str, ...] = tuple(_SENTENCES["phrases"])

_WIDTH = 0.11
#: How often the sentence of a label is shared with another label, how often it is vague, and how
#: often words of another label occur in passing.
_AMBIGUOUS, _UNSAID, _IN_PASSING = 0.4, 0.15, 0.1
_CANDIDATES = 30
_FIRST = np.datetime64("2026-01", "M")


def tickets(
    n_train: int = 1200, n_per_month: int = 300, *, months: int = 8, random_state: int = 0
) -> Dataset:
    """Generate labelled support tickets of 2025, and tickets of the months of 2026 on.

    Parameters
    ----------
    n_train : int
        Tickets of 2025, in order of time; their label mix does not move.
    n_per_month : int
    months : int
    random_state : int
        The same value gives the same tickets.

    Returns
    -------
    Dataset
        Texts with the time of each ticket.

    Notes
    -----
    O(n_train + 30 x n_per_month x months). In real tickets the words of a label change, too.

    Examples
    --------
    >>> data = tickets(n_train=5, n_per_month=2, months=2)
    >>> data.train.labels[:3]
    ('billing', 'delivery', 'refund')
    >>> month_names(data.test_times)
    ['2026-01', '2026-01', '2026-02', '2026-02']
    """
    check_int(n_train, "n_train", minimum=1)
    check_int(n_per_month, "n_per_month", minimum=1)
    check_int(months, "months", minimum=1)
    streams = np.random.SeedSequence(check_int(random_state, "random_state", minimum=0)).spawn(2)
    of_train, of_test = map(np.random.default_rng, streams)
    train_times = _times(np.datetime64("2025-01", "M"), 12, n_train)
    test_times = [_times(_FIRST + month, 1, n_per_month) for month in range(months)]
    test_Y = [_month(of_test, n_per_month, tilt) for tilt in _tilts(months)]
    train = _collection(_labelsets(of_train, n_train), of_train, train_times)
    test = _collection(np.concatenate(test_Y), of_test, np.concatenate(test_times))
    return Dataset(
        name="tickets",
        train=train,
        test=test,
        description="Generated support tickets whose label mix drifts month by month.",
        source="prevalens.datasets.tickets",
        sha=content_sha(train, test),
    )


def month_names(times: Times) -> list[str]:
    """The month of each time, such as ``2026-01``."""
    return np.datetime_as_string(times, unit="M").tolist()


def _tilts(months: int) -> Floats:
    """Change of each label's log-odds in each month, shape (months, n_labels)."""
    passed = (np.arange(months) + 0.5) / months
    tilts = np.zeros((months, len(TICKET_LABELS)))
    for label, last in _SENTENCES["trend"].items():
        tilts[:, TICKET_LABELS.index(label)] += last * passed
    for label, event in _SENTENCES["events"].items():
        bump = event["height"] * np.exp(-0.5 * ((passed - event["at"]) / _WIDTH) ** 2)
        tilts[:, TICKET_LABELS.index(label)] += bump
    return tilts


def _labelsets(rng: np.random.Generator, n: int) -> LabelMatrix:
    """Labels one after the other, each with odds that depend on those before it."""
    Y = np.zeros((n, len(TICKET_LABELS)), dtype=np.int8)
    for column, label in enumerate(TICKET_LABELS):
        odds = np.full(n, _SENTENCES["base"][label])
        for first, weight in _SENTENCES["together"].get(label, {}).items():
            odds += weight * Y[:, TICKET_LABELS.index(first)]
        Y[:, column] = rng.random(n) < 1 / (1 + np.exp(-odds))
    return Y


def _month(rng: np.random.Generator, n: int, tilt: Floats) -> LabelMatrix:
    """Labelsets with weights exp(tilt . labels)."""
    candidates = _labelsets(rng, _CANDIDATES * n)
    weights = np.exp(candidates @ tilt)
    return candidates[rng.choice(len(candidates), size=n, p=weights / weights.sum())]


def _times(first: np.datetime64, months: int, n: int) -> Times:
    """Times in even steps over some months."""
    start = first.astype("datetime64[s]")
    seconds = ((first + months).astype("datetime64[s]") - start).astype(np.int64)
    return start + (seconds * (np.arange(n) + 0.5) / n).astype("timedelta64[s]")


def _collection(Y: LabelMatrix, rng: np.random.Generator, times: Times) -> Collection:
    writer = _Writer(rng)
    texts = [writer.ticket([TICKET_LABELS[j] for j in np.flatnonzero(row)]) for row in Y]
    return Collection(texts, Y, TICKET_LABELS, times=times)


class _Writer:
    """Writes tickets, given their labels."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def ticket(self, labels: Sequence[str]) -> str:
        sentences = [self._sentence(label) for label in labels]
        if not labels:
            sentences.append(self._draw(_SENTENCES["vague"]))
        for label, mentions in _SENTENCES["passing"].items():
            if label not in labels and self._chance(_IN_PASSING):
                sentences.append(self._draw(mentions))
        self._rng.shuffle(sentences)
        opening = [self._draw(_SENTENCES["greetings"])] if self._chance(0.7) else []
        closing = [self._draw(_SENTENCES["closings"])] if self._chance(0.6) else []
        return " ".join(self._filled(sentence) for sentence in [*opening, *sentences, *closing])

    def _sentence(self, label: str) -> str:
        if self._chance(_UNSAID):
            return self._draw(_SENTENCES["vague"])
        shared = [
            sentence
            for pair, sentences in _SENTENCES["shared"].items()
            if label in pair.split()
            for sentence in sentences
        ]
        if shared and self._chance(_AMBIGUOUS):
            return self._draw(shared)
        return self._draw(_SENTENCES["phrases"][label])

    def _filled(self, sentence: str) -> str:
        values = {name: self._draw(texts) for name, texts in _SENTENCES["fillers"].items()}
        number, amount = self._rng.integers(1000, 9999), self._rng.integers(5, 300)
        return sentence.format(**values, number=number, amount=f"{amount} euros")

    def _chance(self, share: float) -> bool:
        return bool(self._rng.random() < share)

    def _draw(self, choices: Sequence[str]) -> str:
        return choices[int(self._rng.integers(len(choices)))]


def write_tickets(data: Dataset, folder: str | Path, *, held_out: float = 0.25) -> list[Path]:
    """Write tickets as CSV files.

    Parameters
    ----------
    data : Dataset
        As `tickets` gives it.
    folder : str or Path
        Created if it does not exist; files of the same names are overwritten.
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
    make_folder(folder / "months")
    cut = data.train.n_items - round(held_out * data.train.n_items)
    rows = list(_rows(data.train.X, data.train_times, "t", _tags(data)))
    named = ("id", "date", "text", "tags")
    written = [
        _write(folder / "train.csv", named, rows[:cut]),
        _write(folder / "labelled.csv", named, rows[cut:]),
    ]
    months = np.array(month_names(data.test_times))
    rows = list(_rows(data.test.X, data.test_times, "m"))
    for month in np.unique(months).tolist():
        chosen = compress(rows, months == month)
        written.append(_write(folder / "months" / f"{month}.csv", named[:3], chosen))
    truth = [
        (month, *(f"{share:.4f}" for share in data.test.Y[months == month].mean(axis=0)))
        for month in np.unique(months).tolist()
    ]
    return [*written, _write(folder / "truth.csv", ("month", *data.test.labels), truth)]


def _tags(data: Dataset) -> list[str]:
    labels = np.array(data.train.labels, dtype=object)
    return [SEPARATOR.join(labels[row == 1]) for row in data.train.Y]


def _rows(
    texts: Sequence[str], times: Times, prefix: str, *tags: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    days = np.datetime_as_string(times, unit="D").tolist()
    for number, cells in enumerate(zip(days, texts, *tags, strict=True), start=1):
        yield (f"{prefix}{number}", *cells)


def _write(path: Path, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Path:
    table = io.StringIO(newline="")
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    write_whole(path, table.getvalue().encode(), lasting=False)
    return path
