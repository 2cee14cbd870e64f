"""Writing TOML: the few forms that plans need. The standard library only reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from prevalens.validation import InputError

__all__ = ["to_toml"]


def to_toml(content: Mapping[str, Any]) -> str:
    """Text that ``tomllib.loads`` turns back into `content`.

    Lists of tables get a heading each, tables within tables are written in one line.

    Examples
    --------
    >>> print(to_toml({"name": "small", "methods": [{"grid": {"C": [1, 10]}}]}))
    name = "small"
    <BLANKLINE>
    [[methods]]
    grid = { C = [1, 10] }
    <BLANKLINE>
    """
    return "\n".join(_lines(content)) + "\n"


def _lines(content: Mapping[str, Any]) -> Iterator[str]:
    """Plain values first: behind a heading they would belong to it."""
    later = {name: value for name, value in content.items() if _has_heading(value)}
    for name, value in content.items():
        if name not in later:
            yield f"{_key(name)} = {_value(value)}"
    for name, value in later.items():
        headed = f"[[{_key(name)}]]" if _is_tables(value) else f"[{_key(name)}]"
        for table in value if _is_tables(value) else [value]:
            yield ""
            yield headed
            yield from (f"{_key(one)} = {_value(inner)}" for one, inner in table.items())


def _is_tables(value: Any) -> bool:
    several = isinstance(value, (list, tuple)) and len(value) > 0
    return several and all(isinstance(one, Mapping) for one in value)


def _has_heading(value: Any) -> bool:
    return isinstance(value, Mapping) or _is_tables(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(text: str) -> str:
    # JSON's escapes are TOML's too; only the delete character needs one more.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(name)} = {_value(one)}" for name, one in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (int, float)):
        return repr(value)
    raise InputError(f"A plan holds texts, numbers, lists and tables; got {value!r}.")
