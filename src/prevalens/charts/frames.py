"""frame: columns as a pandas or polars frame."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from prevalens.validation import InputError, check_choice

__all__ = ["frame"]


def frame(columns: Mapping[str, Sequence[Any]], backend: str = "pandas") -> Any:
    """A frame of columns.

    Parameters
    ----------
    columns : mapping of name to sequence
    backend : {"pandas", "polars"}

    Examples
    --------
    >>> frame({"label": ["spam"], "prevalence": [0.5]}).shape
    (1, 2)
    """
    check_choice(backend, "backend", ("pandas", "polars"))
    try:
        library = importlib.import_module(backend)
    except ImportError as error:
        raise InputError(f'A frame needs {backend}: pip install "prevalens[frames]".') from error
    return library.DataFrame(dict(columns))
