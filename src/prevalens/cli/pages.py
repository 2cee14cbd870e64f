"""Pages of an experiment's results: the options that ask for them, and how they are written."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from prevalens.cli.options import together
from prevalens.model.writing import check_writable, writing
from prevalens.reporting import Section, grids_of, latex_document, markdown_page, page

__all__ = ["FILE", "Pages", "page_options", "write_text"]

#: The type of options that name a file to write.
FILE = click.Path(dir_okay=False, path_type=Path)


@dataclass(frozen=True)
class Pages:
    """Where to write the pages; None for those that nobody asked for."""

    html: Path | None = None
    markdown: Path | None = None
    latex: Path | None = None

    def __bool__(self) -> bool:
        return any(self._paths())

    def _paths(self) -> list[Path]:
        found = (getattr(self, field.name) for field in fields(self))
        return [path for path in found if path is not None]

    def check(self) -> None:
        """Refuse a place that cannot be written to, before hours of work."""
        for path in self._paths():
            check_writable(path)

    def write(self, title: str, sections: Sequence[Section]) -> None:
        """Write every page asked for, and say so."""
        if self.html is not None:
            write_text(self.html, page(title, sections))
        if self.markdown is not None:
            write_text(self.markdown, markdown_page(title, sections))
        if self.latex is not None:
            write_text(self.latex, latex_document(grids_of(sections)))


def page_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Files for the results as pages; the command gets one `pages`."""

    @functools.wraps(command)
    def writes(*, html: Any, markdown: Any, latex: Any, **others: Any) -> Any:
        return command(pages=Pages(html, markdown, latex), **others)

    return together(
        click.option(
            "--html", type=FILE, help="Write a page with tables and charts; it opens offline."
        ),
        click.option("--markdown", type=FILE, help="Write the tables as Markdown."),
        click.option("--latex", type=FILE, help="Write the tables as a LaTeX document."),
    )(writes)


def write_text(path: Path, content: str) -> None:
    """The whole file, or the old one."""
    with writing(path) as file:
        file.write(content.encode("utf-8"))
    click.echo(f"Wrote {path}.", err=True)
