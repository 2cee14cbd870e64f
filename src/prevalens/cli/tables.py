"""Tables on the screen."""

from __future__ import annotations

from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.table import Table

__all__ = ["plain_table"]


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
