"""Public names of a package that are loaded when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    Parameters
    ----------
    package : str
    modules : mapping of str to str
        By public name, the module that defines it; a submodule of the package stands for itself.

    Examples
    --------
    >>> load, _ = lazy_names("xml", {"pi": "math", "dom": "xml.dom"})
    >>> load("pi"), load("dom").__name__
    (3.141592653589793, 'xml.dom')
    """

    def load(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(modules[name])
        return module if modules[name] == f"{package}.{name}" else getattr(module, name)

    def names() -> list[str]:
        return sorted(modules)

    return load, names
