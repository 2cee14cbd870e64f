"""The API pages: a page per package, with every public name."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import prevalens

SOURCES = Path(prevalens.__file__).parent
#: Packages in the order in which a reader needs them; others follow in the alphabet.
FIRST = (
    "model",
    "classifiers",
    "aggregators",
    "protocols",
    "metrics",
    "datasets",
    "uncertainty",
    "selection",
)


def rooms() -> list[str]:
    """Dotted names of the package and of all subpackages and modules that declare public names."""
    paths = [*SOURCES.glob("*/__init__.py"), *SOURCES.glob("[a-z]*.py")]
    names = [p.parent.name if p.name == "__init__.py" else p.stem for p in filter(declares, paths)]
    order = {name: place for place, name in enumerate(FIRST)}
    names.sort(key=lambda name: (order.get(name, len(order)), name))
    return ["prevalens", *(f"prevalens.{name}" for name in names)]


def declares(path: Path) -> bool:
    """Whether a module has ``__all__``; told without importing it."""
    assignments = (n for n in ast.parse(path.read_text("utf-8")).body if isinstance(n, ast.Assign))
    return any(ast.unparse(n.targets[0]) == "__all__" for n in assignments)


def public_names(room: str) -> list[str]:
    """The names in ``__all__``, without modules, which have pages of their own."""
    module = importlib.import_module(room)
    return [
        name
        for name in module.__all__
        if name != "__version__" and not inspect.ismodule(getattr(module, name))
    ]


def pages() -> dict[str, str]:
    """All pages, and the one that lists them."""
    found = {f"reference/api/{room}.md": page(room) for room in rooms()}
    return found | {"reference/python.md": index()}


def page(room: str) -> str:
    """What the docstring of the package says, then every name."""
    module = importlib.import_module(room)
    parts = [f"# {room}\n", directive(f".. automodule:: {room}\n   :no-members:")]
    for name in public_names(room):
        parts += [f"## {name}\n", directive(_documented(f"{room}.{name}", getattr(module, name)))]
    return "\n".join(parts)


def _documented(name: str, value: object) -> str:
    if inspect.isclass(value):
        return f".. autoclass:: {name}\n   :members:"
    return f".. {'autofunction' if callable(value) else 'autodata'}:: {name}"


def directive(text: str) -> str:
    """A directive of reStructuredText in a page of Markdown."""
    return f"```{{eval-rst}}\n{text}\n```\n"


def index() -> str:
    """A table of all packages with their public names."""
    lines = [_INTRODUCTION, "| package | public names |", "|---|---|"]
    for room in rooms():
        link = f"api/{room}.md"
        names = ", ".join(f"[`{name}`](#{room}.{name})" for name in public_names(room))
        lines.append(f"| [`{room}`]({link}) | {names} |")
    tree = ["", "```{toctree}", ":hidden:", "", *(f"api/{room}" for room in rooms()), "```"]
    return "\n".join([*lines, *tree]) + "\n"


_INTRODUCTION = """\
# Python

Every public name, by the package it is imported from. The [glossary](glossary.md) explains the
terms.
"""
