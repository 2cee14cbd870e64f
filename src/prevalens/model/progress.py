"""Progress and cancellation of long work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from prevalens.errors import PrevalensError
from prevalens.tables.table import Chunk, Table


class CancelledError(PrevalensError):
    """The work was cancelled from outside; nothing was written."""


@dataclass(frozen=True)
class Step:
    """Progress of the work.

    Attributes
    ----------
    stage : str
        Current stage: "reading", "fitting", "scoring", "estimating".
    done : int
    total : int or None
        In the same unit as `done`, where it is known.
    n_items : int
        Items handled so far.
    detail : str
        A short message on what comes next within the stage; may be empty.
    """

    stage: str
    done: int = 0
    total: int | None = None
    n_items: int = 0
    detail: str = ""


#: Called with every step.
Progress: TypeAlias = Callable[[Step], None]
#: Returns True if the work is to stop.
Cancelled: TypeAlias = Callable[[], bool]


class Watch:
    """Reports progress, and stops when cancelled.

    Parameters
    ----------
    progress, cancelled : callable, optional
    """

    def __init__(self, progress: Progress | None, cancelled: Cancelled | None) -> None:
        self._progress = progress
        self._cancelled = cancelled

    def step(
        self,
        stage: str,
        done: int = 0,
        total: int | None = None,
        n_items: int = 0,
        *,
        detail: str = "",
    ) -> None:
        """Report a step; raise if the work is cancelled."""
        self.check()
        if self._progress is not None:
            self._progress(Step(stage, done, total, n_items, detail))

    def check(self) -> None:
        """Raise if the work is cancelled."""
        if self._cancelled is not None and self._cancelled():
            raise CancelledError("The work was cancelled.")

    def within(
        self, stage: str, done: int = 0, total: int | None = None, n_items: int = 0
    ) -> Callable[[str], None]:
        """Report a step; the returned callback reports messages within it."""
        self.step(stage, done, total, n_items)
        return lambda detail: self.step(stage, done, total, n_items, detail=detail)

    def over(
        self,
        stage: str,
        tables: Iterable[Table],
        columns: Iterable[str],
        scores: Collection[str] = (),
    ) -> Iterator[tuple[Table, Chunk]]:
        """The chunks of several tables, with progress over all of them; see `Table.chunks`."""
        tables, columns = list(tables), list(columns)
        sizes = [table.total for table in tables]
        total = sum(size or 0 for size in sizes) if all(sizes) else None
        before = n_items = 0
        for table in tables:
            for chunk in table.chunks(columns, scores=scores):
                n_items += len(chunk)
                self.step(stage, before + chunk.position, total, n_items)
                yield table, chunk
            before += table.total or 0
