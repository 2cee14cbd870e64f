"""Expressions: the grammar for the names of methods.

``stack(lr)+rq(pcc,svr)``, ``lr(C=10,class_weight=balanced)+acc@holdout(0.4)``: the same text in
Python, on the command line, in plans, tables and file names. This file turns text into a tree and
back; the catalogue knows what the names stand for.

    method  = part [ "+" part ] [ "@" part ]
    part    = name [ "(" [ argument { "," argument } ] ")" ]
    argument = [ name "=" ] value
    value   = number | "quoted" | None | True | False | method | "[" [ value { "," value } ] "]"

An object that has no name in this grammar, such as an estimator of scikit-learn, is written as its
class in angle brackets, ``br(<GaussianNB>)+pcc``. Such a name cannot be parsed.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from prevalens.validation import InputError

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<name>[A-Za-z_][\w.:-]*)
    | (?P<quoted>"[^"]*"|'[^']*')
    | (?P<foreign><[^<>]*>)
    | (?P<mark>[()+@,=\[\]])
    )""",
    re.VERBOSE,
)
_NAME = re.compile(r"[A-Za-z_][\w.:-]*")
_CONSTANTS = {"None": None, "True": True, "False": False}


@dataclass(frozen=True)
class Call:
    """A name with arguments, and where it stands in the text."""

    name: str
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    position: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Method:
    """The parts of a method: classifier (if any), aggregator, scheme (if any)."""

    aggregator: Call
    classifier: Call | None = None
    scheme: Call | None = None


def error_at(text: str, position: int, sentence: str) -> InputError:
    """An error that points at the character."""
    return InputError(f"{sentence}\n    {text}\n    {' ' * position}^ character {position + 1}")


class _Reader:
    """A cursor over the tokens of one expression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._split(text)
        self.at = 0

    @staticmethod
    def _split(text: str) -> list[tuple[str, str, int]]:
        tokens, start, end = [], 0, len(text.rstrip())
        while start < end:
            match = _TOKEN.match(text, start)
            if match is None:
                blank = len(text[start:]) - len(text[start:].lstrip())
                bad = start + blank
                raise error_at(text, bad, f"{text[bad]!r} does not belong in a method's name.")
            kind = match.lastgroup or ""
            tokens.append((kind, match.group(kind), match.start(kind)))
            start = match.end()
        tokens.append(("end", "", end))
        return tokens

    @property
    def here(self) -> tuple[str, str, int]:
        return self.tokens[self.at]

    def take(self, mark: str) -> bool:
        kind, value, _ = self.here
        if kind == "mark" and value == mark:
            self.at += 1
            return True
        return False

    def fail(self, sentence: str) -> None:
        kind, _, position = self.here
        where = "The text ends too early. " if kind == "end" else ""
        raise error_at(self.text, position, where + sentence)

    def method(self) -> Method:
        """Read a method up to the end of the text."""
        parsed = self.method_or_part()
        if self.here[0] != "end":
            self.fail(f"Did not expect {self.here[1]!r} here.")
        return Method(aggregator=parsed) if isinstance(parsed, Call) else parsed

    def method_or_part(self) -> Method | Call:
        """Read a part, or a method if a plus or a scheme follows the part."""
        first = self.part()
        second = self.part() if self.take("+") else None
        scheme = self.part() if self.take("@") else None
        if second is not None:
            return Method(aggregator=second, classifier=first, scheme=scheme)
        return first if scheme is None else Method(aggregator=first, scheme=scheme)

    def part(self) -> Call:
        kind, name, position = self.here
        if kind == "foreign":
            self.fail(
                f"{name} stands for an object without a name in the catalogue; build the method in "
                "Python, or name the part: prevalens.register(part, code=...)."
            )
        if kind != "name":
            self.fail("Expected the name of a method's part here.")
        self.at += 1
        args: list[object] = []
        kwargs: dict[str, object] = {}
        if self.take("("):
            self.listed(")", lambda: self.argument(args, kwargs))
        return Call(name, tuple(args), kwargs, position)

    def argument(self, args: list[object], kwargs: dict[str, object]) -> None:
        kind, name, position = self.here
        if kind == "name" and self.tokens[self.at + 1][1] == "=":
            self.at += 2
            if name in kwargs:
                raise error_at(self.text, position, f"The argument {name!r} stands twice.")
            kwargs[name] = self.value()
        elif kwargs:
            self.fail("An argument without a name cannot follow one with a name.")
        else:
            args.append(self.value())

    def value(self) -> object:
        kind, token, _ = self.here
        if kind == "number":
            self.at += 1
            return float(token) if re.search(r"[.eE]", token) else int(token)
        if kind == "quoted":
            self.at += 1
            return token[1:-1]
        if self.take("["):
            values: list[object] = []
            self.listed("]", lambda: values.append(self.value()))
            return values
        if kind == "name" and token in _CONSTANTS:
            self.at += 1
            return _CONSTANTS[token]
        return self.method_or_part()

    def listed(self, end: str, read: Callable[[], None]) -> None:
        """Read entries that are divided by commas, up to the mark `end`."""
        if self.take(end):
            return
        read()
        while self.take(","):
            read()
        if not self.take(end):
            self.fail(f"Expected {end!r} here.")


def parse_method(text: str) -> Method:
    """Read a method's name into its tree.

    Examples
    --------
    >>> parse_method("lr(C=10)+acc").classifier
    Call(name='lr', args=(), kwargs={'C': 10}, position=0)
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"A method's name must be a text such as 'lr+pcc'; got {text!r}.")
    return _Reader(text).method()


