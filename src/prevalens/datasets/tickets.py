"""Phrases of which support tickets are made, by label: what customers say, and how they begin."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from prevalens.collection import Collection
from prevalens.datasets.dataset import Dataset, Times
from prevalens.errors import InputError
from prevalens.types import Floats, LabelMatrix
from prevalens.validation import check_int

__all__ = [
    "CLOSINGS",
    "FILLERS",
    "GREETINGS",
    "PASSING",
    "PHRASES",
    "SEPARATOR",
    "SHARED",
    "TICKET_LABELS",
    "VAGUE",
    "month_names",
    "tickets",
    "write_tickets",
]

#: Sentences of a ticket that has the label; a word in braces stands for one of `FILLERS`.
PHRASES: Mapping[str, tuple[str, ...]] = {
    "billing": (
        "My invoice for {month} shows a charge of {amount} that I cannot explain.",
        "You charged my card twice for order {number}.",
        "The receipt lists a fee nobody told me about.",
        "Why does the statement say {amount} when the plan costs less?",
        "The payment went through but the account still says overdue.",
        "I need a corrected invoice with our tax number.",
        "Your billing page shows the wrong balance.",
        "The discount code was not applied to the bill.",
    ),
    "delivery": (
        "The {product} has not arrived and tracking stopped {day}.",
        "The courier left the parcel at the wrong address.",
        "My shipment has been in the warehouse for {count} days.",
        "The box was open and the {product} was missing.",
        "The driver never rang and the parcel went back.",
        "Tracking says delivered, but nothing is here.",
        "Order {number} was promised for {day} and is still not here.",
        "The {product} came with a broken corner, the packaging was torn.",
    ),
    "refund": (
        "I want my money back for order {number}.",
        "I returned the {product} {count} weeks ago and still wait for the refund.",
        "When will the {amount} be credited to my card?",
        "Please reimburse the full amount.",
        "You promised a refund {day} and nothing has happened.",
        "I am sending the {product} back, how do I get my money?",
        "The return was accepted but only half of it was refunded.",
    ),
    "login": (
        "I cannot sign in, the password is not accepted.",
        "The reset link in the email has expired again.",
        "My account is locked after three tries.",
        "The code for the second factor never arrives.",
        "It logs me out every {count} minutes.",
        "I changed my phone and lost access to the account.",
        "The login page says my username does not exist.",
    ),
    "bug": (
        "The app crashes when I open the {screen}.",
        "Pressing save in the {screen} shows an error message.",
        "After the update the {screen} stays empty.",
        "The export writes a broken file.",
        "The search finds nothing although the {product} is there.",
        "It freezes on my {device} and I have to restart it.",
        "Dates in the {screen} are off by one day, this looks like a bug.",
        "I get an unexpected error {number} in the {screen}.",
    ),
    "slow": (
        "The {screen} takes {count} minutes to load.",
        "Everything is terribly slow since {day}.",
        "The page hangs with a spinner and then times out.",
        "On my {device} scrolling lags badly.",
        "Loading the {screen} takes forever in the morning.",
        "The server answers with a timeout most of the day.",
    ),
    "cancel": (
        "Please cancel my subscription at the end of {month}.",
        "I want to close the account for good.",
        "How do I end the contract?",
        "We will not renew the plan.",
        "Stop the subscription, we move to another supplier.",
        "I cancelled {day} and it is still active.",
    ),
    "wish": (
        "It would be great to export the {screen} as a spreadsheet.",
        "Could you add a dark mode for the {device}?",
        "Please offer a way to sort the {screen} by date.",
        "I miss an option to share the {screen} with colleagues.",
        "A suggestion: let us choose the day of the delivery.",
        "Is there a plan to support the {device}?",
    ),
    "praise": (
        "Your colleague was friendly and solved it in {count} minutes.",
        "I love the new {screen}, well done.",
        "Thanks for the quick help {day}.",
        "Excellent service, I will recommend you.",
        "The {product} is wonderful, exactly what I wanted.",
        "Great work, everything runs perfectly now.",
    ),
}

#: Sentences that belong to either of two labels, and do not tell which.
SHARED: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("billing", "refund"): (
        "The {amount} on my card is not right, please look into it.",
        "Order {number} was paid, but the amount is wrong.",
    ),
    ("delivery", "refund"): (
        "Order {number} never came, what happens now?",
        "The {product} is damaged, what can you do?",
    ),
    ("bug", "slow"): (
        "The {screen} does not open on my {device}.",
        "The app stops responding in the {screen}.",
    ),
    ("login", "bug"): ("The app does not let me in since the update.",),
    ("cancel", "billing"): ("I do not want to be charged for {month}.",),
    ("wish", "bug"): ("The {screen} cannot be sorted on my {device}.",),
}

#: What a label's words sound like in a ticket that does not have it.
PASSING: Mapping[str, tuple[str, ...]] = {
    "billing": ("The invoice is fine, by the way.", "I have paid the bill for {month}."),
    "delivery": ("The parcel itself arrived {day}.", "The courier was on time."),
    "refund": ("I do not want a refund.", "The refund for order {number} came, that is settled."),
    "login": ("I can sign in without trouble.", "I found this after I changed my password."),
    "bug": ("The app itself runs without errors.", "The last update fixed the crash."),
    "slow": ("It is fast enough for us.", "I waited {count} minutes on the phone."),
    "cancel": ("We would like to stay with you.", "I do not want to cancel, only to ask."),
    "wish": ("I do not need new options.", "The export works, that is all we need."),
    "praise": ("I was happy until {day}.", "Usually your service is great."),
}

#: A customer who does not say what it is about.
VAGUE = (
    "It is the same problem as last week.",
    "Please see the ticket I sent {day}.",
    "As discussed on the phone, this is still open.",
    "Nothing has changed since my last message.",
)

GREETINGS = (
    "Hello,",
    "Hi there,",
    "Good morning,",
    "Dear team,",
    "Dear support,",
    "To whom it may concern,",
    "Hi, customer {number} here.",
)
CLOSINGS = (
    "Please help.",
    "Kind regards",
    "Thanks in advance.",
    "Please answer this week.",
    "I can be reached by phone.",
    "Looking forward to your answer.",
    "What should I do?",
)

#: What stands for a word in braces; numbers are drawn.
FILLERS: Mapping[str, tuple[str, ...]] = {
    "product": ("lamp", "desk", "kettle", "keyboard", "chair", "printer", "blender", "tent"),
    "screen": ("calendar", "order list", "dashboard", "report", "basket", "settings", "inbox"),
    "device": ("phone", "tablet", "laptop", "old phone", "work computer"),
    "day": ("yesterday", "on Monday", "last week", "on Friday", "this morning", "on Tuesday"),
    "month": ("January", "March", "April", "June", "August", "October", "this month"),
    "count": ("two", "three", "five", "ten", "twenty"),
}


TICKET_LABELS: tuple[str, ...] = tuple(PHRASES)

#: Log-odds of each label in a ticket without any other.
_BASE = dict(
    zip(TICKET_LABELS, (-1.1, -1.0, -3.0, -1.9, -1.5, -2.4, -3.4, -2.3, -2.2), strict=True)
)
#: What one label adds to the log-odds of another that stands behind it.
_TOGETHER: Mapping[tuple[str, str], float] = {
    ("billing", "refund"): 1.6,
    ("delivery", "refund"): 1.9,
    ("billing", "cancel"): 1.2,
    ("refund", "cancel"): 1.3,
    ("bug", "slow"): 1.4,
    ("login", "bug"): 0.7,
    ("bug", "praise"): -1.2,
    ("delivery", "praise"): -1.0,
    ("billing", "delivery"): -1.0,
}
#: Where each label's log-odds have moved to by the last month, on a straight line.
_TREND = {"delivery": 1.5, "billing": -1.2, "wish": 1.2, "slow": 0.8, "login": -0.6}
#: Events: label, share of the period that has passed, height.
_EVENTS = (("login", 0.45, 2.4), ("bug", 0.6, 1.4), ("praise", 0.9, 1.4), ("cancel", 0.75, 1.6))
_WIDTH = 0.11
#: How often a label's sentence is shared or vague, and words of another stand in passing.
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
        Texts; `train_times` and `test_times` tell when each ticket came.

    Notes
    -----
    O(n_train + 30 x n_per_month x months). The world outside is not like that: words change too.

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
    train = _collection(_labelsets(of_train, n_train), of_train)
    test = _collection(
        np.concatenate([_month(of_test, n_per_month, tilt) for tilt in _tilts(months)]), of_test
    )
    return Dataset(
        name="tickets",
        train=train,
        test=test,
        description="Generated support tickets whose label mix drifts month by month.",
        source="prevalens.datasets.tickets",
        sha=_sha(train, test),
        train_times=_times(np.datetime64("2025-01", "M"), 12, n_train),
        test_times=np.concatenate(
            [_times(_FIRST + month, 1, n_per_month) for month in range(months)]
        ),
    )


def month_names(times: Times) -> list[str]:
    """The month of each time, such as ``2026-01``."""
    return np.datetime_as_string(times, unit="M").tolist()


def _tilts(months: int) -> Floats:
    """How far each label's log-odds have moved in each month, shape (months, n_labels)."""
    passed = (np.arange(months) + 0.5) / months
    tilts = np.zeros((months, len(TICKET_LABELS)))
    for label, last in _TREND.items():
        tilts[:, TICKET_LABELS.index(label)] += last * passed
    for label, at, height in _EVENTS:
        bump = height * np.exp(-0.5 * ((passed - at) / _WIDTH) ** 2)
        tilts[:, TICKET_LABELS.index(label)] += bump
    return tilts


