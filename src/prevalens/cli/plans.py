"""What the commands that run a plan share: options, the choice of cells, and pages."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from prevalens.cli.console import printed_warnings
from prevalens.cli.options import Decorator, together
from prevalens.cli.outputs import DOCUMENT, PAGE, OutputKind, check_outputs, force_option
from prevalens.cluster import LOCAL
from prevalens.errors import InputError
from prevalens.experiments.cells import Cell
from prevalens.experiments.plan import Plan
from prevalens.experiments.runner import RunOutcome, run_plan
from prevalens.experiments.specs import suggestion
from prevalens.experiments.store import Store
from prevalens.experiments.workers import dask_executor
from prevalens.reports.page import Section, grids_of, markdown_page, page, write_page
from prevalens.reports.render import latex_document


def run_with_messages(
    plan: Plan,
    store: Store,
    *,
    cells: Sequence[Cell],
    jobs: int | None,
    scheduler: str | None,
    **options: Any,
) -> RunOutcome:
    """Call `run_plan`; if the user interrupts it, say where the finished cells are.

    Parameters
    ----------
    plan : Plan
    store : Store
    cells : list of Cell
    jobs : int or None
        Processes on this machine; None is one.
    scheduler : str or None
        Where to compute instead: the address of a Dask scheduler, or ``local``.
    **options
        Arguments of `run_plan`.
    """
    if jobs is not None and scheduler not in (None, LOCAL):
        raise InputError(
            f"--jobs {jobs} starts processes on this machine, but --scheduler {scheduler} computes "
            "elsewhere; leave one of them out."
        )
    try:
        with printed_warnings():
            if scheduler is None:
                return run_plan(plan, store, cells=cells, n_jobs=jobs, **options)
            with dask_executor(scheduler, n_workers=jobs or 1, cells=cells) as executor:
                return run_plan(plan, store, cells=cells, executor=executor, **options)
    except KeyboardInterrupt:
        click.echo(
            f"\nStopped. Finished cells are in {store.folder}; the same command goes on there.",
            err=True,
        )
        raise


_FIELDS = ("dataset", "method", "variant", "protocol", "seed")

#: Exit code if some cells failed.
FAILED = 1
#: The type of options that name a file to write.
FILE = click.Path(dir_okay=False, path_type=Path)


def run_options(default_store: str) -> Decorator:
    """Return the options of a command that runs a plan.

    The command receives them as `folder`, `jobs`, `scheduler`, `only`, `listing` and `no_run`.
    """
    return together(
        click.option(
            "--store",
            "folder",
            type=click.Path(file_okay=False, path_type=Path),
            help=f"Folder of the results. Default: {default_store}.",
        ),
        click.option(
            "--jobs",
            type=int,
            show_default="1",
            help="Number of processes; -1 is one per core. The results do not depend on it.",
        ),
        click.option(
            "--scheduler",
            metavar="ADDRESS|local",
            help="Compute on the Dask cluster of the scheduler at this address, such as "
            "tcp://host:8786, or on --jobs local Dask workers. The results do not depend on it.",
        ),
        click.option(
            "--only",
            multiple=True,
            metavar="FIELD=VALUE,...",
            help=f"Select cells by field: {', '.join(_FIELDS)}. May be given several times.",
        ),
        click.option(
            "--list", "listing", is_flag=True, help="List the cells and their states, and exit."
        ),
        click.option("--no-run", is_flag=True, help="Compute nothing; report the finished cells."),
    )


def chosen_cells(cells: Sequence[Cell], only: Sequence[str]) -> list[Cell]:
    """Select the cells whose fields have one of the values asked for.

    Parameters
    ----------
    cells : list of Cell
    only : list of str
        The values of ``--only``: ``field=value``, several of them separated by commas.
    """
    wanted: dict[str, list[str]] = {}
    for text in only:
        # Methods contain commas too; only a comma before another field separates.
        for part in re.split(rf",(?=(?:{'|'.join(_FIELDS)})=)", text):
            field, equals, value = part.partition("=")
            if not equals or field not in _FIELDS:
                raise InputError(
                    f"--only takes FIELD=VALUE with a field of {', '.join(_FIELDS)}; got {part!r}."
                )
            wanted.setdefault(field, []).append(value)
    for field, values in wanted.items():
        _check_values(field, values, {cell_fields(cell)[field] for cell in cells})
    return [
        cell
        for cell in cells
        if all(cell_fields(cell)[field] in values for field, values in wanted.items())
    ]


def _check_values(field: str, values: Sequence[str], known: set[str]) -> None:
    for value in values:
        if value not in known:
            raise InputError(
                f"--only {field}={value}: the plan has no such {field}; {suggestion(value, known)}"
            )


def cell_fields(cell: Cell) -> dict[str, str]:
    """The fields that distinguish a cell from the others of its plan."""
    return {
        "dataset": cell.dataset,
        "method": cell.method.label,
        "variant": cell.method.variant,
        "protocol": cell.protocol.name,
        "seed": str(cell.seed),
    }


@dataclass(frozen=True)
class Pages:
    """Paths of the pages to write; None for a page that was not asked for."""

    html: Path | None = None
    markdown: Path | None = None
    latex: Path | None = None
    force: bool = False

    def __bool__(self) -> bool:
        return any(path is not None for path in (self.html, self.markdown, self.latex))

    def check(self, inputs: Sequence[Path], *others: tuple[OutputKind, Path | None]) -> None:
        """Raise an error if a page must not be written, before hours of work."""
        pages = (PAGE, self.html), (DOCUMENT, self.markdown), (DOCUMENT, self.latex)
        check_outputs([*pages, *others], inputs, force=self.force)

    def write(self, title: str, sections: Sequence[Section]) -> None:
        """Write every page that was asked for and print its path."""
        if self.html is not None:
            write_text(self.html, page(title, sections))
        if self.markdown is not None:
            write_text(self.markdown, markdown_page(title, sections))
        if self.latex is not None:
            write_text(self.latex, latex_document(grids_of(sections)))


def page_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name page files; the command receives them as `pages`."""

    @functools.wraps(command)
    def writes(*, html: Any, markdown: Any, latex: Any, force: bool, **others: Any) -> Any:
        return command(pages=Pages(html, markdown, latex, force), **others)

    return together(
        click.option(
            "--html",
            type=FILE,
            help="Write an HTML page with tables and charts, without external files.",
        ),
        click.option("--markdown", type=FILE, help="Write the tables as Markdown."),
        click.option("--latex", type=FILE, help="Write the tables as a LaTeX document."),
        force_option,
    )(writes)


def write_text(path: Path, content: str) -> None:
    """Write a file completely or leave the old one in place."""
    write_page(path, content)
    click.echo(f"Wrote {path}.", err=True)
