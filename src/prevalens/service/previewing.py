"""What the columns of a file seem to hold, so that people need not say it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from itertools import chain
from typing import Any

from prevalens.inputs import Table

__all__ = ["kind_of", "preview", "separator_of"]

_LOOKED_AT = 500
_SHOWN = 6
_CELL = 300
_SEPARATORS = (";", "|", ",")
_DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y-%m")


def preview(table: Table) -> dict[str, Any]:
    """Columns with their kinds, and the first rows."""
    chunk = next(table.chunks(chunk_rows=_LOOKED_AT), None)
    columns, cells = [], []
    for name in table.columns:
        values = [] if chunk is None else list(chunk[name])
        columns.append(_column(name, values))
        cells.append([_plain(value) for value in values[:_SHOWN]])
    rows = [list(row) for row in zip(*cells, strict=True)]
    return {
        "columns": columns,
        "rows": rows,
        "complete": chunk is None or len(chunk) < _LOOKED_AT,
    }


def _column(name: str, values: Sequence[Any]) -> dict[str, Any]:
    kind = kind_of(values)
    separator = separator_of(_filled(values)) if kind == "tags" else None
    return {"name": name, "kind": kind, "separator": separator}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)[:_CELL]


def _filled(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None and str(value).strip()]


def kind_of(values: Sequence[Any]) -> str:
    """What some values of a column are.

    Examples
    --------
    >>> kind_of(["0", "1", "1"]), kind_of(["1.5", ""]), kind_of(["2026-01-02"])
    ('binary', 'number', 'time')
    >>> kind_of(["a;b", "b", "a;b;c"]), kind_of(["the printer is on fire again"])
    ('tags', 'text')
    """
    filled = _filled(values)
    if not filled:
        return "empty"
    if all(
        str(value).strip().lower() in {"0", "1", "true", "false", "0.0", "1.0"} for value in filled
    ):
        return "binary"
    if all(_is_number(value) for value in filled):
        return "number"
    if all(_is_time(value) for value in filled):
        return "time"
    if separator_of(filled) is not None:
        return "tags"
    words = sum(len(str(value).split()) for value in filled)
    return "text" if words >= 3.5 * len(filled) else "category"


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _is_time(value: Any) -> bool:
    if isinstance(value, (datetime, date)):
        return True
    text = str(value).strip()
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return any(_fits(text, form) for form in _DATES)
    return True


def _fits(text: str, form: str) -> bool:
    try:
        datetime.strptime(text, form)
    except ValueError:
        return False
    return True


def separator_of(filled: Sequence[Any]) -> str | None:
    """What stands between tags; None if the values are no lists of tags.

    Tags are short and come again and again; sentences with commas are not and do not.
    """
    texts = [str(value) for value in filled]
    for mark in _SEPARATORS:
        if not any(mark in text for text in texts):
            continue
        tags = [tag.strip() for tag in chain.from_iterable(text.split(mark) for text in texts)]
        few_words = sum(len(tag.split()) for tag in tags) <= 2 * len(tags)
        if few_words and len(set(tags)) <= max(0.6 * len(tags), 3) and max(map(len, tags)) <= 60:
            return mark
    return None
