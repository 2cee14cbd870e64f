"""A small model of texts."""

from __future__ import annotations

import pytest

from prevalens.model import Model

WORDS = {
    "hardware": ("printer", "screen", "smoke", "cable"),
    "account": ("login", "password", "locked", "user"),
    "billing": ("invoice", "refund", "paid", "card"),
}


def tickets(count: int) -> tuple[list[str], list[set[str]]]:
    """Texts whose words tell their labels, all combinations in turn."""
    names = list(WORDS)
    sets = [{name for j, name in enumerate(names) if (i >> j) & 1} for i in range(count)]
    texts = [
        " ".join(["please help"] + [WORDS[name][(i // 8) % 4] for name in names if name in one])
        for i, one in enumerate(sets)
    ]
    return texts, sets


@pytest.fixture(scope="session")
def labelled() -> tuple[list[str], list[set[str]]]:
    return tickets(120)


@pytest.fixture(scope="session")
def model(labelled: tuple[list[str], list[set[str]]]) -> Model:
    return Model.fit(*labelled, method="lr+pacc")
