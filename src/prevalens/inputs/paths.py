"""Which files are meant: names, patterns, folders."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path

from prevalens.errors import InputError
from prevalens.inputs.opening import FORMATS
from prevalens.inputs.streams import file_ending

__all__ = ["expand"]

_WILD = "*?["


def expand(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """The files that names, patterns and folders stand for, each once, in order.

    A folder stands for the tables in it, sorted by name; a pattern such as ``2024-*.csv`` or
    ``**/*.csv`` for the files that fit. ``-`` is standard input and stays as it is.

    Examples
    --------
    >>> expand("-")
    [PosixPath('-')]
    """
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    if not given:
        raise InputError("No file is named; give at least one.")
    found = [file for one in given for file in _expanded(Path(one))]
    return list(dict.fromkeys(found))


def _expanded(path: Path) -> list[Path]:
    if path.is_dir():
        inside = sorted(file for file in path.iterdir() if _is_table(file))
        if not inside:
            endings = ", ".join(FORMATS)
            raise InputError(f"The folder {path} holds no table; tables end in {endings}.")
        return inside
    if path.exists() or str(path) == "-" or not any(mark in str(path) for mark in _WILD):
        return [path]
    fitting = sorted(Path(one) for one in glob.glob(str(path), recursive=True))  # noqa: PTH207
    files = [file for file in fitting if file.is_file()]
    if not files:
        raise InputError(f"No file fits the pattern {str(path)!r}.")
    return files


def _is_table(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".") and file_ending(path) in FORMATS
