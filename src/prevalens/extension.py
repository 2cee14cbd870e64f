"""Parts of one's own: methods written elsewhere, under a name, beside those of the catalogue.

    # my_methods.py
    from prevalens import register
    from prevalens.aggregators import Aggregator

    @register
    class Halves(Aggregator):
        code = "halves"
        ...

After ``import my_methods`` the part is known to `parse`; ``prevalens --with my_methods.py`` makes
it known to every command. What an experiment remembers of such a part is bound to the text of the
file it comes from: edited, it is computed anew. A model file may hold objects of classes that
are registered where it is written and read.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import secrets
import sys
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, overload

from sklearn.base import ClassifierMixin, RegressorMixin

from prevalens.aggregators import Aggregator
from prevalens.catalogue import ENTRIES, Entry
from prevalens.expression import parse_method
from prevalens.validation import InputError, check_choice

__all__ = [
    "fingerprints",
    "load_parts",
    "own_modules",
    "own_types",
    "register",
    "stamp",
    "unregister",
]

ROLES = ("classifier", "aggregator", "regressor", "clusterer", "scheme", "quantifier")

#: Roles that can be seen from what a class descends from.
_KINDS = {Aggregator: "aggregator", ClassifierMixin: "classifier", RegressorMixin: "regressor"}

_Part = TypeVar("_Part", bound=Callable[..., Any])
#: The entries that did not come with the package.
_own: dict[str, Entry] = {}


@overload
def register(part: _Part, /, *, code: str = "", role: str = "") -> _Part: ...
@overload
def register(*, code: str = "", role: str = "") -> Callable[[_Part], _Part]: ...
def register(part: Any = None, /, *, code: str = "", role: str = "") -> Any:
    """Make a part known by a short name, for expressions, plans and the command line.

    Parameters
    ----------
    part : class, or function that builds a part
        May be left out, to be used as a decorator with arguments.
    code : str
        The name; by default the attribute `code` of the class.
    role : {"classifier", "aggregator", "regressor", "clusterer", "scheme", "quantifier"}
        What it is used as. By default seen from the class: an `Aggregator`; a classifier or
        regressor of scikit-learn; a "quantifier" if it has `quantify_many`.

    Returns
    -------
    class or function
        The part itself.

    Notes
    -----
    A name of the catalogue cannot be taken; one of one's own can be given anew, so that a notebook
    cell may be run twice.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from prevalens import parse
    >>> from prevalens.classifiers import PerLabel
    >>> @register(code="bayes", role="classifier")
    ... def bayes():
    ...     return PerLabel(GaussianNB())
    >>> parse("bayes+pcc").name
    'lr(GaussianNB)+pcc'
    >>> unregister("bayes")
    """
    if part is None:
        return lambda given: register(given, code=code, role=role)
    if not callable(part):
        raise InputError(f"register takes a class or a function that builds a part; got {part!r}.")
    name = code or getattr(part, "code", "")
    _check_name(name, part)
    entry = Entry(name, _role(part, role), part)
    _own[name] = ENTRIES[name] = entry
    return part


def unregister(code: str) -> None:
    """Forget a part of one's own."""
    if code not in _own:
        raise InputError(f"There is no part of your own called {code!r}.")
    del _own[code], ENTRIES[code]


def _check_name(name: Any, part: Any) -> None:
    called = getattr(part, "__name__", repr(part))
    if not isinstance(name, str) or not name:
        raise InputError(
            f"{called} has no name to be known by; give it an attribute code, or say "
            "register(code=...)."
        )
    if not _is_name(name):
        raise InputError(
            f"{name!r} cannot name {called} in expressions; use letters, digits and dashes."
        )
    if name in ENTRIES and name not in _own:
        raise InputError(f"{name!r} is the name of a part of prevalens; choose another.")


def _is_name(text: str) -> bool:
    try:
        found = parse_method(text).aggregator
    except InputError:
        return False
    return found.name == text


def _role(part: Any, role: str) -> str:
    if role:
        return check_choice(role, "role", ROLES)
    if hasattr(part, "quantify_many"):
        return "quantifier"
    for base, kind in _KINDS.items():
        if inspect.isclass(part) and issubclass(part, base):
            return kind
    raise InputError(
        f"What {part.__name__} is used as cannot be seen from it; say register(role=...), one of "
        f"{', '.join(ROLES)}."
    )


def load_parts(name: str) -> ModuleType:
    """Import a module that registers parts, by its name or as a file.

    Parameters
    ----------
    name : str
        ``my_package.methods``, installed or in the current folder; or ``folder/my_methods.py``.
        The folder is from then on searched for modules, so that processes started from here
        find it too.
    """
    path = Path(name).resolve()
    is_file = name.endswith(".py")
    if is_file and not path.is_file():
        raise InputError(f"There is no file {name}; name a Python file that registers parts.")
    folder = str(path.parent) if is_file else str(Path.cwd())
    if folder not in sys.path:
        # In front for a file: it is that file that was asked for.
        sys.path.insert(0 if is_file else len(sys.path), folder)
    try:
        return importlib.import_module(path.stem if is_file else name)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{name} cannot be imported: {type(error).__name__}: {error}.") from error


def own_types() -> tuple[str, ...]:
    """The full names of the classes among parts of one's own."""
    made = [entry.make for entry in _own.values() if inspect.isclass(entry.make)]
    return tuple(sorted(f"{one.__module__}.{one.__qualname__}" for one in made))


def own_modules() -> tuple[str, ...]:
    """The modules that parts of one's own come from."""
    return tuple(sorted({entry.make.__module__ for entry in _own.values()}))


def fingerprints(names: Collection[str]) -> dict[str, str]:
    """By name, the stamps of those parts that are one's own.

    Examples
    --------
    >>> fingerprints(["lr", "pcc"])
    {}
    """
    chosen = sorted(set(names) & set(_own))
    return {name: stamp(_own[name].make.__module__) for name in chosen}


def stamp(module: str) -> str:
    """Checksum of the file of a module that has parts of one's own; empty for any other."""
    return _checksum(module) if module in own_modules() else ""


@cache
def _checksum(module: str) -> str:
    """Once per process: what was imported does not change when the file does."""
    path = getattr(sys.modules.get(module), "__file__", None)
    if path is None:
        # Typed in somewhere; nobody can tell whether it will be the same another time.
        return secrets.token_hex(8)
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
