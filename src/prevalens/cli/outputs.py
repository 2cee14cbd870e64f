"""Which files a command may write: no input ever, no file of another kind without --force."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import click

from prevalens.errors import InputError
from prevalens.files import check_writable
from prevalens.model.rows import ENDINGS
from prevalens.tables.opening import expand

force_option = click.option(
    "--force",
    is_flag=True,
    help="Overwrite existing files of another kind (inputs are never overwritten).",
)


@dataclass(frozen=True)
class OutputKind:
    """A kind of file that commands write.

    Attributes
    ----------
    name : str
        What it is called in sentences.
    recognises : callable
        Given the path of an existing file, whether this kind may replace it.
    """

    name: str
    recognises: Callable[[Path], bool]


def is_model(path: Path) -> bool:
    """Whether a file is a model, by its content."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "manifest.json" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return False


def _is_table(path: Path) -> bool:
    """Whether results may replace a file; a workbook must have the sheets that results have."""
    if path.suffix.lower() != ".xlsx":
        return _by_suffix(*ENDINGS)(path)
    try:
        with zipfile.ZipFile(path) as archive:
            book = archive.read("xl/workbook.xml")
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, LookupError, RuntimeError):
        return False
    return b'name="estimates"' in book and b'name="batches"' in book


def _by_suffix(*suffixes: str) -> Callable[[Path], bool]:
    return lambda path: path.suffix.lower() in suffixes and not is_model(path)


def is_summary(path: Path) -> bool:
    """Whether a file is a summary, by its content."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "header.json" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return False


MODEL = OutputKind("model", is_model)
SUMMARY = OutputKind("summary", is_summary)
PAGE = OutputKind("page", _by_suffix(".html", ".htm"))
TABLE = OutputKind("table of results", _is_table)
DOCUMENT = OutputKind("document", _by_suffix(".md", ".markdown", ".tex", ".txt"))


def check_outputs(
    outputs: Iterable[tuple[OutputKind, Path | None]],
    inputs: Iterable[str | Path] = (),
    *,
    force: bool = False,
) -> None:
    """Refuse files that must not or cannot be written, before the work is done.

    Parameters
    ----------
    outputs : pairs of OutputKind and path
        None stands for an output that was not asked for.
    inputs : iterable of path, pattern or folder
        What the command reads; an output may be none of these files, by whatever name.
    force : bool
        Allow to replace an existing file of another kind.
    """
    asked = [(kind, path) for kind, path in outputs if path is not None]
    given = [str(path) for path in inputs]
    read = [path for path in (expand(given) if asked and given else ()) if path.exists()]
    for place, (kind, path) in enumerate(asked):
        check_writable(path)
        if any(path.resolve() == other.resolve() for _, other in asked[:place]):
            raise InputError(f"{path} is named for two outputs; name a file for each.")
        if not path.exists():
            continue
        if any(path.samefile(source) for source in read):
            raise InputError(
                f"{path} is an input of this command, so it is not overwritten; "
                "name another file for the output."
            )
        if path.is_file() and path.stat().st_size and not (force or kind.recognises(path)):
            raise InputError(
                f"{path} exists and is not a {kind.name} that this command writes; "
                "name another file, or overwrite it with --force."
            )
