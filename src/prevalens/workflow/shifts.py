"""The kinds of shift that evaluations draw samples under, by the names users give."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prevalens.errors import InputError
from prevalens.protocols import (
    MLAPP,
    CovariateTilt,
    LabelsetWeights,
    LabelTilt,
    Natural,
    Protocol,
)
from prevalens.validation import check_int

__all__ = ["FEWEST_ITEMS", "SHIFTS", "protocols_of", "sample_size"]

#: From fewer labelled items than this no samples worth the name can be drawn.
FEWEST_ITEMS = 30
_USUAL_SIZE = 100

#: What a name stands for, given the items per sample and the number of samples.
SHIFTS: dict[str, Callable[[int, int], Protocol]] = {
    "ml-app": lambda size, n: MLAPP(size, grid=21, more_than=n - 1, max_samples=n),
    "uniform": lambda size, n: Natural(size, n),
    "tilt": lambda size, n: LabelTilt(size, n),
    "labelset": lambda size, n: LabelsetWeights(size, n),
    "covariate": lambda size, n: CovariateTilt(None, size, n_samples=n),
}


def protocols_of(names: str | Sequence[str], *, size: int, n_samples: int) -> dict[str, Protocol]:
    """The protocols that names stand for, in their order.

    Parameters
    ----------
    names : str or sequence of str
        Such as ``"ml-app,uniform,tilt"``.
    size : int
        Items per sample.
    n_samples : int
        Samples of each.
    """
    given = names.split(",") if isinstance(names, str) else names
    chosen = list(dict.fromkeys(name.strip() for name in given if name.strip()))
    for name in chosen:
        if name not in SHIFTS:
            raise InputError(f"There is no protocol {name!r}; there are {', '.join(SHIFTS)}.")
    if not chosen:
        raise InputError(f"Name at least one protocol of {', '.join(SHIFTS)}.")
    check_int(n_samples, "The number of samples", minimum=1)
    return {name: SHIFTS[name](size, n_samples) for name in chosen}


def sample_size(n_items: int, wanted: int | None) -> int:
    """Items per sample: what is asked for, or 100, or a third of few items."""
    if n_items < FEWEST_ITEMS:
        raise InputError(
            f"{n_items} labelled items are too few to draw samples from; it takes at least "
            f"{FEWEST_ITEMS}, and some hundred for figures to rely on."
        )
    if wanted is None:
        return min(_USUAL_SIZE, n_items // 3)
    size = check_int(wanted, "The size of samples", minimum=2)
    if size > n_items:
        raise InputError(f"Samples of {size} items cannot be drawn from {n_items} labelled items.")
    return size