def _labelsets(rng: np.random.Generator, n: int) -> LabelMatrix:
    """Labels one after the other, each with odds that depend on those before it."""
    Y = np.zeros((n, len(TICKET_LABELS)), dtype=np.int8)
    for column, label in enumerate(TICKET_LABELS):
        odds = np.full(n, _BASE[label])
        for (first, second), weight in _TOGETHER.items():
            if second == label:
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


def _collection(Y: LabelMatrix, rng: np.random.Generator) -> Collection:
    writer = _Writer(rng)
    texts = [writer.ticket([TICKET_LABELS[j] for j in np.flatnonzero(row)]) for row in Y]
    return Collection(texts, Y, TICKET_LABELS)


class _Writer:
    """Writes tickets, given their labels."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def ticket(self, labels: Sequence[str]) -> str:
        sentences = [self._sentence(label) for label in labels]
        if not labels:
            sentences.append(self._one(VAGUE))
        others = [label for label in TICKET_LABELS if label not in labels]
        sentences += [self._one(PASSING[one]) for one in others if self._chance(_IN_PASSING)]
        self._rng.shuffle(sentences)
        opening = [self._one(GREETINGS)] if self._chance(0.7) else []
        closing = [self._one(CLOSINGS)] if self._chance(0.6) else []
        return " ".join(self._filled(sentence) for sentence in [*opening, *sentences, *closing])

    def _sentence(self, label: str) -> str:
        if self._chance(_UNSAID):
            return self._one(VAGUE)
        shared = [own for pair, own in SHARED.items() if label in pair]
        if shared and self._chance(_AMBIGUOUS):
            return self._one([sentence for own in shared for sentence in own])
        return self._one(PHRASES[label])

    def _filled(self, sentence: str) -> str:
        values = {name: self._one(words) for name, words in FILLERS.items()}
        number, amount = self._rng.integers(1000, 9999), self._rng.integers(5, 300)
        return sentence.format(**values, number=number, amount=f"{amount} euros")

    def _chance(self, share: float) -> bool:
        return bool(self._rng.random() < share)

    def _one(self, choices: Sequence[str]) -> str:
        return choices[int(self._rng.integers(len(choices)))]


def _sha(*collections: Collection) -> str:
    total = hashlib.sha256()
    for one in collections:
        total.update("\0".join(one.X).encode())
        total.update(one.Y.tobytes())
    return total.hexdigest()


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
