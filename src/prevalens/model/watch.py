"""Streams: batches whose items keep coming, counted once whatever is interrupted.

The state is one summary file. It names the files that it has counted, and it is replaced as a
whole, so a file is either in it or not, also after a kill or a loss of power.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from prevalens.errors import FormatError, InputError
from prevalens.files import digest
from prevalens.model.model import Model
from prevalens.model.summarise import summarise_file, summarise_tables
from prevalens.summary import Summary
from prevalens.tables.formats import as_table
from prevalens.tables.opening import Reading, expand

#: Seconds for which a file must not have changed before it is read.
SETTLED = 1.0
#: Lines that are counted at a time.
LINES = 1000


class Stream:
    """Adds items to the summary in a file.

    Parameters
    ----------
    model : Model
    state : path
        The summary; it is read if it exists and written after every addition.
    settings : dict
        Which items are a batch: arguments of `grouping_of`.
    reading : Reading, optional
    """

    def __init__(
        self,
        model: Model,
        state: str | Path,
        settings: dict[str, Any],
        *,
        reading: Reading | None = None,
    ) -> None:
        self.model, self.state, self.settings = model, Path(state), settings
        self.reading = reading or Reading()
        model.quantifier.summed_statistics()
        self.summary: Summary | None = None
        if self.state.exists():
            self.summary = Summary.load(self.state)
            model.quantifier.check_made(self.summary)
        #: Size and time of files that were looked at, so that each is read once.
        self._seen: dict[Path, tuple[int, float]] = {}

    def _add(self, part: Summary) -> None:
        whole = part if self.summary is None else self.summary + part
        whole.save(self.state)
        self.summary = whole

    def add_new_files(self, folder: str | Path) -> list[Path]:
        """Count the files of a folder that are not counted yet; returns these."""
        added = []
        for path in _tables(Path(folder)):
            known = path.stat()
            mark = (known.st_size, known.st_mtime)
            if self._seen.get(path) == mark or time.time() - known.st_mtime < SETTLED:
                continue
            self._seen[path] = mark
            if self.summary is not None and digest(path) in self.summary.sources:
                continue
            name = "" if any(self.settings.values()) else path.name.split(".")[0]
            self._add(summarise_file(self.model, str(path), name, self.settings, self.reading))
            added.append(path)
        return added

    def add_lines(self, lines: Iterable[str]) -> Iterator[int]:
        """Count items line by line: JSON objects, or CSV with a header; yields how many."""
        records = _records(iter(lines))
        while rows := list(islice(records, LINES)):
            table = as_table(rows, name="standard input")
            part = summarise_tables(self.model, [table], self.settings)
            if not any(self.settings.values()):
                part.names = ("stream",)
            self._add(part)
            yield len(rows)


def _tables(folder: Path) -> list[Path]:
    """The tables in a folder; none if there are none yet."""
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder; name a folder, or - for standard input.")
    try:
        return expand(folder)
    except InputError:
        return []


def _records(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Items of lines of JSON objects, or of CSV with a header."""
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        return
    if not first.lstrip().startswith("{"):
        yield from csv.DictReader(chain([first], lines))
        return
    for number, line in enumerate(chain([first], lines), 1):
        if line.strip():
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            if not isinstance(record, dict):
                raise FormatError(f"Standard input, line {number}: no JSON object: {line[:60]!r}.")
            yield record


def follow(
    stream: Stream, folder: str | Path, *, every: float, stop: Callable[[], bool]
) -> Iterator[list[Path]]:
    """Look for new files again and again until `stop`; yields those that were counted."""
    while not stop():
        added = stream.add_new_files(folder)
        if added:
            yield added
        if stop():
            return
        time.sleep(every)
