"""What single cells hold: nothing, a number, a yes or a no."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["answer_of", "is_missing", "number_of", "shown"]

#: Words that stand for a missing value.
_MISSING = {"", "na", "n/a", "nan", "null", "none", "-"}
_ANSWERS = {"1": 1, "1.0": 1, "true": 1, "yes": 1, "0": 0, "0.0": 0, "false": 0, "no": 0}


def is_missing(cell: Any) -> bool:
    """Whether a cell holds nothing: None, NaN, or a word that says so."""
    if isinstance(cell, str):
        return cell.strip().lower() in _MISSING
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def answer_of(cell: Any) -> int | None:
    """1 or 0 of a cell that says yes or no in one of the usual ways, else None.

    Examples
    --------
    >>> answer_of("Yes"), answer_of(False), answer_of(1.0), answer_of("maybe")
    (1, 0, 1, None)
    """
    return _ANSWERS.get(str(cell).strip().lower())


def number_of(cell: Any) -> float | None:
    """The number in a cell, NaN if it is missing, None if it is something else.

    Examples
    --------
    >>> number_of(" 2.5 "), number_of("yes"), number_of("inf"), number_of("north")
    (2.5, 1.0, None, None)
    """
    if is_missing(cell):
        return math.nan
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        answer = answer_of(cell)
        return None if answer is None else float(answer)
    return number if math.isfinite(number) else None


def shown(cell: Any) -> str:
    """A cell in a sentence, cut if it is long."""
    text = repr(cell)
    return text if len(text) <= 42 else f"{text[:40]}..."
