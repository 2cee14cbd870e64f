"""Console output: tables, progress bars, notes and durations."""

from __future__ import annotations

import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table
from tqdm import tqdm

from prevalens.errors import InputError

if TYPE_CHECKING:
    from prevalens.model.progress import Step

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def plain_table(
    left: Iterable[str] = (), right: Iterable[str] = (), *, title: str | None = None
) -> Table:
    """An empty table with left-aligned columns, then right-aligned columns."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1))
    for name in left:
        table.add_column(name)
    for name in right:
        table.add_column(name, justify="right")
    return table


@contextmanager
def progress_bar() -> Iterator[Callable[[Step], None]]:
    """A progress bar on standard error, if that is a terminal; its clock runs during long steps."""
    stop = threading.Event()
    with tqdm(
        total=1,
        disable=not sys.stderr.isatty(),
        leave=False,
        bar_format="{desc} |{bar}| {elapsed}",
        delay=1,
    ) as bar:

        def show(step: Step) -> None:
            message = f"{step.stage}: {step.detail}" if step.detail else step.stage
            bar.set_description_str(message, refresh=False)
            # A stage of unknown length has an empty bar, not that of the stage before.
            bar.total, bar.n = (step.total, step.done) if step.total else (1, 0)
            bar.refresh()

        def tick() -> None:
            while not stop.wait(1.0):
                bar.refresh()

        ticker = threading.Thread(target=tick, daemon=True)
        ticker.start()
        try:
            yield show
        finally:
            stop.set()
            ticker.join()


_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def print_note(text: str) -> None:
    """Print one line on standard error."""
    click.echo(f"prevalens: note: {text}", err=True)


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print every warning of the body once, as a line on standard error."""
    printed: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in printed:
            printed.add(text)
            print_note(text)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield


class Duration(click.ParamType):  # type: ignore[type-arg]
    """Seconds, or a number with s, m or h: ``90``, ``10m``, ``1.5h``."""

    name = "duration"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:  # noqa: ARG002
        """The number of seconds."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", str(value).lower())
        if match is None or float(match.group(1)) == 0:
            raise InputError(f"A time is written as 90s, 10m or 1.5h; got {value!r}.")
        return float(match.group(1)) * _UNITS[match.group(2)]
