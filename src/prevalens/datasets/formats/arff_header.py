"""The header of an ARFF file: its relation name and its attributes, and how values are coded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from prevalens.datasets.files import malformed

__all__ = ["QUOTED", "Attribute", "is_content", "parse_header", "short", "split_cells", "unquoted"]

QUOTED = r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|[^\s{{]++)\s*(.+)", re.IGNORECASE | re.DOTALL)
_KEYWORD = re.compile(r"\s*@(relation|attribute|data)\b", re.IGNORECASE)
_CELL = re.compile(rf"\s*({QUOTED}|[^,'\"]*?)\s*(,|$)")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_WHITE = {"n": "\n", "r": "\r", "t": "\t"}
_NUMERIC = ("numeric", "real", "integer")
_YES_NO = ({"yes": 1, "no": 0}, {"true": 1, "false": 0}, {"y": 1, "n": 0}, {"t": 1, "f": 0})


@dataclass(frozen=True)
class Attribute:
    """A declared column.

    Attributes
    ----------
    name : str
    kind : {"numeric", "nominal", "string"}
    codes : dict of str to float
        The number each nominal value becomes; empty for other kinds.
    """

    name: str
    kind: Literal["numeric", "nominal", "string"]
    codes: dict[str, float] = field(default_factory=dict)

    @property
    def default(self) -> float:
        """What an entry omitted from a sparse row stands for."""
        return next(iter(self.codes.values()), 0.0)

    @property
    def in_numbers(self) -> bool:
        """Whether each value is written as the number it becomes."""
        if self.kind == "string":
            return False
        return all(_as_number(value) == code for value, code in self.codes.items())

    def number(self, value: str) -> float | None:
        """The number a value becomes, or None if it is not one of this attribute."""
        if self.kind == "string":
            return 0.0
        return self.codes.get(value) if self.kind == "nominal" else _as_number(value)


def parse_header(path: Path, lines: Sequence[str]) -> tuple[str, tuple[Attribute, ...], int]:
    """Relation name, attributes, and the number of lines up to and with @data."""
    relation = ""
    attributes: list[Attribute] = []
    for number, line in enumerate(lines, start=1):
        if not is_content(line):
            continue
        keyword = _KEYWORD.match(line)
        if keyword is None:
            what = f"expected @relation, @attribute or @data, got {short(line)}."
            raise malformed(path, number, what)
        match keyword.group(1).lower():
            case "relation":
                relation = unquoted(line[keyword.end() :].strip())
            case "attribute":
                attributes.append(_attribute(path, number, line.strip()))
            case _:
                _check_names(path, attributes)
                return relation, tuple(attributes), number
    raise malformed(path, None, "this is no ARFF file: it has no line @data.")


def is_content(line: str) -> bool:
    """Whether a line is neither blank nor a comment."""
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith("%")


def short(text: str, most: int = 40) -> str:
    """A piece of the file for an error sentence."""
    text = text.strip()
    return repr(text if len(text) <= most else f"{text[:most]}...")


def unquoted(text: str) -> str:
    """The name inside quotes, its backslash escapes resolved; other text as it is."""
    if len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]:
        return _ESCAPE.sub(lambda match: _WHITE.get(match[1], match[1]), text[1:-1])
    return text


def split_cells(row: str) -> list[str] | None:
    """Split at the commas outside quotes; None if the quotes are not in order."""
    if "'" not in row and '"' not in row:
        return [cell.strip() for cell in row.split(",")]
    cells, position = [], 0
    while match := _CELL.match(row, position):
        cells.append(unquoted(match.group(1)))
        if not match.group(2):
            return cells
        position = match.end()
    return None


def _check_names(path: Path, attributes: Sequence[Attribute]) -> None:
    if not attributes:
        raise malformed(path, None, "no @attribute is declared before @data.")
    seen: set[str] = set()
    for attribute in attributes:
        if attribute.name in seen:
            raise malformed(path, None, f"the attribute {attribute.name!r} is declared twice.")
        seen.add(attribute.name)


def _attribute(path: Path, number: int, line: str) -> Attribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise malformed(path, number, f"an attribute needs a name and a type, got {short(line)}.")
    name, kind = unquoted(match.group(1)), match.group(2).strip()
    if kind.startswith("{"):
        if not kind.endswith("}"):
            raise malformed(path, number, f"the values of attribute {name!r} lack a closing brace.")
        return Attribute(name, "nominal", _codes(_domain(path, number, name, kind[1:-1])))
    if kind.lower() in _NUMERIC:
        return Attribute(name, "numeric")
    if kind.lower() == "string":
        return Attribute(name, "string")
    raise malformed(path, number, f"attribute {name!r} has the unknown type {short(kind)}.")


def _domain(path: Path, number: int, name: str, inner: str) -> list[str]:
    values = split_cells(inner)
    if values is None or "" in values:
        raise malformed(path, number, f"the values of attribute {name!r} cannot be read.")
    if len(set(values)) < len(values):
        raise malformed(path, number, f"attribute {name!r} declares a value twice.")
    return values


def _codes(values: Sequence[str]) -> dict[str, float]:
    """The number that stands for each nominal value."""
    numbers = [number for value in values if (number := _as_number(value)) is not None]
    if len(set(numbers)) == len(values):
        return dict(zip(values, numbers, strict=True))
    for pair in _YES_NO:
        if len(values) == 2 and {value.lower() for value in values} == pair.keys():
            return {value: float(pair[value.lower()]) for value in values}
    return {value: float(i) for i, value in enumerate(values)}


def _as_number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if np.isfinite(number) else None
