"""Tables on the screen."""

from __future__ import annotations

import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table
from tqdm import tqdm

from prevalens.errors import InputError
from prevalens.model.progress import Step

__all__ = ["Duration", "plain_table", "said_warnings", "say_note", "shown_steps", "ticking_steps"]


def plain_table(
    left: Iterable[str] = (), right: Iterable[str] = (), *, title: str | None = None
) -> Table:
    """A table without rows: columns of words, then columns of figures."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1))
    for name in left:
        table.add_column(name)
    for name in right:
        table.add_column(name, justify="right")
    return table


@contextmanager
def shown_steps() -> Iterator[Callable[[Step], None]]:
    """A bar on standard error for as long as the work takes; nothing where nobody looks."""
    with tqdm(
        total=1,
        disable=not sys.stderr.isatty(),
        leave=False,
        bar_format="{desc} |{bar}| {elapsed}",
        delay=1,
    ) as bar:

        def show(step: Step) -> None:
            words = f"{step.stage}: {step.detail}" if step.detail else step.stage
            bar.set_description_str(words, refresh=False)
            # Of unknown length: an empty bar, not that of the stage before.
            bar.total, bar.n = (step.total, step.done) if step.total else (1, 0)
            bar.refresh()

        yield show


_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def say_note(text: str) -> None:
    """One line on standard error."""
    click.echo(f"prevalens: note: {text}", err=True)


@contextmanager
def said_warnings() -> Iterator[None]:
    """Every warning of the body once, as a line on standard error."""
    said: set[str] = set()

    def say(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in said:
            said.add(text)
            say_note(text)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = say
        yield


@contextmanager
def ticking_steps() -> Iterator[Callable[[Step], None]]:
    """As `shown_steps`, and the time runs on while a long step tells nothing."""
    stop = threading.Event()
    last: list[Step] = []
    with shown_steps() as show:

        def note(step: Step) -> None:
            last[:] = [step]
            show(step)

        def tick() -> None:
            while not stop.wait(1.0):
                if last:
                    show(last[0])

        ticker = threading.Thread(target=tick, daemon=True)
        ticker.start()
        try:
            yield note
        finally:
            stop.set()
            ticker.join()


class Duration(click.ParamType):  # type: ignore[type-arg]
    """Seconds, or a number with s, m or h: ``90``, ``10m``, ``1.5h``."""

    name = "duration"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:  # noqa: ARG002
        """Seconds of what was typed."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", str(value).lower())
        if match is None or float(match.group(1)) == 0:
            raise InputError(f"A time is written as 90s, 10m or 1.5h; got {value!r}.")
        return float(match.group(1)) * _UNITS[match.group(2)]