def is_name(text: str) -> bool:
    """Tell whether a text can name a part."""
    return _NAME.fullmatch(text) is not None


def to_text(value: object) -> str:
    """Write a tree (or a plain value in one) as text; the inverse of parsing."""
    if isinstance(value, Method):
        head = f"{to_text(value.classifier)}+" if value.classifier else ""
        tail = f"@{to_text(value.scheme)}" if value.scheme else ""
        return f"{head}{to_text(value.aggregator)}{tail}"
    if isinstance(value, Call):
        inside = [to_text(x) for x in value.args]
        inside += [f"{name}={to_text(x)}" for name, x in value.kwargs.items()]
        return f"{value.name}({','.join(inside)})" if inside else value.name
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(to_text, value))}]"
    if isinstance(value, str):
        return value if is_name(value) and value not in _CONSTANTS else f'"{value}"'
    if isinstance(value, np.generic):
        value = value.item()
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


class HasExpression(ABC):
    """A part that builds its own expression, because its code and parameters do not suffice."""

    @property
    @abstractmethod
    def expression(self) -> Method | Call:
        """The tree that names the part."""

    @classmethod
    def __subclasshook__(cls, kind: type) -> bool:
        return any("expression" in vars(base) for base in kind.__mro__)


#: Codes of registered classes that declare none themselves; the catalogue fills it.
CODES: dict[type, str] = {}


def expression_of(part: Any) -> Any:
    """The tree that names a part: its code and the parameters that are not the defaults.

    Leading parameters that are parts themselves are written without a name, as in ``rq(pcc,svr)``.
    A part that is a whole method has its own expression (`HasExpression`). A part of another
    library, or any other object that has no name in the catalogue, is written as its class in angle
    brackets: ``<GaussianNB>``, a name that cannot be parsed.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> to_text(expression_of(GaussianNB(var_smoothing=0.1)))
    '<GaussianNB>(var_smoothing=0.1)'
    """
    # Check the class: a wrapper such as FrozenEstimator passes on attributes of what it wraps.
    if issubclass(type(part), HasExpression):
        return part.expression
    return described(part, _code_of(part))


def described(part: object, code: str) -> Call:
    """A part with its parameters, under the code given."""
    parameters = inspect.signature(type(part).__init__).parameters
    given = {name: vars(part)[name] for name in parameters if name in vars(part)}
    args: list[object] = []
    kwargs: dict[str, object] = {}
    for name, value in given.items():
        if _is_same(value, parameters[name].default):
            continue
        if kwargs or len(args) < list(given).index(name) or not _is_part(value):
            kwargs[name] = _value_of(value)
        else:
            args.append(expression_of(value))
    return Call(code, tuple(args), kwargs)


def _code_of(part: object) -> str:
    """The code that the part's own class declares; an inherited one would name another part."""
    kind = type(part)
    if kind in CODES:
        return CODES[kind]
    return str(part.code) if "code" in vars(kind) else f"<{kind.__name__}>"  # type: ignore[attr-defined]


def _is_part(value: object) -> bool:
    return isinstance(value, BaseEstimator) or "code" in vars(type(value))


def _value_of(value: object) -> object:
    """A value in a tree: arrays as lists, parts as trees, other objects as their class in <>."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_value_of(entry) for entry in value]
    if value is None or isinstance(value, (int, float, str, np.generic)):
        return value
    return expression_of(value) if _is_part(value) else Call(f"<{type(value).__name__}>")


def _is_same(value: object, default: object) -> bool:
    if value is default:
        return True
    if type(value) is not type(default) and not isinstance(value, (int, float)):
        return False
    try:
        return bool(np.all(value == default))
    except ValueError:
        return False
