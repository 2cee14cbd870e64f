"""tickets(): generated support tickets in plain English, whose label mix drifts month by month.

Labels are drawn first, sentences second, and the sentences of a label are the same in every month:
the drift is a prior probability shift and nothing else. Sentences that fit two labels, vague
ones and words in passing make the labels learnable but far from certain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from prevalens.collection import Collection
from prevalens.datasets.dataset import Dataset, Times
from prevalens.datasets.ticket_phrases import (
    CLOSINGS,
    FILLERS,
    GREETINGS,
    PASSING,
    PHRASES,
    SHARED,
    VAGUE,
)
from prevalens.validation import check_int

__all__ = ["TICKET_LABELS", "month_names", "tickets"]

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
    n_train: int = 1200, n_per_month: int = 300, *, months: int = 8, seed: int = 0
) -> Dataset:
    """Generate labelled support tickets of 2025, and tickets of the months of 2026 on.

    Parameters
    ----------
    n_train : int
        Tickets of 2025, in order of time; their label mix does not move.
    n_per_month : int
    months : int
    seed : int
        The same seed gives the same tickets.

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
    streams = np.random.SeedSequence(check_int(seed, "seed", minimum=0)).spawn(2)
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


def _tilts(months: int) -> npt.NDArray[np.float64]:
    """How far each label's log-odds have moved in each month, shape (months, n_labels)."""
    passed = (np.arange(months) + 0.5) / months
    tilts = np.zeros((months, len(TICKET_LABELS)))
    for label, last in _TREND.items():
        tilts[:, TICKET_LABELS.index(label)] += last * passed
    for label, at, height in _EVENTS:
        bump = height * np.exp(-0.5 * ((passed - at) / _WIDTH) ** 2)
        tilts[:, TICKET_LABELS.index(label)] += bump
    return tilts


def _labelsets(rng: np.random.Generator, n: int) -> npt.NDArray[np.int8]:
    """Labels one after the other, each with odds that depend on those before it."""
    Y = np.zeros((n, len(TICKET_LABELS)), dtype=np.int8)
    for column, label in enumerate(TICKET_LABELS):
        odds = np.full(n, _BASE[label])
        for (first, second), weight in _TOGETHER.items():
            if second == label:
                odds += weight * Y[:, TICKET_LABELS.index(first)]
        Y[:, column] = rng.random(n) < 1 / (1 + np.exp(-odds))
    return Y


def _month(rng: np.random.Generator, n: int, tilt: npt.NDArray[np.float64]) -> npt.NDArray[np.int8]:
    """Labelsets with weights exp(tilt . labels)."""
    candidates = _labelsets(rng, _CANDIDATES * n)
    weights = np.exp(candidates @ tilt)
    return candidates[rng.choice(len(candidates), size=n, p=weights / weights.sum())]


def _times(first: np.datetime64, months: int, n: int) -> Times:
    """Times in even steps over some months."""
    start = first.astype("datetime64[s]")
    seconds = ((first + months).astype("datetime64[s]") - start).astype(np.int64)
    return start + (seconds * (np.arange(n) + 0.5) / n).astype("timedelta64[s]")


def _collection(Y: npt.NDArray[np.int8], rng: np.random.Generator) -> Collection:
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
