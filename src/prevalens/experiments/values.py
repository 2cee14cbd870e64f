"""Values in a plan: numbers as they are, texts in the grammar of expressions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from prevalens.catalogue import parse_value
from prevalens.expression import Call, Method, parse_method
from prevalens.validation import InputError

__all__ = ["canonical", "checksum", "method_tree", "names_in", "read_value", "value_tree"]


def read_value(value: Any) -> Any:
    """What a value of a plan stands for; a part's name gives the part itself.

    Examples
    --------
    >>> read_value("None"), read_value("balanced"), read_value("0.1"), read_value(10)
    (None, 'balanced', 0.1, 10)
    """
    if isinstance(value, (list, tuple)):
        return [read_value(one) for one in value]
    value_tree(value)  # refuses what is not one value
    return parse_value(value) if isinstance(value, str) else value


def value_tree(value: Any) -> Any:
    """What a value says, however it is written.

    Numbers keep their kind: 1 and 1.0 mean different things to some estimators.

    Examples
    --------
    >>> value_tree("10"), value_tree(10), value_tree(" 10.0 ")
    (10, 10, 10.0)
    """
    if isinstance(value, (list, tuple)):
        return [value_tree(one) for one in value]
    if isinstance(value, (bool, int, float)):
        return value
    if not isinstance(value, str):
        raise InputError(f"A value is a number, a text or a list; got {value!r}.")
    found = parse_method(f"value({value})").aggregator
    if len(found.args) != 1 or found.kwargs:
        raise InputError(f"{value!r} is not one value.")
    return _plain(found.args[0])


def method_tree(expression: str) -> Any:
    """What an expression says, whatever its blanks and the order of its named arguments."""
    return _plain(parse_method(expression))


def _plain(node: Any) -> Any:
    """A node of an expression without its place in the text."""
    if isinstance(node, Method):
        parts = {"classifier": node.classifier, "scheme": node.scheme}
        return {"aggregator": _plain(node.aggregator)} | {
            name: _plain(part) for name, part in parts.items() if part is not None
        }
    if isinstance(node, Call):
        kwargs = {name: _plain(one) for name, one in node.kwargs.items()}
        return {"name": node.name, "args": [_plain(one) for one in node.args], "kwargs": kwargs}
    return [_plain(one) for one in node] if isinstance(node, list) else node


def names_in(content: Any) -> set[str]:
    """The names of all parts in what `method_tree` and `value_tree` gave, however deep.

    Examples
    --------
    >>> sorted(names_in(method_tree("stack(lr)+rq(pcc,svr)")))
    ['lr', 'pcc', 'rq', 'stack', 'svr']
    """
    if isinstance(content, Mapping):
        own = {content["name"]} if {"name", "args", "kwargs"} <= set(content) else set()
        return own.union(*map(names_in, content.values()))
    if isinstance(content, (list, tuple)):
        return set().union(*map(names_in, content))
    return set()


def canonical(content: Mapping[str, Any]) -> str:
    """One text for equal contents, whatever the order of their keys."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def checksum(content: Mapping[str, Any]) -> str:
    """SHA-256 of a content, whatever the order of its keys."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()
