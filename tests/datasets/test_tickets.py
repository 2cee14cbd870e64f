"""Generated tickets: repeatable, readable, drifting in their labels and in nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.datasets.tickets import _SENTENCES, TICKET_LABELS, month_names, tickets
from prevalens.errors import InputError


def test_the_same_seed_gives_the_same_tickets() -> None:
    first, again, other = (tickets(50, 20, months=2, random_state=seed) for seed in (1, 1, 2))
    assert list(first.train.X) == list(again.train.X)
    assert first.sha == again.sha
    assert first.sha != other.sha


def test_the_training_part_does_not_depend_on_the_months() -> None:
    few, many = tickets(60, 5, months=1), tickets(60, 30, months=5)
    assert list(few.train.X) == list(many.train.X)
    np.testing.assert_array_equal(few.train.Y, many.train.Y)


def test_no_slot_is_left_open_and_every_ticket_says_something() -> None:
    data = tickets(300, 50, months=3)
    texts = [*data.train.X, *data.test.X]
    assert not [text for text in texts if "{" in text or "}" in text]
    assert min(len(text.split()) for text in texts) >= 4


def test_the_mix_moves_far_but_not_in_the_training_year() -> None:
    data = tickets(2000, 500, months=8)
    months = np.array(month_names(data.test_times))
    last = data.test.Y[months == months[-1]].mean(axis=0)
    moved = np.abs(last - data.train.Y.mean(axis=0))
    assert moved.max() > 0.25
    halves = data.train.Y[:1000].mean(axis=0) - data.train.Y[1000:].mean(axis=0)
    assert np.abs(halves).max() < 0.06


def test_a_label_speaks_alike_in_every_month() -> None:
    """Given only the label `login`, the share of tickets with its word stays within chance."""
    data = tickets(3000, 1500, months=4)
    column = TICKET_LABELS.index("login")
    shares = []
    for part in (data.train, data.test):
        only = (part.Y[:, column] == 1) & (part.Y.sum(axis=1) == 1)
        texts = [text for text, has in zip(part.X, only, strict=True) if has]
        shares.append((np.mean(["password" in text for text in texts]), len(texts)))
    (p, n), (q, m) = shares
    pooled = (p * n + q * m) / (n + m)
    assert abs(p - q) < 4 * np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))


def test_times_run_in_order_and_name_their_months() -> None:
    data = tickets(24, 3, months=14)
    assert np.all(np.diff(data.test_times) > np.timedelta64(0, "s"))
    assert month_names(data.test_times)[-1] == "2027-02"
    assert month_names(data.train_times)[::2] == [f"2025-{month:02}" for month in range(1, 13)]


def test_every_label_has_phrases_of_all_kinds() -> None:
    assert set(_SENTENCES["passing"]) == set(TICKET_LABELS)
    assert {label for pair in _SENTENCES["shared"] for label in pair.split()} <= set(TICKET_LABELS)


@pytest.mark.parametrize("name", ["n_train", "n_per_month", "months"])
def test_no_tickets_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be at least 1"):
        tickets(**{name: 0})
