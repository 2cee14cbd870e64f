"""Progress and cancellation of long work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from tqdm.auto import tqdm

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


@contextmanager
def progress_bar() -> Iterator[Callable[[Step | str], None]]:
    """A progress bar, on a terminal or in a notebook; its clock runs during long steps.

    In a stage of known length it also shows the time that the rest of the stage will take.

    Yields
    ------
    callable
        To be given as `progress` to `fit_files`, `quantify_files` and all other functions of this
        package that have this argument, also to ``Quantifier.fit``.

    Examples
    --------
    >>> with progress_bar() as progress:  # doctest: +SKIP
    ...     model = fit_files("train.csv", text="text", tags="tags", progress=progress)
    """
    stop = threading.Event()
    # disable=None: no bar if standard error is neither a terminal nor a notebook.
    with tqdm(
        total=1,
        disable=None,
        leave=False,
        bar_format="{desc} |{bar}| {elapsed}{postfix}",
        delay=1,
    ) as bar:

        def tick() -> None:
            while not stop.wait(1.0):
                bar.refresh()

        ticker = threading.Thread(target=tick, daemon=True)
        ticker.start()
        try:
            yield _Display(bar).show
        finally:
            stop.set()
            ticker.join()


class _Display:
    """Shows steps in a bar of tqdm."""

    def __init__(self, bar: tqdm) -> None:
        self._bar = bar
        self._stage, self._began = "", time.monotonic()

    def show(self, step: Step | str) -> None:
        """Show a step; of a message alone, how far the work is is not known."""
        step = Step(step) if isinstance(step, str) else step
        if step.stage != self._stage:
            self._stage, self._began = step.stage, time.monotonic()
        message = f"{step.stage}: {step.detail}" if step.detail else step.stage
        self._bar.set_description_str(message, refresh=False)
        left = time_left(step, time.monotonic() - self._began)
        self._bar.set_postfix_str(left, refresh=False)
        # A stage of unknown length has an empty bar, not that of the stage before. The total is
        # always 1, as the widget of a notebook keeps that of its start.
        self._bar.n = step.done / step.total if step.total else 0
        self._bar.refresh()


def time_left(step: Step, seconds: float) -> str:
    """The time until the end of a stage that has taken some seconds so far, if it can be told."""
    if not step.total or not 0 < step.done < step.total or seconds < 1:
        return ""
    left = seconds * (step.total - step.done) / step.done
    return f"about {tqdm.format_interval(left)} left"
