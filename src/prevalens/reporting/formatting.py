"""Figures as they stand in tables: fixed digits, no zero before the point."""

from __future__ import annotations

import math

from prevalens.datasets.registry import lookup, names

__all__ = ["MISSING", "count", "dataset_title", "digits_of", "number", "percent"]

#: What stands where there is no value.
MISSING = "–"  # noqa: RUF001

_DIGITS = {"ae": 4, "se": 4}


def digits_of(metric: str, known: int | None = None) -> int:
    """Digits after the point to write of a measure, of which no more than `known` are known."""
    usual = _DIGITS.get(metric, 3)
    return usual if known is None else min(usual, known)


def number(value: float | None, digits: int = 4) -> str:
    """A value with fixed digits, without the zero before the point.

    Examples
    --------
    >>> number(0.0418), number(1.25, 2), number(-0.5, 1), number(None)
    ('.0418', '1.25', '-.5', '–')
    """
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    text = f"{value:.{digits}f}"
    if float(text) == 0.0:
        text = text.lstrip("-")
    sign, rest = ("-", text[1:]) if text.startswith("-") else ("", text)
    return sign + (rest[1:] if rest.startswith("0.") else rest)


def count(value: int) -> str:
    """A whole number with commas between thousands."""
    return f"{value:,}"


def percent(share: float) -> str:
    """A share in percent, without digits after the point.

    Examples
    --------
    >>> percent(0.847)
    '85 %'
    """
    return MISSING if math.isnan(share) else f"{100 * share:.0f} %"


def dataset_title(name: str) -> str:
    """What a dataset is called in the paper, or its name if it is not one of the registry."""
    return lookup(name).title if name in names() else name
