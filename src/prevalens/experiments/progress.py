"""Progress of a run: a bar or lines, and an estimate of the time that is left."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Self

import numpy as np
from tqdm import tqdm

from prevalens.experiments.cells import Cell
from prevalens.validation import FloatArray

__all__ = ["Durations", "Progress", "in_words"]

#: Pulls a dataset or method of which little is known towards the average one.
_SHRINK = 0.05


class Durations:
    """How long cells take, judged by those that are done.

    The logarithm of a cell's seconds is taken as a part of its dataset plus a part of its
    method plus a part of its protocol: slow data with a slow method are slower than either.

    Examples
    --------
    >>> from prevalens.experiments.data import Source
    >>> from prevalens.experiments.specs import MethodSpec, ProtocolSpec
    >>> def cell(dataset, method):
    ...     return Cell(Source(dataset), MethodSpec(method, method), ProtocolSpec("p", "p"), 0)
    >>> durations = Durations()
    >>> for dataset, method, seconds in [("a", "x", 1), ("a", "y", 10), ("b", "x", 2)]:
    ...     durations.add(cell(dataset, method), seconds)
    >>> 15 < durations.expected([cell("b", "y")]) < 25
    True
    """

    def __init__(self) -> None:
        self._words: list[tuple[str, ...]] = []
        self._logs: list[float] = []

    def add(self, cell: Cell, seconds: float) -> None:
        """Note how long a cell took."""
        self._words.append(_words(cell))
        self._logs.append(float(np.log(max(seconds, 1e-3))))

    def expected(self, cells: Sequence[Cell]) -> float | None:
        """Seconds that cells will take one after the other; None if nothing is known."""
        if not self._logs:
            return None
        words = sorted({word for pair in self._words for word in pair})
        columns = {word: j for j, word in enumerate(words)}
        known = _indicators(self._words, columns)
        mean = np.mean(self._logs)
        normal = known.T @ known + _SHRINK * np.eye(len(columns))
        effects = np.linalg.solve(normal, known.T @ (np.asarray(self._logs) - mean))
        wanted = _indicators([_words(cell) for cell in cells], columns)
        return float(np.exp(mean + wanted @ effects).sum())


def _words(cell: Cell) -> tuple[str, ...]:
    # The first of several protocols pays for the training of all.
    return f"dataset {cell.dataset}", f"method {cell.method.name}", f"under {cell.protocol.name}"


def _indicators(words: Sequence[tuple[str, ...]], columns: dict[str, int]) -> FloatArray:
    matrix = np.zeros((len(words), len(columns)))
    for row, pair in enumerate(words):
        for word in pair:
            if word in columns:
                matrix[row, columns[word]] = 1.0
    return matrix


def in_words(seconds: float | None) -> str:
    """A duration as people say it.

    Examples
    --------
    >>> in_words(1.23), in_words(12.3), in_words(150), in_words(9000), in_words(None)
    ('1.2 s', '12 s', '2 min', '2.5 h', '?')
    """
    if seconds is None:
        return "?"
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class Progress:
    """Shows how far a run is: a bar on a terminal, a line per cell elsewhere.

    Parameters
    ----------
    pending : list of Cell
        What is to be done.
    durations : Durations
        What is known of cells done before.
    n_jobs : int
        How many cells are computed at the same time.
    enabled : bool
    """

    def __init__(
        self, pending: Sequence[Cell], durations: Durations, *, n_jobs: int, enabled: bool
    ) -> None:
        self._pending = list(pending)
        self._total = len(pending)
        self._durations = durations
        self._n_jobs = n_jobs
        self._lines = enabled and not sys.stderr.isatty()
        self._bar = tqdm(
            total=self._total,
            desc="Cells",
            unit="cell",
            disable=not enabled or self._lines or not pending,
            bar_format="{desc}: {n}/{total} |{bar}| {elapsed}{postfix}",
        )

    def __enter__(self) -> Self:
        self._show("")
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def done(self, cell: Cell, seconds: float) -> None:
        """Tell of a cell that has been stored."""
        self._durations.add(cell, seconds)
        self._step(cell, in_words(seconds))

    def failed(self, cell: Cell) -> None:
        """Tell of a cell that has failed."""
        self._step(cell, "failed")

    def _step(self, cell: Cell, what: str) -> None:
        self._pending.remove(cell)
        self._bar.update()
        self._show(f"{cell}: {what}")

    def _show(self, text: str) -> None:
        left = self._durations.expected(self._pending)
        left_words = f"about {in_words(left and left / self._n_jobs)} left"
        self._bar.set_postfix_str(left_words)
        if self._lines and text:
            position = self._total - len(self._pending)
            print(f"{position}/{self._total} {text}; {left_words}", file=sys.stderr, flush=True)
